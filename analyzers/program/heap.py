"""Heap: what a program holds in device memory from its first operation to its last, and which buffer lives how long.

The numbers are those of the compiler's buffer assignment, which the page Memory reads as well: inputs, results and
constants are held all the time; the arena of temporaries is as large as the packing needs, and at the program's fullest
moment it holds what lives then and the room that packing leaves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.program.choosing import MOST_READ, PROGRAM, chosen, listed
from analyzers.program.rows import records
from errors import QuestionError
from errors.numbers import FROM_ZERO
from errors.options import Option
from runs.programs import Program, Programs
from runs.tables import Tables

TOP = Option("top", FROM_ZERO, 100, "buffers and operations listed")
OPTIONS: tuple[Option, ...] = (PROGRAM, TOP)
CURVE_POINTS = 1000  # of the JSON; of more events the fullest and emptiest of each stretch are given
BUFFER_KEYS = ("name", "op", "category", "bytes", "first_event", "last_event", "at_peak", "shape", "source")
OP_KEYS = ("op", "opcode", "buffers", "allocated_bytes", "at_peak_bytes", "op_name", "source")


@dataclass(frozen=True, kw_only=True)
class HeapResult:
    """All bytes are of one device, as placed.

    `peak_bytes` = `always_bytes` (held all the time) + `live_bytes` (temporaries alive at the fullest moment) +
    `room_bytes` (what packing leaves unused then). `events`: of the compiler's trace, in the order of the program: a
    value begins or ends to be needed; `peak_event`: after which the arena is fullest, None without a trace. `curve`:
    bytes held after each event, from 0 on, without the room: `always_bytes` and what is alive. `buffers`: columns
    BUFFER_KEYS, those at the peak first, the largest first; events are null for what is held all the time. `by_op`:
    allocations by the operation that makes them, columns OP_KEYS. `event_ops`: the operation of each event.
    """

    program: str
    scheduled: bool
    peak_bytes: int
    always_bytes: int
    live_bytes: int
    room_bytes: int
    events: int
    peak_event: int | None
    curve: np.ndarray
    event_ops: tuple[str | None, ...]
    buffers: pd.DataFrame
    by_op: pd.DataFrame
    top: int
    programs: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def peak_op(self) -> str | None:
        """The operation at which the arena is fullest, where the trace names it."""
        at = self.peak_event
        return self.event_ops[at - 1] if at and at <= len(self.event_ops) else None

    def to_dict(self) -> dict[str, Any]:
        kept = _reduced(self.curve)
        return {
            "program": self.program,
            "is_scheduled": self.scheduled,
            "peak_bytes": self.peak_bytes,
            "always_bytes": self.always_bytes,
            "live_bytes": self.live_bytes,
            "room_bytes": self.room_bytes,
            "events": self.events,
            "peak_event": self.peak_event,
            "peak_op": self.peak_op,
            "curve": [{"event": int(n), "held_bytes": int(self.curve[n])} for n in kept],
            "buffers": records(self.buffers.head(self.top)),
            "buffers_in_all": len(self.buffers),
            "by_op": records(self.by_op.head(self.top)),
            "operations_in_all": len(self.by_op),
            "notes": list(self.notes),
        }


def _reduced(curve: np.ndarray) -> np.ndarray:
    """Positions to keep: first, last, and the least and the most of each stretch."""
    n = len(curve)
    if n <= CURVE_POINTS:
        return np.arange(n)
    edges = np.linspace(0, n, CURVE_POINTS // 2).astype(np.int64)
    kept = [0, n - 1]
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        kept += [a + int(np.argmax(curve[a:b])), a + int(np.argmin(curve[a:b]))]
    return np.unique(kept)


def analyze(tables: Tables, facts: Facts, options: dict[str, Any], programs: Programs) -> HeapResult:
    """The heap of a program. Raises QuestionError where none of the run came with its buffer assignment."""
    found = listed(tables)
    row = chosen(_fullest_first(found), options[PROGRAM.name])
    program = _with_trace(programs, row["files"])
    if program.memory_bytes is None:
        raise QuestionError(
            f"{row['program']} came without the compiler's buffer assignment: nothing tells when its buffers live",
            advice="Profile it (jax.profiler): traces carry programs with their buffers.",
        )
    return _told(program, str(row["program"]), found, options[TOP.name])


def _fullest_first(found: pd.DataFrame) -> pd.DataFrame:
    return found.sort_values("memory_bytes", ascending=False, kind="stable")


def _with_trace(programs: Programs, files: tuple[str, ...]) -> Program:
    """The first of a program's files that came with a trace of its buffers; else the first with an assignment."""
    best = None
    for file in files[:MOST_READ]:
        program = programs.of(file)
        if program.arenas:
            return program
        if best is None or (best.memory_bytes is None and program.memory_bytes is not None):
            best = program
    assert best is not None
    return best


def _told(program: Program, name: str, found: pd.DataFrame, top: int) -> HeapResult:
    heap = program.frame("heap")
    main = max(program.arenas, key=lambda a: program.arenas[a], default=None)
    turns = heap["allocation"].eq(main) & heap["start"].notna() if main is not None else heap["bytes"].lt(0)
    mine = heap[turns]
    log = program.frame("heap_events")
    log = log[log["allocation"].eq(main)] if main is not None else log.head(0)
    arena = program.arenas[main] if main is not None else 0
    always = int(program.memory_bytes or 0) - arena
    curve = _curve(mine, len(log))
    peak = int(np.argmax(curve)) if len(log) else None
    live = int(curve[peak]) if peak is not None else 0
    buffers = _buffers(heap[turns | heap["start"].isna()], peak)
    return HeapResult(
        program=name,
        scheduled=program.scheduled,
        peak_bytes=int(program.memory_bytes or 0),
        always_bytes=always,
        live_bytes=live,
        room_bytes=arena - live,
        events=len(log),
        peak_event=peak,
        curve=curve + always,
        event_ops=tuple(log["op"]),
        buffers=buffers,
        by_op=_by_op(buffers, program.frame("instructions")),
        top=top,
        programs=found,
        notes=_notes(program, main is not None),
    )


def _curve(mine: pd.DataFrame, events: int) -> np.ndarray:
    """Bytes alive in the arena after each event, from 0 (before the first) on."""
    change = np.zeros(events + 2, dtype=np.int64)
    size = mine["bytes"].to_numpy(dtype=np.int64)
    np.add.at(change, mine["start"].to_numpy(dtype=np.int64), size)
    np.add.at(change, mine["end"].to_numpy(dtype=np.int64), -size)
    return np.cumsum(change)[: events + 1]


def _buffers(heap: pd.DataFrame, peak: int | None) -> pd.DataFrame:
    start, end = heap["start"], heap["end"]
    always = start.isna()
    alive = always if peak is None else always | ((start <= peak) & (end > peak))
    told = heap.assign(first_event=start, last_event=end - 1, at_peak=alive.astype(bool))
    order = ["at_peak", "bytes"]
    return told.sort_values(order, ascending=False, kind="stable", ignore_index=True)[list(BUFFER_KEYS)]


def _by_op(buffers: pd.DataFrame, instructions: pd.DataFrame) -> pd.DataFrame:
    """Buffers that come and go, added up by the operation that makes them."""
    made = buffers[buffers["first_event"].notna() & buffers["op"].notna()]
    now = made["bytes"].where(made["at_peak"], 0)
    groups = made.assign(now=now).groupby("op", sort=False)
    sums = groups.agg(buffers=("bytes", "size"), allocated_bytes=("bytes", "sum"), at_peak_bytes=("now", "sum"))
    names = instructions.set_index("name")[["opcode", "op_name", "source"]]
    sums = sums.join(names[~names.index.duplicated()]).reset_index()
    order = ["at_peak_bytes", "allocated_bytes"]
    return sums.sort_values(order, ascending=False, kind="stable", ignore_index=True)[list(OP_KEYS)]


def _notes(program: Program, traced: bool) -> tuple[str, ...]:
    notes = [
        "Bytes are as the compiler placed them, of one device, for this program alone: what other programs keep "
        "meanwhile is not among them. The peak is the one of the page Memory."
    ]
    if not traced:
        notes.append(
            "The assignment came without a trace over time, so it is known what the program holds and not when: a "
            "program from a compilation cache has none."
        )
    if not program.scheduled:
        notes.append("No schedule is stored with the program: events stand in the order of the compiler's trace.")
    if len(program.arenas) > 1:
        notes.append("Of several arenas the largest is drawn over time; the others count in full all the time.")
    return tuple(notes)
