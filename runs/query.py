"""SQL over the tables of a run: one SELECT, read-only, bounded in time, memory and rows, without any other file.

DuckDB reads the Parquet files itself, so that of a large table only the columns and row groups asked for are read; of a
table in parts, all of them as one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from errors import QuestionError
from runs import query_child
from runs.columns import TableSchema
from runs.limits import FIRST_TO_GO, NO_MEMORY, Limits
from runs.query_options import ROWS, TIMEOUT
from runs.run import Run
from runs.schema import TABLES

SQL_CHARACTERS = 16_000
MEMORY_MIB = 512
BESIDES_MIB = 768  # the program itself, its threads' stacks and the Arrow rows
ANSWER_BYTES = 64 << 20
LIMITS = Limits(
    data_bytes=(MEMORY_MIB + BESIDES_MIB) << 20,
    file_bytes=0,  # its output is a pipe: no file is written
    network=False,
    sealed=True,
    first_to_go=FIRST_TO_GO,
)
COMMAND = LIMITS.command(sys.executable, query_child.__file__)

_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
}
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NAMES = ", ".join(t.name for t in TABLES)


@dataclass(frozen=True)
class Answer:
    """The rows, columnar; whether there were more than may be given; the seconds it took, its process included."""

    table: pa.Table
    cut: bool
    seconds: float


def query(run: Run, sql: str, timeout: float = TIMEOUT.default, rows: int = ROWS.default) -> Answer:
    """The answer to one SELECT over the tables of a run. Raises QuestionError, in one line, for SQL that is wrong, not
    allowed, too slow or too large; InputError for a table of the run that was damaged."""
    timeout, rows = TIMEOUT.parse(timeout), ROWS.parse(rows)
    if not sql.strip() or len(sql) > SQL_CHARACTERS or "\0" in sql:
        raise QuestionError("the SQL", expected=f"a SELECT statement of up to {SQL_CHARACTERS:,} characters")
    asked = {"sql": sql, "memory_mib": MEMORY_MIB, "rows": rows, "bytes": ANSWER_BYTES}
    began = time.monotonic()
    with run.reading(), _held(run, tables := [t for t in TABLES if _wanted(run, t, sql)]):
        told, stream = _answered(run, asked | {"tables": [_told(run, t) for t in tables]}, timeout)
    table = pa.ipc.open_stream(stream).read_all()
    _check_times(table)
    return Answer(_settled(table), told["cut"], time.monotonic() - began)


def _wanted(run: Run, table: TableSchema, sql: str) -> bool:
    """Whether a table is shown to a statement. One in parts, of which there may be terabytes, is read through to know
    that it is whole: only where the statement names it."""
    return table.name in sql.lower() or len(run.tables.named(table.name)) < 2


@contextlib.contextmanager
def _held(run: Run, tables: Sequence[TableSchema]) -> Generator[None]:
    """The tables stay where the process of the query reads them."""
    with contextlib.ExitStack() as stack:
        for relative in (file for table in tables for file in run.tables.named(table.name)):
            stack.enter_context(run.files.held(relative))
        yield


def _answered(run: Run, asked: dict[str, Any], timeout: float) -> tuple[dict[str, Any], bytes]:
    """What the process of a query says, and its rows. Raises QuestionError where it says that there is no answer, and
    OSError where the run's folder, in which it is to run, is gone."""
    try:
        done = subprocess.run(
            COMMAND,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=timeout,
            cwd=run.folder,
            env={"LANG": "C.UTF-8", "TZ": "UTC"},
        )
    except subprocess.TimeoutExpired as e:
        raise QuestionError(
            f"the query took more than {timeout:g} s and was ended",
            advice="Ask for less, or allow more time (timeout, up to 300 s).",
        ) from e
    line, _, stream = done.stdout.partition(b"\n")
    told = json.loads(line) if line else _dead(done)
    if told.get("memory"):
        raise QuestionError(f"the query needs more than {MEMORY_MIB} MiB of memory", advice="Aggregate or filter more.")
    if "error" in told:
        said = _in_a_line(told["error"], asked["tables"])
        missing = said.startswith(("no table", "Catalog Error: Table with"))
        raise QuestionError(said, where="SQL", advice=f"The tables are {_NAMES}." if missing else "")
    return told, stream


def _dead(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """What a process that said nothing died of: memory where the system ended it or an allocation failed in a place
    that DuckDB cannot leave in order. Raises QuestionError for anything else."""
    said = done.stderr.decode(errors="replace")
    if done.returncode == -signal.SIGKILL or any(word in said for word in NO_MEMORY):
        return {"memory": True}
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    raise QuestionError(f"the process of the query ended without an answer ({how})", where="SQL")


def _told(run: Run, table: TableSchema) -> dict[str, Any]:
    """A table as the process is told of it: columns that its files lack, and files that the run lacks, are null.

    Its files are named from the run's folder: a folder above it may be called what DuckDB would take for a pattern."""
    there = run.tables.columns(table.name)
    files = run.tables.files(table.name)
    path = os.path.commonpath(files) if files else None  # of parts their folder
    columns = ", ".join(
        f'"{c.name}"' if c.name in (there or ()) else f'cast(null as {sql_type(c.type)}) as "{c.name}"'
        for c in table.columns
    )
    source = f" from read_parquet({files})" if files else " where false"
    view = f'create view "{table.name}" as select {columns}{source}'
    return {"name": table.name, "path": path, "files": files, "view": view}


def sql_type(kind: pa.DataType) -> str:
    """What SQL calls a column's type."""
    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    return _TYPES[kind.value_type if pa.types.is_dictionary(kind) else kind]


def _in_a_line(error: str, tables: list[dict[str, Any]]) -> str:
    """What DuckDB says, without the copy of the SQL below it; files of the run go by the names of their tables."""
    said = " ".join(error.split("\n\nLINE ")[0].split())
    for table in tables:
        said = said.replace(table["path"], table["name"]) if table["path"] else said
    return said[:400].rstrip(".?!")


def _check_times(table: pa.Table) -> None:
    """Raises QuestionError for the end of a day, which SQL has as 24:00:00: whoever reads it from Arrow or Parquet has
    it as 00:00:00, the beginning."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if any(map(_ends_a_day, column.chunks)):
            raise QuestionError(
                f"the column {name[:80]!r} holds 24:00:00, a time out of range",
                where="SQL",
                advice="Cast it to VARCHAR.",
            )


def _ends_a_day(array: Any) -> bool:
    """Whether a time of it, or of a list, struct or map in it, is no time of a day."""
    kind = array.type
    if pa.types.is_time(kind):
        latest = pc.max(array)
        return latest.is_valid and latest.value >= _DAY[kind.unit]
    return any(map(_ends_a_day, query_child.within(array)))


def _settled(table: pa.Table) -> pa.Table:
    """Columns of one name told apart, as JSON and Parquet need it: `a`, `a_1`. Sums of whole numbers, which DuckDB has
    as numbers of 128 bits, become what the columns of tables are, where they fit."""
    settled: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        wanted, n = name, 0
        while wanted in settled:
            n += 1
            wanted = f"{name}_{n}"
        settled[wanted] = column
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):
                settled[wanted] = column.cast(pa.int64())
    return pa.table(settled)
