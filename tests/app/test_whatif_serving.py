"""`whatif serving`: the contract, on the terminal and over HTTP, and what is said of what cannot be."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from app.cli import main
from app.whatif import WHATIFS
from app.whatif.serving import SERVING, answers
from app.whatif.serving.inputs import run_setup, setup
from collectors.ingest import ingest
from errors import QuestionError
from errors import format as fmt
from runs.store import Store
from simulators.serving.memory import kv_capacity_tokens
from simulators.serving.traffic import poisson
from tests.app.commands import asked_by, out

ASKED = {
    "model": "llama-3.1-8b",
    "chip": "h100",
    "chips": "1",
    "input": "500",
    "output": "50",
    "rate": "5",
    "requests": "100",
}
KEYS = {
    "ttft_s",
    "tpot_s",
    "itl_s",
    "e2e_s",
    "output_tokens_per_s",
    "per_chip",
    "kv_usage_peak",
    "bound",
    "error_band",
    "basis",
    "notes",
}


def answer(**query):
    return SERVING.answer(SERVING.from_query({**ASKED, **{k: str(v) for k, v in query.items()}}), None)


def options(**more):
    return [part for k, v in (ASKED | more).items() if v is not None for part in (f"--{k.replace('_', '-')}", v)]


def test_it_is_listed_once():
    assert [w.name for w in WHATIFS].count("serving") == 1


def test_the_contract(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(tmp_path / "none"))
    code, text, errors = out(capsys, "whatif", "serving", *options(), "--json")
    told = json.loads(text)
    assert (code, errors) == (0, "") and told.keys() >= KEYS
    assert not (tmp_path / "none").exists()
    assert told["per_chip"] == told["output_tokens_per_s"] and told["bound"] in ("compute", "memory", "overhead")
    assert told["ttft_s"]["p50"] <= told["ttft_s"]["p99"] and 0 < told["kv_usage_peak"] < 1
    low, high = told["error_band"]["tpot_s"]["mean"]
    assert low < told["tpot_s"]["mean"] < high
    assert "assumed" in told["basis"] and any("52 % and 44 %" in n for n in told["notes"])
    assert told["calibration"] is None and told["requests"] == 100 and told["refused"] == 0


def test_words_say_the_verdict_and_that_it_is_no_forecast(capsys):
    code, text, _ = out(capsys, "whatif", "serving", *options())
    assert code == 0 and text.startswith("llama3.1-8b on 1 × H100 SXM: ")
    assert "Not calibrated" in text and "time to first token" in text and "peak of the KV cache" in text


def test_two_pools_take_requests_as_they_are_told_to(monkeypatch):
    """Whichever replica a request was to go to, in two pools it went to the next in turn."""
    rng = np.random.default_rng(0)
    drawn = poisson(8, 800, 10, 10)
    prompts, outputs = np.where(rng.random(800) < 0.1, 30_000, 800), rng.integers(20, 600, 800)
    monkeypatch.setattr(answers, "traffic", lambda asked, run: replace(drawn, prompt=prompts, output=outputs))
    turns, least = (
        answer(chips=8, replicas=8, disaggregate="yes", routing=how) for how in ("round_robin", "least_loaded")
    )
    assert turns.pools == least.pools
    assert least.to_dict()["ttft_s"]["mean"] < 0.8 * turns.to_dict()["ttft_s"]["mean"]
    ends = zip(turns.band["ttft_s"]["mean"], least.band["ttft_s"]["mean"], strict=True)
    assert all(by_least < by_turns for by_turns, by_least in ends)


@pytest.mark.parametrize(("rate", "said"), [(6, True), (20, True), (1000, True), (4, False)])
def test_a_queue_that_grows_for_as_long_as_requests_come_is_told(rate, said):
    """The chip bears some 4.5 such requests a second: the further beyond it is asked, the plainer it falls behind."""
    loads = {"chip": "v5e", "precision": "int8", "input": 1000, "output": 200, "requests": 1000, "rate": rate}
    for seed in range(3):
        notes = answer(**loads, seed=seed).notes
        assert any("falls behind" in n for n in notes) == said


def test_most_of_the_time_is_more_than_half_of_it():
    found = [answer(input=tokens, output=100, rate=rate, requests=1000) for tokens, rate in ((1000, 20), (2000, 8))]
    (most, said), (part, told) = ((f.to_dict()["time_share"], SERVING.words(f).verdict.whole) for f in found)
    assert most["compute"] > 0.5 > part["compute"] > part["memory"]
    assert "Most of its steps' time goes to the matrix units." in said
    share = fmt.share(part["compute"])
    assert f"The largest part of its steps' time, {share}, goes to the matrix units." in told and "Most" not in told


def test_over_http_the_same_and_no_files():
    assert answer().to_dict()["requests"] == 100
    for name in ("trace", "out"):
        with pytest.raises(QuestionError, match=f"no parameter '{name}'"):
            SERVING.from_query(ASKED | {name: "/etc/hosts"})


def test_concurrency_prefix_and_speculation():
    loop = answer(rate="", concurrency=8, requests=40).to_dict()
    assert loop["running_peak"] == 8
    cached = answer(prefix=400).to_dict()
    assert (
        cached["prefix_hit_share"] == pytest.approx(0.8)
        and cached["ttft_s"]["mean"] < answer().to_dict()["ttft_s"]["mean"]
    )
    drafted = answer(draft=4, acceptance=0.8, cost=0.05).to_dict()
    assert drafted["acceptance"] is not None and drafted["tpot_s"]["mean"] < answer().to_dict()["tpot_s"]["mean"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"chips": ""}, "--chips"),
        ({"rate": ""}, "no traffic"),
        ({"input": ""}, "--input and --output"),
        ({"concurrency": 4}, "in 2 ways"),
        ({"model": "llama-3.1-405b"}, "weights alone"),
        ({"chip": "h1000"}, "H100"),
        ({"draft": 3}, "--acceptance"),
        ({"requests": 9_000_000}, "requests"),
        ({"rate": -1}, "--rate -1; expected a number from 1e-09 to 1,000,000,000"),
        ({"output": 60_000, "requests": 100_000}, "more than one question"),
        ({"disaggregate": "yes"}, "--replicas"),
        ({"precision": "fp5"}, "fp5"),
        ({"faster": 2}, "--faster says nothing"),
    ],
)
def test_what_cannot_be_is_refused(query, said):
    with pytest.raises(QuestionError, match=said):
        answer(**query)


def test_a_correction_of_no_run_is_refused():
    """It was dropped, and the answer was of something else than what was asked."""
    with pytest.raises(QuestionError, match="--ran corrects no run"):
        answer(ran="chips=2")


def test_a_split_that_no_engine_makes_is_said():
    told = {n: answer(chips=n).to_dict()["notes"] for n in (2, 3)}
    assert any("32 query heads, which 3 chips cannot share" in n for n in told[3])
    assert not any("query heads" in n for n in told[2])


def test_two_pools_beside_one():
    result = answer(chips=4, replicas=4, disaggregate="yes", rate=20, requests=200)
    told = result.to_dict()
    assert told.keys() >= KEYS and told["pools"] in ("1P3D", "2P2D", "3P1D") and told["transfer_s"] > 0
    assert told["together"]["chips"] == told["chips"] == 4
    assert told["pools"] in SERVING.words(result).verdict
    with pytest.raises(QuestionError, match="at a rate or from a trace"):
        answer(chips=4, replicas=4, disaggregate="yes", rate="", concurrency=4)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(store, its folder, id) of a simulated run that was written and ingested."""
    folder = tmp_path_factory.mktemp("simulated")
    made = ["whatif", "serving", *options(rate="12", requests="200", output="80"), "--out", str(folder / "out")]
    assert main(made) == 0
    store = Store(folder / "store")
    return store, folder, ingest([folder / "out"], store).run_id


def test_a_written_run_is_a_run_like_any_other(written, capsys):
    store, folder, run_id = written
    run = store.find(run_id)
    assert run.manifest.simulated and run.tables.rows("requests") == 200 and run.tables.rows("iterations") > 80
    code, text, _ = out(capsys, "--store", folder / "store", "show", run_id, "serving", "--json")
    shown = json.loads(text)
    code, text, _ = out(capsys, "whatif", "serving", *options(rate="12", requests="200", output="80"), "--json")
    told = json.loads(text)
    for name in ("ttft_s", "tpot_s", "e2e_s", "itl_s"):
        assert shown[name]["mean"] == pytest.approx(told[name]["mean"], rel=1e-6), name
    assert shown["output_tokens_per_s"] == pytest.approx(told["output_tokens_per_s"], rel=1e-6)


def test_calibrated_on_a_run_it_takes_setup_and_traffic_from_there(written, capsys):
    _, folder, run_id = written
    code, text, _ = out(capsys, "--store", folder / "store", "whatif", "serving", "--calibrate", run_id, "--json")
    told = json.loads(text)
    assert code == 0 and told["setup"]["chip"] == "H100 SXM" and told["requests"] == 200
    assert "calibrated on" in told["basis"]
    assert max(abs(e) for e in told["calibration"]["errors_held_out"].values()) < 0.08
    # the run was made with the shares that are assumed: reading prompts tells their one apart from the others
    assert told["efficiency"]["compute"] == pytest.approx(0.5, rel=0.05)
    asked = ("whatif", "serving", "--calibrate", run_id, "--chip", "h200", "--faster", 2)
    code, text, _ = out(capsys, "--store", folder / "store", *asked)
    assert code == 0 and "H200 SXM" in text and "have not seen" in text


def asked_of(written, *more):
    """(run, what is asked) of a question calibrated on the written run."""
    store, _, run_id = written
    return store.find(run_id), asked_by(SERVING, "--calibrate", run_id, *more)


def test_options_do_not_leak_into_the_run_that_is_calibrated_on(written):
    run, args = asked_of(
        written,
        "--max-sequences",
        16,
        "--chips",
        4,
        "--replicas",
        2,
        "--precision",
        "fp8",
        "--memory-utilization",
        0.5,
        "--draft",
        3,
        "--acceptance",
        0.5,
    )
    ran, wanted = run_setup(args, run), setup(args, run)
    assert (ran.chips, ran.replicas, ran.max_sequences, ran.weights_precision, ran.memory_utilization) == (
        1,
        1,
        256,
        "bf16",
        0.9,
    )
    assert ran.speculation is None and wanted.speculation.draft == 3
    assert (wanted.chips, wanted.replicas, wanted.tensor, wanted.max_sequences) == (4, 2, 2, 16)


def test_a_run_is_corrected_without_being_refused(written, capsys):
    run, args = asked_of(written, "--ran", "chips=2, tensor=1,max-sequences=64,cache-tokens=90000")
    ran = run_setup(args, run)
    assert (ran.chips, ran.tensor, ran.replicas, ran.max_sequences) == (2, 1, 2, 64)
    assert kv_capacity_tokens(ran) == 90_000
    run, args = asked_of(written, "--ran", "precision=fp8")
    assert run_setup(args, run).weights_precision == "fp8"
    for wrong in ("seats=4", "chips", "chips=none", "max-sequences=0", "memory-utilization=2"):
        with pytest.raises(QuestionError):
            run_setup(asked_of(written, "--ran", wrong)[1], run)


@pytest.mark.parametrize(
    ("facts", "expected"),  # tensor, expert, replicas, tokens of the cache
    [
        ({"tensor_parallel_size": 4}, (4, 1, 2, None)),
        ({"tensor_parallel_size": 2, "data_parallel_size": 4, "enable_expert_parallel": True}, (2, 8, 1, None)),
        ({"enable_expert_parallel": True}, (1, 8, 1, None)),
        ({"tensor_parallel_size": 8, "kv_cache_tokens": 123_456}, (8, 1, 1, 123_456)),
        ({"parallelism": {"data": 2, "tensor": 4}}, (4, 1, 2, None)),
    ],
)
def test_what_a_run_says_of_its_setup_is_used(written, facts, expected):
    _, args = asked_of(written)
    known = {"model": "qwen3-30b-a3b", "chip": "h100", "chips": 8, **facts}
    tables = asked_of(written)[0].tables
    run = SimpleNamespace(
        tables=tables,
        manifest=SimpleNamespace(name="made", facts={k: SimpleNamespace(value=v) for k, v in known.items()}),
    )
    for found in (run_setup(args, run), setup(args, run)):
        assert (found.tensor, found.expert, found.replicas, found.cache_tokens) == expected
    smaller = asked_of(written, "--kv-precision", "fp8")[1]
    assert setup(smaller, run).cache_tokens is None and run_setup(smaller, run).cache_tokens == expected[3]


@pytest.mark.parametrize(("said", "used"), [(0.95, 0.95), (0, 0.9), (95, 0.9), ("auto", 0.9), (True, 0.9), (None, 0.9)])
def test_the_share_of_the_memory_that_a_run_was_given_is_used(written, said, used):
    """0.95 and 0.9 of a card of 24 GB are a quarter of the cache apart beside the weights of an 8B model."""
    run, args = asked_of(written)
    known = {"model": "llama-3.1-8b", "chip": "RTX 4090", "chips": 1, "gpu_memory_utilization": said}
    made = SimpleNamespace(
        tables=run.tables,
        manifest=SimpleNamespace(name="made", facts={k: SimpleNamespace(value=v) for k, v in known.items()}),
    )
    assert run_setup(args, made).memory_utilization == setup(args, made).memory_utilization == used


def test_a_trace_is_replayed(tmp_path, capsys):
    trace = tmp_path / "trace.csv"
    lines = [f"2023-11-16 18:15:{i:02d}.5000000,{300 + i},{10 + i % 7}" for i in range(50)]
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(lines) + "\n")
    more = options(input=None, output=None, rate=None, requests=None)
    code, text, _ = out(capsys, "whatif", "serving", *more, "--trace", trace, "--input", 5)
    assert code == 2
    code, text, _ = out(capsys, "whatif", "serving", *more, "--trace", trace, "--json")
    told = json.loads(text)
    assert code == 0 and told["requests"] == 50 and told["traffic"].startswith("50 requests of trace.csv")
