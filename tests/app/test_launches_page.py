"""The page of launches: what it says first, each of its views, and its figures."""

import pytest

from analyzers.device.launches import launches
from analyzers.device.launches.launches import KINDS
from app.questions.launches import figure as draw
from app.questions.launches import words
from errors.options import parse_options
from tests.analyzers.test_launches import BACKWARD, MAIN, World
from tests.app import made_runs
from tests.app.test_pages import opened
from tests.app.test_pages import words as shown

LATE = World(
    runs=[(7, 0, 10, (MAIN, 0, 12)), (7, 100, 110, (BACKWARD, 95, 98)), (20, 112, 120, (MAIN, 99, 100))],
    events=[(BACKWARD, "aten::mul", 5, 95)],
    steps=[(0, 120)],
)
BUSY = World(runs=[(7, 10 * n, 10 * n + 10, (MAIN, 0, 1)) for n in range(6)], steps=[(0, 60)])


def asked(world):
    return launches.analyze(world.tables(), {}, parse_options(launches.OPTIONS, {}))


@pytest.fixture
def run(place):
    tables = LATE.tables()
    names = ("captures", "ops", "op_events", "launches", "steps")
    return made_runs.write(place.store, "late", {n: tables.arrow(n).to_pydict() for n in names}, {"chips": 1})


def test_what_it_says():
    assert words.verdict(asked(LATE)).whole == (
        "Devices are idle for 77 % of step time: for 71 % hosts were in operators of the framework, before the launch, "
        "for 4 % launches were on their way. "
        "A call of cudaLaunchKernel keeps its thread 3.00 ns at the median; 33 % of 3 executions launched alone took "
        "less than their call. Captured as a graph, or fused by a compiler, many are launched by one call."
    )
    assert words.verdict(asked(BUSY)).startswith("Devices are idle for 0 % of step time. A call of cudaLaunchKernel")


def test_every_kind_has_its_words_and_its_colour():
    assert set(words.DOING) == set(words.SHORT) == set(KINDS)
    assert all(draw.colour(kind).startswith("#") for kind in KINDS)


@pytest.mark.parametrize("view", ["devices", "operations", "calls", "streams"])
def test_each_view(place, run, view):
    at = opened("questions/launches/page.py", run=run.run_id, view=view)
    assert not at.exception
    assert "Devices are idle for 77 %" in shown(at)
    if view in ("calls", "streams"):
        table = at.dataframe[0].value
        assert len(table.columns) == len(set(table.columns)) and len(table)


def test_a_window_and_nonsense(place, run):
    assert not opened("questions/launches/page.py", run=run.run_id, window="operations").exception
    assert not opened("questions/launches/page.py", run=run.run_id, window="no", view="no").exception


def test_figures_hold_what_the_answer_holds():
    result = asked(LATE)
    bars = {bar.name: float(bar.x[0]) for bar in draw.devices(result).data}
    assert sum(bars.values()) == pytest.approx(100 * result.totals["idle_s"] / result.totals["window_s"])
    assert sum(float(x) for bar in draw.waited(result).data for x in bar.x) == pytest.approx(0.092)  # us
    assert draw.waited(asked(BUSY)) is None
