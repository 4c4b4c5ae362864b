"""`chipledger share RUN ... --group GROUP | --everyone`: who sees runs."""

import argparse

from app.cli.commands.base import JSON, RUNS, print_json, print_table, printable
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors.options import SWITCH, Option

NAME = "share"
HELP = "say which groups of people see runs; without --group or --everyone, who does"
API = "PATCH /api/runs/RUN/groups"
ARGUMENTS = (RUNS,)
GROUP = Option(
    "group",
    str,
    (),
    "a group whose members see the runs, and nobody else but admins",
    several=True,
    local=True,
    form="GROUP",
)
EVERYONE = Option("everyone", SWITCH, False, "all who are signed in see the runs", local=True)
OPTIONS = (GROUP, EVERYONE, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    chosen = parser.add_mutually_exclusive_group()
    add_flags(chosen, OPTIONS[:2])
    add_flags(parser, OPTIONS[2:])


def run(args: argparse.Namespace) -> None:
    from app.sharing import groups_of, seen_by, share

    given, place = values(args, OPTIONS), workspace(args.store)
    if not given[GROUP.name] and not given[EVERYONE.name]:
        told = {name: groups_of(place, name) for name in args.run}
        if given[JSON.name]:
            print_json({"groups": told})
        else:
            print_table(("run", "seen by"), [(name, seen_by(groups)) for name, groups in told.items()])
        return
    done = share(place, args.run, given[GROUP.name])
    print_json(done.to_dict()) if given[JSON.name] else print(printable(done.sentence))
