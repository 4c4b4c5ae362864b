"""The menu of a run's pages and the keys: groups, the mark on the page that explains the largest loss, letters."""

import string

import streamlit as st

from app import theme
from app.components.keys import LISTED, beside
from app.components.loss_mark import LEAST, NOT_KNOWN_YET, loss_mark
from app.groups import GROUPS, SECTIONS, group_of, section_of
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.questions.asking import ask, glimpse
from app.questions.ledger import LEDGER
from app.questions.ledger.words import losses
from tests.app import made_runs
from tests.app.menus import component, menu
from tests.app.test_pages import opened


def test_every_question_with_a_page_and_every_page_about_runs_was_sorted_into_one_group():
    named = [name for names in GROUPS.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert {p.name for p in every_page() if p.about} <= set(named)
    assert {q.name for q in QUESTIONS} <= set(named)
    assert group_of("a question of tomorrow") == "Overview"


def test_every_page_of_the_top_bar_stands_below_one_head():
    named = [name for names in SECTIONS.values() for name in names.split()]
    assert len(named) == len(set(named))
    assert {p.name for p in every_page() if p.in_menu} == set(named)
    assert section_of("a page of tomorrow") == "Reference"


def test_a_letter_leads_to_one_page():
    letters = [p.key for p in every_page() if p.key]
    assert len(letters) == len(set(letters)) and set(letters) <= set(string.ascii_lowercase)
    leads = {p.key: p.name for p in every_page()}
    assert {k: leads[k] for k in "rolgm"} == {
        "r": "library",
        "o": "findings",
        "l": "ledger",
        "g": "goodput",
        "m": "mfu",
    }


def test_the_keys_of_every_page_are_told_to_the_browser(place):
    told = component(opened("pages/definitions/page.py"), "chipledger_keys")["pages"]
    assert {k["key"]: k["name"] for k in told} == {p.key: p.name for p in every_page() if p.key}


def test_the_mark_waits_for_the_ledger_and_agrees_with_it(place):
    run = made_runs.interrupted(place.store, "marked")
    assert loss_mark(run, place.registry) is NOT_KNOWN_YET
    result = ask(LEDGER, run, {}, place.registry)
    mark = loss_mark(run, place.registry)
    (name, amount), *others = losses(result.ledger)
    assert mark and all(amount >= other for _, other in others)
    page = next(q for q in QUESTIONS if q.name == mark["page"])
    assert theme.known([name]) in page.explains and page.tells_of(run)
    assert theme.title(name) in mark["text"] and mark["colour"] == theme.colour([name])
    entry = menu(opened("questions/steps/page.py", run=run.run_id))[page.title]
    assert component(opened("questions/steps/page.py", run=run.run_id), "chipledger_run_menu")["mark"] == mark
    assert not entry["why"]


def test_nothing_is_marked_where_no_ledger_can_be_made_or_nothing_is_lost(place, monkeypatch):
    run = made_runs.interrupted(place.store, "unmarked")
    result = ask(LEDGER, run, {}, place.registry)
    assert losses(result.ledger)[0][1] >= LEAST * result.ledger.chip_seconds
    monkeypatch.setattr("app.components.loss_mark.LEAST", 1.0)
    assert loss_mark(run, place.registry) is None
    odd = made_runs.write(place.store, "odd", {}, {})
    assert glimpse(LEDGER, run, place.registry) is result
    assert loss_mark(odd, place.registry) in (None, NOT_KNOWN_YET)


def test_the_runs_beside_one_are_those_of_the_list(place):
    made = [made_runs.interrupted(place.store, name) for name in ("first", "second", "third")]
    ids = [r.run_id for r in place.store.look().runs]
    assert set(ids) == {r.run_id for r in made}
    assert [beside(ids[1], step) for step in (-1, 1)] == [ids[0], ids[2]]
    assert beside(ids[0], -1) is None and beside(ids[2], 1) is None
    assert beside("nowhere", 1) is None


def test_the_runs_beside_one_follow_the_search_and_the_order_of_the_list(place, monkeypatch):
    names = ("night 1", "night 2", "night 3", "other")
    run = {name: made_runs.interrupted(place.store, name).run_id for name in names}
    state = dict[str, object]()
    monkeypatch.setattr(st, "session_state", state)
    state[LISTED] = "night", "name"
    order = [run[name] for name in names[:3]]
    assert [beside(order[1], step) for step in (-1, 1)] == [order[0], order[2]]
    assert beside(order[0], -1) is None and beside(order[2], 1) is None
    state[LISTED] = "night", "-name"
    assert [beside(order[1], step) for step in (-1, 1)] == [order[2], order[0]]
    ids = [r.run_id for r in place.store.look().runs]
    for odd in (("night", "name"), ("(", "name"), ("other", "no such column")):  # it is not found so
        state[LISTED] = odd
        at = ids.index(run["other"])
        assert beside(run["other"], 1) == (ids[at + 1] if at + 1 < len(ids) else None)


def test_the_list_that_was_drawn_last_is_remembered(place):
    made_runs.interrupted(place.store, "alpha")
    assert opened("pages/library/page.py", q="alp", sort="name").session_state[LISTED] == ("alp", "name")
