"""What the first page says of a server that died and was started anew, or not."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from collectors.ingest import ingest
from tests.app import made_runs
from tests.app.test_engine_findings import LINE, at, samples, together

S = 1_000_000_000
START = "INFO 11-01 {at} [api_server.py:1839] vLLM API server version 0.11.0"
DIED = (
    "ERROR 11-01 {at} [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "ERROR 11-01 {at} [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
)

ASKED = "INFO 11-01 {at} [launcher.py:110] Shutting down FastAPI HTTP server."


def served(begin, count=60):
    """Lines of a server that serves without end."""
    return [LINE.format(at=at(begin + 10 * i), running=40, waiting=0, kv=60.0) for i in range(count)]


def died(second):
    return [line.format(at=at(second)) for line in DIED]


def started(second):
    return [START.format(at=at(second))]


def of(place, tmp_path, **logs):
    for name, lines in logs.items():
        (tmp_path / f"{name}.log").write_text("\n".join(lines) + "\n")
    files = [tmp_path / f"{name}.log" for name in logs]
    return ask(FINDINGS, place.store.get(ingest(files, place.store).run_id), {}, place.registry)


def test_a_server_that_died_is_told_with_why_and_how_long_it_served_nobody(place, tmp_path):
    """The last sample at 590 s, the death at 593, the first sample anew at 800 s, of 10 s before it."""
    result = of(place, tmp_path, vllm=[*started(0), *served(0), *died(593), *started(710), *served(800)])
    (finding,) = result.findings
    assert (finding.cause, finding.title) == (
        "out_of_memory",
        "The server ran out of memory 1 time: it served nobody for 3 min 20 s.",
    )
    assert finding.gain.likely == pytest.approx(200) and finding.draws["unattributed"] == pytest.approx(200)
    assert "OutOfMemoryError" in finding.evidence[-1].value and "--gpu-memory-utilization" in result.cure(finding)
    assert finding.since_ns is None, "the log gives no year"


@pytest.mark.parametrize(
    ("between", "causes"),
    [
        ([], []),  # lines are missing, and nothing tells that it stopped
        (started(710), ["interruption"]),
        (died(300), []),  # long before
        ([*died(600), *started(710)], ["out_of_memory"]),
        ([DIED[1].format(at=at(600))], ["crash"]),
        ([ASKED.format(at=at(600)), "INFO:     Shutting down", *started(710)], ["planned_stop"]),
        ([*died(600), ASKED.format(at=at(601)), *started(710)], ["out_of_memory"]),
        ([ASKED.format(at=at(600))], []),  # and nothing tells of a start
        (["ERROR 11-01 10:12:00 [serving.py:1] Segmentation fault (core dumped)"], []),  # of a process beside it, say
    ],
)
def test_a_gap_is_a_stop_only_where_something_tells_that_it_was(place, tmp_path, between, causes):
    result = of(place, tmp_path, vllm=[*served(0), *between, *served(800)])
    assert [f.cause for f in result.findings] == causes


def test_a_server_that_died_for_good_is_told_at_no_known_cost(place, tmp_path):
    (finding,) = of(place, tmp_path, vllm=[*served(0), *died(593)]).findings
    assert finding.cause == "out_of_memory" and finding.gain is None and finding.title.endswith("no sample follows.")


@pytest.mark.parametrize(("took", "found"), [(890, True), (200, False)])
def test_a_server_that_takes_long_to_start_is_told_so(place, tmp_path, took, found):
    listens = f"INFO 11-01 {at(took)} [api_server.py:1912] Starting vLLM API server 0 on http://0.0.0.0:8000"
    result = of(place, tmp_path, vllm=[*started(0), listens, *served(took + 10)])
    assert ("slow_restart" in {f.cause for f in result.findings}) == found
    if found:
        (finding,) = result.findings
        assert finding.title.startswith("The server took 14 min 50 s from its start until it listened")
        assert "--load-format" in result.cure(finding)


def test_of_several_servers_the_one_that_died_costs_its_own_chips(place, tmp_path):
    other = [line.replace("2000.0", "1750.0").replace("1800.0", "1350.0") for line in served(0, 140)]
    result = of(place, tmp_path, one=other, two=[*served(0), *died(593), *started(710), *served(800)])
    (finding,) = result.findings
    assert finding.title.startswith("A replica ran out of memory 1 time") and finding.where.hosts == ("two.log 0",)
    assert finding.gain.likely == pytest.approx(200 * result.ledger.chips / 2)


def test_an_exception_without_a_time_is_of_the_line_before_it(place, tmp_path):
    line = (
        "[2026-11-01 {at}] Decode batch. #running-req: 40, #token: 2400, token usage: 0.60, gen throughput (token/s): "
        "9.5, #queue-req: 0"
    )
    first, after = ([line.format(at=at(begin + 10 * i)) for i in range(60)] for begin in (0, 800))
    why = [
        f"[2026-11-01 {at(593)}] Scheduler hit an exception: Traceback",
        "torch.OutOfMemoryError: CUDA out of memory.",
    ]
    (finding,) = of(place, tmp_path, sglang=[*first, *why, *after]).findings
    assert finding.cause == "out_of_memory" and "3 min 20 s" in finding.title
    assert finding.since_ns is not None


def test_an_exception_without_a_time_is_of_the_line_before_it_of_the_same_pod(place, tmp_path):
    """Lines of two pods as kubectl mixes them: between those of an exception stands one of the other pod."""
    batch = (
        "[pod/sgl-{pod}/server] [2026-11-01 {at}] Decode batch. #running-req: 40, #token: 2400, token usage: 0.60, gen "
        "throughput (token/s): 9.5, #queue-req: 0"
    )
    other = [(10 * i, batch.format(pod="a", at=at(10 * i))) for i in range(140)]
    mine = [(begin + 10 * i, batch.format(pod="b", at=at(begin + 10 * i))) for begin in (0, 800) for i in range(60)]
    why = [
        (593, f"[pod/sgl-b/server] [2026-11-01 {at(593)}] Scheduler hit an exception: Traceback"),
        (593, f"[pod/sgl-a/server] [2026-11-01 {at(1000)}] a word that tells nothing"),
        (593, "[pod/sgl-b/server] torch.OutOfMemoryError: CUDA out of memory."),
    ]
    lines = [line for _, line in sorted([*other, *mine, *why], key=lambda entry: entry[0])]
    (finding,) = of(place, tmp_path, pods=lines).findings
    assert finding.cause == "out_of_memory" and "3 min 20 s" in finding.title
    assert finding.where.hosts == ("sgl-b",) and finding.evidence[-1].value == "sgl-b"


@pytest.mark.parametrize(
    ("tokens", "causes"),
    [
        (list(range(1000, 1100)), []),
        ([*range(1000, 1050), *range(50)], ["interruption"]),
        ([0, 5] * 50, []),  # two servers in turn at one address
    ],
)
def test_counters_that_begin_anew_tell_of_a_start(place, tokens, causes):
    columns = samples(40, [0] * 100, output_tokens=tokens)
    columns["ts_ns"] = [t + (300 * S if i >= 50 and causes else 0) for i, t in enumerate(columns["ts_ns"])]
    run = made_runs.write(place.store, "counted", {"engine": columns}, {"chips": 1}, kind="serving")
    result = ask(FINDINGS, run, {}, place.registry)
    assert [f.cause for f in result.findings] == causes
    if causes:
        assert result.findings[0].gain.likely == pytest.approx(300)


def test_what_lies_between_two_inputs_is_no_time_without_a_server(place):
    """Scrapes of a morning and of the next, of a server that was updated in between."""
    counts = list(range(50))
    first, second = (samples(40, [0] * 50, "a", output_tokens=counts, kv_usage=0.5) for _ in range(2))
    second |= {"ts_ns": [t + 86_400 * S for t in second["ts_ns"]], "source": ["next.prom"] * 50}
    run = made_runs.write(place.store, "days", {"engine": together(first, second)}, {"chips": 1}, kind="serving")
    assert not {"interruption", "crash"} & {f.cause for f in ask(FINDINGS, run, {}, place.registry).findings}


def test_a_replica_that_is_updated_without_a_pause_is_no_finding(place):
    each = [samples(40, [0] * 100, name, output_tokens=[*range(50), *range(50)]) for name in "ab"]
    run = made_runs.write(place.store, "rolled", {"engine": together(*each)}, {"chips": 2}, kind="serving")
    result = ask(FINDINGS, run, {}, place.registry)
    assert not result.findings and "too little" in next(r.why for r in result.ruled_out if r.cause == "interruption")
