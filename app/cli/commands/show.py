"""`chipledger show RUN ANALYSIS`: the answer to one question about a run."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, model_config, pairs, print_json, print_table, print_verdict, printable
from app.options import add_arguments, add_flags
from app.workspace import Workspace, workspace
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.questions.asking import Subject

NAME = "show"
HELP = "answer one question about a run or a model, such as `ledger`, `mfu` or `padding`"
API = "/api/runs/RUN/show/ANALYSIS"
MODEL = "model:"
ARGUMENTS = (
    Option(
        "run",
        str,
        None,
        "id or name of a run, or the beginning of either; or model:NAME of the catalogue, or model:FILE, a config.json",
        of_run=True,
        local=True,
    ),
    Option("analysis", str, None, "the question, such as ledger, mfu or padding", local=True, form="ANALYSIS"),
)
OPTIONS = (
    Option("option", str, (), "an option of the question", local=True, several=True, form="KEY=VALUE"),
    JSON,
    Option("explain", SWITCH, False, "also print what its figures mean", local=True),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def about(words: Sequence[str]) -> str:
    """What `--help` says: all questions, or of the one that was named its options and the keys of its answer.

    Raises QuestionError where a second word names no question.
    """
    from app.cli.questions_help import every_question, one_question
    from app.questions import QUESTIONS, question

    known = {name for q in QUESTIONS for name in (q.name, *q.aliases)}
    named = next((word for word in words[:2] if word in known), words[1] if len(words) > 1 else "")
    return one_question(question(named)) if named else every_question()


def run(args: argparse.Namespace) -> None:
    given = pairs(args.option, "option")
    show(workspace(args.store), args.run, args.analysis, given, as_json=bool(args.json), explain=bool(args.explain))


def show(
    place: Workspace,
    about: str,
    analysis: str,
    given: Mapping[str, str] | None = None,
    *,
    as_json: bool = False,
    explain: bool = False,
) -> None:
    """Print the answer. `about`: a run of the store, or a model after `model:`; `analysis`: the question's name;
    `given`: its options, as text. Raises QuestionError or InputError for what cannot be asked or answered."""
    from app.questions import question
    from app.questions.asking import answer_dict, ask

    asked = question(analysis)
    subject = _subject(about, place)
    result = ask(asked, subject, given or {}, place.registry)
    terms = asked.terms if explain else ()
    if as_json:
        print_json(answer_dict(subject, result) | ({"terms": [t.to_dict() for t in terms]} if explain else {}))
        return
    print_verdict(asked.verdict(result))
    table = asked.table(result)
    print_table(table.head, table.rows, right=table.right)
    if result.notes:
        print()
    for note in result.notes:
        print(f"- {printable(note)}")
    if terms:
        print()
    for term in terms:
        print(f"{term.name}: {term.text}")


def _subject(text: str, place: Workspace) -> "Subject":
    """What is asked about: a run of the store, a model of the catalogue, or the model that a file describes."""
    from app.questions.asking import ModelSubject
    from catalog import model

    if not text.startswith(MODEL):
        return place.store.find(text)
    name = text.removeprefix(MODEL)
    path = Path(name)
    if not path.is_file():
        return ModelSubject(model(name).name, model(name).name)
    return ModelSubject(path.stem, model_config(path, name))
