"""The steady part of a load: its window, its rates, and when there is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import load
from analyzers.serving.load.pace import pace
from analyzers.serving.load.steady import flow, peak_per_s
from analyzers.serving.served import served
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask, closed_loop, queued, requests


def test_a_closed_loop_is_steady_until_the_last_request_is_sent():
    start, first, end = closed_loop(2000, 32, 0.3, 0.01, 200)
    found = ask(load, requests(start, first, end, np.full(2000, 200))).steady
    assert found.is_steady and found.counted == "in flight"
    assert found.end_s == pytest.approx(start.max())
    assert 0 <= found.start_s < 0.2 * found.end_s
    assert found.start_range_s[0] <= found.start_s <= found.start_range_s[1]
    assert found.in_flight == pytest.approx(32, rel=0.002)
    inside = 32 * 200 / (end - start).mean()  # tokens of 32 requests that follow one another without pause
    assert found.output_tokens_per_s == pytest.approx(inside, rel=0.02)
    assert abs(found.output_tokens_per_s - inside) < 2 * found.output_tokens_per_s_margin
    assert found.whole_output_tokens_per_s == pytest.approx(2000 * 200 / end.max())
    assert found.outside == pytest.approx(1 - found.whole_output_tokens_per_s / found.output_tokens_per_s)
    assert found.rate_times_latency == pytest.approx(32, rel=0.05)


def test_a_slow_ramp_is_left_out():
    rng = np.random.default_rng(3)
    slow = np.cumsum(rng.exponential(1.0, 60))  # a minute at one a second
    fast = slow[-1] + np.cumsum(rng.exponential(0.05, 6000))  # five minutes at twenty
    start = np.concatenate((slow, fast))
    end = start + rng.uniform(2, 4, len(start))
    found = ask(load, requests(start, start + 0.1, end, np.full(len(start), 50))).steady
    assert found.is_steady
    assert slow[-1] - 6 < found.start_s < slow[-1] + 15
    assert found.in_flight == pytest.approx(20 * 3, rel=0.05)


def test_an_overloaded_server_is_looked_at_by_what_runs():
    start, scheduled, first, end = queued(rate=20.0, count=1500, seats=16, service_s=2.0)
    found = ask(load, requests(start, first, end, np.full(1500, 64), scheduled=scheduled))
    steady = found.steady
    assert steady.counted == "running" and steady.is_steady
    assert steady.in_flight == pytest.approx(16, rel=0.01)
    assert steady.end_s == pytest.approx(scheduled.max() - start.min())
    assert "no level" in found.steady_words
    blind = ask(load, requests(start, first, end, np.full(1500, 64))).steady
    assert not blind.is_steady and blind.drift > 0.5 and blind.rate_times_latency is None


def test_a_server_with_room_is_steady_in_flight():
    start, scheduled, first, end = queued(rate=4.0, count=1500, seats=64, service_s=2.0)
    steady = ask(load, requests(start, first, end, np.full(1500, 64), scheduled=scheduled)).steady
    assert steady.counted == "in flight" and steady.is_steady
    assert steady.in_flight == pytest.approx(8.0, rel=0.1)
    assert steady.rate_times_latency == pytest.approx(steady.in_flight, rel=0.05)


def test_all_at_once_has_no_level():
    _, first, end = closed_loop(200, 8, 0.1, 0.01, 50)
    result = ask(load, requests(np.zeros(200), first, end, np.full(200, 50)))
    assert result.steady is None and "at once" in result.steady_words


def test_few_requests_tell_no_level():
    start, first, end = closed_loop(12, 2, 0.1, 0.01, 50)
    result = ask(load, requests(start, first, end, np.full(12, 50)))
    assert result.steady is None and "too few" in result.steady_words


def test_the_load_that_is_looked_into_can_be_chosen():
    one, two = (closed_loop(200, c, 0.1, 0.01, 50, seed=c) for c in (4, 8))
    start, first, end = (np.concatenate((a, b + 500)) for a, b in zip(one, two, strict=True))
    tables = requests(start, first, end, np.full(400, 50), stage=["four"] * 200 + ["eight"] * 200)
    assert ask(load, tables, stage="four").steady.in_flight == pytest.approx(4, rel=0.01)
    assert ask(load, tables, stage="eight").steady.in_flight == pytest.approx(8, rel=0.01)


gap = st.integers(0, 3_000)  # ms
request = st.tuples(
    st.integers(0, 20_000), st.integers(1, 2_000), st.lists(gap, min_size=1, max_size=8), st.integers(0, 2)
)


@settings(deadline=None, max_examples=60)
@given(st.lists(request, min_size=1, max_size=12))
def test_tokens_and_requests_along_time_are_those_counted_one_by_one(made):
    """Pieces of one or two tokens, answers of one token: against a loop over them."""
    start = np.array([m[0] for m in made]) / 1e3
    first = start + np.array([m[1] for m in made]) / 1e3
    gaps = [m[2] if m[3] else [] for m in made]
    tokens = [1 + m[3] * len(g) for m, g in zip(made, gaps, strict=True)]
    last = first + np.array([sum(g) / 1e3 for g in gaps])
    tables = requests(start, first, last, np.array(tokens), gaps_ns=[[g * 10**6 for g in one] for one in gaps])
    along = flow(served(tables))
    assert along.exact
    origin = start.min()
    for at in (0.0, 0.7, 5.3, 12.9, 60.0):
        count = area = 0.0
        for s, f, e, own, n in zip(start - origin, first - origin, last - origin, gaps, tokens, strict=True):
            area += max(at - s, 0) - max(at - e, 0)
            times = f + np.cumsum(own) / 1e3
            count += (f <= at + 1e-7) + ((times <= at + 1e-7).sum() * (n - 1) / len(own) if own else 0)
        assert along.in_flight(np.array([at]))[0] == pytest.approx(area, abs=1e-5)
        assert along.tokens(np.array([at + 1e-7]))[0] == pytest.approx(count, abs=2e-5)


def test_the_pace_of_a_batch_is_found_from_first_and_last_tokens():
    rng = np.random.default_rng(1)
    arrive = np.sort(rng.uniform(0, 30, 300))
    length = rng.integers(20, 400, 300)
    first, last, made = np.full(300, np.nan), np.zeros(300), []
    left, at, sent, running = length.copy(), 0.0, 0, []
    while sent < 300 or running:
        while sent < 300 and arrive[sent] <= at and len(running) < 64:
            running.append(sent)
            sent += 1
        at += 0.005 + 0.0006 * len(running)  # a step takes longer the more run together
        for i in running:
            first[i] = at if np.isnan(first[i]) else first[i]
            left[i] -= 1
            made.append(at)
            last[i] = at
        running = [i for i in running if left[i]]
    found = pace(first, last, length - 1.0)
    assert found.unevenness < 0.02 < 0.1 < found.even
    assert found.tokens[-1] == pytest.approx((length - 1).sum())
    inside = np.linspace(5, 25, 9)
    truth = np.searchsorted(made, inside) - (first[:, None] < inside).sum(axis=0)
    evenly = ((length - 1)[:, None] * np.clip((inside - first[:, None]) / (last - first)[:, None], 0, 1)).sum(axis=0)
    error, even_error = (np.abs(np.diff(x) / np.diff(truth) - 1).max() for x in (found.upto(inside), evenly))
    assert error < 0.02 and even_error > 3 * error


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 30), st.integers(1, 500)), min_size=1, max_size=20))
def test_every_token_has_its_time(made):
    first, length, tokens = (np.array(c, dtype=float) for c in zip(*made, strict=True))
    found = pace(first, first + length, tokens)
    assert found.tokens[0] == 0 and found.tokens[-1] == pytest.approx(tokens.sum())
    assert (np.diff(found.tokens) >= 0).all()


def test_an_answer_in_one_piece_comes_at_once():
    tables = requests(np.array([0.0, 1.0]), np.array([2.0, 4.0]), np.array([2.0, 4.0]), np.array([10, 20]))
    along = flow(served(tables))
    assert along.exact and along.tokens(np.array([1.9, 2.0, 3.9, 4.0])).tolist() == [0, 10, 10, 30]


def test_the_peak_is_the_fullest_second():
    rng = np.random.default_rng(5)
    start = np.sort(rng.uniform(0, 20, 50))
    gaps = rng.integers(1, 400, (50, 30))
    first = start + 0.1
    last = first + gaps.sum(axis=1) / 1e3
    tables = requests(start, first, last, np.full(50, 31), gaps_ns=(gaps * 10**6).tolist())
    times = np.concatenate([first, (first[:, None] + np.cumsum(gaps, axis=1) / 1e3).ravel()]) - start.min()
    counts = np.bincount(times.astype(int))
    made, at = peak_per_s(flow(served(tables)))
    assert (made, at) == (pytest.approx(counts.max(), abs=1.5), float(np.argmax(counts)))
    assert ask(load, tables).rows["peak_output_tokens_computed_per_s"].iloc[0] == pytest.approx(made)


def test_answers_of_which_no_first_token_was_timed_came_in_one_piece():
    """A tool that does not stream: the rate of tokens is that of the answers, not 0."""
    start, first, end = closed_loop(2000, 32, 0.3, 0.01, 200)
    rows = requests(start, first, end, np.full(2000, 200)).arrow("requests").to_pydict()
    rows["first_token_ns"] = [None] * 2000
    found = ask(load, MemoryTables({"requests": rows}))
    inside = 32 * 200 / (end - start).mean()
    assert found.steady.output_tokens_per_s == pytest.approx(inside, rel=0.05)
    assert found.steady.outside == pytest.approx(1 - found.steady.whole_output_tokens_per_s / inside, abs=0.05)
    assert found.rows["peak_output_tokens_computed_per_s"].iloc[0] >= inside
