"""Answers to SQL over a run's tables, in the forms they are handed out."""

import csv
import io
import math
from typing import Any

import pyarrow.parquet as pq

from app.cells import harmless
from errors import InputError
from runs.query import Answer
from runs.run import Run
from runs.schema import TABLES


def tables(run: Run) -> list[dict[str, Any]]:
    """Every table with its rows, what a row is, and its columns."""
    return [
        {
            "name": t.name,
            "row": t.row,
            "rows": run.tables.rows(t.name),
            "columns": [{"name": c.name, "type": str(c.type), "meaning": c.meaning} for c in t.columns],
        }
        for t in TABLES
    ]


def rows(answer: Answer) -> list[list[Any]]:
    columns = [c.to_pylist() for c in answer.table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def note(answer: Answer) -> str:
    more = "; there are more, which were cut off" if answer.cut else ""
    return f"{answer.table.num_rows:,} rows in {answer.seconds:.2f} s{more}"


def as_json(answer: Answer) -> dict[str, Any]:
    found = [[_plain(v) for v in row] for row in rows(answer)]
    return {"columns": answer.table.column_names, "rows": found, "cut": answer.cut, "seconds": answer.seconds}


def csv_text(answer: Answer) -> str:
    """As CSV, each cell made harmless."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([harmless(name) for name in answer.table.column_names])
    writer.writerows([harmless(v) for v in row] for row in rows(answer))
    return text.getvalue()


def write_parquet(answer: Answer, path: str) -> None:
    """Raises InputError where the file cannot be written."""
    try:
        pq.write_table(answer.table, path)
    except OSError as e:
        raise InputError(f"cannot be written ({e.strerror})", where=path) from e


def _plain(value: Any) -> Any:
    """A value as JSON has it: a number that is not finite is null, lists and structs stay, all else is text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
