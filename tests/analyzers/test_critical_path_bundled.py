"""The critical path of the bundled run, whose faults are known: one rank worked half a second more in twelve steps, and
in ten input came a quarter of a second late on all. And that it tells one story with its neighbours."""

import json

import pytest

from analyzers.device import overlap
from analyzers.device.critical_path import critical_path
from analyzers.device.critical_path.kinds import HOST
from errors.options import parse_options
from tests.bundled import RUNS, bundled

LATE, SECONDS = range(44, 56), 0.5
STALLED = range(64, 74)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def result(run):
    return critical_path.analyze(run.tables, run.manifest.facts, parse_options(critical_path.OPTIONS, {}))


def test_the_late_ranks_work_is_on_every_ranks_path(result):
    """Of 12 steps on 4 ranks: what the late rank did is on its own path and on those of the other three."""
    truth = json.loads((RUNS / "training.truth.json").read_text())
    late = next(x for x in truth["injections"] if x["what"] == "straggler")
    assert (late["process"], late["first_step"], late["last_step"]) == (1, LATE.start, LATE.stop - 1)
    steps = result.steps[result.steps["step"].isin(LATE)]
    assert len(steps) == len(LATE)
    assert (steps[[f"{kind}_s" for kind in HOST]].sum(axis=1) > 0.98 * SECONDS).all()
    others = result.steps[~result.steps["step"].isin(LATE)]
    assert others["host_code_s"].median() < 0.05
    held = result.ranks.set_index("host")["held_s"]
    assert held["vm/1"] - held.drop("vm/1").mean() == pytest.approx(4 * late["total_s"], rel=0.1)


def test_late_input_is_on_the_path_for_as_long_as_it_was_late(result):
    truth = json.loads((RUNS / "training.truth.json").read_text())
    late = [x["total_s"] for x in truth["injections"] if x["what"] == "input_stall"]
    steps = result.steps[result.steps["step"].isin(STALLED)]
    assert steps["input_wait_s"].sum() == pytest.approx(sum(late) / len(late), rel=0.05)


def test_no_rank_is_named_for_twelve_steps_of_a_hundred(result):
    assert (result.holder.reason, result.holder.host) == ("rotating", "vm/1")


def test_it_tells_one_story_with_overlap(run, result):
    """Over the same windows: a path's step is as long as the step. A path goes through the slowest rank of each
    stretch, so that it may hold more computing than one rank did, never more than all of them; communication on it is
    what is no waiting for ranks."""
    other = overlap.analyze(run.tables, run.manifest.facts, parse_options(overlap.OPTIONS, {}))
    steps = other.steps.merge(result.steps, on=["step", "taken"], suffixes=("_overlap", "_path"))
    assert len(steps) == len(result.steps)
    assert steps["path_s"].to_numpy() == pytest.approx(steps["window_s"].to_numpy())
    assert (steps["computing_s"] <= steps["compute_s"] * steps["devices_path"]).all()
    assert result.totals["communication_s"] <= other.totals["communication_s"]


def test_each_device_computes_on_paths_no_more_than_it_computes(result):
    rows = result.operations
    assert (rows["off_path_s"] >= 0).all() and (rows["off_path_s"] <= rows["ran_s"]).all()
