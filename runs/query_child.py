"""The process in which SQL of a person runs: DuckDB over the Parquet files of one run, and nothing else.

It is a process of its own because DuckDB looks at an interrupt only between vectors: one row of
`list_sum(range(100000000))` computes on for most of a minute, and memory that such a row takes is not all counted. A
process can be ended, and the system holds its memory (`limits.py`, which becomes this program). A script, not a module:
it imports nothing of Chipledger.

Reads one JSON object from its input; writes a line of JSON, then the rows as an Arrow stream.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, cast

MIB = 1 << 20
BATCH = 4096  # rows that are taken at once
VALUE_BYTES = 8  # of a value at least, wherever it goes: of truth values Arrow holds eight in one
# what a FROM may call; all else (read_csv, glob, query, duckdb_settings ...) reads files, or tells of this machine
TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
TOLD = {
    "current_database",
    "current_schemas",
    "current_setting",
    "getenv",
    "getvariable",
    "json_serialize_plan",  # of SQL in a text, which nobody looks through: its constants are worked out
    "version",
    "write_log",
}
# types of which Arrow would lose the zone, take the upper half for negative numbers, and have the bits' padding too
UNTOLD = {
    "time with time zone": "times of a zone",
    "uhugeint": "unsigned numbers of 128 bits",
    "bit": "strings of bits",
}
NESTED = ("list", "array", "struct", "map", "union")
PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class Refused(Exception):
    """SQL that is not run."""


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a parsed statement. A loop, not a recursion: statements nest deeply."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield cast("dict[str, Any]", node)
            waiting.extend(cast("dict[str, Any]", node).values())
        elif isinstance(node, list):
            waiting.extend(cast("list[Any]", node))


def check(con: Any, sql: str, tables: set[str]) -> None:
    """Raises Refused for anything but one SELECT over these tables."""
    import duckdb

    statements = con.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise Refused("only one SELECT statement is run")
    try:
        tree = json.loads(con.execute("select json_serialize_sql($1)", [sql]).fetchone()[0])
    except RecursionError:
        raise Refused("the statement is nested too deeply") from None
    if tree.get("error"):
        raise Refused("only one SELECT statement is run")
    found = list(nodes(tree))
    named = {entry["key"].lower() for n in found if "cte_map" in n for entry in n["cte_map"].get("map", [])}
    _check_names(con, named)
    for node in found:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            name = node["table_name"].lower()
            if node.get("catalog_name") or node.get("schema_name") or name not in tables | named:
                raise Refused(f"no table {node['table_name'][:80]!r}")
        elif kind == "TABLE_FUNCTION":
            name = node["function"]["function_name"].lower()
            if name not in TABLE_FUNCTIONS:
                raise Refused(f"{name[:80]} cannot be read from here")
        elif kind == "SHOW_REF":
            raise Refused("only one SELECT statement is run")
        elif kind == "FUNCTION":
            name = node["function_name"].lower()
            if name in TOLD or name.startswith("pg_"):
                raise Refused(f"{name[:80]} cannot be asked here")


def _check_names(con: Any, named: set[str]) -> None:
    """Raises Refused for a WITH that is named like something of DuckDB's own, or like a file. Outside its part of the
    statement such a name means the other: with names like `a`, where it stands need not be looked at."""
    own = con.execute("select lower(view_name) from duckdb_views() union select lower(table_name) from duckdb_tables()")
    known = {name for (name,) in own.fetchall()}
    for name in sorted(named):
        if name in known or not PLAIN.fullmatch(name):
            raise Refused(f"WITH cannot be named {name[:80]!r}")


def check_types(found: Any) -> None:
    """Raises Refused for a column with values that Arrow has no type for: it would have them as other ones."""
    for name, kind in zip(found.columns, found.types, strict=True):
        waiting = [kind]
        while waiting:
            kind = waiting.pop()
            if kind.id in UNTOLD:
                raise Refused(f"the column {name[:80]!r} holds {UNTOLD[kind.id]}: cast it to VARCHAR")
            if kind.id in NESTED:
                waiting += [child for _, child in kind.children if hasattr(child, "id")]


def within(array: Any) -> list[Any]:
    """The arrays of what lies within the values of an array of lists, maps, structs or unions."""
    import pyarrow as pa

    kind, types = array.type, pa.types
    if types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [part[first:last] for part in (array.keys, array.items)]
    if any(of(kind) for of in (types.is_list, types.is_large_list, types.is_fixed_size_list)):
        return [array.flatten()]
    if types.is_struct(kind):
        return array.flatten()
    if types.is_union(kind):
        return [array.field(i) for i in range(kind.num_fields)]
    return []


def values(array: Any) -> int:
    """How many values an array holds, those within lists and structs too."""
    return len(array) + sum(map(values, within(array)))


def size(batch: Any) -> int:
    """Bytes that a batch takes: as Arrow has it, or as who reads its values has them, whichever is more."""
    return sum(max(column.nbytes, VALUE_BYTES * values(column)) for column in batch.columns)


def cut_to(batch: Any, most_bytes: int) -> Any:
    """As many of its first rows, halved and halved again, as take no more; none where one takes more, or what all share
    does, such as a dictionary."""
    while batch.num_rows and size(batch) > most_bytes:
        batch = batch[: batch.num_rows // 2]
    return batch


def answer(asked: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    import duckdb
    import pyarrow as pa

    con = duckdb.connect(
        ":memory:",
        config={
            "threads": 2,
            "memory_limit": f"{asked['memory_mib']}MiB",
            "max_temp_directory_size": "0KB",
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    check(con, asked["sql"], {t["name"] for t in asked["tables"]})
    con.execute("set allowed_paths = $1", [[file for t in asked["tables"] for file in t["files"]]])
    for table in asked["tables"]:
        con.execute(table["view"])
    con.execute("set enable_external_access = false")
    con.execute("set lock_configuration = true")
    found = con.sql(asked["sql"])
    check_types(found)
    reader = found.to_arrow_reader(BATCH)
    taken: list[Any] = []
    rows, left, cut = asked["rows"], asked["bytes"], False
    for batch in reader:
        part = cut_to(batch[:rows], left)
        cut = part.num_rows < batch.num_rows
        taken.append(part)
        rows, left = rows - part.num_rows, left - size(part)
        if cut:
            break
    if cut and rows == asked["rows"]:
        raise Refused(f"one row alone is larger than {asked['bytes'] // MIB} MiB")
    return {"cut": cut}, pa.Table.from_batches(taken, schema=reader.schema)


def main() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    out: Any = sys.stdout.buffer
    import duckdb
    import pyarrow as pa

    try:
        told, table = answer(asked)
    except (Refused, duckdb.Error, pa.ArrowException, OSError) as e:  # of a later batch Arrow says what DuckDB says
        memory = isinstance(e, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(e)
        out.write(json.dumps({"memory": True} if memory else {"error": str(e)}).encode() + b"\n")
        return
    except MemoryError:
        out.write(b'{"memory": true}\n')
        return
    out.write(json.dumps(told).encode() + b"\n")
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    main()
