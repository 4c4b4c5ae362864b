# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""A stored program as columns: what an HLO module holds, read anew from the file that is kept with the run.

These tables lie in no file: a program is a megabyte packed, so that it is read where somebody looks at it, and neither
ingest nor the runs that are stored already pay for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from runs.columns import FLAG, INT, REAL, TEXT, Column, TableSchema
from runs.tables import Tables

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = pa.string()

PROGRAM_TABLES: dict[str, TableSchema] = {
    t.name: t
    for t in (
        TableSchema(
            "instructions",
            "an instruction of a program; its place in the table is its number",
            (
                Column("computation", INT, "number of its computation (place in `computations`)"),
                Column("name", _PLAIN, "its name, unique in the program"),
                Column("opcode", TEXT, "what it does, as HLO text names it"),
                Column("category", TEXT, "kind of operation, see OP_CATEGORIES"),
                Column("shape", _PLAIN, "result shape with layout"),
                Column("result_bytes", INT, "logical bytes of its result; null beyond 64 bits"),
                Column("flops", REAL, "FLOPs of one execution, those in a fusion with it; null: of what it holds"),
                Column("bytes", REAL, "bytes to and from main memory of one execution; null inside a fusion"),
                Column("count", INT, "executions in one run of the program, trip counts multiplied; null: not known"),
                Column("trip_count", INT, "of a loop: how often its body runs; null: not known, or no loop"),
                Column("executed", FLAG, "whether a device executes it as one operation: it lies in no fusion"),
                Column("root", FLAG, "whether its computation gives its result"),
                Column("op_name", _PLAIN, "what the framework calls it"),
                Column("source", _PLAIN, "line of the user's program"),
                Column("fusion_kind", TEXT, "kLoop, kInput, kOutput, kCustom, ... of a fusion"),
                Column("given", _PLAIN, "what stands in its brackets beside operands: a literal, a parameter's number"),
                Column("attributes", _PLAIN, "what HLO text says behind its operands, without metadata"),
                Column("backend", _PLAIN, "the compiler's own configuration of it"),
            ),
        ),
        TableSchema(
            "computations",
            "a computation of a program",
            (
                Column("name", _PLAIN, "its name"),
                Column("kind", TEXT, "entry, fusion, body, condition, called, applied (to elements)"),
                Column("first", INT, "number of its first instruction; the others follow"),
                Column("instructions", INT, "how many it has"),
            ),
        ),
        TableSchema(
            "operands",
            "a value that an instruction takes",
            (
                Column("instruction", INT, "number of the instruction that takes it"),
                Column("position", INT, "which operand, from 0"),
                Column("operand", INT, "number of the instruction that makes it"),
            ),
        ),
        TableSchema(
            "calls",
            "a computation that an instruction calls",
            (
                Column("instruction", INT, "number of the instruction"),
                Column("position", INT, "which call, from 0; a loop's body is the first, its condition the second"),
                Column("computation", INT, "number of the computation"),
            ),
        ),
        TableSchema(
            "heap",
            "a value in device memory while the program runs, from the compiler's buffer assignment",
            (
                Column("name", _PLAIN, "what the framework calls it"),
                Column("op", _PLAIN, "instruction that makes it"),
                Column("shape", _PLAIN, "shape with layout"),
                Column("source", _PLAIN, "line of the user's program"),
                Column("category", TEXT, "what it is for, see BUFFER_CATEGORIES"),
                Column("bytes", INT, "bytes as placed"),
                Column(
                    "start", INT, "event of the compiler's trace after which it is there, from 1; null: all the time"
                ),
                Column("end", INT, "event after which it is gone; null likewise"),
                Column("allocation", INT, "number of its allocation in the compiler's assignment"),
            ),
        ),
        TableSchema(
            "heap_events",
            "an event of the compiler's trace of an arena: a value begins or ends to be needed",
            (
                Column("allocation", INT, "number of the arena"),
                Column("event", INT, "which event, from 1, in the order of the program"),
                Column("op", _PLAIN, "instruction that makes the value; null where the trace does not name it"),
            ),
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a module holds. `tables`: of PROGRAM_TABLES. `scheduled`: whether the order of its instructions is that of
    execution. `memory_bytes`: what the page Memory calls its peak, None where no buffer assignment came with it;
    `arenas`: bytes of each allocation that values take turns in as a trace tells, by its number."""

    name: str
    scheduled: bool
    entry: int
    tables: Mapping[str, pa.Table]
    memory_bytes: int | None = None
    arenas: Mapping[int, int]

    def column(self, table: str, name: str) -> list[Any]:
        """A column as plain values, None where there is none."""
        return self.tables[table][name].to_pylist()

    def frame(self, name: str) -> "pd.DataFrame":
        """A table as pandas: text as plain objects, None where there is none."""
        frame = self.tables[name].to_pandas()
        texts = [c.name for c in PROGRAM_TABLES[name].columns if c.type in (TEXT, _PLAIN)]
        return frame.assign(**{c: frame[c].astype(object).where(frame[c].notna(), None) for c in texts})


class Programs(Protocol):
    """The programs that are kept with a run, and those of other runs that a question names."""

    def of(self, file: str) -> Program:
        """The program of a file that `modules.file` names. Raises InputError where it is damaged or too large."""
        ...

    def other(self, run: str) -> "tuple[str, Tables, Programs]":
        """(name, tables, programs) of another run of the store. Raises QuestionError where there is none."""
        ...
