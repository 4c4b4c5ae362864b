"""The page of objectives: a suggestion to begin with, thresholds in the address, misses by cause."""

import pytest

from analyzers.serving import objectives as slo
from app.questions.objectives import figure as draw
from app.questions.objectives import words as said
from errors import format as fmt
from errors.options import parse_options
from tests.analyzers.served_worlds import world
from tests.app import served_runs
from tests.app.test_pages import opened, words

PAGE = "questions/objectives/page.py"


def ask(tables, **options):
    return slo.analyze(tables, {}, parse_options(slo.OPTIONS, options))


@pytest.fixture
def run(place):
    return served_runs.busy(place.store)


def test_without_an_address_a_suggestion_is_shown_as_one(place, run):
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "These are a suggestion" in words(at) and "ttft_s" not in at.query_params
    start = slo.suggested(ask(run.tables, e2e_s=1.0).load.served.timed)
    result = ask(run.tables, **start)
    assert said.verdict(result) in words(at)
    assert at.metric[0].value == fmt.share(result.attainment)


def test_thresholds_are_live_and_in_the_address(place, run):
    at = opened(PAGE, run=run.run_id, ttft_s="0.5", e2e_s="3")
    assert "TTFT within 500 ms and E2E within 3.00 s" in words(at) and "suggestion" not in words(at)
    at.number_input(key="pick_ttft_s").set_value(2.0).run()
    assert at.query_params["ttft_s"] in ("2", ["2"]) and "TTFT within 2.00 s and E2E within 3.00 s" in words(at)
    at.number_input(key="pick_ttft_s").set_value(None).run()
    assert "ttft_s" not in at.query_params and "kept E2E within 3.00 s" in words(at)
    at.number_input(key="pick_e2e_s").set_value(None).run()
    assert "Enter at least one objective" in words(at) and not at.exception


@pytest.mark.parametrize("wrong", ["nan", "-1", "0", "x", "inf", "1e99"])
def test_an_objective_that_is_none_is_left_out(place, run, wrong):
    at = opened(PAGE, run=run.run_id, ttft_s=wrong, tpot_s="0.05")
    assert not at.exception and "kept TPOT within 50.0 ms" in words(at)


@pytest.mark.parametrize("view", ["surface", "curves"])
def test_views(place, run, view):
    at = opened(PAGE, run=run.run_id, view=view, ttft_s="0.5", tpot_s="0.03", itl_s="0.1")
    assert not at.exception and not at.warning and at.button_group(key="switch_view").value == view


def test_a_run_without_single_requests_is_told_what_would_bring_them(place):
    at = opened(PAGE, run=served_runs.printed(place.store).run_id)
    assert not at.exception and "needs single requests" in words(at) and "--save-detailed" in words(at)


def test_verdicts():
    tables = world(n=240, rate=30, seed=1).tables
    text = said.verdict(ask(tables, ttft_s=0.5))
    assert "kept TTFT within 500 ms" in text and "waited too long in the queue" in text and "More capacity" in text
    assert said.verdict(ask(tables, e2e_s=1e5)).endswith("None missed.")
    none = said.verdict(ask(tables, e2e_s=1e-4))
    assert none.startswith("0 % of 240 requests") and "none good requests" in none


def test_the_table_counts_every_request():
    result = ask(world(n=240, rate=12, seed=3, fail_every=40).tables, ttft_s=0.5, tpot_s=0.02)
    rows = said.table(result).rows
    missed = sum(int(r[3].replace(",", "")) for r in rows if r[0].startswith("missed"))
    assert missed + int(rows[0][3]) == 240


def test_the_bar_holds_all_requests_and_each_cause_its_own_name():
    result = ask(world(n=240, rate=9, seed=3, fail_every=40).tables, ttft_s=0.5, tpot_s=0.03)
    figure = draw.misses(result)
    assert sum(t.x[0] for t in figure.data) == pytest.approx(100)
    assert len({t.name for t in figure.data}) == len(figure.data) == 1 + len(result.misses)
    assert set(draw.CAUSE_NAMES) == set(draw.CAUSE_COLOURS) == set(said.HELPS)


def test_figures_stay_small():
    result = ask(world(n=2500, rate=9, seed=2).tables, ttft_s=0.5, tpot_s=0.02, e2e_s=3.0, itl_s=0.05)
    for figure in (draw.curves(result), draw.surface(result), draw.misses(result)):
        assert len(figure.to_json()) < 1_000_000
