"""`chipledger query RUN SQL`: SQL over the tables of a run."""

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.cli.commands.base import JSON, print_json, print_table
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors.options import SWITCH, Option
from runs.query_options import OPTIONS as ASKING
from runs.query_options import ROWS, TIMEOUT

if TYPE_CHECKING:
    from runs.run import Run

NAME = "query"
HELP = "ask the tables of a run in SQL; without SQL, list them"
API = "/api/runs/RUN/query"
SQL = Option("sql", str, None, "one SELECT statement", local=True, form="SQL")
ARGUMENTS = (Option("run", str, None, "id or name of a run, or the beginning of either", of_run=True, local=True), SQL)
MAY_LACK = (SQL,)
ONE_OF = (
    JSON,
    Option("csv", SWITCH, False, "print the answer as CSV", local=True),
    Option("parquet", str, None, "write the answer to a Parquet file", local=True, form="FILE"),
)
OPTIONS = (*ONE_OF, *ASKING)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; of json, csv and parquet at most one."""

    json: bool = False
    csv: bool = False
    parquet: str | None = None
    timeout: float = TIMEOUT.default
    rows: int = ROWS.default


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser.add_mutually_exclusive_group(), ONE_OF)
    add_flags(parser, ASKING)


def run(args: argparse.Namespace) -> None:
    found = workspace(args.store).store.find(args.run)
    if args.sql:
        answer(found, args.sql, Asked(**values(args, OPTIONS)))
    else:
        tables(found, as_json=bool(args.json))


def tables(found: "Run", *, as_json: bool) -> None:
    """Print every table of the run with its columns."""
    from app import querying

    told = querying.tables(found)
    if as_json:
        print_json({"tables": told})
        return
    rows = [(t["name"], f"{t['rows']:,}", c["name"], c["meaning"]) for t in told for c in t["columns"]]
    print_table(("table", "rows", "column", "meaning"), rows, right=(1,))


def answer(found: "Run", sql: str, asked: Asked) -> None:
    """Print the answer to SQL, or write it. Raises QuestionError for what cannot be asked, InputError for a file that
    cannot be written."""
    from app import querying
    from runs import query as asking

    told = asking.query(found, sql, asked.timeout, asked.rows)
    if told.cut and (asked.parquet or asked.csv):  # neither can say it itself
        print(f"warning: {querying.cut_off(told)}. {ROWS.flag} takes {ROWS.expected}.", file=sys.stderr)
    if asked.parquet:
        querying.write_parquet(told, asked.parquet)
    elif asked.csv:
        print(querying.csv_text(told), end="")
    elif asked.json:
        print_json(querying.as_json(told))
    else:
        rows = [["" if v is None else str(v) for v in row] for row in querying.rows(told)]
        print_table(told.table.column_names, rows)
        print(f"\n{querying.note(told)}")
