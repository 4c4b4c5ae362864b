"""The load page: what it says, what the address chooses, and what its figures draw."""

import numpy as np
import pytest

from analyzers.serving import load
from app.questions.load import figure as draw
from app.questions.load import words as words_of
from app.questions.load.controls import MOST
from app.questions.load.steady_figure import steady
from tests.analyzers.load_tests import ask, closed_loop, open_loop, queued, requests, summaries
from tests.app import made_runs
from tests.app.test_pages import opened, words

RATES = [1.0, 20.0, 40.0, 60.0, 80.0, 120.0, 160.0]


def columns(tables, *names: str) -> dict:
    return {n: tables.arrow(n).to_pydict() for n in names}


@pytest.fixture
def curve(place):
    tables = columns(summaries(open_loop(RATES, capacity=90.0)), "stages", "stage_stats")
    return made_runs.write(place.store, "curve", tables, {"chips": 4}, kind="serving")


@pytest.fixture
def slower(place):
    tables = columns(summaries(open_loop(RATES, capacity=50.0)), "stages", "stage_stats")
    return made_runs.write(place.store, "slower", tables, {"chips": 4}, kind="serving")


def test_the_knee_comes_first(place, curve):
    at = opened("questions/load/page.py", run=curve.run_id)
    assert not at.exception and not at.warning
    assert "The knee lies between 80.0 and 120 requests/s" in words(at)
    assert "Beyond it answers 90.0 requests/s" in words(at)
    assert [m.value for m in at.metric][0] == "78.8"  # 4,800 requests in 60.9 s
    assert len(at.dataframe[0].value) == 7


def test_objectives_views_and_metrics_are_in_the_address(place, curve):
    at = opened("questions/load/page.py", run=curve.run_id, view="latency", metric="e2e", ttft_s="0.085")
    assert not at.exception
    assert "End to end over load" in words(at) and "Most within the objectives: 39.6 requests/s" in words(at)
    at.number_input(key="pick_ttft_s").set_value(0.001).run()
    assert at.query_params["ttft_s"] in ("0.001", ["0.001"])
    assert "No load has p99 TTFT within 0.001 s" in words(at)
    for odd in ("nan", "-1", "x", "1e99"):
        assert not opened("questions/load/page.py", run=curve.run_id, ttft_s=odd, view="no").exception
    at = opened("questions/load/page.py", run=curve.run_id, stage="no such")
    assert not at.exception and "no load 'no such'" in words(at)


def test_further_runs_are_drawn_beside_it(place, curve, slower):
    for view in ("curve", "latency", "pareto"):
        at = opened("questions/load/page.py", run=curve.run_id, view=view, **{"with": slower.run_id})
        assert not at.exception and at.multiselect(key="with_runs").value == [slower.run_id]
    at = opened("questions/load/page.py", run=curve.run_id, **{"with": "nobody"})
    assert not at.exception and at.multiselect(key="with_runs").value == []
    at.multiselect(key="with_runs").set_value([slower.run_id]).run()
    assert not at.exception and at.query_params["with"] in (slower.run_id, [slower.run_id])


def test_cost_needs_a_price(place, curve):
    assert "It needs the chips" in words(opened("questions/load/page.py", run=curve.run_id, view="cost"))
    place.registry.price(curve.run_id, 2.0)
    at = opened("questions/load/page.py", run=curve.run_id, view="cost")
    assert "What a token costs" in words(at) and [m.label for m in at.metric][-1].startswith("Per million tokens")


def test_one_load_is_about_its_steady_part(place):
    start, scheduled, first, end = queued(rate=20.0, count=600, seats=16, service_s=2.0)
    tables = requests(start, first, end, np.full(600, 64), scheduled=scheduled)
    run = made_runs.write(place.store, "one", columns(tables, "requests"), {}, kind="serving")
    at = opened("questions/load/page.py", run=run.run_id)
    assert not at.exception and "include ramp-up and drain" in words(at)
    assert "The green part is steady" in words(at)
    assert any(m.label.startswith("Steady tokens/s") for m in at.metric)


def test_a_run_without_loads_is_told_what_would_bring_them(place):
    engine = {"engine": {"order": [0], "running": [1]}}
    run = made_runs.write(place.store, "log", engine, {}, kind="serving")
    at = opened("questions/load/page.py", run=run.run_id)
    assert not at.exception and "no record of single requests" in words(at)


def test_verdicts():
    found = ask(load, summaries(open_loop(RATES, capacity=90.0)))
    assert words_of.verdict(found).startswith("The knee lies between 80.0 and 120 requests/s: there it falls behind")
    slow = ask(load, summaries(open_loop([50.0, 100.0], capacity=20.0)))
    assert words_of.verdict(slow).startswith("Even the lightest load, 50.0 requests/s, is beyond the knee")
    closed = [
        {
            "requested_rate_per_s": np.inf,
            "max_concurrency": n,
            "completed": 1000,
            "duration_s": 1000 / r,
            "e2e_mean": n / r,
        }
        for n, r in ((64, 2.5), (128, 3.5))
    ]
    said = words_of.verdict(ask(load, summaries(closed)))
    assert said.startswith(
        "No knee was seen up to 128 requests in flight allowed. From 64 to 128 the rate rises by "
        "40 %, mean end-to-end latency rises by 43 %."
    )
    start, first, end = closed_loop(2000, 32, 0.3, 0.01, 200)
    one = ask(load, requests(start, first, end, np.full(2000, 200)))
    assert "tokens/s of the whole load include ramp-up and drain: in its steady part it makes" in words_of.verdict(one)
    rising = requests(*queued(20.0, 600, 16, 2.0)[[0, 2, 3]], np.full(600, 64))
    assert "It finds no steady state: requests in flight grow until" in words_of.verdict(ask(load, rising))
    nothing = ask(load, summaries([{"completed": 0, "failed": 9, "duration_s": 5.0, "outcome": "failed"}]))
    assert words_of.verdict(nothing).startswith("No request was answered")


def test_tables_have_a_row_a_load():
    found = ask(load, summaries(open_loop(RATES, capacity=90.0)), ttft_s=0.085)
    table = words_of.table(found)
    assert len(table.rows) == 7 and table.head[-1] == "objectives"
    assert [r[-2] for r in table.rows].count("falls behind") == 2
    assert table.rows[4][-2] == "heaviest below the knee"
    assert "objectives" not in words_of.table(ask(load, summaries(open_loop(RATES, capacity=90.0)))).head


def test_figures_draw_what_was_found():
    found = ask(load, summaries(open_loop(RATES, capacity=90.0)), {"chips": 4}, ttft_s=0.085, usd_per_chip_hour=2.0)
    figure = draw.curve([("a", found)])
    band = next(s for s in figure.layout.shapes if s.fillcolor)
    assert (band.x0, band.x1) == (80.0, 120.0)
    assert list(figure.data[0].y) == pytest.approx(found.rows["request_rate_per_s"].tolist())
    assert [s.endswith("-open") for s in figure.data[0].marker.symbol] == [False] * 5 + [True] * 2
    late = draw.latency([("a", found)], "ttft")
    assert any("objective 85.0 ms" in a.text for a in late.layout.annotations)
    front = draw.pareto([("a", found)])
    assert list(front.data[0].y) == pytest.approx(
        found.rows[found.rows["pareto"]].sort_values("tokens_per_s_per_user")["tokens_per_s_per_chip"].tolist()
    )
    assert draw.cost([("a", found)]) is not None
    assert draw.cost([("a", ask(load, summaries(open_loop(RATES, 90.0))))]) is None
    assert steady(found) is None


def test_names_of_runs_are_escaped_and_figures_small():
    found = ask(load, summaries(open_loop(list(np.linspace(1, 200, 300)), capacity=90.0)), {"chips": 4})
    odd = "<b>x</b>"
    for figure in (
        draw.curve([("a", found), (odd, found)]),
        draw.latency([("a", found), (odd, found)], "e2e"),
        draw.pareto([("a", found), (odd, found)]),
    ):
        text = figure.to_json()
        assert odd not in text and len(text) < 1_000_000
    assert len(draw.SYMBOLS) > MOST
