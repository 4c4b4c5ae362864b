"""`chipledger delete RUN ...`: into the bin, from which `restore` brings it back for 30 days."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json, printable, user
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import format as fmt
from errors.options import SWITCH, Option

NAME = "delete"
HELP = "put runs into the bin; they can be brought back for 30 days"
API = "DELETE /api/runs/RUN"
ARGUMENTS = (RUNS,)
NOW = Option("now", SWITCH, False, "for good at once, with all that was added to them", local=True)
OPTIONS = (NOW, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import bin_many

    given = values(args, OPTIONS)
    done = bin_many(workspace(args.store), args.run, who=user(), now=given[NOW.name])
    if given[JSON.name]:
        print_json({"deleted" if given[NOW.name] else "bin": [b.to_dict() for b in done]})
        return
    for b in done:
        until = "gone for good" if given[NOW.name] else f"in the bin until {fmt.date(b.until_ns)}"
        print(printable(f"{b.run_id[:12]} {b.name}: {until}"))
    if not given[NOW.name]:
        print("`chipledger restore RUN` brings it back.")
