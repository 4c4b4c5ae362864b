"""Worked cases: published serving figures beside our own model, with what can and cannot be concluded."""

import argparse
from typing import TYPE_CHECKING

from errors import QuestionError

if TYPE_CHECKING:
    from app.whatif.base import Words
    from app.whatif.cases.base import Case
    from app.workspace import Workspace

NAME = "case"
HELP = "work a published serving figure through, measured beside modelled"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="CASE", help="which case; a wrong name lists them")


def answer(args: argparse.Namespace, place: "Workspace | None") -> "Case":
    """Raises QuestionError for a case that does not exist."""
    from app.whatif.cases import CASES

    for case in CASES:
        if args.name == case.NAME:
            return case.answer()
    known = "; ".join(f"{c.NAME} ({c.TITLE})" for c in CASES)
    what = f"no case {args.name!r}" if args.name else "which case?"
    raise QuestionError(what, expected=f"--name with one of {known}")


def words(result: "Case") -> "Words":
    from app import format as fmt
    from app.whatif.base import Words
    from app.words import Table

    def number(value: float | None) -> str:
        return "" if value is None else fmt.number(value)

    rows = tuple(
        (
            r.what,
            number(r.stated),
            number(r.computed) if r.low is None else f"{number(r.low)} to {number(r.high)}",
            r.unit,
            r.basis,
            r.note,
        )
        for r in result.rows
    )
    head = ("", "published", "ours", "unit", "basis", "")
    return Words(result.verdict, Table(head, rows, right=(1, 2)), result.notes)
