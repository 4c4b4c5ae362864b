"""`chipledger compare RUN RUN`: by how much two served runs differ, and whether that is more than chance."""

import argparse

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.options import add_arguments, add_flags, from_args
from app.workspace import workspace
from errors.options import Option

NAME = "compare"
HELP = "compare two served runs, request by request, with intervals"
LOAD_A = Option("load_a", str, None, "a load of the first run; default: all its requests", form="LOAD")
LOAD_B = Option("load_b", str, None, "a load of the second run; default: all its requests", form="LOAD")
ARGUMENTS = (
    Option("a", str, None, "id or name of the first run (A), or the beginning of either", of_run=True),
    Option("b", str, None, "the second run (B), or the same one with another load", of_run=True),
)
OPTIONS = (LOAD_A, LOAD_B, JSON)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.comparing import compare_runs, words

    given, place = from_args(args, OPTIONS), workspace(args.store)
    a, b = place.store.find(args.a), place.store.find(args.b)
    result = compare_runs(a, b, given.get(LOAD_A.name), given.get(LOAD_B.name))
    if args.json:
        print_json({"a": a.run_id, "b": b.run_id, **result.to_dict()})
        return
    print_verdict(words.verdict(result, a.manifest.name, b.manifest.name))
    table = words.table(result)
    print_table(table.head, table.rows, right=table.right)
    print()
    for note in (*result.traffic.warnings, *result.notes):
        print(f"- {printable(note)}")
