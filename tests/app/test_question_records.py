"""The records of questions hold together: what one names exists, and whatever exists is named by one."""

from pathlib import Path

import pytest

from app.follow.alerts.rules import RULES
from app.pages.all import every_page
from app.pages.definitions.glossary import groups
from app.questions import QUESTIONS, question
from app.questions.base import described
from app.questions.forms import FOLDER, form
from catalog.glossary import GLOSSARY
from collectors import COLLECTORS
from errors import QuestionError
from runs.accounts import ACCOUNTS
from runs.schema import SCHEMAS
from tests.app.asking import PROJECT

EVERY = pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
APP = PROJECT / "app"


def unique(values: list[str]) -> bool:
    return len(values) == len(set(values))


@EVERY
def test_a_question_says_what_it_is_for_has_words_and_a_page_that_exists_or_none(question):
    assert question.title and question.asks.endswith("?") and question.icon.startswith(":material/")
    assert callable(question.verdict) and callable(question.table) and callable(question.analyze)
    assert not question.file or (APP / question.file).is_file()
    assert bool(question.file) == bool(question.about), (
        "a page is about kinds of run, and what has none is linked nowhere"
    )


@EVERY
def test_tables_and_accounts_that_a_question_names_exist(question):
    tables = [*question.inputs, *(table for tables in question.about.values() for table in tables)]
    assert set(tables) <= set(SCHEMAS)
    assert set(question.explains) <= set(ACCOUNTS)
    assert set(question.about) <= {"job", "serving", "compiled"}


@EVERY
def test_terms_have_names_of_their_own_and_whole_sentences(question):
    assert question.terms
    assert unique([t.name for t in question.terms])
    assert all(t.meaning.strip() == t.meaning and t.meaning.endswith(".") for t in question.terms)
    assert not any(text.endswith(".") for t in question.terms for text in (t.formula, t.unit))


@EVERY
def test_options_are_said_in_the_houses_way(question):
    assert unique([o.name for o in question.options])
    for option in question.options:
        assert option.help and not option.help.endswith("."), option.name
        assert option.name.isidentifier() and option.name == option.name.lower()


@EVERY
def test_a_question_has_a_form_and_its_description_is_whole(question):
    assert form(question)["title"] == question.title
    said = described(question)
    assert said["name"] == question.name and len(said["terms"]) == len(question.terms)
    assert [o["name"] for o in said["options"]] == [o.name for o in question.options]


def test_names_older_names_and_addresses_lead_to_one_question_or_page_each():
    names = [name for q in QUESTIONS for name in (q.name, *q.aliases)]
    paths = [path for page in every_page() for path in (page.path, *page.aliases) if path]
    assert unique(names)
    assert len(paths) == len(set(paths))
    for q in QUESTIONS:
        assert all(question(name) is q for name in (q.name, *q.aliases))
    with pytest.raises(QuestionError):
        question("nothing")


def test_every_package_of_a_question_is_listed():
    packages = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert packages == {q.name for q in QUESTIONS}


def test_every_question_s_page_stands_among_the_pages():
    assert {q for q in QUESTIONS if q.file} <= set(every_page())
    assert all((APP / page.file).is_file() for page in every_page())


def test_rules_of_alerts_name_questions_that_exist():
    assert RULES
    assert {rule.question for rule in RULES} <= {q.name for q in QUESTIONS}


def test_one_name_means_one_thing_wherever_a_question_or_page_uses_it():
    meant: dict[str, str] = {}
    for page in dict.fromkeys((*QUESTIONS, *every_page())):
        for term in page.terms:
            assert meant.setdefault(term.name, term.meaning) == term.meaning, f"{term.name} of {page.name}"


def test_the_glossary_has_the_field_s_names_each_once():
    names = [t.name for t in GLOSSARY]
    assert unique(names)
    field = {"MFU", "HFU", "EMFU", "Goodput", "Badput", "TTFT", "TPOT", "ITL", "E2E", "CV", "Knee", "Roofline"}
    assert field | {"Bisection", "Straggler"} <= set(names)
    assert all(t.meaning.endswith(".") for t in GLOSSARY)
    assert groups()[0].terms == tuple(sorted(GLOSSARY, key=lambda t: t.name.casefold()))


def test_every_collector_has_a_name_and_a_sentence():
    assert unique([c.NAME for c in COLLECTORS])
    assert all(c.HELP.endswith(".") for c in COLLECTORS)


def test_no_page_keeps_definitions_of_its_own():
    for path in [*(APP / "pages").rglob("*.py"), *(APP / "questions").rglob("*.py")]:
        assert "DEFINITIONS = (" not in Path(path).read_text(), path
