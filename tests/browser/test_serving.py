"""Every page about serving, drawn by a real Chromium on the bundled serving run, and the planner."""

import re

import pytest
from playwright.sync_api import expect

from app.questions import QUESTIONS
from tests.browser.drawn import click_bar, drawn

SOME = {  # words that only the right answer has
    "latency": "first token",
    "objectives": "requests kept",
    "load": "no one curve",
    "engine": "waited",
    "traffic": "told of one at a time",
    "kv_cache": "found room for 5,760 tokens",
    "speculation": "draft",
    "prefix_cache": "cache",
}
PLAN = (
    "serving_planner?model=llama3.1-8b&on=H100+SXM,TPU+v6e&input=500&output=100&rate=20&ttft_s=1&tpot_s=0.03"
    "&price=h100%3D3,v6e%3D2.7"
)


def test_every_page_about_serving_is_looked_at():
    assert {q.path for q in QUESTIONS if set(q.about) == {"serving"}} == set(SOME)


@pytest.mark.parametrize("name", SOME)
def test_a_page_answers_about_the_reference_run(look, demo, runs, name):
    page = look(f"{demo}/{name}?run={runs['reference-serving']}", dark=name in ("objectives", "engine", "kv_cache"))
    assert SOME[name].lower() in drawn(page).lower()


def test_the_ledger_of_serving_leads_to_what_explains_it(visit, demo, runs):
    page = visit(f"{demo}/ledger?run={runs['reference-serving']}")
    assert "tokens of answers" in drawn(page)
    click_bar(page, "lost_work.rejected_speculation")
    page.get_by_role("link", name="Whether drafting pays").click()
    expect(page).to_have_url(re.compile(rf"/speculation\?run={runs['reference-serving']}"))


def test_two_runs_are_compared(look, demo, runs):
    client = next(i for name, i in runs.items() if "client" in name)
    page = look(f"{demo}/compare?run={runs['reference-serving']}&with={client}")
    expect(page.locator("h5").first).to_contain_text(re.compile(r"\w"))
    expect(page.get_by_text("Traceback")).to_have_count(0)


def test_the_planner_and_a_case(look, demo):
    assert "serves it" in drawn(look(f"{demo}/{PLAN}"))
    assert "1.55 times the price" in drawn(look(f"{demo}/serving_cases?case=cost", dark=True))
