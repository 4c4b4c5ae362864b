"""`chipledger topology SPEC...`: how far, how narrow and how loaded a network of chips is, whole or after failures."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, print_table, print_verdict, printable
from app.options import add_arguments, add_flags
from app.topology_options import FAIL, SPEC
from app.workspace import workspace

if TYPE_CHECKING:
    from simulators.topology.report import Report

NAME = "topology"
HELP = "count hops, bisection and link loads of a torus, mesh, Boardfly, GPU network or edge list"
API = "/api/topology?spec=SPEC&fail=WHAT"
ARGUMENTS = (SPEC,)
OPTIONS = (FAIL, replace(JSON, help="print an object; a list where several were asked for"))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    told([_report(text, args.fail or (), args.store) for text in args.spec], as_json=bool(args.json))


def told(reports: "Sequence[Report]", *, as_json: bool) -> None:
    """Print what was counted, side by side."""
    if as_json:
        found = [r.to_dict() for r in reports]
        print_json(found if len(found) > 1 else found[0])
        return
    from app.topologies.words import table, verdict

    for report in reports:
        print_verdict(verdict(report))
    shown = table(reports)
    print_table(shown.head, shown.rows, right=shown.right)
    print()
    truths = [t for r in reports if r.after for t in r.after["truth"][1:]]
    for note in dict.fromkeys([*truths, *(n for r in reports for n in (f"{r.spec.text}: {r.basis}.", *r.notes))]):
        print(f"- {printable(note)}")


def _report(text: str, failed: Sequence[str], store: str | None) -> "Report":
    from app import topologies

    place = workspace(store) if topologies.in_store(text) else None  # else the user's own file, or no file at all
    return topologies.report(text, failed, place)
