"""The Definitions page: accounts, marks, and a glossary that can be searched."""

from app.pages.definitions.glossary import found, groups
from app.questions.objectives import OBJECTIVES
from catalog.glossary import GLOSSARY
from tests.app.test_pages import opened, words

FILE = "pages/definitions/page.py"


def labels(at) -> list[str]:
    return [e.label.replace("\\", "") for e in at.expander]


def test_the_page_tells_accounts_marks_and_the_terms_of_every_question(place):
    at = opened(FILE)
    assert not at.exception
    assert "Accounts" in words(at) and "How a number is known" in words(at)
    assert labels(at)[0] == f"General: {len(GLOSSARY)} terms"
    assert len(labels(at)) == len(groups())


def test_a_search_shows_what_holds_every_word_of_it(place):
    at = opened(FILE, find="serving goodput")
    assert not at.exception
    assert "Objectives: 1 term" in labels(at) and "How a number is known" not in words(at)


def test_a_search_that_finds_nothing_says_so(place):
    at = opened(FILE, find="<b>nothing</b>")
    assert labels(at) == [] and "Nothing here is called or explained so: <b>nothing</b>" in words(at)


def test_terms_are_found_by_name_meaning_and_formula():
    of = {group.title: [t.name for t in group.terms] for group in found("knee", groups())}
    assert "Knee" in of["General"] and "Knee" in of["Load"]
    serving = next(g for g in found("SERVING goodput", groups()) if g.page is OBJECTIVES)
    assert [t.name for t in serving.terms] == ["Serving goodput"]
    assert found("no such word anywhere", groups()) == ()
