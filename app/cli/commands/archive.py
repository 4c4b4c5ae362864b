"""`chipledger archive RUN ...`: hide what is no longer looked at."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import format as fmt
from errors.options import SWITCH, Option

NAME = "archive"
HELP = "hide runs from the usual list; is:archived finds them"
API = "PATCH /api/runs/RUN"
ARGUMENTS = (RUNS,)
OFF = Option("off", SWITCH, False, "bring them back into the usual list", local=True)
OPTIONS = (OFF, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import archive

    given = values(args, OPTIONS)
    ids = archive(workspace(args.store), args.run, not given[OFF.name])
    if given[JSON.name]:
        print_json({"runs": ids, "archived": not given[OFF.name]})
    else:
        print(f"{fmt.count(len(ids), 'run')} {'no longer archived' if given[OFF.name] else 'archived'}")
