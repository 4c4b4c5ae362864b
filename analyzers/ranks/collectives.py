"""Collectives by kind, mesh axis and size: how long they took, how long they waited, and how fast they moved data.

Rates follow nccl-tests. With n ranks and t the time of one execution without waiting:

    algorithm bandwidth = message / t       message: what one rank contributes; for an all-gather what it ends up with
    bus bandwidth = algorithm bandwidth x 2(n-1)/n   all-reduce
                                        x (n-1)/n    all-gather, reduce-scatter, all-to-all
                                        x 1          permute, broadcast

Bus bandwidth does not depend on n, so it can be held against what a device can send. The ranks of a synchronising
collective leave it together; the last to arrive did not wait, so the shortest duration among them is t (see `waits`).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import activities
from analyzers.intervals import Spans, overlap_with
from analyzers.ranks.collective_notes import notes_on, unseen
from analyzers.ranks.latency import latency_bound
from analyzers.ranks.mesh import Links, axis_of, members, mesh_of, ranks_along, size_of
from analyzers.ranks.parts import NEEDED, counted, told_twice
from analyzers.ranks.waits import FIRST_STEP, KIND, LONE, NAMELESS, UNEQUAL, waits
from analyzers.time.booked import Booked, booked
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.tables import Tables, frame

OPTIONS: tuple[Option, ...] = ()
BUCKETS = (
    (64e3, "up to 64 kB"),
    (1e6, "64 kB to 1 MB"),
    (16e6, "1 to 16 MB"),
    (256e6, "16 to 256 MB"),
    (float("inf"), "over 256 MB"),
)
GROUPING = ["kind", "axis", "group_size", "bytes", "dtype", "network"]
_BOUND = "their rates are lower bounds."
ONE = {"were": "was", "are": "is", "differ": "differs", "lie": "lies"}
UNCOMPARED = {
    LONE: "were not found on every rank of their group: how long they waited is not known, and their rates are lower "
    "bounds. Profiles of all hosts would tell.",
    NAMELESS: "are of groups whose ranks are not known, as their source does not say which devices these are: "
    f"how long they waited is not known, and {_BOUND}",
    KIND: "are of kinds in which ranks do not all wait for each other (permutes, broadcasts), or of no kind that is "
    f"known: what a rank waited for its sender cannot be told from the transfer, so {_BOUND}",
    UNEQUAL: f"differ in kind, size or number between the ranks of their group, so they were not compared: {_BOUND}",
    FIRST_STEP: "lie in the first step of a capture, where it is not known when the other ranks came: "
    f"{_BOUND} Profile more steps.",
}
TOLD = (
    "Times are those of a profiler within the library of collectives, waiting included and without a start: what was "
    "computed beside them is not known. It leaves out small messages, and what its ring buffer lost."
)
COLUMNS = [
    *GROUPING,
    "bucket",
    "message_bytes",
    "count",
    "total_s",
    "wait_s",
    "unknown_s",
    "transfer_s",
    "uncovered_s",
    "min_s",
    "median_s",
    "p99_s",
    "transfer_median_s",
    "matched",
    "algbw_bytes_per_s",
    "busbw_bytes_per_s",
    "link_bytes_per_s",
    "share_of_link",
    "latency_bound",
    "bound_s",
    "ops",
]


@dataclass(frozen=True, kw_only=True)
class CollectivesResult:
    """`rows`, largest total time (or bound) first, one per kind, axis, group size, operand bytes and element type:

    count             executions, summed over devices; of a program: in one run of it, on one device
    message_bytes     bytes that rates are reckoned by (see above); `bytes` is the operand on one device
    total_s, wait_s   device-seconds in them, and of these waiting for the last rank
    transfer_s        total_s - wait_s
    unknown_s         of transfer_s, what executions that were not compared, such as those of the first step of a
                      capture, spent beyond the usual transfer: when the other ranks came is not known there, so it may
                      be waiting. These three are null where not `matched`
    uncovered_s       device-seconds of them under which nothing was computed, executions added: `overlap` tells the
                      same as unions of intervals, in steps, as exposed_s; null where no profile tells of some of them
                      what their device computed
    min_s, median_s, p99_s   of one execution on one device, waiting included
    transfer_median_s of one execution, waiting taken out where `matched`
    matched           whether executions were compared across ranks, so that waiting is known; else it is still
                      inside and the rates are lower bounds (`notes` say why)
    link_bytes_per_s  what a device can send one way over `network`; share_of_link = busbw / link
    latency_bound     takes hardly longer than the smallest of its kind and group; null where sizes do not tell, and
                      where not `matched`
    bound_s           least seconds of one execution by that link
    `ledger`: what the ledger books of kept steps. What is not known is null. `measured` False: nothing ran, rows tell
    what the program does in one run.
    """

    rows: pd.DataFrame
    measured: bool
    one_link_bytes_per_s: float | None
    link_words: str
    totals: dict[str, float | None]
    ledger: Booked | None
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        return {
            "measured": self.measured,
            "rows": self.rows.astype(object).where(self.rows.notna(), None).to_dict("records"),
            "totals": self.totals,
            "ledger": self.ledger and self.ledger.to_dict(),
            "one_link_bytes_per_s": self.one_link_bytes_per_s,
            "link": self.link_words or None,
            "notes": list(self.notes),
        }


def bus_factor(kind: str, n: float | None) -> float | None:
    """Bus over algorithm bandwidth for `n` ranks; None where n is not known and matters."""
    if kind in ("permute", "broadcast"):
        return 1.0
    if n is None or pd.isna(n) or n < 2:
        return None
    return (2 if kind == "all-reduce" else 1) * (n - 1) / n


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> CollectivesResult:
    """Collectives that ran, else those that the run's programs hold. Raises QuestionError where there are neither."""
    links = Links(facts)
    if _timed(tables):
        twice = told_twice(tables)
        executions = _executions(tables, facts, links)
        if not twice and len(others := _told(tables, started=False)):
            executions = pd.concat([executions, others], ignore_index=True)
        rows, measured, why = _measured(executions), True, (*_uncompared(executions), *unseen(executions), *twice)
    elif tables.rows("collective_times"):
        executions = _told(tables)
        rows, measured, why = _measured(executions), True, (*_uncompared(executions), TOLD)
    elif tables.rows("program_collectives"):
        rows, measured, why = _programmed(tables, facts, links), False, ()
    else:
        there = tables.rows("collectives") > 0
        raise QuestionError(
            "the collectives of this run have no times" if there else "this run has no collectives",
            advice="A profile of several devices would show them (*.xplane.pb, *.pt.trace.json), or a compiled program "
            "with a mesh.",
        )
    rows = _rated(rows)
    weight = rows["total_s"] if measured else _needed(rows)
    order = weight.sort_values(ascending=False, kind="stable", na_position="last").index
    rows = rows.loc[order, COLUMNS].reset_index(drop=True)
    link = links.of(())
    return CollectivesResult(
        rows=rows,
        measured=measured,
        one_link_bytes_per_s=links.one_link(),
        link_words=link.words if link else "",
        totals=_totals(rows, measured),
        ledger=booked(tables, facts) if measured else None,
        notes=(*why, *notes_on(rows, links, measured), *(() if measured else _unknown_counts(tables))),
    )


def _timed(tables: Tables) -> bool:
    """Whether any collective has both times."""
    return bool(tables.rows("collectives")) and len(tables.arrow("collectives", ["start_ns", "end_ns"]).drop_null()) > 0


def _executions(tables: Tables, facts: Facts, links: Links) -> pd.DataFrame:
    """One row per device's part in a collective, with what it waited, what computing covered and whether anything tells
    that (`seen`), its axis and network."""
    columns = ["host", "device", "group", "places", "kind", "bytes", "dtype", "op", "module", "start_ns", "end_ns"]
    rows = frame(tables, "collectives", columns)[counted(tables.arrow("collectives", NEEDED))].reset_index(drop=True)
    for column in ("host", "group", "places", "kind", "dtype", "op", "module"):
        rows[column] = rows[column].astype(object).where(rows[column].notna(), "").astype(str)
    rows["device"] = rows["device"].fillna(0).astype("int64")
    rows[["start_ns", "end_ns"]] = rows[["start_ns", "end_ns"]].astype("int64")
    rows["dur_ns"] = rows["end_ns"] - rows["start_ns"]
    rows = _with_waits(rows, tables)
    rows = _with_places(rows, tables, facts, links)
    start, end, covered = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), np.zeros(len(rows), dtype=np.int64)
    seen = np.zeros(len(rows), dtype=bool)
    places = rows.groupby(["host", "device"]).indices
    for activity in activities(tables):
        mine = places.get((activity.host, activity.device))
        if mine is not None:
            covered[mine] = overlap_with(activity.computation, Spans(start[mine], end[mine]))
            seen[mine] = True
    return rows.assign(covered_ns=covered, seen=seen)


def _told(tables: Tables, started: bool = True) -> pd.DataFrame:
    """One row per operation that a profiler within the library timed, those with a start if they are `started`: as
    `_executions`, its waiting not known, nor what was computed beside it."""
    columns = ["host", "group_size", "kind", "call", "bytes", "dur_ns", "start_ns"]
    rows = frame(tables, "collective_times", columns).dropna(subset=["dur_ns"])
    rows = rows if started else rows[rows["start_ns"].isna()]
    for column in ("host", "kind", "call"):
        rows[column] = rows[column].astype(object).where(rows[column].notna(), "").astype(str)
    rows["dur_ns"] = rows["dur_ns"].astype("int64")
    nothing = {name: 0 for name in ("device", "wait_ns", "unknown_ns", "covered_ns")}
    return rows.drop(columns="start_ns").assign(
        **nothing,
        seen=False,
        op="nccl:" + rows["call"],
        dtype="",
        axis="",
        network="",
        link_bytes_per_s=np.nan,
        group_size=rows["group_size"].astype("Int64"),
        matched=False,
        reason=NAMELESS,
    )


def _with_waits(rows: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """Adds wait_ns, unknown_ns, and matched: whether the ranks of its group were compared, with the reason if not.
    `waits` has the same rows in the same order."""
    waited = waits(tables).rows
    return rows.assign(**{name: waited[name].to_numpy() for name in ("wait_ns", "unknown_ns", "matched", "reason")})


def _with_places(rows: pd.DataFrame, tables: Tables, facts: Facts, links: Links) -> pd.DataFrame:
    """Adds axis ("" unknown), group_size (nullable), network ("" unknown) and link_bytes_per_s (nullable)."""
    program = frame(tables, "program_collectives", ["module", "op", "axis", "group_size"])
    program = program.assign(module=program["module"].astype(str), op=program["op"].astype(str))
    program = program.sort_values("axis", na_position="last").drop_duplicates(["module", "op"])
    sizes = program["group_size"].fillna(0).astype("int64").tolist()
    names = (program[name].tolist() for name in ("module", "op", "axis"))
    known = {(module, op): (axis, n) for module, op, axis, n in zip(*names, sizes, strict=True)}
    mesh, places = mesh_of(facts), []
    sites = rows[["module", "op", "group", "places"]].drop_duplicates()
    for module, op, text, placed in sites.itertuples(index=False):
        group = members(text)
        axis, told = known.get((module, op), (None, 0))
        axis = axis if isinstance(axis, str) else axis_of(members(placed) or group, mesh)
        size = size_of(text) or told or None
        link = links.among(group, size)
        places.append(
            (
                axis or "",
                size or pd.NA,
                link.network if link else "",
                link.bytes_per_s if link else np.nan,
            )
        )
    sites[["axis", "group_size", "network", "link_bytes_per_s"]] = pd.DataFrame(places, index=sites.index)
    sites["group_size"] = sites["group_size"].astype("Int64")
    return rows.merge(sites, on=["module", "op", "group", "places"], how="left")


def _measured(rows: pd.DataFrame) -> pd.DataFrame:
    """Executions by GROUPING. Transfer times come from matched executions where a row has any."""
    rows = rows.assign(transfer_ns=rows["dur_ns"] - rows["wait_ns"])
    grouped = rows.groupby(GROUPING, dropna=False, observed=True, sort=False)
    out = pd.DataFrame(
        {
            "count": grouped.size(),
            "total_s": grouped["dur_ns"].sum() / 1e9,
            "wait_s": grouped["wait_ns"].sum() / 1e9,
            "unknown_s": grouped["unknown_ns"].sum() / 1e9,
            "transfer_s": grouped["transfer_ns"].sum() / 1e9,
            "uncovered_s": ((grouped["dur_ns"].sum() - grouped["covered_ns"].sum()) / 1e9).where(grouped["seen"].all()),
            "min_s": grouped["dur_ns"].min() / 1e9,
            "median_s": grouped["dur_ns"].median() / 1e9,
            "p99_s": grouped["dur_ns"].quantile(0.99) / 1e9,
            "matched": grouped["matched"].any(),
            "link_bytes_per_s": grouped["link_bytes_per_s"].first(),
            "ops": grouped["op"].agg(_names),
        }
    )
    known = ["wait_s", "unknown_s", "transfer_s"]
    out[known] = out[known].where(out["matched"].astype(bool))
    clean = rows[rows["matched"]].groupby(GROUPING, dropna=False, observed=True, sort=False)["transfer_ns"].median()
    every = grouped["transfer_ns"].median()
    out["transfer_median_s"] = clean.reindex(every.index).fillna(every) / 1e9
    return out.reset_index()


def _uncompared(rows: pd.DataFrame) -> tuple[str, ...]:
    """Why the executions of rows in which none was compared were not, each reason with its executions."""
    matched = rows.groupby(GROUPING, dropna=False, observed=True, sort=False)["matched"].transform("any")
    counts = rows.loc[~matched.astype(bool), "reason"].value_counts()
    told = ((int(counts[reason]), words) for reason, words in UNCOMPARED.items() if reason in counts)
    return tuple(f"{fmt.count(n, 'execution')} {_of_one(words) if n == 1 else words}" for n, words in told)


def _of_one(words: str) -> str:
    """What is said of several, of one."""
    verb, _, rest = words.partition(" ")
    rest = rest.replace("their group", "its group").replace("they waited", "it waited").replace("they were", "it was")
    return f"{ONE.get(verb, verb)} {rest}"


def _names(names: pd.Series) -> str:
    """The operations of a row, the first few by name."""
    different = sorted(set(names))
    return ", ".join(different[:4]) + (f" and {len(different) - 4} more" if len(different) > 4 else "")


def _programmed(tables: Tables, facts: Facts, links: Links) -> pd.DataFrame:
    """What the programs do in one run, on one device: counts and bytes, no times."""
    columns = ["op", "kind", "axis", "group_size", "bytes", "dtype", "count"]
    rows = frame(tables, "program_collectives", columns)
    for column in ("op", "kind", "axis", "dtype"):
        rows[column] = rows[column].astype(object).where(rows[column].notna(), "").astype(str)
    mesh = mesh_of(facts)
    groups = list(zip(rows["axis"], rows["group_size"].fillna(0).astype("int64").tolist(), strict=True))
    found = {(a, n): links.among(ranks_along(a, mesh) if mesh and a else (), n or None) for a, n in {*groups}}
    of_rows = [found[group] for group in groups]
    rows["network"] = [link.network if link else "" for link in of_rows]
    rows["link_bytes_per_s"] = [link.bytes_per_s if link else np.nan for link in of_rows]
    rows["count"] = rows["count"].fillna(1)
    grouped = rows.groupby(GROUPING, dropna=False, observed=True, sort=False)
    out = pd.DataFrame(
        {
            "count": grouped["count"].sum(),
            "link_bytes_per_s": grouped["link_bytes_per_s"].first(),
            "ops": grouped["op"].agg(_names),
        }
    )
    times = ("total_s", "wait_s", "unknown_s", "transfer_s", "uncovered_s", "min_s", "median_s", "p99_s")
    for name in (*times, "transfer_median_s"):
        out[name] = np.nan
    out["matched"] = pd.NA
    return out.reset_index()


def _rated(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds messages, bandwidths, the link's bound and what is bound by latency."""
    size = rows["group_size"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    operand = rows["bytes"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    gathers = (rows["kind"] == "all-gather").to_numpy()
    message = np.where(gathers, operand * size, operand)
    factor = np.array([bus_factor(k, n) or np.nan for k, n in zip(rows["kind"], size, strict=True)])
    seconds = rows["transfer_median_s"].to_numpy(dtype=float)
    link = rows["link_bytes_per_s"].to_numpy(dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        algorithm = np.where(seconds > 0, message / seconds, np.nan)
        rows["bound_s"] = message * factor / link
    rows["message_bytes"] = message
    rows["algbw_bytes_per_s"], rows["busbw_bytes_per_s"] = algorithm, algorithm * factor
    rows["share_of_link"] = algorithm * factor / link
    rows["bucket"] = [_bucket(b) for b in operand]
    rows["latency_bound"] = latency_bound(rows)
    for name in ("axis", "network", "dtype"):
        rows[name] = rows[name].replace("", None)
    return rows


def _needed(rows: pd.DataFrame) -> pd.Series:
    """What all executions of a row need of the links, in s; where nothing is known of the links, their bytes."""
    each = rows["bound_s"] if rows["bound_s"].notna().any() else rows["bytes"].astype("Float64").astype("float64")
    return each * rows["count"].astype("float64")


def _bucket(size: float) -> str | None:
    return None if np.isnan(size) else next(words for limit, words in BUCKETS if size <= limit)


def _totals(rows: pd.DataFrame, measured: bool) -> dict[str, float | None]:
    moved = (rows["bytes"].astype("Float64") * rows["count"].astype("Float64")).dropna()
    sums: dict[str, float | None] = {
        "count": int(rows["count"].sum()),
        "bytes": float(moved.sum()) if len(moved) else None,
    }
    for name in ("total_s", "wait_s", "unknown_s", "transfer_s", "uncovered_s"):
        known = rows[name].notna()
        enough = known.all() if name == "uncovered_s" else known.any()
        sums[name] = float(rows[name].sum()) if measured and enough else None
    known = rows["bound_s"].notna()
    bound = float((rows["bound_s"] * rows["count"].astype("float64"))[known].sum())
    return {**sums, "bound_s": bound if known.any() else None}


def _unknown_counts(tables: Tables) -> list[str]:
    lacking = int(frame(tables, "program_collectives", ["count"])["count"].isna().sum())
    if not lacking:
        return []
    of = "1 collective lies in a loop" if lacking == 1 else f"{lacking:,} collectives lie in loops"
    return [f"{of} of which nothing tells how often it runs: counted once."]
