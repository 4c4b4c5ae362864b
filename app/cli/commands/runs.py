"""`chipledger runs`: what is in the store, searched and sorted; with `--bin` what was deleted."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.cli.commands.base import JSON, print_json, print_table, printable
from app.listing_options import ARCHIVED, LIMIT, QUERY, SORT
from app.options import add_arguments, add_flags, values
from app.workspace import Workspace, workspace
from errors import format as fmt
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.library.columns import Column, Row
    from app.library.rows import Library, Numbers

NAME = "runs"
HELP = "list the runs in the store, newest first, or those that a search finds"
API = "/api/runs?q=QUERY&sort=COLUMN&limit=N"
ARGUMENTS = (replace(QUERY, local=True),)
COLUMNS = Option("columns", str, (), "columns to show, commas between", local=True, several=True, form="COLUMN,...")
SAVED = Option("saved", str, None, "a search that is kept: `chipledger searches` lists them", local=True, form="NAME")
BIN = Option("bin", SWITCH, False, "what was deleted and can be brought back", local=True)
OPTIONS = (COLUMNS, SORT, LIMIT, ARCHIVED, SAVED, BIN, replace(JSON, help="print them as JSON"))
USUAL = ("name", "kind", "chips", "added", "tags")
MAY_LACK = ARGUMENTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    given, place = values(args, OPTIONS), workspace(args.store)
    if given[BIN.name]:
        _binned(place, given[JSON.name])
        return
    query, columns = args.q or "", [c.strip() for text in given[COLUMNS.name] for c in text.split(",") if c.strip()]
    if given[SAVED.name] is not None:
        from app.library.changes import search_of

        kept = search_of(place, given[SAVED.name])
        query, columns = f"{kept.query} {query}".strip(), columns or list(kept.columns)
        given[SORT.name] = kept.sort if args.sort is None and kept.sort else given[SORT.name]
    asked = {o.name: given[o.name] for o in (SORT, LIMIT, ARCHIVED)}
    if given[JSON.name]:
        _print_json(place, query, columns, asked)
    else:
        _print(place, query, columns, asked)


def _print_json(place: Workspace, query: str, columns: list[str], asked: dict[str, Any]) -> None:
    from app.library.columns import named
    from app.listing import list_runs

    shown = [named(column) for column in columns]
    print_json(list_runs(place, query, **asked, numbers=_numbers(shown, query, asked[SORT.name])))


def _numbers(shown: "Sequence[Column]", query: str, sort: str) -> "Numbers":
    """Whether the numbers of answers that runs lack are worked out first: for what is shown, searched or sorted by."""
    from app.library.columns import named

    worked_out = any(column.worked_out for column in (*shown, named(sort.removeprefix("-"))))
    return "now" if worked_out or query else "kept"


def _print(place: Workspace, query: str, columns: list[str], asked: dict[str, Any]) -> None:
    from app.library.columns import named
    from app.library.rows import library

    shown = [named(column) for column in columns or USUAL]
    found = library(place, query, **asked, hidden=True, numbers=_numbers(shown, query, asked[SORT.name]))
    for problem in found.damaged.values():
        print(f"warning: {printable(problem)}", file=sys.stderr)
    if not found.rows:
        print(_none(found, place))
        return
    right = [n + 1 for n, column in enumerate(shown) if column.kind not in ("text", "date") and column.name != "chips"]
    rows = ([_who(row), *(_cell(row, column.name) for column in shown)] for row in found.rows)
    print_table(["run", *(column.name.replace("_", " ") for column in shown)], rows, right)


def _none(found: "Library", place: Workspace) -> str:
    """Why nothing is listed. Runs that are elsewhere are told, with the way there."""
    if found.total:
        return "No run matches."
    if found.archived:
        return f"No runs but {fmt.count(found.archived, 'archived one')}; `chipledger runs --archived` lists them too."
    if lying := len(place.store.binned()):
        return f"No runs but {lying:,} in the bin; `chipledger runs --bin` lists what can be brought back."
    return "No runs yet. Add one with `chipledger ingest PATH`, or see `chipledger demo`."


def _who(row: "Row") -> str:
    return row.address if row.live else row.run_id[:12]


def _cell(row: "Row", column: str) -> str:
    if not row.readable:
        return {"name": "cannot be read", "kind": "damaged"}.get(column, "")
    if column == "kind":
        more = [row.live.to_dict()["state"]] if row.live else []
        more += ["simulated"] if row.simulated else []
        more += ["damaged"] if row.problem else []
        return row.kind + (f" ({', '.join(more)})" if more else "")
    if column == "chips":
        return row.chips_text
    return "" if column == "tags" and not row.tags else row.text(column)


def _binned(place: Workspace, as_json: bool) -> None:
    from app.library.changes import binned

    lying = binned(place)
    if as_json:
        print_json({"bin": [b.to_dict() for b in lying]})
    elif not lying:
        print("The bin is empty.")
    else:
        rows = ((b.run_id[:12], b.name, fmt.date(b.since_ns), b.who, fmt.date(b.until_ns)) for b in lying)
        print_table(("run", "name", "deleted", "by", "kept until"), rows)
