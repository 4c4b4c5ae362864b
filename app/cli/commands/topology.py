"""`chipledger topology SPEC...`: how far, how narrow and how loaded a network of chips is, whole or after failures."""

import argparse
from typing import TYPE_CHECKING

from app.cli.commands.base import print_json, print_table
from app.workspace import workspace

if TYPE_CHECKING:
    from simulators.topology.report import Report

NAME = "topology"
HELP = "count hops, bisection and link loads of a torus, mesh, Boardfly, GPU network or edge list"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "specs",
        nargs="+",
        metavar="SPEC",
        help="such as v5p:4x4x8, torus:8x8x16:twisted, boardfly:1024, v5e:16x16:slices=199, nvl:72, fattree:1024, or "
        "graph:FILE with one link on each line; several are put side by side",
    )
    parser.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="WHAT",
        help="what failed, such as chip=5, link=12-13, cube=1 or ocs=7; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print an object; a list where several were asked for")


def run(args: argparse.Namespace) -> None:
    reports = [_report(text, args) for text in args.specs]
    if args.json:
        told = [r.to_dict() for r in reports]
        print_json(told if len(told) > 1 else told[0])
        return
    from app.topologies.words import table, verdict

    for report in reports:
        print(verdict(report))
    print()
    shown = table(reports)
    print_table(shown.head, shown.rows, right=shown.right)
    print()
    truths = [t for r in reports if r.after for t in r.after["truth"][1:]]
    for note in dict.fromkeys([*truths, *(n for r in reports for n in (f"{r.spec.text}: {r.basis}.", *r.notes))]):
        print(f"- {note}")


def _report(text: str, args: argparse.Namespace) -> "Report":
    from app import topologies

    place = workspace(args.store) if topologies.in_store(text) else None  # else the user's own file, or no file at all
    return topologies.report(text, args.fail, place)
