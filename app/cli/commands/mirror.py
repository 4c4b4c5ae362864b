"""`chipledger mirror TO [RUN ...]`: runs of this store in another one, each whole or not at all."""

import argparse
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.library.mirroring import Mirrored

NAME = "mirror"
HELP = "copy runs into another store, in a folder or a bucket, each whole or not at all"
TO = Option(
    "to", str, None, "folder or address of the other store, such as s3://bucket/prefix", local=True, form="STORE"
)
RUNS = Option(
    "run",
    str,
    (),
    "id, beginning of an id, or name of each run (default: every run)",
    of_run=True,
    local=True,
    several=True,
)
MOVE = Option("move", SWITCH, False, "put each run into the bin here once it is there", local=True)
ARGUMENTS = (TO, RUNS)
MAY_LACK = (RUNS,)
OPTIONS = (MOVE, JSON)
MAY_LACK = (RUNS,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    from app.library.mirroring import mirror

    given, here = values(args, OPTIONS), workspace(args.store)
    there = workspace(args.to)
    if there.store.root == here.store.root:
        raise QuestionError("both are the same store", where=args.to[:200], expected="another folder or address")
    named = [here.store.find(name) for name in args.run or ()]
    done = mirror(here, there, named or None, move=given[MOVE.name])
    if given[JSON.name]:
        print_json(done.to_dict())
    else:
        _print(done, args.to)
    return 3 if done.problems else 0


def _print(done: "Mirrored", to: str) -> None:
    for problem in done.problems:
        print(printable(problem))
    copied, there = fmt.count(len(done.copied), "run"), len(done.there)
    print(printable(f"{copied} copied to {to} ({fmt.size(done.bytes)}), {there:,} there already."))
    if done.moved:
        print(f"{fmt.count(len(done.moved), 'run')} put into the bin here for 30 days.")
    print("Names, notes, tags and prices that people gave stay in the registry of this store; who sees a run is kept.")
