"""What benchmarks make of what they measured."""

import math

import pytest

from benchmarks.load import addresses, share
from benchmarks.xplane_ingest import FLOORS, below
from tests.app import made_runs


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 1000])
@pytest.mark.parametrize("part", [0.5, 0.95, 1.0])
def test_a_share_of_all_is_the_least_value_that_so_many_do_not_exceed(count, part):
    values = [float(n * 7919 % count) for n in range(count)]
    found = share(values, part)
    assert sum(value <= found for value in values) >= math.ceil(part * count)
    assert sum(value < found for value in values) < math.ceil(part * count)


def test_of_nothing_measured_nothing_is_told():
    assert share([], 0.95) == 0.0


def test_a_ratio_below_its_floor_is_said_and_one_that_was_not_measured_is_not():
    assert below(FLOORS) == [] and below({}) == []
    (said,) = below({**FLOORS, "xprof": FLOORS["xprof"] - 0.01})
    assert "xprof" in said and str(FLOORS["xprof"]) in said


def test_people_look_at_every_page_of_every_run_and_at_those_of_none(place):
    run = made_runs.interrupted(place.store)
    found = addresses(place.store.root)
    assert len(found) == len(set(found)) and found[0] == ("", "")
    assert ("steps", f"run={run.run_id}") in found and ("definitions", "") in found
