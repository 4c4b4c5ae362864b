"""What the first page says of a server of which only its own log or scrapes of its /metrics are there."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.words import verdict
from collectors.ingest import ingest
from errors import QuestionError
from tests.app import made_runs

S = 1_000_000_000
LINE = (
    "INFO 11-01 {at} [loggers.py:257] Engine 000: Avg prompt throughput: 2000.0 tokens/s, Avg generation throughput: "
    "1800.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {kv}%, Prefix cache hit "
    "rate: 3.0%"
)


def samples(running, waiting, replica="a", every=10 * S, **more):
    """Columns of `engine`, one row for each number of waiting requests."""
    count = len(waiting)
    return {
        "ts_ns": [made_runs.START_NS + i * every for i in range(count)],
        "order": list(range(count)),
        "replica": [replica] * count,
        "running": running if isinstance(running, list) else [running] * count,
        "waiting": waiting,
        "source": [f"{replica}.prom"] * count,
        **{name: values if isinstance(values, list) else [values] * count for name, values in more.items()},
    }


def together(*each):
    """The samples of several replicas."""
    names = {name for one in each for name in one}
    return {n: [v for one in each for v in one.get(n, [None] * len(one["order"]))] for n in names}


def told(place, engine, name="server", **facts):
    run = made_runs.write(place.store, name, {"engine": engine}, {"chips": 1} | facts, kind="serving")
    return ask(FINDINGS, run, {}, place.registry)


def of_log(place, tmp_path, lines, name="vllm.log"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return ask(FINDINGS, place.store.get(ingest([path], place.store).run_id), {}, place.registry)


def at(second):
    return f"{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def test_a_log_of_requests_that_wait_for_cache_is_told_so_and_not_asked_for(place, tmp_path):
    lines = [LINE.format(at=at(10 * i), running=48, waiting=min(400, 5 * i), kv=99.6) for i in range(120)]
    result = of_log(place, tmp_path, lines)
    (finding,) = result.findings
    assert finding.cause == "queueing" and finding.gain is None and finding.question == "engine"
    assert finding.title == (
        "Requests queue: in more than 99 % of the time some wait for KV cache (99.6 % full then), 267 in the mean and "
        "400 at the most beside 48 that run."
    )
    evidence = {e.name: e.value for e in finding.evidence}
    waited = sum(min(400, 5 * i) for i in range(120))
    assert evidence["of the time a request waited"] == pytest.approx(119 / 120)
    assert evidence["of the requests' own time they waited"] == pytest.approx(waited / (waited + 48 * 120))
    assert "--gpu-memory-utilization" in result.cure(finding)
    added = " ".join(gap.add for gap in result.not_told)
    assert "log" not in added and "scrapes of its /metrics" in added, "preemptions stand in /metrics alone"


def test_a_busy_server_that_keeps_up_is_not_asked_for_the_log_that_is_there(place, tmp_path):
    lines = [LINE.format(at=at(10 * i), running=40, waiting=0, kv=60.0) for i in range(120)]
    result = of_log(place, tmp_path, lines)
    assert not result.findings and "queueing" in {r.cause for r in result.ruled_out}
    text = verdict(result)
    assert text.startswith("Nothing stands out: by the engine's own samples requests hardly ever waited.")
    assert "add a record of the engine's passes" in text and not text.rest


@pytest.mark.parametrize("failed", (0, 1, 30))
def test_requests_that_did_not_complete_are_told_first(place, tmp_path, failed):
    """A load generator's own table, in which every request beyond a time limit has none of the answer's times."""
    lines = ["start_s,ttft_s,e2e_s,input_tokens,output_tokens,status"]
    for n in range(100):
        told = ",30,500,0,timeout" if n < failed else "0.2,2.5,500,100,ok"
        lines.append(f"{0.3 * n:.1f},{told}")
    result = of_log(place, tmp_path, lines, "load.csv")
    assert [one.cause for one in result.findings] == ["failed_requests"] * (failed == 30)
    assert str(verdict(result)).startswith("30 % of the requests failed: 30 of 100") == (failed == 30)
    assert any(one.cause == "failed_requests" for one in result.ruled_out) == (failed < 30)


@pytest.mark.parametrize(
    ("running", "waiting", "found"),
    [
        (100, [1, 0] * 50, False),  # one in a hundred and fifty of their seconds: the pass under way
        (10, [1, 0] * 50, True),
        (10, [0] * 90 + [3] * 10, False),
        (10, [0] * 90 + [90] * 10, True),  # seldom, but then nearly half of their time
        (10, [0] * 99 + [900], False),  # one sample in a hundred
    ],
)
def test_requests_queue_where_they_wait_often_or_for_much_of_their_own_time(place, running, waiting, found):
    result = told(place, samples(running, waiting))
    assert ("queueing" in {f.cause for f in result.findings}) == found
    assert ("queueing" in {r.cause for r in result.ruled_out}) != found


def test_few_samples_tell_nothing_of_a_queue(place):
    result = told(place, samples(10, [50] * 4))
    assert not result.findings and "queueing" not in {r.cause for r in result.ruled_out}
    assert "read 4 times" in next(gap.why for gap in result.not_told if gap.causes == ("queueing",))


def test_the_replica_at_which_requests_wait_is_named_beside_those_at_which_none_do(place):
    each = [samples(12, [40 if name == "c" else 0] * 100, name, kv_usage=0.5) for name in "abcd"]
    (finding,) = told(place, together(*each), chips=4).findings
    assert finding.title.startswith("Requests queue at 1 of 4 replicas: in 100 % of its time some wait for a seat")
    assert finding.where.hosts == ("c",) and finding.title.endswith("At the others some wait in 0 %.")
    assert finding.evidence[-1].name == "the replica" and finding.evidence[-1].value == "c", "people read evidence"
    every = [samples(12, [40] * 100, name) for name in "ab"]
    (finding,) = told(place, together(*every), "all", chips=2).findings
    assert (
        finding.title.startswith("Requests queue at all 2 replicas: in 100 % of their time") and not finding.where.hosts
    )


def test_requests_put_back_all_the_time_are_told_though_not_what_that_cost(place):
    counted = samples(40, [0] * 100, preemptions=[3 * i for i in range(100)], kv_usage=0.99)
    (finding,) = told(place, counted).findings
    assert finding.cause == "kv_preemption" and finding.gain is None
    assert "in 100 % of the time, 297 times in all" in finding.title
    once = samples(40, [0] * 100, preemptions=[0] * 50 + [3] * 50, kv_usage=0.99)
    result = told(place, once, "once")
    (gap,) = [gap for gap in result.not_told if gap.causes == ("kv_preemption",)]
    assert not result.findings and gap.why.startswith("3 requests were put back") and "passes" in gap.add


@pytest.mark.parametrize("others", [[0] * 100, None])
def test_the_replica_that_puts_requests_back_is_told_whether_or_not_the_others_count_that(place, others):
    mine = samples(40, [0] * 100, "c", preemptions=[7 * (i // 2) for i in range(100)], kv_usage=0.99)
    rest = [samples(4, [0] * 100, name, **({} if others is None else {"preemptions": others})) for name in "abd"]
    (finding,) = told(place, together(mine, *rest), chips=4).findings
    assert finding.cause == "kv_preemption" and finding.where.hosts == ("c",)
    assert finding.title.startswith(
        "Requests are put back for want of cache at 1 of 4 replicas in 49 % of its time, 343 "
    )


def test_scrapes_tell_of_which_engine_they_are_so_that_cures_are_in_its_flags(place, tmp_path):
    scrapes = [
        f"# scraped_at 2026-11-01T{at(15 * i)}Z\nvllm:num_requests_running 32\nvllm:num_requests_waiting 90\n"
        f"vllm:generation_tokens_total {100 * i}"
        for i in range(40)
    ]
    result = of_log(place, tmp_path, scrapes, "metrics.prom")
    assert "--max-num-seqs" in result.cure(result.findings[0]) and result.findings[0].cause == "queueing"
    assert "speculation_waste" in {r.cause for r in result.ruled_out}, "vLLM counts drafts wherever there are some"


def test_a_server_that_never_served_is_not_asked_for_the_log_of_a_job(place, tmp_path):
    with pytest.raises(QuestionError) as error:
        of_log(place, tmp_path, ["INFO 11-01 10:00:00 [api_server.py:1839] vLLM API server version 0.11.0"])
    assert "goodput" not in str(error.value) and "in which it served" in str(error.value)


SELDOM = [0] * 9 + [1]  # one sample in ten has a request


def quiet(running, name="a", every=10 * S):
    return samples(running, [0] * len(running), name, every)


def test_a_server_that_nobody_asks_is_told_first_with_what_that_is_worth(place):
    (finding,) = (result := told(place, quiet([1] + SELDOM * 12))).findings
    assert finding.cause == "idle_engine" and finding.confidence == 0.5
    assert finding.title == (
        "The engine had no request for 89 % of the time by its own samples: the chips served nobody then. "
        "20 min 10 s tell little of its traffic: look at a day of it first."
    )
    entered = result.ledger.amount("no_requests")
    busy = 13 * entered / 108  # of as long a time as samples of 10 s without a request
    assert finding.gain.low == 0.0 and finding.gain.high == pytest.approx(entered)
    assert finding.gain.likely == pytest.approx(entered - busy * 0.3 / 0.7)
    assert "Mending it gives back" in verdict(result).whole and "none at all while nobody asks" in result.cure(finding)


def test_nights_without_requests_are_worth_what_stopping_for_them_gives_back(place):
    """Two days of five hours of traffic each, one sample a minute."""
    (finding,) = (result := told(place, quiet(([1] * 300 + [0] * 1140) * 2, every=60 * S))).findings
    assert finding.confidence == 0.85 and "tell little" not in finding.title
    entered = result.ledger.amount("no_requests")
    assert finding.gain.likely == pytest.approx(entered - 2 * 600, rel=0.01)
    assert finding.gain.low == pytest.approx(entered - 600 * 60 * 0.3 / 0.7, rel=0.01)


@pytest.mark.parametrize(
    ("running", "found"),
    [
        ([1, 0] * 60, True),
        ([1, 1, 0] * 40, False),  # room for more, which a server for people needs
        ([1, 0, 0] * 15, False),  # watched for 7 min
        ([0] * 60 + [1] * 60, False),  # only just started
        ([0] * 130, True),
    ],
)
def test_what_is_too_little_for_a_judgement_on_traffic_is_none(place, running, found):
    result = told(place, quiet(running))
    assert ("idle_engine" in {f.cause for f in result.findings}) == found


def test_the_pauses_of_a_load_test_are_its_own(place):
    load = {"stage": ["one"], "tool": ["vllm_bench"], "order": [0], "duration_s": [60.0], "completed": [10]}
    tables = {"engine": quiet(SELDOM * 12), "stages": load | {"outcome": ["measured"], "source": ["a.json"]}}
    run = made_runs.write(place.store, "tested", tables, {"chips": 1}, kind="serving")
    result = ask(FINDINGS, run, {}, place.registry)
    assert not result.findings and "load test" in next(n.why for n in result.not_told if "idle_engine" in n.causes)
    assert "The requests are those of a load test, and the time without any is its own." in verdict(result).whole


def test_one_replica_that_serves_nobody_is_named_and_worth_no_more_than_its_chips(place):
    each = [quiet([0] * 120 if name == "c" else [9 + n] * 120, name) for n, name in enumerate("abcd")]
    (finding,) = told(place, together(*each), chips=8).findings
    assert finding.title.startswith("1 of 4 replicas had no request for 100 % of the time")
    assert finding.where.hosts == ("c",) and finding.gain.high <= 1200 * 2
