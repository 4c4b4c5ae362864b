"""The neighbourhood of an operation: what feeds it and who uses it, some levels far, as a graph with places."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.untold_kernels import untold_of_program
from analyzers.program.choosing import PROGRAM, listed, opened, seconds_by_op
from analyzers.program.hlo import number_of
from analyzers.program.layered import laid_out
from analyzers.program.rows import records
from analyzers.program.wiring import OPENS, Wiring, neighbourhood
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option
from runs.programs import Program, Programs
from runs.tables import Tables

MAX_NODES, MAX_LEVELS, MAX_OPEN = 200, 12, 20
WAYS: dict[str, tuple[str, ...]] = {"both": ("operands", "users"), "operands": ("operands",), "users": ("users",)}
OP = Option("op", str, None, "an operation by name; default: of most time, else of most FLOPs")
LEVELS = Option("levels", Number(0, MAX_LEVELS, whole=True), 2, "levels of operands and users", label="Levels")
NODES = Option("nodes", Number(1, MAX_NODES, whole=True), 60, "how many operations at most", label="At most")
WAY = Option("way", tuple(WAYS), "both", "what feeds it, what uses it, or both", label="Direction")
OPEN = Option(
    "open",
    str,
    None,
    "names, with commas between: fusions, loops and calls that are opened",
    label="Opened",
)
OPTIONS: tuple[Option, ...] = (PROGRAM, OP, LEVELS, NODES, WAY, OPEN)
NODE_KEYS = (
    *("op", "opcode", "category", "distance", "row", "x", "shape", "result_bytes", "flops", "bytes", "count"),
    *("trip_count", "seconds", "fusion_kind", "op_name", "source", "calls", "operands_left", "users_left"),
)
EDGE_KEYS = ("maker", "user", "operand", "shape", "bytes", "corners")


@dataclass(frozen=True, kw_only=True)
class GraphResult:
    """`nodes`: one row an operation, the nearest first, columns NODE_KEYS: `distance` in levels, below zero for what
    feeds the one asked about; `row`, `x`: its place, operands in rows before users; `calls`: computations in it;
    `operands_left`, `users_left`: how many of its neighbours are not drawn. `edges`: columns EDGE_KEYS, by `op`:
    a value with shape and bytes, which operand of its user it is, and the (row, x) where its line bends. `more`:
    operations within so many levels that are not drawn. `called_by`: who calls the computation that `op` lies in.
    `seconds`: self time, all devices and captures added."""

    program: str
    op: str
    computation: str
    computation_kind: str
    called_by: tuple[str, ...]
    opened: tuple[str, ...]
    levels: int
    nodes: pd.DataFrame
    edges: pd.DataFrame
    more: int
    programs: pd.DataFrame
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "op": self.op,
            "computation": self.computation,
            "computation_kind": self.computation_kind,
            "called_by": list(self.called_by),
            "opened": list(self.opened),
            "levels": self.levels,
            "nodes": records(self.nodes),
            "edges": records(self.edges),
            "more": self.more,
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any], programs: Programs) -> GraphResult:
    """The neighbourhood. Raises QuestionError where the run keeps no program, and for what is not in it."""
    row, program = opened(tables, programs, options, options["op"])
    times = seconds_by_op(tables, row)
    wiring = _wired(program, options["open"])
    rows = wiring.rows
    seconds = rows["name"].map(times).astype(float).where(rows["executed"]) if len(times) else np.nan
    rows = rows.assign(seconds=seconds, flops=rows["flops"].mask(untold_of_program(rows)))
    centre = _centre(rows) if options["op"] is None else number_of(rows, options["op"])
    asked = centre
    centre = wiring.shown(centre)
    weight = _weight(rows)
    near, more = neighbourhood(wiring, centre, options["levels"], options["nodes"], WAYS[options["way"]], weight)
    comp = wiring.computation_of(asked)
    nodes, edges = _drawn(wiring, near, rows)
    return GraphResult(
        program=str(row["program"]),
        op=wiring.names[centre],
        computation=str(wiring.computations["name"].iat[comp]),
        computation_kind=str(wiring.computations["kind"].iat[comp]),
        called_by=tuple(wiring.names[n] for n in wiring.callers(comp)),
        opened=tuple(wiring.names[n] for n in wiring.opened),
        levels=options["levels"],
        nodes=nodes,
        edges=edges,
        more=more,
        programs=listed(tables),
        notes=_notes(wiring, bool(len(times))),
    )


def _wired(program: Program, names: str | None) -> Wiring:
    asked = [n.strip() for n in (names or "").split(",") if n.strip()]
    if len(asked) > MAX_OPEN:
        raise QuestionError(f"{len(asked)} operations are to be opened", expected=f"at most {MAX_OPEN}")
    rows = program.frame("instructions")
    numbers = [number_of(rows, name) for name in asked]
    for name, number in zip(asked, numbers, strict=True):
        if rows["opcode"].iat[number] not in OPENS:
            raise QuestionError(f"{name[:80]!r} holds no other operations", expected=f"one of {', '.join(OPENS)}")
    return Wiring(program, numbers)


def _weight(rows: pd.DataFrame) -> np.ndarray:
    """The rank of each instruction by time, then by bytes moved, then by bytes of its result."""
    keys = [rows[c].fillna(0.0).to_numpy(dtype=float) for c in ("result_bytes", "bytes", "seconds")]
    rank = np.empty(len(rows))
    rank[np.lexsort(keys)] = np.arange(len(rows))
    return rank


def _centre(rows: pd.DataFrame) -> int:
    """The operation that took most time; where nobody timed any, the one of most FLOPs of all executions."""
    executed = rows[rows["executed"]]
    timed = executed["seconds"].dropna()
    if len(timed):
        return int(timed.index[int(np.argmax(timed.to_numpy(dtype=float)))])
    work = (executed["flops"] * executed["count"]).fillna(-1.0)
    return int(work.index[int(np.argmax(work.to_numpy(dtype=float)))]) if len(work) else 0


def _drawn(wiring: Wiring, near: Mapping[int, int], rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(nodes, edges) of the operations drawn, with their places."""
    numbers = list(near)
    place = {n: i for i, n in enumerate(numbers)}
    found = [(m, u, p) for u in numbers for m, p in wiring.makers(u) if m in place]
    layout = laid_out(len(numbers), [(place[m], place[u]) for m, u, _ in found])
    told = rows.loc[numbers]
    kinds: list[str] = wiring.computations["name"].tolist()
    names, shapes, sizes = (told[c].to_dict() for c in ("name", "shape", "result_bytes"))
    edges = [
        (names[m], names[u], p, shapes[m], sizes[m], c) for (m, u, p), c in zip(found, layout.corners, strict=True)
    ]
    nodes = told.assign(
        op=told["name"],
        distance=list(near.values()),
        row=list(layout.row),
        x=[round(x, 3) for x in layout.x],
        calls=pd.Series([tuple(kinds[c] for c in wiring.calls.get(n, ())) for n in numbers], told.index, dtype=object),
        operands_left=[len({m for m, _ in wiring.makers(n)} - set(place)) for n in numbers],
        users_left=[len(set(wiring.users(n)) - set(place)) for n in numbers],
    )
    return nodes[list(NODE_KEYS)].reset_index(drop=True), pd.DataFrame(edges, columns=list(EDGE_KEYS))


def _notes(wiring: Wiring, timed: bool) -> tuple[str, ...]:
    notes = [
        "Every line is a value, from the operation that makes it to one that uses it. Where there are more neighbours "
        "than may be drawn, the nearest are, and of equally near ones those that took most time, then those that move "
        "most bytes."
    ]
    if any(wiring.rows["opcode"].iat[n] == "while" for n in wiring.opened):
        notes.append("The body of an opened loop stands as its first round finds it; that rounds follow is not drawn.")
    if any(wiring.rows["opcode"].iat[n] == "conditional" for n in wiring.opened):
        notes.append("Of an opened conditional the first branch is drawn, whichever ran, without what chooses.")
    if not timed:
        notes.append("Nobody timed this program: no operation has a time.")
    return tuple(notes)
