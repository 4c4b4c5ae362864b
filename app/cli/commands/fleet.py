"""`chipledger fleet`: all runs as one ledger, by team, model, chip or tag, and week by week."""

import argparse
from dataclasses import replace

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.fleet import options
from app.options import add_flags, values
from app.workspace import workspace

NAME = "fleet"
HELP = "all runs over time: chip-hours, dollars, goodput, MFU and losses by team, model, chip or tag"
API = "/api/fleet?by=team&every=week&since=30d"
OPTIONS = (*options.OPTIONS, replace(JSON, help="print sums, trend, causes and runs as JSON"))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.fleet import words
    from app.fleet.asking import ask_fleet

    given = values(args, OPTIONS)
    result = ask_fleet(workspace(args.store), given, "now")
    if args.json:
        print_json(result.to_dict(given[options.RUNS.name]))
        return
    print_verdict(words.verdict(result))
    for found in (words.groups_table(result), words.trend_table(result), words.causes_table(result)):
        if found.rows:
            print_table(found.head, found.rows, found.right)
            print()
    for note in words.notes(result):
        print(printable(note))
