"""What devices executed, one row per operation of a program: summed over captures, hosts, devices and lines.

Self time counts, so an operation that contains others (a loop) has only what is its own. FLOPs and bytes are those of
one execution times executions; a loop's body has one execution per iteration, so no trip count is multiplied here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.device.memory_spaces import hbm_bytes
from analyzers.flops.formats_ran import format_of_ops
from errors import QuestionError
from errors.numbers import FROM_ZERO, PER_SECOND
from errors.options import Option
from runs.tables import Tables, frame

HOST = Option("host", str, None, "one host only, as the trace names it")
DEVICE = Option("device", FROM_ZERO, None, "one device number only")
MODULE = Option("module", str, None, "one HLO module only", label="Program")
LINE = Option("line", ("compute", "async"), "compute", "operations that occupy a device, or those beside them")
CLOCK = Option(
    "clock_hz", PER_SECOND, None, "clock of the device, Hz: makes seconds of a compiler's estimated cycles", unit="Hz"
)
UNIT_OPTIONS = (HOST, DEVICE, MODULE, LINE, CLOCK)

# What an operation is to a roofline. Only work has a roof of the device's own.
KINDS: dict[str, str] = {
    "work": "computes or moves data in device memory",
    "communication": "a collective, waiting for peers included; the network bounds it",
    "asynchronous": "begins or awaits a copy that runs beside it",
    "host": "moves data between the host and the device; the host link bounds it",
    "uncounted": "neither a trace nor a compiler counts what it does: inside custom calls, loops, unknown kernels",
}
HOLDS_OTHERS = ("control", "annotation")  # a loop is no operation beside those in it
WORTH_A_NOTE = 1e-3  # of all time
_HALF = r"-(?:start|done|update)(?:\.\d+)*$"  # of an asynchronous operation, by name
_HOST_MEMORY = r"S\(5\)"  # a layout's memory space of the host on TPUs
_COLUMNS = [
    "capture",
    "op_id",
    "host",
    "device",
    "role",
    "module",
    "op",
    "category",
    "count",
    "total_ns",
    "self_ns",
    "flops",
    "bytes",
    "cycles",
    "source",
    "shape",
    "scope",
    "direction",
]
_TEXTS = ("module", "op", "shape", "category", "source", "scope", "direction")
REFUSED = "It refused one for lack of memory: compile it again with fewer sequences, more sharding or recomputation."
NEEDED = "Add a profile (*.xplane.pb, *.pt.trace.json), or a program compiled with `chipledger compile`."


@dataclass(frozen=True)
class Units:
    """`rows`: module, op, shape, category, source, kind (see KINDS), count (executions), self_s, total_s (NaN where
    nobody timed them), flops, bytes (of all executions; NaN: not known), cycles, format (in which its products ran, a
    key of `PRECISIONS`; None: not told, or nothing ran). Where several kernels of a GPU carry out one operation,
    category and source are those of the longest. `parts`: the same, apart by category: a kernel that clears memory for
    a product is a copy. `placed`: the same, apart by scope and direction (see `ops`), `unit` being the row of `rows`
    that each is a part of. `members`: every operation as the profile has it, longest first: capture, op_id, unit,
    category, shape, direction, count, self_s, total_s.

    `basis` of the seconds: measured; modelled from estimated cycles and a clock; unattributed where there are none.
    `device_steps`: steps profiled, each counted on each of its host's devices; None where none are.
    """

    rows: pd.DataFrame
    parts: pd.DataFrame
    placed: pd.DataFrame
    members: pd.DataFrame
    devices: int
    device_steps: int | None
    basis: str
    notes: tuple[str, ...]

    @property
    def seconds(self) -> float | None:
        return None if self.basis == "unattributed" else float(self.rows["self_s"].sum())


def op_units(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> Units:
    """The operations that `options` (see UNIT_OPTIONS) ask for. Raises QuestionError where there are none."""
    ops = frame(tables, "ops", _COLUMNS, [("role", "==", options.get("line") or "compute")])
    ran = (ops["device"].notna() & ops["self_ns"].notna()).any()  # a profile beside a compiled program is what is told
    compiled = fact(facts, "outcome") is not None and not ran
    # nobody timed a compiled program, so a loop has no self time apart: what it does is what its body does
    ops = ops[~ops["category"].astype(str).isin(HOLDS_OTHERS)] if compiled else ops[ops["device"].notna()]
    if not len(ops):
        if fact(facts, "outcome") == "out_of_memory" and not ran:
            raise QuestionError("the compiler made no program", advice=REFUSED)
        what = "the compiler made no program" if compiled else "this run shows no operation of a device"
        if options.get("line") == "async":
            what = "no operation ran beside others on a line of its own"
        raise QuestionError(what, advice=NEEDED)
    ops = _chosen(ops, options)
    if compiled and options.get(CLOCK.name):
        seconds = ops["cycles"] * ops["count"] / options[CLOCK.name]
        ops = ops.assign(self_ns=seconds * 1e9, total_ns=seconds * 1e9)
    timed = ops["self_ns"].notna().any()
    if not compiled and not timed:
        raise QuestionError("the operations of this run have no times", advice=NEEDED)
    spaces = hbm_bytes(tables)
    rows, parts, placed, members, lacking = _summed(ops, spaces)
    for table in (rows, parts, placed):
        table["format"] = None if compiled else format_of_ops(tables, table)
    return Units(
        rows=rows,
        parts=parts,
        placed=placed,
        members=members,
        devices=len(ops[["host", "device"]].drop_duplicates()),
        device_steps=_device_steps(tables, ops),
        basis="measured" if not compiled else "modelled" if timed else "unattributed",
        notes=_notes(rows, len(spaces) > 0, compiled, bool(timed), lacking),
    )


def _chosen(ops: pd.DataFrame, options: Mapping[str, Any]) -> pd.DataFrame:
    for option in (HOST, DEVICE, MODULE):
        wanted = options.get(option.name)
        if wanted is None:
            continue
        known = ops[option.name].dropna().unique()
        ops = ops[ops[option.name] == wanted]
        if not len(ops):
            names = ", ".join(str(k) for k in sorted(known, key=str)[:12])
            raise QuestionError(f"no operation with {option.name} {wanted!r}", expected=f"one of {names or 'none'}")
    return ops


def _summed(ops: pd.DataFrame, spaces: pd.Series) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, int]:
    """Rows, parts, placed and members of `Units`, longest first, and how many operations had impossible (negative)
    FLOPs or bytes."""
    count = ops["count"].to_numpy(dtype=float, na_value=np.nan)
    flops = ops["flops"].to_numpy(dtype=float, na_value=np.nan)
    moved = ops["bytes"].to_numpy(dtype=float, na_value=np.nan)
    if len(spaces):
        told = spaces.reindex(pd.MultiIndex.from_frame(ops[["capture", "op_id"]])).to_numpy(dtype=float)
        moved = np.where(np.isnan(told), moved, told)
    negative = int(((flops < 0) | (moved < 0)).sum())
    flops, moved = np.where(flops < 0, np.nan, flops), np.where(moved < 0, np.nan, moved)
    flops[(flops == 0) & (ops["category"] == "custom-call").to_numpy()] = np.nan  # compilers do not look inside
    known = ~(np.isnan(flops) & np.isnan(moved))
    given = pd.DataFrame(
        {
            **{name: ops[name] for name in _TEXTS},
            "count": count,
            "known_count": np.where(known, count, np.nan),
            "flops": flops * count,
            "bytes": moved * count,
            "self_s": ops["self_ns"].to_numpy(dtype=float, na_value=np.nan) / 1e9,
            "total_s": ops["total_ns"].to_numpy(dtype=float, na_value=np.nan) / 1e9,
            "cycles": ops["cycles"].to_numpy(dtype=float, na_value=np.nan) * count,
        },
        index=ops.index,
    ).sort_values("self_s", ascending=False, kind="stable")
    rows, parts = _joined(given, list(_TEXTS[:3])), _joined(given, list(_TEXTS[:4]))
    placed = _joined(given, [*_TEXTS[:3], "scope", "direction"])
    unit = _Numbers(rows)
    placed["unit"] = unit.of(placed)
    members = given[["category", "shape", "direction", "count", "self_s", "total_s"]]
    members = members.join(ops[["capture", "op_id"]]).assign(unit=unit.of(given))
    return rows, parts, placed, members.reset_index(drop=True), negative


class _Numbers:
    """Which row of `Units.rows` an operation belongs to."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = self._keys(rows).assign(unit=np.arange(len(rows)))

    def of(self, ops: pd.DataFrame) -> np.ndarray:
        return self._keys(ops).merge(self._rows, how="left", on=list(_TEXTS[:3]))["unit"].to_numpy()

    @staticmethod
    def _keys(rows: pd.DataFrame) -> pd.DataFrame:
        texts = rows[list(_TEXTS[:3])].astype(object)
        return texts.where(texts.notna(), None)


def _joined(given: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Sums by `by`, with the other texts of the first row of each."""
    grouped = given.groupby(by, observed=True, dropna=False, sort=False)
    texts = [name for name in _TEXTS if name not in by]
    rows = grouped[[name for name in given if name not in _TEXTS]].sum(min_count=1)
    rows = rows.join(grouped[texts].first()).reset_index()
    # of several kernels for one operation only one carries its cost: executions are those that carry it
    rows["count"] = rows.pop("known_count").fillna(rows["count"]).fillna(0)
    for name in _TEXTS:
        rows[name] = rows[name].astype(object).where(rows[name].notna(), None)
    rows["kind"] = _kinds(rows)
    order = "self_s" if rows["self_s"].notna().any() else "bytes"
    return rows.sort_values(order, ascending=False, kind="stable", ignore_index=True)


def _kinds(rows: pd.DataFrame) -> np.ndarray:
    """What each row is (see KINDS); where it is not work, its FLOPs and bytes are no measure of it."""
    name = rows["op"].astype("string").fillna("")
    half = name.str.contains(_HALF, regex=True).to_numpy(dtype=bool)
    on_host = rows["shape"].astype("string").fillna("").str.contains(_HOST_MEMORY, regex=True).to_numpy(dtype=bool)
    category = rows["category"]
    uncounted = rows["flops"].isna() | rows["bytes"].isna() | ((rows["flops"] == 0) & (rows["bytes"] == 0))
    return np.select(
        [category == "collective", half, on_host | category.isin(("infeed", "outfeed", "host")), uncounted],
        ["communication", "asynchronous", "host", "uncounted"],
        "work",
    )


def _device_steps(tables: Tables, ops: pd.DataFrame) -> int | None:
    steps = frame(tables, "steps", ["capture", "dur_ns", "device"]).dropna(subset=["capture", "dur_ns"])
    devices = ops[["capture", "host", "device"]].drop_duplicates().groupby("capture").size()
    alone = steps[steps["device"].notna()][["capture", "device"]]
    taken = steps[steps["device"].isna()].groupby("capture").size().mul(devices, fill_value=0).sum()
    return int(taken + len(alone.merge(ops[["capture", "device"]].drop_duplicates()))) or None


def _notes(rows: pd.DataFrame, spaces: bool, compiled: bool, timed: bool, negative: int) -> tuple[str, ...]:
    notes = []
    if compiled and timed:
        notes.append(
            "Nothing ran: seconds are the compiler's estimated cycles by the clock given. The compiler weighs "
            "schedules with them; they know nothing of waiting for memory or for other chips."
        )
    elif compiled:
        notes.append(
            "Nothing ran, so no rate was achieved: operations are placed by what bounds them. With "
            "--option clock_hz=HZ the compiler's estimated cycles become seconds."
        )
    else:
        notes.append(
            "Seconds are self time on the device's own lines, added over devices; idle time is not in them. "
            "Lines of one device that run at once (streams, threads) are added too."
        )
    if spaces:
        notes.append("Bytes are those in device memory (HBM) where the trace tells memories apart.")
    elif compiled:
        notes.append("Bytes are operands and results that the compiler placed in the device's main memory.")
    elif rows["bytes"].notna().any():
        notes.append(
            "Bytes are operands and results as the compiler counts them; what stays in caches or on-chip "
            "memory is among them."
        )
    if negative:
        notes.append(
            f"{negative} operations carry negative FLOPs or bytes, which is how a compiler says that it does "
            "not know: they count as unknown."
        )
    weight = rows["self_s" if timed else "bytes"].fillna(0.0)
    inside = float(weight[rows["category"].eq("custom-call") & rows["flops"].isna()].sum())
    if inside > WORTH_A_NOTE * float(weight.sum()):
        notes.append(
            f"Custom calls whose FLOPs nobody counts (such as Pallas kernels without a cost estimate) take "
            f"{inside / float(weight.sum()) * 100:.3g} % of the {'time' if timed else 'bytes'}: they have no "
            "roof."
        )
    return tuple(notes)
