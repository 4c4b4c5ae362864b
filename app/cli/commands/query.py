"""`chipledger query RUN SQL`: SQL over the tables of a run."""

import argparse

from app.cli.commands.base import print_json, print_table
from app.workspace import workspace

NAME = "query"
HELP = "ask the tables of a run in SQL; without SQL, list them"


def arguments(parser: argparse.ArgumentParser) -> None:
    from app.options import add_flags
    from runs.query import OPTIONS

    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, or name of a run")
    parser.add_argument("sql", metavar="SQL", nargs="?", help="one SELECT statement")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the answer as JSON")
    form.add_argument("--csv", action="store_true", help="print the answer as CSV")
    form.add_argument("--parquet", metavar="FILE", help="write the answer to a Parquet file")
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app import querying
    from app.options import from_args
    from runs.query import OPTIONS, query

    found = workspace(args.store).store.find(args.run)
    if not args.sql:
        told = querying.tables(found)
        if args.json:
            print_json({"tables": told})
            return
        rows = [(t["name"], f"{t['rows']:,}", c["name"], c["meaning"]) for t in told for c in t["columns"]]
        print_table(("table", "rows", "column", "meaning"), rows, right=(1,))
        return
    answer = query(found, args.sql, **from_args(args, OPTIONS))
    if args.parquet:
        querying.write_parquet(answer, args.parquet)
    elif args.csv:
        print(querying.csv_text(answer), end="")
    elif args.json:
        print_json(querying.as_json(answer))
    else:
        rows = [["" if v is None else str(v) for v in row] for row in querying.rows(answer)]
        print_table(answer.table.column_names, rows)
        print(f"\n{querying.note(answer)}")
