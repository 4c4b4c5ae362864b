"""`chipledger rename RUN NAME`: call a run otherwise. What is stored does not change."""

import argparse

from app.cli.commands.base import JSON, RUN, print_json, printable, user
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors.options import Option

NAME = "rename"
HELP = "call a run otherwise; an empty name gives it back the one that it was stored with"
API = "PATCH /api/runs/RUN"
TO = Option("name", str, None, "its new name, up to 200 characters", local=True, form="NAME")
ARGUMENTS = (RUN, TO)
OPTIONS = (JSON,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library.changes import rename

    done = rename(workspace(args.store), args.run, args.name, who=user())
    if values(args, OPTIONS)[JSON.name]:
        print_json(done.to_dict())
    else:
        print(printable(f"{done.run_id[:12]}: {done.before} is called {done.after} now"))
