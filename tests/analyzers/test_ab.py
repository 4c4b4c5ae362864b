"""A or B: runs of an engine whose speed is known, told apart or not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from analyzers.serving.ab import RATE, compare
from analyzers.serving.served import served
from app.comparing.words import verdict
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.served_worlds import world

LIGHT = {"n": 900, "rate": 3.0, "slots": 32}


def of(**more):
    return served(world(**{**LIGHT, **more}).without_passes)


@pytest.fixture(scope="module")
def base():
    return of(seed=1)


def _by(result):
    return {(d.metric, d.statistic): d for d in result.differences}


def test_a_run_is_as_fast_as_itself(base):
    result = compare(base, base)
    assert result.paired == 900 and not result.traffic.warnings
    assert not any(d.clear for d in result.differences)
    assert all(d.difference == 0 and d.low in (0, None) and d.times_more is None for d in result.differences)


def test_an_engine_that_is_a_tenth_faster_is_told_in_pairs(base):
    result = compare(base, of(seed=1, slower=0.9))
    found = _by(result)
    mean = found["tpot_s", "mean"]
    assert result.paired == 900 and mean.clear and mean.better == "B"
    assert mean.ratio_low < mean.ratio < mean.ratio_high < 1
    assert mean.slower_share < 0.5 and found["ttft_s", "mean"].better == "B"
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_change_of_requests_is_said_where_no_single_figure_is_clear(base):
    result = compare(base, of(seed=1, slower=1.5))
    alone = replace(result, differences=tuple(d for d in result.differences if not d.clear))
    assert alone.to_dict()["told"] and "B's" in verdict(result, "one", "two").whole
    said = verdict(alone, "one", "two").whole
    assert (
        said.startswith("A (one) is better where it can be told. A request to B takes") and "No difference" not in said
    )
    assert "B's" not in said


def test_other_requests_of_the_same_traffic_are_no_difference(base):
    result = compare(base, of(seed=2))
    assert result.paired == 0
    assert sum(d.clear for d in result.differences) <= 1  # one interval in twenty misses by chance
    near = [d for d in result.differences if not d.clear and d.low is not None and d.difference]
    assert all(d.times_more is None or d.times_more > 1 for d in near)


def test_faster_is_the_same_told_from_either_side(base):
    fast = of(seed=2, slower=0.5)
    there, back = _by(compare(base, fast)), _by(compare(fast, base))
    for key, d in there.items():
        other = back[key]
        assert other.difference == pytest.approx(-d.difference)
        assert other.clear == d.clear and {d.better, other.better} in ({""}, {"A", "B"})
    d = there["tpot_s", "p50"]
    assert d.better == "B" and 0.35 < d.ratio < 0.5  # half the time of a pass, and fewer sequences at once in it


def test_throughput_is_better_when_higher():
    slow, fast = of(seed=1, rate=30.0, slower=2.0, n=600), of(seed=1, rate=30.0, n=600)
    d = _by(compare(slow, fast))[RATE, "mean"]
    assert d.ratio == pytest.approx(2, rel=0.2) and d.clear and d.better == "B"


def test_traffic_that_differs_is_said(base):
    warnings = compare(base, of(seed=1, rate=6.0)).traffic.warnings
    assert any("requests sent per second" in w for w in warnings)
    short = served(MemoryTables({"requests": {**world(**LIGHT, seed=1).requests, "prompt_tokens": [10] * 900}}))
    result = compare(base, short)
    assert result.paired == 0 and any("prompt tokens" in w for w in result.traffic.warnings)


def test_ids_alone_do_not_make_pairs(base):
    other = world(**LIGHT, seed=9)
    assert compare(base, served(other.without_passes)).paired == 0


def test_other_tokenisers_still_pair(base):
    made = world(**LIGHT, seed=1)
    more = [round(p * 1.04) for p in made.requests["prompt_tokens"]]
    assert compare(base, served(MemoryTables({"requests": {**made.requests, "prompt_tokens": more}}))).paired == 900


def test_requests_that_failed_in_one_are_compared_in_neither(base):
    made = world(**LIGHT, seed=1)
    status = ["failed" if i % 30 == 0 else "completed" for i in range(900)]
    result = compare(base, served(MemoryTables({"requests": {**made.requests, "status": status}})))
    assert result.paired == 870 and any("share of requests that failed" in w for w in result.traffic.warnings)
    assert all(d.difference == 0 for d in result.differences if d.metric != RATE)


def test_a_queue_that_grows_throughout_has_no_interval():
    result = compare(of(seed=1, rate=200.0, n=400), of(seed=2, rate=200.0, n=400))
    d = _by(result)["ttft_s", "mean"]
    assert d.low is None and not d.clear and d.independent < 5 and "hang together" in d.why
    assert np.isfinite(d.a) and np.isfinite(d.ratio)


def test_three_hundred_requests_say_nothing_of_a_p99(base):
    few = of(seed=1, n=300)
    assert "368" in _by(compare(few, of(seed=2, n=300)))["tpot_s", "p99"].why


def test_a_run_that_answered_nothing_cannot_be_compared(base):
    dead = MemoryTables({"requests": {**world(n=20).requests, "status": ["failed"] * 20}})
    with pytest.raises(QuestionError, match="the second of the two runs"):
        compare(base, served(dead))
