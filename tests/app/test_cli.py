"""The command line as a contract: exit codes, one line of error, JSON with the keys that scripts rely on."""

import json
import subprocess
import sys

import pytest

from app.workspace import workspace
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import command, environment


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "goodput.jsonl"
    path.write_bytes(made_runs.goodput_log())
    return path


def test_ingest_then_show_in_real_processes(tmp_path, log):
    store = tmp_path / "s"
    done = command("ingest", log, "--name", "first", "--chips", 8, "--tag", "team=a", "--json", "--store", store)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert set(told) == {"run_id", "existed", "tables", "files", "warnings", "alerts"} and told["existed"] is False
    [file] = told["files"]
    assert (file["name"], file["format"], file["state"]) == ("goodput.jsonl", "goodput_log", "read")
    assert (file["bytes"], file["title"], file["reason"]) == (log.stat().st_size, "goodput log", "")
    assert told["tables"]["steps"] == 60 and isinstance(told["warnings"], list)

    shown = command("show", "first", "ledger", "--option", "usd_per_chip_hour=2", "--json", CHIPLEDGER_STORE=str(store))
    ledger = json.loads(shown.stdout)
    assert {"run_id", "chips", "chip_seconds", "usd", "account", "notes", "useful_flops"} <= set(ledger)
    assert ledger["run_id"] == told["run_id"] and ledger["chips"] == 8
    assert ledger["usd"] == pytest.approx(ledger["chip_seconds"] / 3600 * 2)
    assert {"name", "chip_seconds", "share", "basis", "children"} <= set(ledger["account"])

    wrong = command("show", "nothing", "ledger", "--store", store)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: ") and wrong.stderr.count("\n") == 1

    listed = json.loads(command("--store", store, "runs", "--json").stdout)["runs"]
    assert [(r["name"], r["tags"]) for r in listed] == [("first", {"team": "a"})]


def test_steps_keys(place, capsys):
    run = made_runs.interrupted(place.store)
    code, text, _ = out(capsys, "show", run.run_id, "steps", "--json")
    told = json.loads(text)
    assert code == 0
    assert {"steps", "median_step_s", "best_step_s", "tokens_per_s_per_chip", "job_tflops_per_s_per_chip"} <= set(told)
    assert (told["steps"], told["median_step_s"], told["tokens_per_s_per_chip"]) == (251, 20.0, None)


def test_the_same_input_twice_is_one_run(place, log, capsys):
    assert out(capsys, "ingest", log)[1].startswith("Stored: run ")
    assert out(capsys, "ingest", log)[1].startswith("Already stored: run ")
    assert len(place.store.ids()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("show",),
        ("show", "x", "ledger"),
        ("ingest", "/no/such/file"),
        ("serve", "--port", "http"),
        ("ingest", __file__),
        ("catalog", "cats"),
        ("catalog", "chips", "abacus"),
        ("runs", "--colour"),
        ("serve", "--port", "99999"),
        ("ingest", __file__, "--tag", "novalue"),
        ("ingest", __file__, "--chips", "-1"),
    ],
)
def test_wrong_input_is_exit_2_with_one_error_line_and_nothing_stored(place, capsys, arguments):
    code, text, error = out(capsys, *arguments)
    assert (code, text) == (2, "")
    assert error.startswith("error: ") and error.count("\n") == 1
    assert place.store.ids() == []


def test_a_name_that_is_no_analysis_or_option_is_told_with_what_there_is(place, capsys):
    run = made_runs.interrupted(place.store)
    assert "expected one of findings, ledger" in out(capsys, "show", run.run_id, "lodger")[2]
    assert "usd_per_chip_hour" in out(capsys, "show", run.run_id, "ledger", "--option", "price=3")[2]
    assert out(capsys, "show", run.run_id, "ledger", "--option", "price")[0] == 2


def test_a_defect_is_exit_1(place, capsys, monkeypatch):
    monkeypatch.setattr("app.library.rows.library", lambda *_, **__: 1 / 0)
    code, _, error = out(capsys, "runs")
    assert code == 1
    assert "ZeroDivisionError" in error and "defect of Chipledger" in error


def test_output_that_does_not_fit_is_no_defect_and_closed_output_is_none(tmp_path):
    made_runs.interrupted(Store(tmp_path / "s"), "here")
    words = [sys.executable, "-m", "app.cli", "runs", "--json", "--store", str(tmp_path / "s")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
    said = "error: the output cannot be written (No space left on device). Is the disk full?\n"
    assert (done.returncode, done.stderr) == (2, said)
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        shell = ["sh", "-c", f'"$@" {closed}', "sh", *words]
        done = subprocess.run(shell, capture_output=True, text=True, env=environment())
        assert (done.returncode, done.stderr) == (0, "") and bool(done.stdout) == (closed == "2>&-")


def test_store_may_stand_before_or_after_the_command(tmp_path, capsys):
    made_runs.interrupted(Store(tmp_path / "s"), "here")
    assert "here" in out(capsys, "--store", tmp_path / "s", "runs")[1]
    assert "here" in out(capsys, "runs", "--store", tmp_path / "s")[1]


def test_a_store_that_is_a_file_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    code, _, error = out(capsys, "runs", "--store", tmp_path / "file")
    assert code == 2 and "cannot use this folder as a store" in error


def test_text_for_people(place, capsys):
    assert "No runs yet" in out(capsys, "runs")[1]
    run = made_runs.interrupted(place.store, "bad \x1b[31mname")
    text = out(capsys, "runs")[1]
    assert "\x1b" not in text and "256 × TPU v5p" in text
    ledger = out(capsys, "show", run.run_id, "ledger")[1]
    assert "went into steps that were kept" in ledger and "Infrastructure recovery" in ledger
    assert "9 steps were lost" in out(capsys, "show", run.run_id, "steps")[1]


def test_what_inputs_say_does_nothing_to_a_terminal_in_notes_and_errors(place, capsys):
    """Of two hosts that tell of each step one counts: a note names the other."""
    esc = "\x1b]0;x\x07"
    tables = {
        "steps": {
            "step": [s for s in range(20) for _ in "ab"],
            "host": [f"{esc}a", f"{esc}b"] * 20,
            "start_ns": [made_runs.START_NS + s * 10**9 for s in range(20) for _ in "ab"],
            "dur_ns": [10**9, 9 * 10**8] * 20,
            "attempt": [0] * 40,
        },
        "evidence": {"ts_ns": [made_runs.START_NS], "severity": ["error"], "text": [f"bad {esc} line"], "order": [0]},
    }
    run = made_runs.write(place.store, "two hosts", tables, {"chip": "v5p", "chips": 2}).run_id
    code, text, _ = out(capsys, "show", run, "steps")
    assert code == 0 and "nothing was taken from ?]0;x?" in text and not set(text) & {"\x1b", "\x07"}
    code, _, error = out(capsys, "show", run, "latency")
    assert code == 2 and "bad ?]0;x? line" in error and not set(error) & {"\x1b", "\x07"}


def test_one_broken_run_hides_no_other(place, capsys):
    made_runs.interrupted(place.store, "whole")
    (made_runs.interrupted(place.store, "broken").folder / "run.json").write_text("{")
    told = json.loads(out(capsys, "runs", "--json")[1])
    assert [r["name"] for r in told["runs"]] == ["whole", None]
    assert [bool(r["problem"]) for r in told["runs"]] == [False, True]
    assert told["runs"][0].keys() == told["runs"][1].keys()
    assert len(told["problems"]) == 1 and "not a run manifest" in told["problems"][0]
    code, text, error = out(capsys, "runs")
    assert code == 0 and "whole" in text and error.startswith("warning: ")
    assert "cannot be read" in text and "damaged" in text


def test_catalog(capsys):
    code, text, _ = out(capsys, "catalog", "chips", "v5e", "--json")
    assert code == 0 and json.loads(text)["numbers"]["bf16_flops_per_s"]["value"] == 197e12
    rows = json.loads(out(capsys, "catalog", "slices", "--json")[1])
    assert rows and {"entry", "key", "value", "unit", "source"} <= set(rows[0])
    assert "TPU v5p" in out(capsys, "catalog", "chips")[1]


def test_doctor_finds_without_making(tmp_path, capsys):
    code, text, _ = out(capsys, "doctor", "--json", "--store", tmp_path / "new" / "store")
    told = json.loads(text)
    assert code == 0 and told["store"]["writable"] and not (tmp_path / "new").exists()
    assert {p["name"] for p in told["packages"]} >= {"streamlit", "pyarrow", "jax", "xprof", "orbax-checkpoint"}
    assert all(p["version"] for p in told["packages"] if p["needed"])
    (tmp_path / "file").write_text("x")
    assert not json.loads(out(capsys, "doctor", "--json", "--store", tmp_path / "file")[1])["store"]["writable"]
    assert "streamlit" in out(capsys, "doctor", "--store", tmp_path)[1]


def test_a_closed_pipe_is_no_defect(place):
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "catalog", "chips"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    assert workspace() is place
