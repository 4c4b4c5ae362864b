"""`chipledger catalog`: chips, models and slices, every number with its source."""

import argparse

import catalog
from app.cli.commands.base import print_json, print_table

NAME = "catalog"
HELP = "look up chips, models and TPU slices, every number with its unit, source and mark"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=catalog.KINDS, help="what to look up")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one entry, by any usual name; without it, all")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def run(args: argparse.Namespace) -> None:
    if args.json:
        print_json(catalog.entry(args.kind, args.name) if args.name else catalog.as_rows(args.kind))
        return
    print_table(
        ("entry", "what", "value", "unit", "mark", "source"),
        (
            (str(r["entry"]), str(r["key"]), _value(r["value"]), str(r["unit"]), str(r["mark"]), str(r["source"]))
            for r in catalog.as_rows(args.kind, args.name)
        ),
        right=(2,),
    )


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
