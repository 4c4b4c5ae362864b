"""`chipledger promise`: keep what mending a finding is said to give, and see what later runs of the job gave."""

import argparse
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import COUNT, SHARE_OF_SOME
from errors.options import Option

if TYPE_CHECKING:
    from analyzers.findings import FindingsResult
    from analyzers.findings.base import Finding

NAME = "promise"
HELP = "keep what mending a finding is said to give, and see what later runs of the job gave"
ALL = "all"
ARGUMENTS = (
    Option(
        "run",
        str,
        None,
        "id or name of a run, or the beginning of either (default: all promises)",
        of_run=True,
        local=True,
    ),
)
KEEP = Option("keep", str, (), f"cause of a finding to promise, or {ALL}", local=True, several=True, form="CAUSE")
PART = Option("part", SHARE_OF_SOME, 1.0, "share of each that is set out to be mended", local=True)
WITHDRAW = Option("withdraw", COUNT, None, "number of a promise that stands no longer", local=True, form="NUMBER")
OPTIONS = (KEEP, PART, WITHDRAW, JSON)
MAY_LACK = ARGUMENTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app import promises
    from app.questions.asking import ask
    from app.questions.findings import FINDINGS

    given, place = values(args, OPTIONS), workspace(args.store)
    book, run = promises.book(place), place.store.find(args.run) if args.run else None
    if given[WITHDRAW.name] is not None:
        book.withdraw(given[WITHDRAW.name])
    if given[KEEP.name]:
        if run is None:
            raise QuestionError("nothing says of which run", expected="chipledger promise RUN --keep CAUSE")
        result = ask(FINDINGS, run, {}, place.registry)
        promises.promise(run, result, chosen(result, given[KEEP.name]), place, given[PART.name])
    kept = promises.promises_about(run, place) if run else promises.outcomes(promises.standing(place), place)
    done = promises.record(kept)
    if args.json:
        print_json({"record": done.to_dict(), "promises": [k.to_dict() for k in kept]})
        return
    if not kept:
        print("Nothing is promised. Keep one with `chipledger promise RUN --keep CAUSE`: `findings RUN` says which.")
        return
    rows = [(str(k.promise.id), k.promise.job, k.promise.cause, fmt.date(k.promise.made_ns), k.sentence) for k in kept]
    print_table(("number", "job", "cause", "promised", "outcome"), rows, right=(0,))
    print(printable(done.sentence))


def chosen(result: "FindingsResult", causes: tuple[str, ...]) -> list["Finding"]:
    """The findings of these causes. Raises QuestionError for a cause that is not found."""
    there = [f for f in result.findings if f.gain is not None]
    for cause in causes:
        if cause != ALL and cause not in {f.cause for f in there}:
            known = ", ".join(dict.fromkeys(f.cause for f in there)) or "none"
            raise QuestionError(f"no finding {cause[:40]!r} with a gain", expected=f"{ALL}, or one of: {known}")
    return [f for f in there if ALL in causes or f.cause in causes]
