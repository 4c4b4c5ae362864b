"""`chipledger restore RUN ...`: back from the bin."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace

NAME = "restore"
HELP = "bring deleted runs back from the bin, with all that was added to them"
API = "POST /api/runs/RUN/restore"
ARGUMENTS = (RUNS,)
OPTIONS = (JSON,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import restore

    done = restore(workspace(args.store), args.run)
    if values(args, OPTIONS)[JSON.name]:
        print_json({"restored": [b.to_dict() for b in done]})
        return
    for b in done:
        print(printable(f"{b.run_id[:12]} {b.name}: back in the library"))
