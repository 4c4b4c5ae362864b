"""Requests that the end of a load cuts off: in flight until then, neither failed nor missed."""

import numpy as np
import pytest

from analyzers.serving import latency, load, objectives, traffic
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask, requests

STREAMS, SECONDS = 32, 60.0


def closed_loop(status: str) -> MemoryTables:
    """Streams that each send the next request when one is answered, until the end; `status` of those open then."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(STREAMS):
        at = 0.0
        while at < SECONDS:
            takes = rng.uniform(4, 8)
            rows.append((at, min(at + 0.3, SECONDS), min(at + takes, SECONDS), at + takes > SECONDS))
            at += takes
    start, first, end, open_ = (np.array(x) for x in zip(*sorted(rows), strict=True))
    made = np.maximum(1, 60 * (end - first)).astype(int)
    return requests(start, first, end, made, status=[status if x else "completed" for x in open_])


def test_what_was_cut_off_has_not_failed():
    run = closed_loop("cut_off")
    said = ask(latency, run)
    assert said.to_dict()["failed"] == 0 and not said.to_dict()["failures"] and said.lost_tokens == 0
    assert said.load.requests == len(said.rows)
    assert any(f"{STREAMS} of" in n and "cut them off" in n for n in said.notes)
    found = ask(load, run, ttft_s=0.5)
    assert found.rows["failed"].tolist() == [0] and found.rows["keeps_objectives"].tolist() == [True]
    assert ask(traffic, run).failed == 0


def test_it_is_in_flight_until_the_end():
    steady = ask(load, closed_loop("cut_off")).steady
    assert steady is not None and steady.is_steady and steady.in_flight == pytest.approx(STREAMS, rel=0.01)


def test_it_is_not_judged():
    found = ask(objectives, closed_loop("cut_off"), ttft_s=0.5)
    assert (found.attainment, found.misses, found.to_dict()["failed"]) == (1.0, {}, 0)
    assert found.judged + STREAMS == found.load.requests
    late = ask(objectives, closed_loop("cut_off"), ttft_s=0.2)
    assert late.attainment == 0.0 and sum(late.misses.values()) == late.judged


@pytest.mark.parametrize("status", ["failed", "aborted"])
def test_what_failed_or_was_cancelled_has_missed(status):
    found = ask(objectives, closed_loop(status), ttft_s=0.5)
    assert found.misses == {"failed": STREAMS} and found.judged == found.load.requests
    assert ask(latency, closed_loop(status)).to_dict()["failed"] == STREAMS


def test_a_load_of_which_all_was_cut_off_cannot_be_judged():
    at = np.arange(5.0)
    run = requests(at, at + 1, at + 9, np.full(5, 10), status=["cut_off"] * 5)
    with pytest.raises(QuestionError, match="cut off every request"):
        ask(objectives, run, ttft_s=1)
    assert ask(latency, run).to_dict()["failed"] == 0
