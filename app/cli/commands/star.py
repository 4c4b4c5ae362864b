"""`chipledger star RUN ...`: mark what matters."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import format as fmt
from errors.options import SWITCH, Option

NAME = "star"
HELP = "star runs, to find them again with is:starred"
API = "PATCH /api/runs/RUN"
ARGUMENTS = (RUNS,)
OFF = Option("off", SWITCH, False, "take the star away", local=True)
OPTIONS = (OFF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import star

    given = values(args, OPTIONS)
    ids = star(workspace(args.store), args.run, not given[OFF.name])
    if given[JSON.name]:
        print_json({"runs": ids, "starred": not given[OFF.name]})
    else:
        print(f"{fmt.count(len(ids), 'run')} {'no longer starred' if given[OFF.name] else 'starred'}")
