"""`chipledger runs`: what is in the store."""

import argparse
import sys
from dataclasses import replace
from typing import Any

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.options import add_flags
from app.workspace import workspace
from errors import format as fmt

NAME = "runs"
HELP = "list the runs in the store, newest first"
API = "/api/runs"
OPTIONS = (replace(JSON, help="print them as JSON"),)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.listing import list_runs

    listed = list_runs(workspace(args.store))
    found = listed["runs"]
    if args.json:
        print_json(listed)
        return
    for problem in listed["problems"]:
        print(f"warning: {printable(problem)}", file=sys.stderr)
    if not found:
        print("No runs yet. Add one with `chipledger ingest PATH`, or see `chipledger demo`.")
    else:
        print_table(
            ("run", "name", "kind", "chips", "added", "tags"),
            (
                (
                    f"live:{r['live']['name']}" if r["live"] else r["run_id"][:12],
                    r["name"] or "cannot be read",
                    _kind(r),
                    r["chips_text"],
                    fmt.date(r["created_ns"]),
                    " ".join(f"{k}={v}" for k, v in r["tags"].items()),
                )
                for r in found
            ),
        )


def _kind(listed: dict[str, Any]) -> str:
    live = listed["live"]
    more = [live["state"]] if live else []
    more += ["simulated"] if listed["simulated"] else []
    more += ["damaged"] if listed["problem"] and listed["kind"] else []
    return (listed["kind"] or "damaged") + (f" ({', '.join(more)})" if more else "")
