"""`chipledger history METRIC`: a metric over the runs of a job, and between which two it changed for good."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.history.options import ASKED, METRIC
from app.options import add_arguments, add_flags, values
from app.workspace import workspace

NAME = "history"
HELP = "a metric over many runs or commits, and between which two it changed for good"
ARGUMENTS = (METRIC,)
OPTIONS = (*(o for o in ASKED if o is not METRIC), JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.history.told import Asked, tell

    given = values(args, OPTIONS)
    as_json = given.pop(JSON.name)
    told = tell(Asked(metric=args.metric, **given), workspace(args.store))
    if as_json:
        print_json(told.to_dict())
        return
    print_verdict(told.verdict)
    print_table(told.table.head, told.table.rows, right=told.table.right)
    for note in (*told.leads, *told.notes):
        print(f"- {printable(note)}")
