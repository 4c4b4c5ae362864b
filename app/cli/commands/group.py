"""`chipledger group RUN ... PROJECT/EXPERIMENT`: put runs where they belong."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import format as fmt
from errors.options import Option

NAME = "group"
HELP = "put runs into a project, or into an experiment of one"
API = "PATCH /api/runs/RUN"
GROUP = Option("group", str, None, "where to; empty takes them out of theirs", local=True, form="PROJECT/EXPERIMENT")
ARGUMENTS = (RUNS, GROUP)
OPTIONS = (JSON,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import move_to_group

    ids, group = move_to_group(workspace(args.store), args.run, args.group)
    if values(args, OPTIONS)[JSON.name]:
        print_json({"runs": ids, "group": group or None})
    else:
        print(printable(f"{fmt.count(len(ids), 'run')} {f'in {group}' if group else 'in no group'}"))
