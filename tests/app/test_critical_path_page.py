"""The page of the critical path: what it says first, each of its views, and that its words are its numbers."""

import pandas as pd
import pytest

from analyzers.device.critical_path.holding import FEW_STEPS, NAMED, NO_MEETING, NO_STEPS, ROTATING, SMALL, Holder
from analyzers.device.critical_path.kinds import KINDS
from app.questions.critical_path import CRITICAL_PATH, words
from app.questions.critical_path import figure as draw
from errors import format as fmt
from tests.analyzers.critical_worlds import World
from tests.analyzers.test_critical_path import asked
from tests.app import made_runs
from tests.app.forms import misfits
from tests.app.test_pages import opened
from tests.app.test_pages import words as shown
from tests.conftest import seeds

TABLES = ("captures", "ops", "op_events", "launches", "event_stats", "collectives", "lifecycle", "steps")


@pytest.fixture
def run(place):
    tables = World(1, ranks=2).tables({0: [(100_000, 400_000)], 1: [(100_000, 420_000)]})
    return made_runs.write(place.store, "chain", {n: tables.arrow(n).to_pydict() for n in TABLES}, {"chips": 2})


def test_every_kind_has_its_words_and_its_colour():
    assert set(words.IS) == set(words.SHORT) == set(KINDS)
    assert all(draw.colour(kind).startswith("#") for kind in KINDS)


@pytest.mark.parametrize("seed", seeds(25))
def test_the_first_clause_is_the_largest_kind_and_its_number(seed):
    result = asked(World(seed, ranks=2).tables())
    most = max(KINDS, key=lambda kind: result.totals[f"{kind}_s"])
    share = result.totals[f"{most}_s"] / result.totals["path_s"]
    assert words.verdict(result).startswith(f"{fmt.whole_share(share)} of the critical path is {words.IS[most]}")
    assert misfits(CRITICAL_PATH, {"run_id": "x", **result.to_dict()}) == []


def test_an_operation_that_ran_in_no_window_has_no_share_of_its_own(place):
    result = asked(World(1, ranks=2).tables())
    first = result.operations.index[0]
    result.operations.loc[first, ["ran_s", "off_path_s"]] = 0.0
    result.operations.loc[first, "critical_share"] = pd.NA
    said = words.verdict(result)
    assert result.operations["operation"][first] in said and "off the path" not in said


@pytest.mark.parametrize(
    ("holder", "says"),
    [
        (
            Holder(FEW_STEPS, "h1", 1, 4, 6, 0.2),
            "No rank is named that holds it: 6 steps were captured, 20 are needed.",
        ),
        (Holder(ROTATING, "h1", 1, 4, 40, 0.2), "h1 does most often, in 4 of 40 steps; 60 % are needed."),
        (Holder(SMALL, "h1", 1, 39, 40, 0.001), "in 39 of 40 steps, by 0.100 % of a step, less than the floor of 2 %."),
        (
            Holder(NAMED, "h1", 1, 39, 40, 0.25),
            "h1 holds the paths of the other ranks in 39 of 40 steps, coming last by",
        ),
        (
            Holder(FEW_STEPS, "h1", 1, 1, 1, 0.2),
            "No rank is named that holds it: 1 step was captured, 20 are needed.",
        ),
        (Holder(NO_MEETING, of_steps=3), ""),
        (Holder(NO_STEPS), ""),
    ],
)
def test_a_rank_is_named_or_it_is_said_why_none_is(holder, says):
    result = asked(World(1, ranks=2).tables())
    object.__setattr__(result, "holder", holder)
    said = words.verdict(result).whole
    assert says in said
    assert ("holds the paths" in said) == (holder.reason == NAMED)


@pytest.mark.parametrize("view", ["path", "kinds", "steps", "operations", "shorten", "ranks"])
def test_each_view(place, run, view):
    at = opened("questions/critical_path/page.py", run=run.run_id, view=view)
    assert not at.exception
    assert "of a step's critical path is" in shown(at)


def test_a_step_a_window_and_nonsense(place, run):
    for more in ({"step": "0"}, {"window": "operations"}, {"step": "77"}, {"window": "no", "view": "no"}):
        assert not opened("questions/critical_path/page.py", run=run.run_id, **more).exception


def test_steps_are_drawn_whole():
    result = asked(World(1, ranks=2).tables({0: [(100_000, 400_000)], 1: [(100_000, 420_000)]}))
    drawn = sum(float(y) for bar in draw.steps(result).data for y in bar.y)
    assert drawn == pytest.approx(310, rel=0.01)  # us, the mean of both
    assert draw.steps(asked(World(1, ranks=2).tables())) is None


def test_figures_hold_what_the_answer_holds():
    result = asked(World(1, ranks=2).tables())
    drawn = sum(float(x) for bar in draw.kinds(result).data for x in bar.x)
    assert drawn == pytest.approx(100 * len(result.devices), abs=0.2 * len(result.devices))
    pieces = [bar for bar in draw.chain(result).data if bar.type == "bar"]
    unit = 1e6 if result.chain["dur_s"].sum() < 1e-3 else 1e3
    assert sum(float(x) for bar in pieces for x in bar.x) == pytest.approx(result.chain["dur_s"].sum() * unit)
    begun = result.chain["start_s"] + result.chain["dur_s"]
    assert result.chain["start_s"].iloc[1:].to_numpy() == pytest.approx(begun.iloc[:-1].to_numpy())
    on = sum(float(x) for bar in draw.operations(result).data for x in bar.x)
    assert on == pytest.approx(
        result.operations["ran_s"].sum() * (1e6 if result.operations["ran_s"].max() < 1e-3 else 1e3)
    )
