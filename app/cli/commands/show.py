"""`chipledger show RUN ANALYSIS`: the answer to one question about a run."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.commands.base import pairs, print_json, print_table
from app.workspace import Workspace, workspace
from errors import InputError

if TYPE_CHECKING:
    from app.questions.asking import Subject

NAME = "show"
HELP = "answer one question about a run or a model, such as `ledger`, `mfu` or `padding`"
MODEL = "model:"
CONFIG_BYTES = 1 << 20  # a page of dimensions, not a checkpoint


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        help="id, beginning of an id, or name of a run; or model:NAME of the catalogue, or model:FILE, a config.json",
    )
    parser.add_argument("analysis", metavar="ANALYSIS", help="the question, such as ledger, mfu or padding")
    parser.add_argument("--option", action="append", metavar="KEY=VALUE", help="an option; may be given several times")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--explain", action="store_true", help="also print what its figures mean")


def run(args: argparse.Namespace) -> None:
    from app.questions import question
    from app.questions.asking import answer_dict, ask

    place = workspace(args.store)
    asked = question(args.analysis)
    subject = _subject(args.run, place)
    result = ask(asked, subject, pairs(args.option, "option"), place.registry)
    terms = asked.terms if args.explain else ()
    if args.json:
        print_json(answer_dict(subject, result) | ({"terms": [t.to_dict() for t in terms]} if args.explain else {}))
        return
    print(asked.verdict(result), end="\n\n")
    table = asked.table(result)
    print_table(table.head, table.rows, right=table.right)
    if result.notes:
        print()
    for note in result.notes:
        print(f"- {note}")
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
    try:
        config = json.loads(path.read_bytes()[: CONFIG_BYTES + 1])
    except (OSError, ValueError, RecursionError) as e:
        raise InputError(f"cannot be read as JSON ({e})", where=name, expected="a model's config.json") from e
    if not isinstance(config, dict):
        raise InputError("no JSON object", where=name, expected="a model's config.json")
    return ModelSubject(path.stem, config)
