"""The ledger of serving runs: made engines whose every second is known."""

import numpy as np
import pytest

from analyzers.serving.accounts import AT_MEAN_LENGTH, UNCOUNTED, UNTOLD, WHENEVER
from analyzers.serving.work import request_flops
from analyzers.time import ledger
from catalog.inference import output_flops, prompt_token_flops, token_flops
from catalog.models import model
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables, frame

S = 1_000_000_000
T0 = 1_700_000_000 * S
NEXT_LENGTH = 8


def ask(tables, facts=None, **options):
    return ledger.analyze(MemoryTables(tables), facts_of(facts or {}), parse_options(ledger.OPTIONS, options))


def engine(fixed_ns=4_000_000, each_ns=100_000, host_ns=1_000_000, count=40):
    """Passes back to back from second 1 on, each `fixed + each * tokens` on the device and `host` beside it."""
    rng = np.random.default_rng(3)
    prefill, recomputed = rng.integers(0, 60, count), np.zeros(count, dtype=int)
    decode, drafted = rng.integers(1, 20, count), rng.integers(0, 12, count)
    accepted = (drafted * rng.random(count)).astype(int)
    recomputed[5], prefill[5] = 30, 50
    padded = -(prefill + decode + drafted) % NEXT_LENGTH
    total = prefill + decode + drafted + padded
    device = fixed_ns + each_ns * total
    end = T0 + S + np.cumsum(device + host_ns)
    rows = {
        "start_ns": end - device - host_ns,
        "dur_ns": device + host_ns,
        "device_ns": device,
        "prefill_tokens": prefill,
        "recomputed_tokens": recomputed,
        "decode_requests": decode,
        "decode_tokens": decode + accepted,
        "drafted_tokens": drafted,
        "accepted_tokens": accepted,
        "padded_tokens": padded,
    }
    return rows, total


def test_every_second_of_a_known_engine():
    rows, total = engine()
    last = int((rows["start_ns"] + rows["dur_ns"])[-1])
    requests = {
        "id": ["a", "b"],
        "arrival_ns": [T0 + S, T0 + S],
        "first_token_ns": [last - 1000] * 2,
        "last_token_ns": [last, last + S // 2],
        "prompt_tokens": [10, 10],
        "output_tokens": [5, 5],
        "status": ["completed", "completed"],
    }
    lifecycle = {"kind": ["training_preparation"], "start_ns": [T0], "end_ns": [T0 + S // 2]}
    got = ask({"iterations": rows, "requests": requests, "lifecycle": lifecycle}, {"chips": 2}).ledger

    passed = float(rows["dur_ns"].sum()) / S
    assert got.chip_seconds == pytest.approx(2 * (0.5 + 0.5 + passed + 0.5))
    assert got.amount("program_startup") == pytest.approx(2 * 0.5)
    assert got.amount("no_requests") == pytest.approx(2 * 0.5)  # between the end of startup and the first arrival
    assert got.amount("scheduling") == pytest.approx(2 * (40 * 1e-3 + 0.5))  # and the tail of request b
    each = 2 * 100_000 / S
    assert got.amount("bucket_padding") == pytest.approx(each * rows["padded_tokens"].sum())
    rejected = rows["drafted_tokens"] - rows["accepted_tokens"]
    assert got.amount("rejected_speculation") == pytest.approx(each * rejected.sum())
    assert got.amount("preemption_recompute") == pytest.approx(each * 30)
    fresh, kept = rows["prefill_tokens"] - rows["recomputed_tokens"], rows["decode_tokens"]
    rest = rows["device_ns"] - 100_000 * (rows["padded_tokens"] + rejected + rows["recomputed_tokens"])
    assert got.amount("prefill") == pytest.approx(2 * float((rest * fresh / (fresh + kept)).sum()) / S)
    assert got.amount("decode") == pytest.approx(2 * float((rest * kept / (fresh + kept)).sum()) / S)
    assert got.amount("unattributed") == 0


def test_useful_maths_of_answers_and_their_worth():
    known = model("llama3.1-8b")
    rows, _ = engine()
    requests = {
        "id": ["a", "b", "c"],
        "arrival_ns": [T0 + S] * 3,
        "first_token_ns": [T0 + 2 * S] * 3,
        "last_token_ns": [T0 + 3 * S, T0 + 3 * S, None],
        "prompt_tokens": [100, 300, 600],
        "cached_tokens": [0, 200, 0],
        "output_tokens": [50, 1, 10],
        "status": ["completed", "completed", "failed"],
    }
    facts = {"chips": 1, "model": "llama3.1-8b", "peak_flops_per_s": 1e15}
    got = ask({"iterations": rows, "requests": requests}, facts).ledger
    attention = 4 * known.layers * 32 * 128
    prefill = 200 * prompt_token_flops(known) + 2 * output_flops(known)
    prefill += attention * (100 * 101 / 2 + 300 * 301 / 2 - 200 * 201 / 2)
    decode = 49 * token_flops(known) + attention * (149 * 150 / 2 - 100 * 101 / 2)
    phases = got.account.child("served")
    assert phases.child("prefill").child("useful_maths").chip_seconds == pytest.approx(prefill / 1e15)
    assert phases.child("decode").child("useful_maths").chip_seconds == pytest.approx(decode / 1e15)
    assert got.useful_flops == pytest.approx(prefill + decode)
    whole = [phases.child(n).chip_seconds for n in ("prefill", "decode")]
    failed = got.amount("failed_requests")
    assert failed == pytest.approx(whole[0] / (200 / 800) * (600 / 800) + whole[1] / (51 / 61) * (10 / 61))

    late = ask({"iterations": rows, "requests": requests}, facts, ttft_s=0.5).ledger
    assert late.amount("served") == 0
    assert late.amount("missed_objective") + late.amount("failed_requests") == pytest.approx(sum(whole) + failed)
    assert late.useful_flops == got.useful_flops  # made, though too late to be of use


def test_requests_alone_tell_when_the_engine_was_busy():
    requests = {
        "id": ["a", "b"],
        "arrival_ns": [T0, T0 + 10 * S],
        "scheduled_ns": [T0, T0 + 10 * S],
        "first_token_ns": [T0 + S, T0 + 11 * S],
        "last_token_ns": [T0 + 4 * S, T0 + 12 * S],
        "prompt_tokens": [1000, 1000],
        "output_tokens": [100, 100],
        "status": ["completed", "completed"],
    }
    result = ask({"requests": requests}, {"chips": 4, "model": "llama3.1-8b", "peak_flops_per_s": 1e15})
    got = result.ledger
    assert got.chip_seconds == pytest.approx(4 * 12)
    assert got.amount("no_requests") == pytest.approx(4 * 6)
    assert got.amount("served") == pytest.approx(got.useful_flops / 1e15)
    assert got.amount("served") + got.amount("unattributed") == pytest.approx(4 * 6)
    assert any("passes" in note for note in result.notes)


def test_chips_are_not_held_while_the_server_waits_for_them():
    requests = {
        "id": ["a"],
        "arrival_ns": [T0],
        "first_token_ns": [T0 + S],
        "last_token_ns": [T0 + 4 * S],
        "output_tokens": [100],
        "status": ["completed"],
    }
    life = {"kind": ["queued", "job"], "start_ns": [T0 - 900 * S, T0 - 6 * S], "end_ns": [T0 - 6 * S, T0 + 10 * S]}
    assert ask({"requests": requests, "lifecycle": life}, {"chips": 4}).ledger.chip_seconds == pytest.approx(4 * 16)


def test_where_all_requests_failed_the_engine_is_not_said_to_have_been_idle():
    """They say when they came and not when they failed: until the end of the load it is not known."""
    requests = {"id": ["a", "b"], "stage": ["x"] * 2, "arrival_ns": [T0, T0 + 2 * S], "status": ["failed"] * 2}
    stages = {
        "stage": ["x"],
        "start_ns": [T0],
        "duration_s": [30.0],
        "completed": [0],
        "failed": [2],
        "order": [0],
        "outcome": ["failed"],
    }
    result = ask({"requests": requests, "stages": stages}, {"chips": 4})
    assert result.ledger.chip_seconds == pytest.approx(4 * 30)
    assert result.ledger.amount("no_requests") == 0 and result.ledger.amount("unattributed") == pytest.approx(4 * 30)
    assert any("do not say when" in note for note in result.notes)


def test_a_request_that_failed_counts_as_open_for_no_longer_than_the_longest():
    requests = {
        "id": ["a", "b", "c"],
        "arrival_ns": [T0, T0 + 10 * S, T0 + 20 * S],
        "first_token_ns": [T0 + S, None, T0 + 21 * S],
        "last_token_ns": [T0 + 4 * S, None, T0 + 22 * S],
        "prompt_tokens": [10] * 3,
        "output_tokens": [10, 0, 10],
        "status": ["completed", "failed", "completed"],
    }
    got = ask({"requests": requests}, {"chips": 1}).ledger
    assert got.chip_seconds == pytest.approx(22)
    assert got.amount("unattributed") == pytest.approx(4 + 4 + 2) and got.amount("no_requests") == pytest.approx(12)


def test_sums_of_a_load_tool_hold_its_duration():
    stages = {
        "stage": ["64", "128"],
        "duration_s": [1202.5, 846.39],
        "completed": [3000, 3000],
        "input_tokens": [2_997_000] * 2,
        "output_tokens": [3_000_000] * 2,
        "order": [0, 1],
    }
    got = ask({"stages": stages}, {"chips": 8, "chip": "v6e", "model": "llama3.1-70b"}).ledger
    assert got.chip_seconds == pytest.approx(8 * (1202.5 + 846.39))
    flops = 6000 * (999 * 2 * 69.5e9 + 1000 * 2 * 70.55e9)  # the weights alone, roughly
    assert got.useful_flops == pytest.approx(flops, rel=0.05)
    assert got.find("no_requests") is None


def test_requests_that_do_not_tell_when_they_came_leave_the_duration_of_their_load():
    """As a detailed result of vLLM until 2025: lengths and latencies of each request, and no start times."""
    stages = {"stage": ["a"], "duration_s": [100.0], "completed": [2], "input_tokens": [3000], "output_tokens": [300]}
    requests = {
        "id": ["a", "b"],
        "stage": ["a", "a"],
        "ttft_ns": [S, S],
        "e2e_ns": [2 * S, 3 * S],
        "prompt_tokens": [1000, 2000],
        "output_tokens": [100, 200],
        "status": ["completed", "completed"],
    }
    facts = {"chips": 4, "chip": "v6e", "model": "llama3.1-8b"}
    got, sums = (ask({"stages": stages, **more}, facts) for more in ({"requests": requests}, {}))
    assert got.ledger.chip_seconds == sums.ledger.chip_seconds == 400
    rows = frame(MemoryTables({"requests": requests}), "requests", ["prompt_tokens", "output_tokens"])
    each = request_flops(model("llama3.1-8b"), rows.assign(cached_tokens=0))
    assert got.ledger.useful_flops == pytest.approx(sum(flops.sum() for flops in each))
    assert WHENEVER in got.notes and AT_MEAN_LENGTH not in got.notes and AT_MEAN_LENGTH in sums.notes


def test_samples_alone_tell_when_it_was_empty():
    engine_rows = {
        "ts_ns": [T0, T0 + 10 * S, T0 + 20 * S, T0 + 30 * S],
        "running": [0, 3, 0, 0],
        "waiting": [0, 0, 2, 0],
    }
    got = ask({"engine": engine_rows}, {"chips": 1}).ledger
    assert got.amount("no_requests") == pytest.approx(10)
    assert got.amount("unattributed") == pytest.approx(20)


def test_few_or_equal_passes_share_alike():
    rows, total = engine(count=10)
    result = ask({"iterations": rows}, {"chips": 1})
    expected = float((rows["device_ns"] * rows["padded_tokens"] / total).sum()) / S
    assert result.ledger.amount("bucket_padding") == pytest.approx(expected)
    assert any("share its time alike" in note for note in result.notes)


def test_a_wrong_clock_does_not_stretch_what_was_held():
    requests = {
        "id": ["a", "b"],
        "arrival_ns": [T0, T0 + 900_000 * S],
        "first_token_ns": [T0 + S, T0 + S],
        "last_token_ns": [T0 + 4 * S, T0 + 5 * S],
        "status": ["completed", "completed"],
    }
    result = ask({"requests": requests}, {"chips": 1})
    assert result.ledger.chip_seconds == pytest.approx(4)
    assert any("took no time" in note for note in result.notes)


def test_samples_of_another_clock_do_not_stretch_what_was_held():
    requests = {
        "id": ["a"],
        "arrival_ns": [T0],
        "first_token_ns": [T0 + S],
        "last_token_ns": [T0 + 4 * S],
        "status": ["completed"],
    }
    since_start = {"ts_ns": [S, 2 * S, 9 * S], "running": [1, 1, 0]}
    result = ask({"requests": requests, "engine": since_start}, {"chips": 1})
    assert result.ledger.chip_seconds == pytest.approx(4)
    assert any("another clock" in note for note in result.notes)


def test_a_trace_of_traffic_has_no_ledger():
    trace = {"id": ["a"], "arrival_ns": [T0], "prompt_tokens": [10], "output_tokens": [5]}
    with pytest.raises(QuestionError):
        ask({"requests": trace})
    timeless = {"id": ["a"], "ttft_ns": [S], "e2e_ns": [2 * S], "status": ["completed"]}
    with pytest.raises(QuestionError, match="when the engine ran"):
        ask({"requests": timeless})


def test_flops_of_windows_follow_each_position():
    known = model("gpt-oss-20b")
    rows = frame(
        MemoryTables({"requests": {"prompt_tokens": [300], "cached_tokens": [100], "output_tokens": [50]}}),
        "requests",
        ["prompt_tokens", "cached_tokens", "output_tokens"],
    )
    prefill, decode = request_flops(known, rows)

    def looked(first, last):
        return sum(
            4 * 64 * 64 * (min(p, 128) if a.span == "sliding" else p)
            for p in range(first, last + 1)
            for a in known.attention
        )

    assert prefill[0] == pytest.approx(200 * prompt_token_flops(known) + output_flops(known) + looked(101, 300))
    assert decode[0] == pytest.approx(49 * token_flops(known) + looked(301, 349))


def test_answers_that_do_not_tell_their_tokens_have_no_known_maths():
    requests = {
        "id": ["a", "b"],
        "arrival_ns": [T0, T0 + 10 * S],
        "last_token_ns": [T0 + 4 * S, T0 + 12 * S],
        "prompt_tokens": [1000, 1000],
        "output_tokens": [100, 100],
        "status": ["completed", "completed"],
    }
    facts = {"chips": 4, "model": "llama3.1-8b", "peak_flops_per_s": 1e15}
    whole = ask({"requests": requests}, facts).ledger
    for column in ("prompt_tokens", "output_tokens"):
        none = ask({"requests": {**requests, column: [None, None]}}, facts)
        assert none.ledger.useful_flops is None and none.ledger.amount("served") == 0
        assert none.ledger.amount("unattributed") == pytest.approx(4 * 6)
        assert UNTOLD in none.notes and not any("No model is known" in note for note in none.notes)
        one = ask({"requests": {**requests, column: [None, 100 if column == "output_tokens" else 1000]}}, facts)
        assert one.ledger.useful_flops == pytest.approx(whole.useful_flops / 2)
        assert any(note.startswith("1 of 2 answers do not tell how many tokens") for note in one.notes)


def test_a_model_that_is_known_is_not_said_to_be_unknown():
    """Where requests or their tokens are not told: samples alone, a sample of the requests, a tool's sums without."""
    requests = {"id": ["a"], "arrival_ns": [T0], "last_token_ns": [T0 + S], "status": ["completed"]}
    stages = {"stage": ["x"], "completed": [9], "duration_s": [10.0], "outcome": ["measured"], "source": ["a"]}
    for tables in (
        {"engine": sampled_servers(("a", [0, 10, 20], [3, 3, 3]))},
        {"requests": requests, "stages": stages, "engine": sampled_servers(("a", [0, 10, 20], [3, 3, 3]))},
        {"stages": stages},
    ):
        known = ask(tables, {"chips": 1, "model": "llama3.1-8b", "peak_flops_per_s": 1e15})
        assert UNCOUNTED in known.notes and not any("No model is known" in note for note in known.notes)
        unknown = ask(tables, {"chips": 1})
        assert UNCOUNTED not in unknown.notes and any("No model is known" in note for note in unknown.notes)


def sampled_servers(*each: tuple[str, list[int], list[int]]) -> dict:
    """Rows of `engine`: of each server its input, times in s and requests running. All call themselves "0"."""
    rows = [(T0 + t * S, n, source) for source, at, running in each for t, n in zip(at, running, strict=True)]
    at, running, source = (list(c) for c in zip(*rows, strict=True))
    return {"ts_ns": at, "running": running, "waiting": [0] * len(rows), "source": source, "replica": ["0"] * len(rows)}


def test_two_servers_are_idle_each_on_its_own_whatever_the_order_of_scraping():
    busy, idle = [3] * 11, [0] * 11
    for first, second in ((0, 1), (1, 0)):
        rows = sampled_servers(
            ("a", [10 * i + first for i in range(11)], busy), ("b", [10 * i + second for i in range(11)], idle)
        )
        got = ask({"engine": rows}, {"chips": 2}).ledger
        assert got.chip_seconds == pytest.approx(2 * 101)
        assert got.amount("no_requests") == pytest.approx(100)
        assert got.amount("unattributed") == pytest.approx(102)  # one busy; a second of each in which it was not seen


def test_a_replica_without_requests_is_idle_and_not_scheduling():
    passes = [(name, T0 + i * S) for name, count in (("a", 100), ("b", 50)) for i in range(count)]
    iterations = {
        "replica": [n for n, _ in passes],
        "start_ns": [t for _, t in passes],
        "dur_ns": [S] * 150,
        "decode_requests": [2] * 150,
        "decode_tokens": [2] * 150,
        "order": list(range(150)),
    }
    requests = {
        "id": ["x", "y"],
        "replica": ["a", "b"],
        "arrival_ns": [T0, T0],
        "first_token_ns": [T0 + S, T0 + S],
        "last_token_ns": [T0 + 100 * S, T0 + 50 * S],
        "prompt_tokens": [10, 10],
        "output_tokens": [100, 50],
        "status": ["completed"] * 2,
    }
    got = ask({"iterations": iterations, "requests": requests}, {"chips": 2}).ledger
    assert got.amount("no_requests") == pytest.approx(50) and got.amount("scheduling") == pytest.approx(0)
    unnamed = ask(
        {"iterations": iterations, "requests": {k: v for k, v in requests.items() if k != "replica"}}, {"chips": 2}
    )
    assert unnamed.ledger.amount("scheduling") == pytest.approx(0)
    assert unnamed.ledger.amount("unattributed") == pytest.approx(50)
    assert any("Which replica the requests were in" in note for note in unnamed.notes)
