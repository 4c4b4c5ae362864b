"""A metric over many runs: real shifts are found where they are, and what only scatters tells none."""

import numpy as np
import pytest

from analyzers.history_of_metric import Point, history
from analyzers.history_of_metric.change_points import LEAST, SHORTEST, change_points
from analyzers.history_of_metric.drift import DEGREE, _curve, _less_a_jump, _less_a_turn, drift
from errors import QuestionError


def scatter(n, seed, r=0.0):
    """1 % of scatter, of which neighbours correlate by r."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n + 50)
    for i in range(1, n + 50):
        noise[i] = r * noise[i - 1] + np.sqrt(1 - r * r) * noise[i]
    return 0.01 * noise[50:]


def told(values, of_shares=False, more=None):
    """`more`: by how much each may be more."""
    ends = [None] * len(values) if more is None else np.asarray(values) + more
    told = enumerate(zip(values, ends, strict=True))
    points = [Point(label=f"c{i}", runs=(f"r{i}",), at_ns=i, value=float(v), high=end) for i, (v, end) in told]
    return history(points, of_shares=of_shares, bounded=more is not None)


@pytest.mark.parametrize(("r", "most"), [(0.0, 1), (0.3, 2), (0.6, 6)])
def test_series_in_which_nothing_changed_tell_hardly_any_change(r, most):
    """Of 120 series of 40 runs; `benchmarks/history_of_metric.py` counts many more."""
    series = [scatter(40, seed, r) for seed in range(120)]
    assert sum(bool(change_points(values)) for values in series) <= most
    assert sum(bool(change_points(values)) or drift(values) is not None for values in series) <= most


def nights(n, seed, slow):
    """Half a per cent of scatter, and some nights that a neighbour slows down by 3 to 15 %, each for itself."""
    rng = np.random.default_rng([n, int(100 * slow), seed])
    return np.log(1 + rng.normal(0, 0.005, n) + np.where(rng.random(n) < slow, rng.uniform(0.03, 0.15, n), 0))


@pytest.mark.parametrize(("n", "slow", "series", "most"), [(40, 0.1, 300, 6), (100, 0.2, 60, 2), (200, 0.1, 60, 2)])
def test_nights_slow_by_chance_are_no_change_for_good(n, slow, series, most):
    """A tenth to more than half of them told one when only a t by the scatter was asked."""
    assert sum(bool(change_points(nights(n, seed, slow))) for seed in range(series)) <= most


@pytest.mark.parametrize(("shift", "slow", "least"), [(0.01, 0.0, 19), (0.03, 0.1, 17), (0.1, 0.2, 19)])
def test_a_shift_is_found_among_nights_slow_by_chance(shift, slow, least):
    after = np.arange(100) >= 66
    told_of = [change_points(nights(100, seed, slow) + np.log1p(shift) * after) for seed in range(20)]
    assert sum(any(abs(c.at - 66) <= 2 for c in found) for found in told_of) >= least
    assert told_of[0] == change_points(nights(100, 0, slow) + np.log1p(shift) * after)  # the same every time


def test_a_level_of_a_few_runs_alone_is_found_where_nothing_else_is_odd():
    values = scatter(40, 1) + 0.1 * (np.arange(40) >= 37)
    assert [c.at for c in change_points(values)] == [37]
    values = scatter(60, 2) + 0.1 * ((np.arange(60) >= 30) & (np.arange(60) < 35))
    assert [c.at for c in change_points(values)] == [30, 35]


@pytest.mark.parametrize("values", [np.linspace(1, 2, 40), np.linspace(1, 1.1, 30), np.linspace(1.3, 1, 200)])
@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_what_moves_slowly_drifts_where_no_single_change_is_sure(values, noise):
    found = told(values + noise * np.random.default_rng(0).normal(size=len(values)))
    assert found.changes == () and found.drift is not None
    third = len(values) // 3
    assert found.drift.before == pytest.approx(np.median(values[:third]), rel=0.01)
    assert found.drift.after == pytest.approx(np.median(values[-third:]), rel=0.01)
    assert found.to_dict()["drift"]["change"] == found.drift.change


def test_a_shift_or_an_odd_run_is_no_drift():
    assert told(np.exp(scatter(40, 0) + 0.08 * (np.arange(40) >= 20))).drift is None
    assert told(np.r_[np.ones(20), 9.0, np.ones(20)]).drift is None and told(np.linspace(1, 1.004, 40)).drift is None
    assert told(np.ones(11)).drift is None


@pytest.mark.parametrize("at", [8, 20, 32])
def test_a_shift_of_five_deviations_is_found_where_it_is(at):
    hits = 0
    for seed in range(20):
        values = np.exp(scatter(40, seed) + 0.05 * (np.arange(40) >= at))
        found = told(values).changes
        hits += (
            len(found) == 1 and abs(int(found[0].first.label[1:]) - at) <= 1 and found[0].low < 0.0513 < found[0].high
        )
    assert hits >= 18


def test_several_shifts_up_and_down_are_told_apart():
    i = np.arange(60)
    found = told(np.exp(scatter(60, 3) + 0.08 * ((i >= 20) & (i < 40)))).changes
    assert [c.first.label for c in found] == ["c20", "c40"] and found[0].change > 0 > found[1].change
    assert found[0].to_dict()["run_before"] == "r19" and found[1].to_dict()["run_after"] == "r40"


def test_one_odd_run_is_no_change_and_changes_little_of_what_is_told():
    values = scatter(40, 1)
    values[17] += 1.0
    assert change_points(values) == ()
    values[25:] += 0.06
    assert [c.at for c in change_points(values)] == [25]


def test_shares_are_told_in_points_and_times_as_shares_of_the_former():
    level = np.where(np.arange(30) < 15, 0.40, 0.36)
    steady = 0.001 * np.random.default_rng(0).normal(size=30)
    (points,) = told(level + steady, of_shares=True).changes
    (shares,) = told(level + steady).changes
    assert points.change == pytest.approx(-0.04, abs=0.002) and shares.change == pytest.approx(-0.1, abs=0.005)
    assert (shares.before, shares.after) == pytest.approx((0.40, 0.36), abs=0.002)


def test_what_does_not_scatter_changes_where_it_does_and_not_by_a_hair():
    assert [c.at for c in change_points(np.r_[np.zeros(10), np.full(10, 0.02)])] == [10]
    assert change_points(np.r_[np.zeros(10), np.full(10, 0.004)]) == () == change_points(np.zeros(20))


def test_too_few_runs_are_said_and_get_no_verdict():
    few = told(np.r_[np.ones(6), 2 * np.ones(LEAST - 7)])
    assert not few.judged and few.changes == () and f"{LEAST} are needed" in few.why[0]
    assert told(np.ones(LEAST)).judged and SHORTEST * 2 <= LEAST


@pytest.mark.parametrize("odd", [0.0, -1.0, float("nan"), float("inf"), 1e308])
def test_values_that_are_no_amounts_are_left_out_and_said(odd):
    found = told([*np.ones(20), odd])
    assert found.changes == () and (len(found.points), len(found.why)) == ((21, 0) if odd == 1e308 else (20, 1))
    if odd != 1e308:
        with pytest.raises(QuestionError, match="none of these runs"):
            told([odd])


@pytest.mark.parametrize("levels", [(0, 1, 2, 3), (4, 3, 2, 1, 0), (0, 1, 0, 1, 0), (0, 1, 3, 2, 4, 5, 7, 6)])
@pytest.mark.parametrize("length", [12, 20])
def test_of_many_levels_each_change_is_told_though_no_few_of_them_are_sure(levels, length):
    values = np.repeat(0.1 * np.array(levels), length) + scatter(length * len(levels), 5)
    assert [c.at for c in change_points(values)] == list(range(length, len(values), length))


@pytest.mark.parametrize("shape", [lambda x: 0.6 * x, lambda x: x**2, lambda x: np.exp(-6 * x), lambda x: -(x**0.5)])
def test_what_moves_all_the_while_is_no_row_of_levels(shape):
    for n in (60, 200):
        assert change_points(shape(np.linspace(0, 1, n)) + scatter(n, 6)) == ()


@pytest.mark.parametrize(("at", "least"), [(20, 30), (30, 30), (45, 30)])
def test_what_moves_slowly_and_jumps_once_is_not_said_to_stay(at, least):
    i, hits = np.arange(60), 0
    for seed in range(30):
        noise = 0.005 * np.random.default_rng(seed).normal(size=60)
        found = told(np.exp(0.2 * (i >= at) + 0.01 * np.maximum(i - at, 0) + noise))
        hits += bool(found.changes) or (found.drift is not None and found.drift.change > 0.15)
    assert hits >= least


@pytest.mark.parametrize(("r", "most"), [(0.0, 1), (0.6, 3), (0.8, 8)])
def test_what_only_hangs_together_hardly_ever_drifts_with_a_jump(r, most):
    assert sum(drift(scatter(40, seed, r)) is not None for seed in range(200)) <= most


@pytest.mark.parametrize("n", [12, 13, 40])
@pytest.mark.parametrize("less", [_less_a_jump, _less_a_turn])
def test_the_jump_that_is_taken_off_is_that_of_all_places_which_leaves_least(n, less):
    x, y = np.linspace(-1, 1, n), scatter(n, n)
    columns = np.polynomial.legendre.legvander(x, DEGREE)
    left = []
    for at in range(3, n - 2):
        after = np.arange(n) >= at
        both = np.c_[columns, after] if less is _less_a_jump else np.c_[columns, after, after * x]
        rest = y - both @ np.linalg.lstsq(both, y, rcond=None)[0]
        left.append(float(rest @ rest))
    curve = _curve(x)
    rest = less(y - curve @ (curve.T @ y), curve)
    assert float(rest @ rest) == pytest.approx(min(left))


@pytest.mark.parametrize(("before", "after", "sure"), [(0, 0.09, True), (0, 0.11, False), (0.2, 0.2, False)])
def test_a_fall_that_lies_within_what_nobody_knows_is_no_change(before, after, sure):
    late = np.arange(40) >= 20
    values = np.where(late, 0.1, 0.2) + 0.1 * scatter(40, 1)
    found = told(values, of_shares=True, more=np.where(late, after, before))
    assert len(found.changes) == sure and found.drift is None
    assert ("1 change is not told" in " ".join(found.why)) != sure
    if sure:
        (change,), (plain,) = found.changes, told(values, of_shares=True).changes
        assert (change.low, change.high) == pytest.approx((plain.low - before, plain.high + after))
        assert change.change == plain.change


@pytest.mark.parametrize(("more", "sure"), [(0.01, True), (0.5, False)])
def test_a_drift_that_lies_within_what_nobody_knows_is_none(more, sure):
    found = told(np.linspace(0.3, 0.1, 40) + 0.1 * scatter(40, 2), of_shares=True, more=np.full(40, more))
    assert not found.changes and (found.drift is not None) == sure == (not found.why)
