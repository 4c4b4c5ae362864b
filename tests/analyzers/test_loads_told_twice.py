"""The result of a load test beside what was printed of it: one load."""

import pytest

from analyzers.receipts import side
from analyzers.serving import latency, load, traffic
from analyzers.serving.kv_cache.run import measured
from analyzers.serving.kv_cache.setting import lengths_of
from analyzers.serving.latency.summary import all_loads
from analyzers.serving.loads import loads, printed, stage_names
from analyzers.serving.prefix_cache.measured import measured_prefix
from analyzers.serving.served import served
from analyzers.serving.speculation.data import observed
from app.whatif.serving.load import load_in
from runs.ledger import Account, Ledger
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask, summaries

RESULT = {
    "stage": "bench",
    "source": "bench.json",
    "completed": 300,
    "duration_s": 79.10464798,
    "requested_rate_per_s": 4.0,
    "ttft_mean": 0.125437218,
    "ttft_p99": 0.19714409,
    "tpot_mean": 0.0199,
}
BLOCK = {
    "stage": "bench.log",
    "source": "bench.log",
    "completed": 300,
    "failed": None,
    "duration_s": 79.10,
    "requested_rate_per_s": 4.0,
    "ttft_mean": 0.12544,
    "ttft_p99": 0.19714,
    "ttft_p90": 0.18,
}


@pytest.mark.parametrize("inputs", [[RESULT, BLOCK], [BLOCK, RESULT]])
def test_a_result_and_what_was_printed_of_it_are_one_load(inputs):
    tables = summaries(inputs)
    assert loads(tables)["duration_s"].tolist() == [79.10464798]
    (one,) = all_loads(tables)
    assert one.stage == "bench" and one.latency["ttft_s"]["mean"] == 0.125437218
    assert printed(tables)["ttft", "p90"].to_dict() == {"bench": 0.18}  # what only the print tells
    for question in (load, latency):
        assert any("bench.log tells of the load bench too" in note for note in ask(question, tables).notes)


def test_requests_are_kept():
    """Though the print comes first: requests are of the result."""
    run = summaries([{**RESULT, "completed": 1, "duration_s": 79.10}, {**BLOCK, "completed": 1, "source": "a.log"}])
    requests = {"stage": ["bench"], "arrival_ns": [0], "status": ["completed"], "e2e_ns": [10**9], "ttft_ns": [10**8]}
    tables = MemoryTables({n: run.arrow(n).to_pydict() for n in ("stages", "stage_stats")} | {"requests": requests})
    assert [(one.stage, one.served is None) for one in all_loads(tables)] == [("bench", False)]


def kept_in_two_files(slower_ns: int = 0) -> MemoryTables:
    """300 requests in a result and, under another name and in another order, in a file of several results."""
    run = summaries([RESULT, {**RESULT, "stage": "all.jsonl", "source": "all.jsonl"}])
    ttft = [10**8 + n for n in range(300)]
    one = {"arrival_ns": [n * 10**8 for n in range(300)], "ttft_ns": ttft, "e2e_ns": [10 * t for t in ttft]}
    requests = {c: [*v, *reversed(v)] for c, v in one.items()}
    requests["e2e_ns"][-1] += slower_ns
    requests |= {"stage": ["bench"] * 300 + ["all.jsonl"] * 300, "status": ["completed"] * 600}
    requests |= {"source": ["bench.json"] * 300 + ["all.jsonl"] * 300, "gaps_ns": [[n] for n in range(600)]}
    requests |= {"prompt_tokens": [128] * 600, "cached_tokens": [64] * 600, "output_tokens": [50] * 600}
    requests |= {"preemptions": [1] * 600}
    return MemoryTables({n: run.arrow(n).to_pydict() for n in ("stages", "stage_stats")} | {"requests": requests})


def test_requests_that_two_files_keep_count_once():
    tables = kept_in_two_files()
    assert len(loads(tables)) == 1 and stage_names(tables) == ("bench",)
    of_once = served(tables)
    assert len(of_once.rows) == 300 and sorted(of_once.gaps[0] * 1e9) == pytest.approx(range(300))
    assert ask(traffic, tables).requests == 300 and ask(latency, tables).to_dict()["requests"] == 300
    assert any("all.jsonl tells of the load bench too" in note for note in ask(load, tables).notes)
    of_one = load_in(tables, "run")
    assert of_one.tables.rows("requests") == 300 and of_one.notes == ()
    held = Account(name="held", chip_seconds=1.0, basis="measured")
    assert side(tables, {}, Ledger(chips=1, account=held), serving=True).units == 300 * 50
    assert lengths_of(tables).tolist() == [178] * 300
    assert measured(tables, {}).preemptions == 300
    other = kept_in_two_files(slower_ns=1000)  # which no printed digit shows
    assert len(loads(other)) == 2 and len(served(other).rows) == 600


@pytest.mark.parametrize(
    "other",
    [
        {"source": "bench.json"},  # two loads of one input
        {"duration_s": 79.12},
        {"failed": 3},
        {"output_tokens": 30_001},
        {"requested_rate_per_s": 8.0},
        {"ttft_p99": 0.19720},
        {"ttft_mean": None, "ttft_p99": None, "ttft_p90": None},  # no word on whether they are
    ],
)
def test_loads_that_are_like_another_are_loads_of_their_own(other):
    told = {k: v for k, v in {**BLOCK, **other}.items() if v is not None or not k.startswith("ttft")}
    assert len(loads(summaries([RESULT, told]))) == 2


def test_requests_of_which_two_traces_tell_count_once():
    def tables(sources, apart_ns=0):
        n = len(sources)
        arrival = [10**9 * (1 + k % 3) + 500 + apart_ns * (k // 3) for k in range(n)]
        told = {"id": [f"r{k % 3}" for k in range(n)], "arrival_ns": arrival, "source": sources}
        told |= {"last_token_ns": [at + 10**9 for at in arrival], "output_tokens": [5] * n, "status": ["completed"] * n}
        return MemoryTables({"requests": told})

    otlp, copy = ["traces.jsonl"] * 3, ["jaeger.json"] * 3
    found = served(tables(otlp + copy, apart_ns=-500))
    assert found is not None and len(found.rows) == 3
    assert "3 requests are told by two inputs and count once." in ask(latency, tables(otlp + copy)).notes
    for other in (tables(otlp + copy, apart_ns=5000), tables(otlp + otlp)):  # other requests, or one input's own
        found = served(other)
        assert found is not None and len(found.rows) == 6


def sent_and_served(late_s=0.01, tokens=(5, 9), before=1):
    """Forty requests that a tool sent, 0.1 s apart, and as their server tells them, which was tried `before` times."""
    sent = [10**12 + n * 10**8 for n in range(40)]
    served_at = [10**12 - 10**9 * (k + 1) for k in range(before)] + [at + round(late_s * 1e9) for at in sent]
    output = [tokens[0] + n % (tokens[1] - tokens[0] + 1) for n in range(40)]
    told = {
        "stage": ["bench"] * 40 + [None] * len(served_at),
        "arrival_ns": sent + served_at,
        "last_token_ns": [at + 3 * 10**9 for at in sent + served_at],
        "output_tokens": [*output, *[output[0]] * before, *output],
        "status": ["completed"] * (80 + before),
        "source": ["bench.json"] * 40 + ["traces.jsonl"] * len(served_at),
    }
    return MemoryTables({"requests": told})


@pytest.mark.parametrize("tokens", [(5, 9), (7, 7)], ids=["as they come", "all of one length"])
def test_what_a_server_tells_of_a_load_counts_as_the_tool_tells_it(tokens):
    found = served(sent_and_served(tokens=tokens))
    assert found is not None and len(found.rows) == 41  # and the one by which the server was tried
    assert (found.rows["stage"] == "bench").sum() == 40


@pytest.mark.parametrize(("first_s", "queue_s"), [(1.0, 0.5), (None, 0.5), (0.4, None)])
def test_how_long_a_request_of_a_load_waited_is_told_where_its_server_tells_it(first_s, queue_s):
    """A tool sees no queue. One that is said to have waited longer than its first token took is not the same."""
    told = sent_and_served(before=0).arrow("requests").to_pydict()
    arrival = told["arrival_ns"]
    told["scheduled_ns"] = [None] * 40 + [at + 5 * 10**8 for at in arrival[40:]]
    told["first_token_ns"] = [first_s and at + round(first_s * 1e9) for at in arrival]
    rows = served(MemoryTables({"requests": told})).rows
    assert len(rows) == 40 and (rows["stage"] == "bench").all()
    assert rows["queue_s"].isna().all() if queue_s is None else rows["queue_s"].tolist() == [queue_s] * 40


@pytest.mark.parametrize("tool", [None, 32], ids=["the server alone", "the tool too"])
def test_what_a_server_alone_tells_of_the_requests_of_a_load_is_kept(tool):
    """Which part of each prompt its cache held, how often it put one off, and what it drafted."""
    told = sent_and_served(before=0).arrow("requests").to_pydict() | {"prompt_tokens": [128] * 80}
    told |= {"cached_tokens": [tool] * 40 + [64] * 40, "preemptions": [tool] * 40 + [1] * 40}
    told |= {"accepted": [tool] * 40 + [96] * 40, "drafted": [tool] * 40 + [128] * 40}
    tables = MemoryTables({"requests": told})
    hits, drafts = measured_prefix(tables), observed(tables, None, None)
    assert hits is not None and drafts is not None and len(served(tables).rows) == 40
    assert (hits.hit_rate, hits.tokens) == (0.5 if tool is None else 0.25, 40 * 128)
    assert (drafts.accepted, drafts.drafted) == ((3840, 5120) if tool is None else (1280, 1280))
    assert measured(tables, {}).preemptions == (40 if tool is None else 40 * 32)


@pytest.mark.parametrize("change", [{"late_s": 60}, {"late_s": -60}], ids=["later", "earlier"])
def test_requests_at_another_time_are_others(change):
    found = served(sent_and_served(**change))
    assert found is not None and len(found.rows) == 81
