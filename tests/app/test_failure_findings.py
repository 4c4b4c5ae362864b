"""What the first page says of requests that were not answered: of a load test, and by a server's own counters."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.words import verdict
from tests.app import made_runs

S = 1_000_000_000
ENDED = "vllm:request_success_total"


def of_load(place, failed, of, error="ServerDisconnectedError: Server disconnected", name="load"):
    states = ["failed" if i < failed else "completed" for i in range(of)]
    requests = {
        "id": [str(i) for i in range(of)],
        "arrival_ns": [made_runs.START_NS + i * S for i in range(of)],
        "ttft_ns": [None if state == "failed" else S // 10 for state in states],
        "e2e_ns": [None if state == "failed" else S for state in states],
        "prompt_tokens": [100] * of,
        "output_tokens": [0 if state == "failed" else 20 for state in states],
        "status": states,
        "error": [error if state == "failed" else None for state in states],
        "source": ["load.json"] * of,
    }
    run = made_runs.write(place.store, name, {"requests": requests}, {"chips": 1}, kind="serving")
    return ask(FINDINGS, run, {}, place.registry)


def counted(place, series, name="server", files=("a.prom", "a.prom", "a.prom")):
    """`series`: what each counter tells in three scrapes, each of which stands in one of `files`."""
    times = [made_runs.START_NS + i * 60 * S for i in range(3)]
    rows = [(t, name, v, f) for name, values in series.items() for t, v, f in zip(times, values, files, strict=True)]
    scalars = {
        "ts_ns": [t for t, _, _, _ in rows],
        "name": [name for _, name, _, _ in rows],
        "value": [float(v) for _, _, v, _ in rows],
        "source": [file for _, _, _, file in rows],
    }
    engine = {"ts_ns": times, "order": [0, 1, 2], "running": [4] * 3, "waiting": [0] * 3, "source": list(files)}
    tables = {"scalars": scalars, "engine": engine}
    return ask(FINDINGS, made_runs.write(place.store, name, tables, {"chips": 1}, kind="serving"), {}, place.registry)


def test_a_load_of_which_many_requests_failed_is_told_so_first(place):
    result = of_load(place, 30, 100)
    first = result.findings[0]
    assert first.cause == "failed_requests" and first.gain is None and first.question == "latency"
    assert first.title == "30 % of the requests failed: 30 of 100 were not answered."
    assert {e.name: e.value for e in first.evidence} == {
        "requests that failed": 30.0,
        "of the requests": 0.3,
        "the most frequent error": "ServerDisconnectedError: Server disconnected",
    }
    assert verdict(result).startswith(first.title)


def test_a_load_that_nobody_answered_is_no_run_of_which_nothing_can_be_told(place):
    assert verdict(of_load(place, 2, 2)).startswith("None of 2 requests was answered.")


@pytest.mark.parametrize(("failed", "of"), [(0, 50), (2, 20), (9, 273)])
def test_few_failures_are_no_finding_and_are_ruled_out_with_their_number(place, failed, of):
    result = of_load(place, failed, of)
    assert "failed_requests" not in {f.cause for f in result.findings}
    (out,) = [r for r in result.ruled_out if r.cause == "failed_requests"]
    assert out.why == f"{failed or 'none'} of {of} requests failed"


@pytest.mark.parametrize(
    "series",
    [
        {
            f'{ENDED}{{finished_reason="stop"}}': [1000, 1050, 1100],
            f'{ENDED}{{finished_reason="length"}}': [10, 15, 20],
            f'{ENDED}{{finished_reason="abort"}}': [500, 520, 540],
        },
        {"sglang:num_requests_total": [1000, 1055, 1110], "sglang:num_aborted_requests_total": [9, 29, 49]},
        {"tgi_request_success": [90, 145, 200], 'tgi_request_failure{err="overloaded"}': [0, 20, 40]},
        {  # its process began anew
            f'{ENDED}{{finished_reason="stop",engine="0"}}': [5000, 5055, 55],
            f'{ENDED}{{finished_reason="error",engine="0"}}': [700, 720, 20],
        },
    ],
)
def test_requests_that_a_server_broke_off_are_told_by_what_its_counters_grew_by(place, series):
    (finding,) = counted(place, series).findings
    assert finding.cause == "failed_requests"
    assert finding.title.startswith("27 % of the requests were broken off or failed, 40 of 150")


@pytest.mark.parametrize("files", [("1.prom", "2.prom", "3.prom"), ("1.prom", "2.prom", "2.prom")])
def test_scrapes_of_one_server_in_files_of_their_own_are_not_added_up(place, files):
    series = {f'{ENDED}{{finished_reason="stop"}}': [900, 910, 950], f'{ENDED}{{finished_reason="abort"}}': [5, 20, 45]}
    (finding,) = counted(place, series, files=files).findings
    assert finding.title.startswith("44 % of the requests were broken off or failed, 40 of 90")


def test_a_server_of_which_clients_break_off_little_is_not_accused(place):
    few = {f'{ENDED}{{finished_reason="stop"}}': [0, 96, 192], f'{ENDED}{{finished_reason="abort"}}': [0, 4, 8]}
    result = counted(place, few)
    assert not result.findings and "failed_requests" in {r.cause for r in result.ruled_out}
    assert "failed_requests" not in {r.cause for r in counted(place, {"vllm:other": [1, 2, 3]}, "none").ruled_out}
