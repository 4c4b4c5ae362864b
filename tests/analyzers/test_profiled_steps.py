"""Steps that a profiler slowed are set apart where enough others are known, and are what accounts rest on."""

from dataclasses import replace

import numpy as np
import pytest

from analyzers.difference import Side, difference
from analyzers.difference.step_time import LEAST_STEPS, compare, settled
from runs.run import facts_of


def steps(n, traced=(), slower=1.0, seed=0):
    """`n` steps of a second that scatter by 1 %; those of `traced` take `slower` times as long."""
    took = 1 + 0.01 * np.random.default_rng(seed).normal(size=n)
    profiled = np.isin(np.arange(n), list(traced))
    took[profiled] *= slower
    return np.arange(n), took, np.zeros(n, bool), np.zeros(n, bool), profiled


def test_a_profiled_stretch_that_is_slower_is_no_part_of_a_usual_step():
    number, took, first, odd, profiled = steps(120, range(50, 70), 1.3)
    found = settled(number, took, first, odd, profiled)
    assert found is not None and found.apart["profiled"] == 20
    assert set(found.step) == set(number[~profiled]) and found.mean_s == pytest.approx(took[~profiled].mean())
    assert list(found.profiled) == list(range(50, 70))
    assert found.profiled_s == pytest.approx(took[profiled].mean()) and found.profiled_s / found.mean_s > 1.25
    assert found.moved == () and found.stalls_s == 0.0


def test_a_profiler_in_one_of_two_alike_jobs_makes_no_difference():
    plain = settled(*steps(120, seed=1))
    slow = settled(*steps(120, range(50, 70), 1.3, seed=2))
    assert plain is not None and slow is not None
    told = compare(plain, slow)
    assert not told.told and abs(told.change) < 0.005
    mixed = settled(*steps(120, range(50, 70), 1.3, seed=2)[:4])  # as it would be were nothing known of the profiler
    assert mixed is not None and compare(plain, mixed).change > 0.03


@pytest.mark.parametrize(("n", "traced"), [(100, 60), (LEAST_STEPS - 1 + 10, 10), (40, 40)])
def test_where_fewer_others_are_known_profiled_steps_count_as_any_other(n, traced):
    number, took, first, odd, profiled = steps(n, range(traced), 1.3)
    found = settled(number, took, first, odd, profiled)
    assert found is not None and "profiled" not in found.apart and not len(found.profiled)
    assert len(found.step) + sum(found.apart.values()) == n


def test_where_none_is_profiled_nothing_is_set_apart():
    alike = settled(*steps(100)), settled(*steps(100)[:4])
    assert alike[0] is not None and alike[1] is not None
    assert list(alike[0].step) == list(alike[1].step) and alike[0].apart == alike[1].apart == {}


@pytest.mark.parametrize("n", [2 * LEAST_STEPS, 2 * LEAST_STEPS + 1, 200])
def test_every_step_is_settled_or_set_apart_or_profiled(n):
    """Each once, whatever stalls and first steps are among the profiled ones."""
    number, took, first, odd, profiled = steps(n, range(10, 10 + n // 3), 1.2)
    first[[0, 12]], odd[14], took[[16, n - 1]] = True, True, 40.0
    found = settled(number, took, first, odd, profiled)
    assert found is not None
    assert not set(found.profiled) & set(found.step) and {12, 14, 16}.isdisjoint(found.profiled)
    assert len(found.step) + sum(found.apart.values()) == n
    assert found.apart["profiled"] == len(found.profiled) + 1  # a stall among them is in neither


def test_what_profiled_steps_took_beside_the_others_is_said():
    plain, slow = settled(*steps(120, seed=1)), settled(*steps(120, range(50, 70), 1.3, seed=2))
    a, b = (Side(name=n, kind="training", facts=facts_of({}), steps=s) for n, s in (("a", plain), ("b", slow)))
    notes = difference(a, b, 0.005).notes
    assert any("b: steps set apart: 20 profiled" in note for note in notes)


def test_a_profiler_that_watched_the_settled_steps_of_one_job_alone_is_said():
    plain, watched = settled(*steps(120, seed=1)), settled(*steps(120, range(100), 1.1, seed=2))
    assert plain is not None and watched is not None
    a = Side(name="a", kind="training", facts={}, steps=plain)
    b = Side(name="b", kind="training", facts={}, steps=replace(watched, watched=100))
    assert any("A profiler watched 100 of the settled steps of b" in n for n in difference(a, b, 0.005).notes)
    both = replace(a, steps=replace(plain, watched=100))
    assert not any("A profiler watched" in n for n in difference(both, b, 0.005).notes)
