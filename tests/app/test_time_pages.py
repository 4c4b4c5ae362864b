"""The pages of overlap, collectives and input: what they say first, what the address chooses, what is drawn."""

import json

import numpy as np
import pytest

from analyzers.device import input, overlap
from analyzers.ranks import collectives
from app.questions.collectives import figure as collectives_figures
from app.questions.collectives import words as collectives_words
from app.questions.input import figure as input_figures
from app.questions.input import words as input_words
from app.questions.overlap import figure as overlap_figures
from app.questions.overlap import words as overlap_words
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.device_rows import collective_rows, device_tables
from tests.analyzers.worlds import World
from tests.app import made_runs
from tests.app.test_pages import opened, words

PAGES = ("overlap", "collectives", "input")
TABLES = ("captures", "ops", "op_events", "collectives", "steps", "lifecycle")
STALLED = World(steps=30, jitter_ms=1.0, stall_ms={12: 80.0, 20: 120.0, 25: 60.0})
HALF = [
    ("h", 0, "compute", "matmul", [(0, 600_000)]),
    ("h", 0, "async", "collective", [(400_000, 800_000)]),
    ("h", 1, "compute", "matmul", [(0, 500_000)]),
    ("h", 1, "async", "copy", [(600_000, 800_000)]),
]


def ask(question, tables, facts=None, **options):
    return question.analyze(tables, facts_of(facts or {}), parse_options(question.OPTIONS, options))


@pytest.fixture
def run(place):
    tables = STALLED.tables()
    columns = {name: tables.arrow(name).to_pydict() for name in TABLES}
    return made_runs.write(place.store, "world", columns, {"chip": "v5p", "chips": 4})


def test_the_overlap_page(place, run):
    at = opened("questions/overlap/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    assert "No communication is hidden behind computing: it costs" in words(at)
    shown = [m.value for m in at.metric]
    assert shown[0] == "0 %"
    assert len(at.dataframe[0].value) == 4


def test_the_address_chooses_window_view_and_step(place, run):
    at = opened("questions/overlap/page.py", run=run.run_id, view="timeline", step="20", window="operations")
    assert not at.exception and not at.warning
    assert "Along step 20" in words(at)
    at.selectbox(key="timeline_step").set_value("12").run()
    assert at.query_params["step"] == "12" and "Along step 12" in words(at)
    at = opened("questions/overlap/page.py", run=run.run_id, view="timeline", step="999")
    assert not at.exception and "no profile saw step 999" in words(at)
    assert not opened("questions/overlap/page.py", run=run.run_id, view="no", step="-1", window="no").exception


def test_the_collectives_page(place, run):
    at = opened("questions/collectives/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    assert "All of it went into all-reduce of unknown size among 4 ranks" in words(at)
    assert not opened("questions/collectives/page.py", run=run.run_id, view="bandwidth").exception


def test_the_input_page(place, run):
    at = opened("questions/input/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    assert "it stalls now and then: 3 times between steps 12 and 25" in words(at)
    assert at.dataframe[0].value["step"].tolist() == [12, 20, 25]


@pytest.mark.parametrize("page", PAGES)
def test_a_run_without_a_profile_is_told_what_would_bring_it(place, page):
    at = opened(f"questions/{page}/page.py", run=made_runs.interrupted(place.store).run_id)
    assert not at.exception
    assert "Missing: a profile" in words(at)


def test_what_overlap_says():
    both = ask(overlap, device_tables(HALF))
    assert overlap_words.verdict(both).startswith(
        "50 % of communication is hidden behind computing; the exposed rest costs 12 % of the time"
    )
    assert "Copies under which nothing else runs take 12 % of the time" in overlap_words.verdict(both)
    quiet = ask(overlap, device_tables([("h", 0, "compute", "fusion", [(0, 100)])]))
    assert overlap_words.verdict(quiet) == "No collective ran; devices compute for 100 % of the time."
    assert overlap_words.table(quiet).rows[0][-1] == "–"


def test_exposed_time_that_may_be_waiting_is_not_told_to_cost_nothing():
    told = {"communication_s": 10.0, "overlap_share": 0.2, "exposed_share": 0.8, "window_s": 100.0}
    untold = told | {"exposed_communication_s": 0.0, "communication_or_wait_s": 8.0}
    assert overlap_words._communication(untold, "step time") == "20 % of communication is hidden behind computing."
    part = told | {"exposed_communication_s": 5.0, "communication_or_wait_s": 3.0}
    assert "the exposed rest costs at least 5 % of step time" in overlap_words._communication(part, "step time")


def test_bars_of_a_device_add_up_to_all_of_its_time():
    figure = overlap_figures.devices(ask(overlap, device_tables(HALF)))
    for row in range(2):
        assert sum(bar.x[row] for bar in figure.data) == pytest.approx(100)
    nobody = {"waiting for other ranks", "communication or waiting", "waiting for input"}  # waited for any of them here
    assert {bar.name for bar in figure.data} == {p[1] for p in overlap_figures.PARTS} - nobody
    hatched = next(bar for bar in figure.data if bar.name == "computing over communication")
    assert hatched.marker.pattern.shape == "/"  # not by colour alone


def test_figures_stay_small_however_large_the_run():
    starts = range(0, 2_000_000, 200)
    work = [("h", d, "compute", "fusion", [(s, s + 10) for s in starts]) for d in range(60)]
    steps = [("h", n, n * 1000, n * 1000 + 1000) for n in range(2000)]
    result = ask(overlap, device_tables(work, steps=steps))
    for figure in (overlap_figures.devices(result), overlap_figures.steps(result), overlap_figures.timeline(result)):
        assert len(figure.to_json()) < 1_000_000
    assert sum(len(bar.x) for bar in overlap_figures.steps(result).data) <= 5 * overlap_figures.MAX_STEPS


def test_the_bars_of_steps_are_their_means():
    result = ask(overlap, STALLED.tables())
    figure = overlap_figures.steps(result)
    total = np.sum([bar.y for bar in figure.data], axis=0)
    assert total == pytest.approx(result.steps["window_s"].to_numpy(dtype=float) * 1e3)


def test_bandwidth_is_drawn_against_the_link():
    rows = [
        (0, "h", 0, "all-reduce", "0,1", size, at, at + 100_000, f"op.{size}")
        for at, size in ((0, 1e3), (200_000, 1e6))
    ]
    tables = device_tables([("h", 0, "compute", "fusion", [(0, 1)])], extra=collective_rows(rows))
    result = ask(collectives, tables, {"chip": "v5p", "chips": 4})
    figure = collectives_figures.bandwidth(result)
    assert any("all links: 600 GB/s" in a.text for a in figure.layout.annotations)
    assert any("latency floor" in (t.name or "") for t in figure.data)
    assert "moving data or waiting, not told apart" in {t.name for t in collectives_figures.time_by_axis(result).data}


def test_what_a_program_alone_says():
    program = {
        "module": ["jit_step"],
        "op": ["ar.1"],
        "kind": ["all-reduce"],
        "axis": ["model"],
        "group_size": [4],
        "bytes": [1e6],
        "dtype": ["bf16"],
        "count": [64],
    }
    result = ask(collectives, MemoryTables({"program_collectives": program}), {"chip": "v5e", "chips": 8})
    said = collectives_words.verdict(result)
    assert said.startswith("One run of the program does 64 collectives on 64.0 MB per device; the links need 480 µs")
    assert collectives_figures.bandwidth(result) is None
    (bar,) = collectives_figures.time_by_axis(result).data
    assert bar.x[0] == pytest.approx(480)


def test_what_input_says():
    stalled = ask(input, STALLED.tables(), {"chips": 4})
    assert input_words.verdict(stalled).startswith("Not bound by its input, but it stalls now and then: 3 times")
    bound = ask(input, World(steps=20, fetch_ms=25.0).tables(), {"chips": 4})
    assert "bound by its input: devices wait for it 25 % of a usual step" in input_words.verdict(bound)
    blind = ask(input, device_tables(HALF))
    assert "cannot be told: nothing says when a batch was fetched" in input_words.verdict(blind)
    assert input_figures.scatter(blind) is None and input_figures.strip(blind) is None


def test_the_input_figures_hold_the_stalls():
    result = ask(input, STALLED.tables(), {"chips": 4})
    marks = next(t for t in input_figures.scatter(result).data if t.name == "stalled")
    assert sorted(marks.x) == pytest.approx(sorted(result.stalls["fetch_s"] * 1e3))
    strip = input_figures.strip(result)
    assert max(strip.data[1].y) == pytest.approx(float(result.rows["waited_s"].max()) * 1e3)


@pytest.mark.parametrize("question", [overlap, collectives, input])
def test_answers_are_json(question):
    json.dumps(ask(question, STALLED.tables(), {"chips": 4}).to_dict(), allow_nan=False)
