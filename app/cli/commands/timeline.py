"""`chipledger timeline RUN`: the timeline of a run as a file that Perfetto opens."""

import argparse
import os
import sys
from pathlib import Path

from app.cli.commands.base import JSON, RUN, print_json, printable
from app.options import add_arguments, add_flags, values
from app.reporting.files import check, keep
from app.timeline.perfetto.options import TYPED
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.options import SWITCH, Option

NAME = "timeline"
HELP = "write the timeline of a run, or a window and some rows of it, into a file that Perfetto opens"
API = "/api/runs/RUN/timeline/perfetto"
PRINTED = "-"
OUTPUT = Option(
    "output",
    str,
    None,
    "where to write it, also as -o; - prints it; default: the run's name with .pftrace, in this folder",
    local=True,
    form="FILE",
    letter="o",
)
FORCE = Option("force", SWITCH, False, "write over a file that is there", local=True)
ARGUMENTS = (RUN,)
OPTIONS = (OUTPUT, *TYPED, FORCE, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.timeline.perfetto.making import made, named

    asked = values(args, OPTIONS)
    output, force, as_json = (asked.pop(o.name) for o in (OUTPUT, FORCE, JSON))
    if output == PRINTED and as_json:
        raise QuestionError("a trace is printed, and --json given", expected="one of both")
    place = workspace(args.store)
    found = place.store.find(args.run)
    path = Path(os.path.expanduser(output)) if output else Path(named(found))
    if output != PRINTED:
        check(path, force)
    told = made(found, asked, place, in_seconds=True)
    if output == PRINTED:
        sys.stdout.buffer.writelines(told.data)
        return
    size = keep(path, told.data, force)
    if as_json:
        print_json({"file": str(path), "bytes": size} | told.to_dict())
        return
    events, rows = fmt.count(told.chosen.events, "event"), fmt.count(len(told.chosen.rows), "row")
    print(printable(f"{path}: {events} in {rows}, {fmt.size(size)}. Open it in Perfetto's viewer, ui.perfetto.dev."))
