"""`chipledger catalog`: chips, models and slices, every number with its source."""

import argparse
from dataclasses import replace

import catalog
from app.cli.commands.base import JSON, print_json, print_table
from app.options import add_arguments, add_flags, by_place
from errors.options import Option

NAME = "catalog"
HELP = "look up chips, models and TPU slices, every number with its unit, source and mark"
API = "/api/catalog/KIND/NAME"
ENTRY = Option("name", str, None, "one entry, by any usual name; without it, all", local=True, form="NAME")
ARGUMENTS = (
    Option("kind", catalog.KINDS, None, f"what to look up: {', '.join(catalog.KINDS)}", local=True, form="KIND"),
    ENTRY,
)
MAY_LACK = (ENTRY,)
OPTIONS = (replace(JSON, help="print as JSON"),)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    look_up(**by_place(args, ARGUMENTS), as_json=bool(args.json))


def look_up(kind: str, name: str | None = None, *, as_json: bool = False) -> None:
    """Print one entry, or all of a kind. Raises QuestionError for a name that is none."""
    if as_json:
        print_json(catalog.entry(kind, name) if name else catalog.as_rows(kind))
        return
    print_table(
        ("entry", "what", "value", "unit", "mark", "source"),
        (
            (str(r["entry"]), str(r["key"]), _value(r["value"]), str(r["unit"]), str(r["mark"]), str(r["source"]))
            for r in catalog.as_rows(kind, name)
        ),
        right=(2,),
    )


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
