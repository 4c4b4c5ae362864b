"""Every page about efficiency, drawn by a real Chromium on the bundled runs, and the way to it from the ledger."""

import re

import pytest
from playwright.sync_api import expect

from app.questions import QUESTIONS
from tests.app.serving import get
from tests.browser.drawn import click_bar, drawn, ready

SOME = {  # a word that only the right answer has
    "goodput": "training was disrupted twice",
    "interruptions": "2 interruptions",
    "checkpoints": "you save every",
    "stragglers": "steps 44 to 55",
    "mfu": "exact causal",
    "padding": "padding",
    "memory": "jit_train_step needs",
    "roofline": "communication",
    "operations": "all-reduce",
    "overlap": "hidden",
    "collectives": "waiting",
    "input": "steps 64 to 73",
    "critical_path": "critical path is",
    "findings": "no line of a log tells why",
}


def test_every_page_about_a_run_is_looked_at():
    names = {q.path for q in QUESTIONS if "job" in q.about}  # those of serving are in test_serving.py
    own = {
        "ledger",
        "steps",
        "slowdown",
        "launches",
        "modules",
        "hangs",
        "hlo",
        "hlo_graph",
        "hlo_diff",
        "heap",
        "timeline",
        "power",
    }
    assert names - set(SOME) == own, "these have browser tests of their own"


@pytest.mark.parametrize("name", SOME)
def test_a_page_answers_about_the_reference_run(look, demo, runs, name):
    dark = name in ("roofline", "overlap", "goodput", "stragglers")
    page = look(f"{demo}/{name}?run={runs['reference-training']}", dark=dark)
    assert SOME[name].lower() in drawn(page).lower()


def test_an_account_leads_to_the_page_that_explains_it(visit, demo, runs):
    page = visit(f"{demo}/ledger?run={runs['reference-training']}")
    click_bar(page, "productive.input_wait")
    page.get_by_role("link", name="Whether the run is bound by its input").click()
    expect(page).to_have_url(re.compile(rf"/input\?run={runs['reference-training']}"))
    assert "steps 64 to 73" in drawn(page)


def test_compiled_runs_stand_side_by_side(look, demo, runs):
    one, two = runs["compiled-llama3.1-8b-v6e"], runs["compiled-llama3.1-8b-v5p"]
    page = look(f"{demo}/compile?run={one}&against={two}")
    drawn(page)
    expect(page.get_by_text("What differs")).to_be_visible()
    for run in (one, two):
        told = get(f"{demo}/api/runs/{run}/show/compiled")[1]
        assert told["fits"] and told["seconds_bound"] > 0 and told["collectives"]


def test_a_program_that_does_not_fit_is_an_answer(look, demo, runs):
    page = look(f"{demo}/compile?run={runs['compiled-llama3.1-8b-v6e-too-large']}")
    expect(page.locator("h5").first).to_contain_text("It does not fit")


def test_models_and_published_runs_are_drawn(look, demo):
    assert "gpt2-1.5b" in drawn(look(f"{demo}/models"))
    assert "published runs" in drawn(look(f"{demo}/published"))


def test_a_choice_moves_the_tax_and_is_a_permalink(visit, demo):
    page = visit(f"{demo}/padding?model=llama3.1-8b&mxu=256")
    ready(page)
    before = drawn(page)
    page.get_by_role("radio", name="MXU 128").click()
    expect(page.locator("h5").first).not_to_have_text(before)
    expect(page).to_have_url(re.compile("mxu=128"))
    again = visit(page.url)
    assert drawn(again) == page.locator("h5").first.inner_text()
