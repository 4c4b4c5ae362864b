"""The page of latency: what it says first, what the address chooses, and what it draws."""

import numpy as np
import pytest

from analyzers.serving import latency as serving
from analyzers.serving.latency import STAGE
from app.questions.latency import figure as draw
from app.questions.latency import words as said
from errors.options import parse_options
from tests.analyzers.served_worlds import world
from tests.app import made_runs, served_runs
from tests.app.test_pages import opened, words

PAGE = "questions/latency/page.py"


def ask(tables, **options):
    return serving.analyze(tables, {}, parse_options(serving.OPTIONS, options))


@pytest.fixture
def run(place):
    return served_runs.busy(place.store)


def test_the_page(place, run):
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    result = ask(run.tables)
    assert said.verdict(result).split(",")[0] in words(at)
    assert at.metric[0].value.count("·") == 1 and at.metric[4].value == "2.50 %"
    views = ["First token", "Distributions", "Over time", "Between tokens", "Tenants"]
    assert [str(getattr(o, "content", o)) for o in at.button_group(key="switch_view").options] == views


@pytest.mark.parametrize("view", ["first", "spread", "time", "gaps", "tenants", "nonsense"])
@pytest.mark.parametrize("metric", ["ttft_s", "queue_s"])
def test_the_address_chooses_view_and_latency(place, run, view, metric):
    at = opened(PAGE, run=run.run_id, view=view, metric=metric)
    assert not at.exception and not at.warning
    assert at.button_group(key="switch_view").value == ("first" if view == "nonsense" else view)


def test_a_load_test_without_single_requests(place):
    run = served_runs.printed(place.store)
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "700 ms" in at.metric[0].value and len(at.dataframe[0].value) == 2
    assert at.selectbox[0].label == STAGE.title
    chosen = opened(PAGE, run=run.run_id, stage="rate 1")
    assert "400 ms" in chosen.metric[0].value and "Half of the requests" in words(chosen)
    at.selectbox[0].set_value("rate 1").run()
    assert at.query_params["stage"] in ("rate 1", ["rate 1"])


def test_a_load_that_is_not_there_and_a_run_that_served_nothing_are_told(place, run):
    at = opened(PAGE, run=run.run_id, stage="no such")
    assert not at.exception and "no load 'no such'" in words(at)
    at = opened(PAGE, run=made_runs.interrupted(place.store).run_id)
    assert not at.exception and "no record of requests" in words(at)


def test_names_from_inputs_are_never_markup(place):
    run = served_runs.busy(place.store, tenants=(served_runs.ODD, "plain"))
    at = opened(PAGE, run=run.run_id, view="tenants")
    assert not at.exception
    figure = draw.tenants(ask(run.tables), "ttft_s")
    assert figure.layout.annotations[0].text.startswith("&lt;b&gt;odd")


def test_verdicts():
    queued = ask(world(n=240, rate=30, seed=1).tables)
    assert "of that wait was queueing" in said.verdict(queued)
    assert "more capacity or less load shortens it" in said.verdict(queued)
    calm = ask(world(n=120, rate=1.5, seed=1).tables)
    text = said.verdict(calm).whole
    assert "the rest reading the prompt" in text and "waited for prompts of others" in text
    made = world(n=20)
    dead = {**made.requests, "status": ["failed"] * 20, "error": ["refused"] * 20}
    from runs.tables import MemoryTables

    assert said.verdict(ask(MemoryTables({"requests": dead}))) == (
        "None of 20 requests was answered: there is no latency. Most often: refused (20)."
    )


def test_the_table_of_a_terminal(place, run):
    table = said.table(ask(run.tables))
    assert {r[0] for r in table.rows} >= {"TTFT", "queue", "prefill", "TPOT", "ITL", "E2E", "requests", "failed"}
    assert all(len(r) == len(table.head) for r in table.rows)
    printed = said.table(ask(served_runs.printed(place.store).tables))
    assert any(r[0] == "load rate 1" for r in printed.rows)


def test_the_first_token_is_drawn_as_its_parts():
    result = ask(world(n=200, rate=9, seed=2).tables)
    figure = draw.ttft_split(result)
    assert [t.name for t in figure.data] == ["queue", "prefill"]
    total = np.asarray(figure.data[1].y, dtype=float)[1:]
    assert total == pytest.approx(result.split["ttft_s"].to_numpy() * (1e3 if total.max() > 50 else 1), rel=1e-6)


def test_figures_stay_small():
    made = world(n=2500, rate=9, seed=2)
    result = ask(made.tables)
    for figure in (
        draw.ttft_split(result),
        draw.distributions(result),
        draw.over_time(result, "e2e_s"),
        draw.gap_heat(result),
        draw.tenants(result, "ttft_s"),
    ):
        assert len(figure.to_json()) < 2_000_000
    assert len(draw.over_time(result, "e2e_s").data[0].x) <= 2000
