"""Answers to SQL over a run's tables, in the forms they are handed out."""

import csv
import io
import json
import math
import threading
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.cells import harmless
from errors import InputError, QuestionError
from errors import format as fmt
from errors.options import Option
from runs.query import Answer, query, sql_type
from runs.query_options import OPTIONS
from runs.run import Run
from runs.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

JSON = "application/json"
MEDIA = {"json": JSON, "csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
SQL = Option("sql", str, "", "one SELECT statement over the tables of the run")
FORMAT = Option("format", tuple(MEDIA), "json", "as what the answer is given")
ASKED = (SQL, FORMAT, *OPTIONS)  # over the API
MORE = "there are more, which were cut off"
CUT_HEADER = "Chipledger-Cut"  # over the API, of a file that does not hold all
AT_ONCE, WAIT_S = 2, 30  # each may take a gigabyte and both cores
free = threading.BoundedSemaphore(AT_ONCE)


def answered(run: Run, sql: str, **options: Any) -> Answer:
    """As `query`, a few at a time: for pages and the API, which many may ask. Raises QuestionError where none of those
    ends soon."""
    if not free.acquire(timeout=WAIT_S):
        raise QuestionError(f"{AT_ONCE} queries are running, and none ended in {WAIT_S} s", advice="Ask again later.")
    try:
        return query(run, sql, **options)
    finally:
        free.release()


def given_out(run: Run, sql: str = "", format: str = "json", **options: Any) -> tuple[Answer, bytes]:
    """The answer, and the bytes as which the API gives it."""
    answer = answered(run, sql, **options)
    if format == "parquet":
        return answer, parquet_bytes(answer)
    text = csv_text(answer) if format == "csv" else json.dumps(as_json(answer), ensure_ascii=False, allow_nan=False)
    return answer, text.encode()


def file_stem(answer: Answer) -> str:
    """The name of a file of it, without its ending: a file cannot say itself that it was cut off."""
    return f"query-first-{answer.table.num_rows}-rows" if answer.cut else "query"


def tables(run: Run) -> list[dict[str, Any]]:
    """Every table with its rows, what a row is, and its columns."""
    return [
        {
            "name": t.name,
            "row": t.row,
            "rows": run.tables.rows(t.name),
            "columns": [{"name": c.name, "type": sql_type(c.type), "meaning": c.meaning} for c in t.columns],
        }
        for t in TABLES
    ]


def rows(answer: Answer) -> list[list[Any]]:
    """The rows as Python has them. Raises QuestionError for a time that it cannot have, such as infinity."""
    columns: list[list[Any]] = []
    for name, column in zip(answer.table.column_names, answer.table.columns, strict=True):
        try:
            columns.append(column.to_pylist())
        except (OverflowError, ValueError) as e:
            raise QuestionError(
                f"the column {name[:80]!r} holds a time out of range", where="SQL", advice="Cast it to VARCHAR."
            ) from e
    return [list(row) for row in zip(*columns, strict=True)]


def note(answer: Answer) -> str:
    n = answer.table.num_rows
    more = f"; {MORE}" if answer.cut else ""
    return f"{n:,} row{'' if n == 1 else 's'} in {answer.seconds:.2f} s{more}"


def cut_off(answer: Answer) -> str:
    """Of an answer that was cut off: where, for who gets a file of it."""
    return f"the first {fmt.count(answer.table.num_rows, 'row')} alone; {MORE}"


def as_json(answer: Answer) -> dict[str, Any]:
    found = [[_plain(v) for v in row] for row in rows(answer)]
    return {"columns": answer.table.column_names, "rows": found, "cut": answer.cut, "seconds": answer.seconds}


def csv_text(answer: Answer) -> str:
    """As CSV, each cell made harmless."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([harmless(name) for name in answer.table.column_names])
    writer.writerows([harmless(_cell(v)) for v in row] for row in rows(answer))
    return text.getvalue()


def parquet_bytes(answer: Answer) -> bytes:
    """As a Parquet file. Raises QuestionError for a type that such files lack."""
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(answer.table, sink)
    except pa.ArrowException as e:
        raise QuestionError(f"no Parquet can be written ({e})", where="SQL", advice="Cast to VARCHAR.") from e
    return sink.getvalue().to_pybytes()


def write_parquet(answer: Answer, path: str) -> None:
    """Whole or not at all. Raises InputError where the file cannot be written, or is there already."""
    data, made = parquet_bytes(answer), False
    try:
        with Path(path).open("xb") as f:
            made = True
            f.write(data)
    except OSError as e:
        if made:
            Path(path).unlink(missing_ok=True)
        raise InputError(f"cannot be written ({e.strerror})", where=path) from e


def shown(answer: Answer, most: int) -> "pd.DataFrame":
    """The first rows as a page draws them: numbers, truth values and text as they are, all else as text."""
    import pandas as pd

    part = replace(answer, table=answer.table.slice(0, most))
    columns = zip(*rows(part), strict=True) if part.table.num_rows else ([] for _ in part.table.columns)
    drawn = {n: _drawn(k, v) for n, k, v in zip(part.table.column_names, part.table.schema.types, columns, strict=True)}
    return pd.DataFrame(drawn)


def _drawn(kind: pa.DataType, values: Iterable[Any]) -> "pd.Series":
    """A column of it; whole numbers keep every digit, nulls beside them too."""
    import pandas as pd

    if pa.types.is_integer(kind):
        return pd.Series(list(values), dtype="UInt64" if pa.types.is_unsigned_integer(kind) else "Int64")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pd.Series([None if v is None else float(v) for v in values], dtype="float64")
    if pa.types.is_boolean(kind):
        return pd.Series(list(values), dtype="boolean")
    return pd.Series(
        [None if v is None else v if isinstance(v, str) else str(_plain(v)) for v in values], dtype="object"
    )


def _cell(value: Any) -> Any:
    """A value as a cell: lists and structs as text, so that what they hold is made harmless with it."""
    plain = value is None or isinstance(value, bool | int | float | str | Decimal)
    return value if plain else str(_plain(value))


def _plain(value: Any) -> Any:
    """A value as JSON has it: a number that is not finite is null, lists and structs stay, all else is text."""
    if isinstance(value, Decimal):
        whole, parts = value.as_integer_ratio()  # `%` refuses more digits than decimals are computed with
        return whole if parts == 1 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list) or type(value) is tuple:  # a map's entry; an interval is text
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
