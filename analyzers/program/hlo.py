"""HLO: what programs are kept with a run, what one of them says, and where it says what is looked for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.untold_kernels import untold_of_program, untold_said
from analyzers.program.choosing import PROGRAM, listed, opened, seconds_by_op
from analyzers.program.rows import records
from analyzers.program.text import Text
from errors import QuestionError
from errors.numbers import FROM_ZERO, Number
from errors.options import Option
from runs.programs import Program, Programs
from runs.tables import Tables

MAX_LINES = 5000  # of one answer; the page offers the whole as a file
FIELDS = ("name", "opcode", "shape", "op_name", "source")
HITS = 200
SEARCH = Option("q", str, None, "words, all of which occur in name, opcode, shape, op_name or source")
LINE = Option("line", Number(1, 1e12, whole=True), None, "the first line of text that is wanted", label="From line")
LINES = Option("lines", Number(0, MAX_LINES, whole=True), 120, "how many lines of text", label="Lines")
OP = Option("op", str, None, "an operation by name: the text around it", label="Operation")
TOP = Option("top", FROM_ZERO, HITS, "instructions found that are listed; 0: their number alone")
OPTIONS: tuple[Option, ...] = (PROGRAM, SEARCH, OP, LINE, LINES, TOP)
HIT_KEYS = (
    *("line", "name", "opcode", "category", "shape", "flops", "bytes", "count", "seconds", "op_name", "source"),
)
_SHOWN = 80  # characters of a name in a sentence
_BEFORE = 8  # lines shown above an operation that is asked for


@dataclass(frozen=True, kw_only=True)
class HloResult:
    """`programs`: columns of `choosing.listed`. `program`: which of them is told of; `lines`: of its text, from line
    `first_line` (counted from 1) of `total_lines`. `hits`: instructions in which all words of `q` occur, in the order
    of the text, columns HIT_KEYS; `hits_in`: how many of them hold a word of it in each of FIELDS. `at`: the line of
    the operation asked for; `entry_line`: that of the head of the entry. `untold`: its kernels whose FLOPs nobody
    tells, which those of the program are without. `seconds`: self time, all devices and captures added; NaN where
    nobody timed it."""

    programs: pd.DataFrame
    program: str
    module: str
    scheduled: bool
    total_lines: int
    entry_line: int
    first_line: int
    lines: tuple[str, ...]
    q: str
    hits: pd.DataFrame
    hits_in: dict[str, int]
    at: int | None
    untold: int
    top: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "programs": records(self.programs.drop(columns=["files", "variant"])),
            "program": self.program,
            "module": self.module,
            "is_scheduled": self.scheduled,
            "text": {
                "lines": self.total_lines,
                "entry_line": self.entry_line,
                "first_line": self.first_line,
                "shown": list(self.lines),
            },
            "search": {
                "words": self.q or None,
                "hits": len(self.hits),
                "hits_in": self.hits_in,
                "found": records(self.hits.head(self.top)),
            },
            "operation_line": self.at,
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any], programs: Programs) -> HloResult:
    """The text of a program. Raises QuestionError where the run keeps none, and for what is not in it."""
    row, program = opened(tables, programs, options, options["op"])
    text, rows = Text(program), program.frame("instructions")
    words: list[str] = str(options["q"] or "").lower().split()
    kernels = untold_of_program(rows)
    rows["flops"] = rows["flops"].mask(kernels)
    hits, hits_in = _found(rows, words)
    at = None if options["op"] is None else int(text.line_of(number_of(rows, options["op"]))) + 1
    first = options["line"] or (max(at - _BEFORE, 1) if at else 1)
    if first > text.lines:
        raise QuestionError(f"line {first:,}", expected=f"a line of the program's text, from 1 to {text.lines:,}")
    return HloResult(
        programs=listed(tables),
        program=str(row["program"]),
        module=program.name,
        scheduled=program.scheduled,
        total_lines=text.lines,
        entry_line=text.head_of(program.entry) + 1,
        first_line=first,
        lines=tuple(text.stretch(first - 1, options["lines"])),
        q=" ".join(words),
        hits=_hits(rows.loc[hits], text, seconds_by_op(tables, row)),
        hits_in=hits_in,
        at=at,
        untold=int(kernels.sum()),
        top=options["top"],
        notes=_notes(program, int(kernels.sum())),
    )


def number_of(rows: pd.DataFrame, name: str) -> int:
    """The instruction of a name. Raises QuestionError where there is none, with names that are like it."""
    found = np.flatnonzero(rows["name"] == name.removeprefix("%"))
    if len(found):
        return int(found[0])
    stem = name.removeprefix("%").rstrip("0123456789.").lower()
    alike = rows["name"][rows["name"].str.lower().str.contains(stem, regex=False)] if stem else rows["name"]
    shown = alike if len(alike) else rows["name"]
    known = ", ".join(" ".join(n.split())[:_SHOWN] for n in shown.head(8))
    raise QuestionError(f"no operation {name[:_SHOWN]!r} in this program", expected=f"a name such as {known}")


def _found(rows: pd.DataFrame, words: list[str]) -> tuple[np.ndarray, dict[str, int]]:
    """(instructions in which every word occurs, how many of them hold one in each field); none where none is asked."""
    if not words:
        return np.zeros(0, dtype=np.int64), dict.fromkeys(FIELDS, 0)
    texts = {f: rows[f].fillna("").astype(str).str.lower() for f in FIELDS}
    inside = {f: np.array([t.str.contains(w, regex=False) for w in words]) for f, t in texts.items()}
    every = np.any(list(inside.values()), axis=0).all(axis=0)
    return np.flatnonzero(every), {f: int((inside[f].any(axis=0) & every).sum()) for f in FIELDS}


def _hits(rows: pd.DataFrame, text: Text, seconds: pd.Series) -> pd.DataFrame:
    executed = rows["executed"].to_numpy(dtype=bool)
    timed = rows["name"].map(seconds).astype(float) if len(seconds) else pd.Series(np.nan, index=rows.index)
    lines = text.line_of(rows.index.to_numpy()) + 1
    return rows.assign(line=lines, seconds=timed.where(executed))[list(HIT_KEYS)].reset_index(drop=True)


def _notes(program: Program, kernels: int) -> tuple[str, ...]:
    order = (
        "The program is scheduled: its instructions stand in the order in which a device takes them."
        if program.scheduled
        else "The program is not scheduled: its instructions stand in an order that fits what they need of each other, "
        "not in that in which a device takes them."
    )
    return (
        "The text is written from the kept program, in the words of HLO. Constants of more than ten elements, and what "
        "few instructions have, are left out; sources stand with file and line in place of XLA's table of frames.",
        "Programs that captures carry again are listed once: those alike in name, FLOPs, bytes and instructions.",
        order,
        *((untold_said(kernels, "FLOPs of the program"),) if kernels else ()),
    )
