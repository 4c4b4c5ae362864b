"""What figures mean, as the command line and the API tell it."""

import json

import pytest

from app.cli import main
from app.questions import QUESTIONS
from app.questions.mfu import MFU
from catalog.terms import Term


def test_a_term_tells_all_that_is_known_of_it_and_nothing_that_is_not():
    whole = Term("Rate", "How much in a second.", "amount / time", "1/s", "nobody")
    assert whole.text == "How much in a second. amount / time. Source: nobody."
    assert whole.to_dict()["unit"] == "1/s"
    assert Term("Rate", "How much in a second.").to_dict() == {"name": "Rate", "meaning": "How much in a second."}


def test_explain_prints_every_term_after_the_answer(place, capsys):
    asked = ["show", "model:llama3.1-8b", "flops"]
    assert main(asked) == 0
    plain = capsys.readouterr().out
    assert main([*asked, "--explain"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(plain.rstrip("\n")) and "Weights met: " in told and "Weights met: " not in plain


def test_explain_adds_terms_to_the_json_and_changes_nothing_else(place, capsys):
    asked = ["show", "model:llama3.1-8b", "padding", "--json"]
    assert main(asked) == 0
    plain = json.loads(capsys.readouterr().out)
    assert main([*asked, "--explain"]) == 0
    told = json.loads(capsys.readouterr().out)
    terms = told.pop("terms")
    assert told == plain
    assert {"name", "meaning", "formula", "unit"} <= set(terms[0])


def test_a_name_that_a_question_does_not_have_is_a_defect():
    assert MFU.meaning("HFU").startswith("Hardware FLOPs")
    with pytest.raises(KeyError):
        MFU.meaning("Goodput")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_terms_of_a_question_tell_units_or_formulas(question):
    assert any(t.unit or t.formula for t in question.terms)
