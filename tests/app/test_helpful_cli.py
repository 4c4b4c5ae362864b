"""The command line helps whoever meets it: help, versions, what was probably meant, errors as JSON, and `open`."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from app.cli.commands import COMMANDS, PURPOSES
from app.cli.commands import open as opening
from app.groups import GROUPS
from app.options import form_of
from app.questions import QUESTIONS
from app.questions.forms import form
from app.serve.here import FOLDER, announced, server_of
from runs.run import SCHEMA_VERSION
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import PROJECT, environment, free_port, serving

JSON_COMMANDS = [c for c in COMMANDS if any(o.name == "json" for o in c.OPTIONS)]


def test_without_arguments_it_leads_with_three_first_steps_and_names_every_command_below_its_purpose(capsys):
    code, text, error = out(capsys)
    assert (code, error) == (0, "") and text == out(capsys, "--help")[1]
    first = text.split("First steps:\n")[1].split("\n\n")[0]
    assert first.count("  chipledger ") == 3
    below = text.split("First steps:\n")[1]
    for command in COMMANDS:
        assert f"\n  {command.NAME} " in below
    heads = [head for head, names in PURPOSES.items() if {c.NAME for c in COMMANDS} & set(names.split())]
    assert [line[:-1] for line in text.splitlines() if line[:-1] in PURPOSES] == heads


def test_the_version_names_the_package_and_the_schema_of_its_runs(capsys):
    code, text, _ = out(capsys, "--version")
    assert code == 0 and text.startswith("Chipledger ") and f"(runs of schema {SCHEMA_VERSION})" in text


def test_help_of_show_lists_every_question_by_group_with_a_line_each(capsys):
    code, text, _ = out(capsys, "show", "--help")
    assert code == 0
    words = " ".join(text.split())
    for question in QUESTIONS:
        assert f" {question.name} {question.asks}" in words
    assert [line[:-1] for line in text.splitlines() if line[:-1] in GROUPS] == [
        g for g in GROUPS if {q.name for q in QUESTIONS} & set(GROUPS[g].split())
    ]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_help_of_a_question_tells_its_options_with_defaults_and_the_keys_of_its_answer(question, capsys):
    code, text, _ = out(capsys, "show", "some-run", question.name, "--help")
    assert code == 0 and text == out(capsys, "show", question.name, "-h")[1]
    options, answer = text.split("Its answer under --json:")
    for option in question.options:
        assert f"\n  {option.name} " in options
        if option.default not in (None, (), "") and not option.switch:
            assert f"default: {option.default}" in " ".join(options.split())
    assert all(f"\n  {key} " in answer for key in form(question)["properties"])


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("shw", "x", "ledger"), "Did you mean 'show'?"),
        (("show", "x", "ledgr"), "Did you mean 'ledger'?"),
        (("show", "x", "ledgr", "--help"), "Did you mean 'ledger'?"),
        (("runs", "--jsn"), "Did you mean '--json'?"),
        (("show", "reference", "ledger", "--option", "price=1"), "one of usd_per_chip_hour"),
        (("show", "reference", "mfu", "--option", "convension=6n"), "Did you mean 'convention'?"),
        (("show", "reference", "mfu", "--option", "convention=megatrn"), "Did you mean 'megatron'?"),
        (("show", "refrence", "mfu"), "Did you mean 'reference'?"),
        (("show", "live:nigth", "mfu"), "no live run 'nigth'"),
        (("whatif", "checkpont"), "no what-if 'checkpont'"),
        (("whatif", "checkpont"), "Did you mean 'checkpoint'?"),
        (("whatif", "checkpoint", "--save-ss", "3"), "Did you mean '--save-s'?"),
        (("completion", "bsh"), "Did you mean 'bash'?"),
        (("catalog", "chip"), "Did you mean 'chips'?"),
        (("catalog", "chips", "v5p", "more"), "'more' is one word too many"),
        (("note", "reference", "--delete", "9"), "`chipledger note RUN` lists them"),
        (("runs", "-json"), "Did you mean '--json'?"),
        (("searches", "s", "--sort", "name"), "--sort without a search to keep; expected --query QUERY beside it"),
        (("searches", "s", "--columns", "name"), "--columns without a search to keep"),
    ],
)
def test_what_was_probably_meant_is_said_in_the_one_line(place, capsys, words, meant):
    made_runs.interrupted(place.store, "reference")
    code, text, error = out(capsys, *words)
    assert (code, text) == (2, "") and error.startswith("error: ") and error.count("\n") == 1
    assert meant in error


def test_words_may_stand_on_either_side_of_flags(place, capsys):
    made_runs.interrupted(place.store, "reference")
    made_runs.interrupted(place.store, "other")
    for before, flags, after in (
        (("query", "reference"), ("--json",), ("select 1 as one",)),
        (("query",), ("--json", "--rows", "1"), ("reference", "select 1 as one")),
        (("note", "reference"), ("--json",), ("remember",)),
        (("compare", "reference"), ("--json",), ("other",)),
        (("compare", "reference"), ("--fail-if", "step_time>+1%"), ("other",)),
        (("runs",), ("--json", "--sort", "-name"), ("other",)),
    ):
        code, told, error = out(capsys, *before, *flags, *after)
        assert error == "" and code != 2
        if before[0] in ("compare", "runs"):  # others tell of times
            assert (code, told) == out(capsys, *before, *after, *flags)[:2]


def test_a_search_may_begin_with_what_shall_not_hold(place, capsys):
    made_runs.interrupted(place.store, "reference")
    made_runs.interrupted(place.store, "other")
    out(capsys, "star", "other")
    for words in (("-is:starred", "--json"), ("--json", "-is:starred"), ("--json", "--", "-is:starred")):
        code, told, _ = out(capsys, "runs", *words)
        assert code == 0 and [run["name"] for run in json.loads(told)["runs"]] == ["reference"]


def test_a_search_may_be_one_word_that_shall_not_hold_and_a_flag_with_one_dash_is_none(place, capsys):
    made_runs.interrupted(place.store, "reference")
    made_runs.interrupted(place.store, "other")
    for words in (("-other", "--json"), ("--json", "-other"), ("--sort", "-name", "-other", "--json")):
        code, told, _ = out(capsys, "runs", *words)
        assert code == 0 and [run["name"] for run in json.loads(told)["runs"]] == ["reference"]
    for words, said in (
        (("-json",), "no option -json here. Did you mean '--json'?"),
        (("-x",), "no option -x here."),
        (("reference", "-other"), "'-other' is one word too many."),
    ):
        code, _, error = out(capsys, "runs", *words)
        assert code == 2 and said in error
    assert "no option -other here" in out(capsys, "doctor", "-other")[2]


def _lacks(command):
    """What is said where what a command is about was not given: argparse looks at that first."""
    about = getattr(command, "ARGUMENTS", ())
    lacking = [form_of(o) for o in about if o not in getattr(command, "MAY_LACK", ())]
    every = [form_of(o) for o in about]  # argparse names those of which any number may be given, none too
    return [f"the following arguments are required: {', '.join(names)}" for names in (lacking, every)]


@pytest.mark.parametrize("command", JSON_COMMANDS, ids=lambda c: c.NAME)
def test_an_error_under_json_is_an_object_on_stdout_and_the_line_on_stderr(place, capsys, command):
    code, text, error = out(capsys, command.NAME, "--json", "--no-such-flag")
    told = json.loads(text)
    assert code == 2 and set(told) == {"error"} and set(told["error"]) == {"what", "where", "expected", "advice"}
    assert told["error"]["what"] in ("no option --no-such-flag here", *_lacks(command))
    assert error == f"error: {told['error']['what']}. {told['error']['advice']}\n"


def test_the_parts_of_an_error_under_json_are_told_apart(place, capsys):
    code, text, error = out(capsys, "show", "nothing", "ledger", "--json")
    told = json.loads(text)["error"]
    assert code == 2 and told["where"] == str(place.store.root) and "no run 'nothing'" in told["what"]
    assert told["expected"] is None and told["advice"] in error
    assert json.loads(out(capsys, "show", "nothing", "ledgr", "--json")[1])["error"]["expected"].startswith("one of ")


# open


def test_open_finds_the_server_of_this_store_and_no_other(place, tmp_path, capsys):
    run = made_runs.interrupted(place.store, "a run of ours")
    code, _, error = out(capsys, "open", "a run of")
    assert code == 2 and "no server serves this store now" in error and "chipledger serve" in error
    with serving(place.store.root) as address:
        assert out(capsys, "open", "a run of")[:2] == (0, f"{address}/findings?run={run.run_id}\n")
        assert json.loads(out(capsys, "open", "a run of", "mfu", "--json")[1]) == {
            "url": f"{address}/mfu?run={run.run_id}"
        }
        assert server_of(tmp_path / "another") is None
        assert out(capsys, "open", "a run of", "mfuu")[0] == 2
        assert "has no page" in out(capsys, "open", "a run of", "flops")[2]
    assert server_of(place.store.root) is None
    assert list((place.store.root / FOLDER).iterdir()) == []


def test_a_server_that_was_killed_is_none_and_what_it_left_is_swept(place):
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--store", str(place.store.root), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    try:
        deadline = time.monotonic() + 90
        while server_of(place.store.root) is None:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        assert server_of(place.store.root) == f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list((place.store.root / FOLDER).glob("*.json"))
    assert server_of(place.store.root) is None
    assert not list((place.store.root / FOLDER).glob("*.json"))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/../x",
        "http://user@127.0.0.1:{port}",
        "http://127.0.0.1:{port}?x=1",
        "https://127.0.0.1:{port}",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://127.0.0.1",
        "",
    ],
)
def test_an_announcement_is_the_plain_address_of_a_server_or_none(place, url):
    with http.server.HTTPServer(("127.0.0.1", 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with announced(place.store.root, f"http://127.0.0.1:{server.server_port}"):
            assert server_of(place.store.root) == f"http://127.0.0.1:{server.server_port}"
        with announced(place.store.root, url.format(port=server.server_port)):
            assert server_of(place.store.root) is None
        server.shutdown()


class Healthy(http.server.BaseHTTPRequestHandler):
    """Says of every address that it is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_what_lies_there_and_is_no_announcement_is_passed_over(place):
    folder = place.store.root / FOLDER
    with announced(place.store.root, "http://127.0.0.1:9"):  # held, and nobody answers
        for name, text in (("a.json", ""), ("b.json", "[1]"), ("c.json", '{"url": "http://[::1"}')):
            (folder / name).write_text(text)
        (folder / "d.json").mkdir()
        assert server_of(place.store.root) is None


def test_a_browser_is_opened_where_somebody_would_see_it(place, capsys, monkeypatch):
    made_runs.interrupted(place.store, "seen")
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    monkeypatch.setattr("app.serve.here.server_of", lambda store: "http://127.0.0.1:9")
    monkeypatch.setattr(opening, "desktop", lambda: True)
    out(capsys, "open", "seen", "--no-browser")
    out(capsys, "open", "seen", "--json")
    assert seen == []
    url = out(capsys, "open", "seen", "steps")[1].strip()
    assert seen == [url] and url.endswith(f"/steps?run={place.store.find('seen').run_id}")


def test_help_and_completion_of_commands_wait_for_no_package_of_numbers():
    code = (
        "import sys; from app.cli import parser; parser().format_help(); "
        "print([m for m in ('numpy', 'pyarrow', 'pandas', 'numba', 'streamlit') if m in sys.modules])"
    )
    env = {**environment(), "COLUMNS": "80", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, env=env)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
