"""Several runs: what differs is told and nothing else, the front is nobody's loser, curves hold their extremes, and a
series is strong or weak by what its steps work on."""

import math
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.difference.step_time import settled
from analyzers.several.against import held, unlike
from analyzers.several.curves import Curve, curve, reduced, smoothed
from analyzers.several.differing import MOST, Member, differing
from analyzers.several.front import MOST_LINES, front, iso_line, iso_values
from analyzers.several.scaling import Grown, eaten, scaling, serial_share
from app.comparing.several.scaling_words import sentence
from errors import QuestionError
from runs.run import facts_of


def member(name, figures=None, kind="training", model="llama", **facts):
    return Member(run_id=name, name=name, kind=kind, model=model, facts=facts_of(facts), figures=dict(figures or {}))


values = st.sampled_from([None, 1, 2, 2.5, "a", "b", True])


@given(st.lists(st.tuples(values, values, values), min_size=2, max_size=6))
@settings(max_examples=150, deadline=None)
def test_every_setting_is_in_exactly_one_part_and_in_the_right_one(rows):
    members = [
        member(f"r{n}", **{k: v for k, v in zip("xyz", row, strict=True) if v is not None})
        for n, row in enumerate(rows)
    ]
    found = differing(members, ())
    for at, name in enumerate("xyz"):
        told = [row[at] for row in rows if row[at] is not None]
        parts = [p for p in ("differs", "some", "common") if any(x.name == name for x in getattr(found, p))]
        distinct = {(isinstance(v, str), str(v) if isinstance(v, str) else float(v)) for v in told}
        want = [] if not told else ["differs"] if len(distinct) > 1 else ["some" if len(told) < len(rows) else "common"]
        assert parts == want


def test_what_is_not_told_is_none_and_never_nought():
    found = differing([member("a", {"mfu": 0.4}), member("b", {"mfu": 0.5}), member("c")], ("mfu", "loss"))
    (line,) = found.figures
    assert line.values == (0.4, 0.5, None) and not line.by_all
    assert all(x.name != "loss" for part in (found.differs, found.some, found.common) for x in part)


def test_what_is_no_number_is_told_as_a_text_and_is_no_difference_from_itself():
    found = differing([member("a", lr=math.nan, b=math.inf), member("b", lr=math.nan, b=1.0)], ())
    assert [(x.name, x.values) for x in found.settings] == [("b", ("inf", 1.0))]
    assert ("lr", ("nan", "nan")) in [(x.name, x.values) for x in found.common]


def test_an_axis_that_a_mesh_does_not_name_has_one_place():
    meshes = [{"parallelism": {"fsdp": 8}}, {"parallelism": {"tensor": 8}}, {}]
    found = differing([member(f"r{n}", **facts) for n, facts in enumerate(meshes)], ())
    assert {x.name: x.values for x in found.settings} == {
        "parallelism.fsdp": (8, 1, None),
        "parallelism.tensor": (1, 8, None),
    }


@pytest.mark.parametrize("many", [0, 1, MOST + 1])
def test_too_few_and_too_many_are_refused(many):
    with pytest.raises(QuestionError, match=f"{many} runs"):
        differing([member(f"r{n}") for n in range(many)], ())


def test_the_rounding_of_another_tool_is_no_difference():
    found = differing([member("a", batch=64), member("b", batch=64.0 * (1 + 1e-9))], ())
    assert not found.settings


@pytest.mark.parametrize(
    ("before", "now", "better", "change", "worse"),
    [
        (2.0, 3.0, "less", 0.5, True),
        (2.0, 3.0, "more", 0.5, False),
        (2.0, 1.0, "", -0.5, None),
        (2.0, 2.0, "less", 0.0, None),
    ],
)
def test_a_change_is_a_share_of_the_baseline(before, now, better, change, worse):
    found = held(before, now, better)
    assert found is not None and found.change == change and found.worse is worse


@pytest.mark.parametrize(("before", "now"), [(None, 1.0), (1.0, None), (0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0)])
def test_of_a_baseline_that_tells_nothing_no_share_is_told(before, now):
    assert held(before, now, "less") is None


def test_runs_of_other_kinds_and_models_are_not_held_against_each_other():
    base = member("a")
    assert unlike(base, member("b")) == ""
    assert unlike(base, member("b", model=None)) == ""
    assert "another kind" in unlike(base, member("b", kind="serving"))
    assert "another model" in unlike(base, member("b", model="gpt"))


points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)
ways = st.sampled_from(["less", "more"])


@given(points, ways, ways)
@settings(max_examples=200, deadline=None)
def test_on_the_front_are_exactly_those_that_no_other_beats(some, x_better, y_better):
    def beats(a, b):
        signs = [1 if w == "less" else -1 for w in (x_better, y_better)]
        p, q = ([s * v for s, v in zip(signs, of, strict=True)] for of in (a, b))
        return all(m <= n for m, n in zip(p, q, strict=True)) and p != q

    want = {n for n, p in enumerate(some) if not any(beats(o, p) for o in some)}
    assert set(front([p[0] for p in some], [p[1] for p in some], x_better, y_better)) == want


def test_without_a_better_direction_there_is_no_front():
    assert front([1.0], [1.0], "", "less") == ()


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_lines_lie_among_what_the_points_make(made):
    found = iso_values(made)
    assert 1 <= len(found) <= MOST_LINES
    assert all(min(made) * 0.99 <= v <= max(made) * 1.01 for v in found)


def test_along_a_line_the_product_or_the_quotient_is_the_same():
    x = np.array([1.0, 2.0, 8.0])
    assert x * iso_line(5.0, x, True) == pytest.approx(5.0) and iso_line(5.0, x, False) / x == pytest.approx(5.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_a_smoothed_value_is_the_mean_of_its_neighbours(given_values, width):
    series = np.array(given_values)
    found, n = smoothed(series, width), len(series)
    for at in range(n):
        reach = 0 if width <= 1 else min(width // 2, at, n - 1 - at)
        assert found[at] == pytest.approx(series[at - reach : at + reach + 1].mean(), rel=1e-6, abs=1e-3)


def test_a_spike_moves_no_value_that_it_is_not_part_of():
    series = np.full(100, 2.0)
    series[10] = 1e18
    assert [n for n, v in enumerate(smoothed(series, 5)) if v != 2.0] == [8, 9, 10, 11, 12]


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=300), st.integers(2, 40))
@settings(max_examples=100, deadline=None)
def test_a_reduced_curve_keeps_the_least_and_the_greatest(given_values, most):
    y = np.array(given_values)
    mid, low, high, at, width = reduced(np.arange(len(y), dtype=float), y, most)
    assert len(mid) <= most and width == -(-len(y) // most) and len(mid) == len(at) == -(-len(y) // width)
    assert low.min() == y.min() and high.max() == y.max()
    assert ((low <= mid) & (mid <= high)).all() and (np.diff(at) > 0).all()


def steps(seconds, **more):
    n = len(seconds)
    return pd.DataFrame(
        {
            "step": range(n),
            "start_ns": np.concatenate([[0], np.cumsum(seconds)[:-1]]) * 1e9,
            "dur_s": seconds,
            "kept": True,
            "implausible": "",
            "tokens_per_s_per_chip": 100.0,
            "loss": np.linspace(4, 2, n),
        }
        | more
    )


def test_steps_that_are_no_usual_ones_are_set_apart_and_none_is_lost():
    seconds = np.full(60, 1.0)
    seconds[0], seconds[30] = 9.0, 12.0
    usual = np.array([n for n in range(60) if n not in (0, 30)])
    found = curve(steps(seconds), usual, "step_time", "step", 4)
    assert isinstance(found, Curve)
    assert found.steps == 58 and found.apart == 2 and sorted(found.apart_y) == [9.0, 12.0]
    losses = curve(steps(seconds), usual, "loss", "step", 4)
    assert isinstance(losses, Curve) and losses.steps == 60 and losses.apart == 0


@pytest.mark.parametrize(("over", "last"), [("step", 9.0), ("time", 9 * 2.0 / 3600), ("tokens", 10 * 2.0 * 100 * 4)])
def test_a_curve_runs_over_what_is_asked(over, last):
    found = curve(steps(np.full(10, 2.0)), np.arange(10), "step_time", over, 4)
    assert isinstance(found, Curve) and found.x[-1] == pytest.approx(last)


def test_without_times_of_day_hours_are_those_of_the_steps():
    rows = steps(np.full(10, 2.0)).assign(start_ns=pd.array([pd.NA] * 10, dtype="Int64"))
    found = curve(rows, np.arange(10), "step_time", "time", 4)
    assert isinstance(found, Curve) and found.x == pytest.approx(np.arange(10) * 2.0 / 3600)


def test_a_curve_that_cannot_be_says_why():
    rows, usual = steps(np.full(5, 1.0)), np.arange(5)
    assert curve(rows, usual, "mfu", "step", 4) == "it does not tell it"
    assert "chips" in str(curve(rows, usual, "throughput", "step", None))
    assert "tokens" in str(curve(rows, usual, "loss", "tokens", None))
    assert curve(rows.assign(loss=np.nan), usual, "loss", "step", 4) == "it does not tell it"
    assert "settled" in str(curve(rows, np.zeros(0, int), "step_time", "step", 4))


def test_throughput_is_of_all_chips():
    found = curve(steps(np.full(5, 1.0)), np.arange(5), "throughput", "step", 4)
    assert isinstance(found, Curve) and (found.y == 400.0).all()


def times(mean, seed=0, n=200):
    seconds = mean * (1 + 0.01 * np.random.default_rng(seed).normal(size=n))
    found = settled(np.arange(n), seconds, np.zeros(n, bool), np.zeros(n, bool))
    assert found is not None
    return found


def grown(name, chips, mean, batch, seed=0, accounts=None, **facts):
    return Grown(
        member=member(name, chips=chips, **facts), chips=chips, times=times(mean, seed), batch=batch, accounts=accounts
    )


def test_the_same_batch_on_more_chips_is_strong_scaling_and_its_serial_share_is_found():
    share = 0.05
    runs = [
        grown(f"s{n}", n, 10 * (share + (1 - share) * 8 / n), 64, seed=n, topology=f"x{n}") for n in (64, 8, 32, 16)
    ]
    found = scaling(runs)
    (series,) = found.series
    assert series.kind == "strong" and [p.chips for p in series.points] == [8, 16, 32, 64]
    for p in series.points:
        truth = 1 / (share * p.chips / 8 + 1 - share)
        assert p.efficiency == pytest.approx(truth, rel=0.01)
        if p.chips > 8:
            assert p.low is not None and p.high is not None and p.low <= truth <= p.high
    assert series.serial is not None and series.serial.low <= share <= series.serial.high
    assert found.left_out == ()


def test_of_runs_on_as_many_chips_the_quickest_stands_for_them_however_they_are_named():
    runs = [grown("a", 4, 1.0, 64), grown("b", 4, 1.4, 64), grown("c", 16, 0.3, 64), grown("d", 16, 0.6, 64)]
    for named in permutations(runs):
        (series,) = scaling(named).series
        assert [p.name for p in series.points] == ["a", "b", "c", "d"]
        assert "from 4 to 16 chips, by the quickest run on each, 83.3 % (" in sentence(series)
    assert "quickest" not in sentence(scaling([runs[0], runs[2]]).series[0])


def test_the_same_batch_a_chip_is_weak_scaling():
    runs = [grown(f"w{n}", n, 10 * (1 + 0.05 * k), 8 * n, seed=n) for k, n in enumerate((8, 16, 32))]
    (series,) = scaling(runs).series
    assert series.kind == "weak" and series.serial is None
    assert series.points[-1].efficiency == pytest.approx(1 / 1.1, rel=0.01)


def test_a_run_that_differs_in_anything_else_is_left_out_by_name():
    runs = [
        grown("a", 8, 10, 64, precision="bf16"),
        grown("b", 16, 5, 64, precision="bf16"),
        grown("c", 32, 2, 64, precision="int8"),
        grown("d", 32, 2.6, None, precision="bf16"),
        grown("e", 32, 2.6, 100, precision="bf16"),
    ]
    found = scaling(runs, [("f", "it has no steps")])
    assert [p.name for p in found.series[0].points] == ["a", "b"]
    told = dict(found.left_out)
    assert "precision" in told["c"] and "works on is not told" in told["d"] and "batch" in told["e"]
    assert told["f"] == "it has no steps"


def test_a_run_is_left_out_for_what_it_differs_in_from_any_of_the_series():
    made = [grown("a", 4, 1.0, 64), grown("b", 8, 0.52, 64, 1, precision="bf16")]
    others = [grown("odd", 16, 0.3, 64, 2, precision="int8"), grown("c", 32, 0.2, 64, 3, precision="bf16")]
    (left,) = scaling([*made, *others]).left_out
    assert left == ("odd", "it differs in precision as well")


def test_where_more_chips_do_not_shorten_a_step_no_serial_share_is_told():
    points = [(1, 1.0), (2, 1.02), (4, 1.03), (8, 1.035)]
    assert serial_share(points, [0.001] * 4) == (None, "more chips do not shorten a step")


def test_what_not_all_of_a_series_tell_is_named():
    (series,) = scaling([grown("a", 8, 10, 64, precision="bf16", seq=1), grown("b", 16, 5, 64, seq=1)]).series
    assert series.untold == ("precision",)


def test_no_two_runs_of_one_job_are_no_series_and_accuse_nobody():
    found = scaling([grown("a", 8, 10, 64), grown("b", 8, 5, 64)], [("c", "why")])
    assert found.series == () and found.left_out == ()


@given(
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 5), min_size=1),
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 5), min_size=1),
    st.integers(1, 6),
)
@settings(max_examples=100, deadline=None)
def test_what_accounts_eat_adds_up_to_what_is_lost(first, last, times_chips):
    one, many = (grown(n, c, 1.0, 64, accounts=a) for n, c, a in (("a", 8, first), ("b", 8 * times_chips, last)))
    for kind in ("strong", "weak"):
        found = eaten(one, many, kind)
        ideal = 1 / times_chips if kind == "strong" else 1.0
        assert found is not None
        assert sum(found.values()) == pytest.approx(1 - ideal * sum(first.values()) / sum(last.values()), abs=1e-9)


def test_a_serial_share_is_told_only_where_the_points_carry_it():
    amdahl = [(n, 10 * (0.1 + 0.9 * 8 / n)) for n in (8, 16, 32, 64)]
    few = [1e-4] * 4
    found, why = serial_share(amdahl, few)
    assert found is not None and found.share == pytest.approx(0.1) and not why
    assert serial_share(amdahl[:3], few[:3])[0] is None
    noisy = [(n, t * f) for (n, t), f in zip(amdahl, (1, 1.4, 0.7, 1.3), strict=True)]
    assert serial_share(noisy, few)[0] is None and "miss a point" in serial_share(noisy, few)[1]
    perfect = [(n, 80 / n) for n in (8, 16, 32, 64)]
    assert serial_share(perfect, few)[0] is None
    bent = [(n, 80 / n * f) for n, f in zip((8, 16, 32, 64), (1, 0.99, 1.02, 0.99), strict=True)]
    assert serial_share(bent, few) == (None, "the range of the serial share holds 0")


def test_the_range_of_the_serial_share_holds_the_truth_in_most_worlds():
    rng, truth, held_in = np.random.default_rng(5), 0.05, 0
    for _ in range(300):
        errors = rng.uniform(0.001, 0.01, 5)
        points = [
            (n, 10 * (truth + (1 - truth) * 8 / n) * (1 + e * rng.normal()))
            for n, e in zip((8, 16, 32, 64, 128), errors, strict=True)
        ]
        found, _ = serial_share(points, list(errors))
        held_in += found is None or found.low <= truth <= found.high
    assert held_in >= 300 * 0.95 - 3 * math.sqrt(300 * 0.95 * 0.05)


def test_efficiency_falls_where_steps_do_not_shorten():
    runs = [grown(f"s{n}", n, 10, 64, seed=n) for n in (8, 16, 32)]
    (series,) = scaling(runs).series
    assert all(a.efficiency > b.efficiency for a, b in pairwise(series.points))


def test_what_fewer_chips_enter_elsewhere_is_not_said_to_eat_what_more_of_them_lose():
    one = {"useful_maths": 6.0, "device_idle": 1.0, "unattributed": 3.0}
    many = {"useful_maths": 3.0, "device_idle": 1.0, "exposed_communication": 1.5}
    first, last = grown("a", 8, 10.0, 64, accounts=one), grown("b", 16, 5.5, 64, accounts=many)
    assert "exposed communication 27 %" in sentence(scaling([first, last]).series[0])
    (series,) = scaling([replace(first, may_be={"exposed_communication": 3.0}), last]).series
    assert "more went into device idle 9.1 %." in sentence(series) and "communication" not in sentence(series)
    assert series.points[-1].moved >= {"exposed_communication"} and series.points[0].moved == frozenset()
