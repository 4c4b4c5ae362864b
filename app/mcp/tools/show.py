"""`show`: any question about a run, or about a model alone."""

from collections.abc import Mapping
from typing import Any

import catalog
from app.mcp.arguments import Pairs
from app.mcp.base import RUN, Told, Tool
from app.mcp.links import answer_links
from app.questions import QUESTIONS, question
from app.questions.asking import ModelSubject, Subject, answer_dict, ask
from app.questions.base import Question
from app.workspace import Workspace
from errors.options import SWITCH, Option, once_each

MODEL = "model:"
ABOUT = Option(RUN.name, str, None, f"{RUN.help}; or {MODEL}NAME, a model of the catalogue", of_run=True)
QUESTION = Option("question", tuple(q.name for q in QUESTIONS), None, "what is asked")
EXPLAIN = Option("explain", SWITCH, False, "also tell what its figures mean")


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    asked = question(given[QUESTION.name])
    return shown(asked, subject(given[RUN.name], place), more, place, explain=given.get(EXPLAIN.name, False))


def shown(asked: Question[Any], about: Subject, more: Pairs, place: Workspace, *, explain: bool = False) -> Told:
    """The answer to a question. Raises QuestionError or InputError for what cannot be asked or answered."""
    options = once_each(more, [o.name for o in asked.options])
    result = ask(asked, about, options, place.registry)
    told = answer_dict(about, result)
    told |= {"terms": [t.to_dict() for t in asked.terms]} if explain else {}
    return Told(asked.verdict(result), told, answer_links(asked, about, more, place))


def subject(text: str, place: Workspace) -> Subject:
    """A run of the store, or a model of the catalogue. Raises QuestionError where there is none."""
    if not text.startswith(MODEL):
        return place.store.find(text)
    name = catalog.model(text.removeprefix(MODEL)).name
    return ModelSubject(name, name)


SHOW = Tool(
    name="show",
    title="Answer to a question",
    help="Answer one question about a run in full: its ledger, where a finding's evidence is, or any other. `explain` "
    "tells what the figures mean.",
    options=(ABOUT, QUESTION, EXPLAIN),
    needed=(ABOUT.name, QUESTION.name),
    choices={q.name: q.options for q in QUESTIONS},
    answer=answer,
)
