"""The five answers of Holistic Trace Analysis (HTA) out of tables in memory, with the columns of its frames.

Each is worked out by the functions that the questions `overlap`, `launches` and `operations` rest on, and nothing else:
no ledger, no roofs, no steps. Times are in microseconds, as HTA has them.
"""

from collections import ChainMap
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analyzers.device.activity import Activity, activities, split
from analyzers.device.launches.seen import Launched, captures_of, launched
from analyzers.device.launches.streams import HOST_WAIT, KERNEL_WAIT, OTHER, queue_lengths, streams
from analyzers.intervals import common, length
from runs.matching import Where
from runs.tables import Tables

US = 1_000  # ns
TABLES = ("captures", "steps", "ops", "op_stats", "op_events", "launches", "collectives")
TYPES = ("COMPUTATION", "COMMUNICATION", "MEMORY")


def temporal_breakdown(tables: Tables) -> pd.DataFrame:
    """Idle, computing and other busy time from the first to the last operation of each device."""
    rows = []
    for activity in activities(tables):
        parts = split(activity, activity.operations)
        whole, idle, compute = (int(x.sum()) / US for x in (parts.width, parts.idle, parts.computing))
        rest = int((parts.exposed + parts.copying).sum()) / US
        rows.append(
            {
                "rank": activity.host,
                "idle_time(us)": idle,
                "compute_time(us)": compute,
                "non_compute_time(us)": rest,
                "kernel_time(us)": whole,
                "idle_time_pctg": round(100 * idle / whole, 2),
                "compute_time_pctg": round(100 * compute / whole, 2),
                "non_compute_time_pctg": round(100 * rest / whole, 2),
            }
        )
    return pd.DataFrame(rows)


def comm_comp_overlap(tables: Tables) -> pd.DataFrame:
    """Communication under computation, in per cent of all communication."""
    rows = []
    for activity in activities(tables):
        parts = split(activity, activity.operations)
        share = 100 * int(parts.overlapped.sum()) / max(int(parts.communicating.sum()), 1)
        rows.append({"rank": activity.host, "comp_comm_overlap_pctg": round(share, 2)})
    return pd.DataFrame(rows)


def idle_time_breakdown(tables: Tables) -> pd.DataFrame:
    """Why each stream was idle: time and share of its idle time by cause."""
    rows = []
    for host, ran in _launched(tables):
        for stream in streams(ran).to_dict("records"):
            idle = {kind: stream[f"{kind}_s"] * 1e6 for kind in (HOST_WAIT, KERNEL_WAIT, OTHER)}
            whole = sum(idle.values())
            for kind, us in idle.items():
                told = {"idle_category": kind, "idle_time": us, "idle_time_ratio": round(us / (whole or 1.0), 2)}
                rows.append({"rank": host, "stream": stream["line"], **told})
    return pd.DataFrame(rows)


def queue_length_summary(tables: Tables) -> pd.DataFrame:
    """Launches that had not begun to execute, by stream: as pandas describes them."""
    rows = []
    for host, ran in _launched(tables):
        for number, line in enumerate(ran.streams):
            lengths = queue_lengths(ran, np.flatnonzero(ran.stream == number))
            if len(lengths):
                quartiles = dict(zip(("25%", "50%", "75%"), np.quantile(lengths, (0.25, 0.5, 0.75)), strict=True))
                told = {"count": len(lengths), "mean": lengths.mean(), "std": lengths.std(ddof=1)}
                ends = {"min": lengths.min(), "max": lengths.max()}
                rows.append({"rank": host, "stream": line, **told, **quartiles, **ends})
    return pd.DataFrame(rows)


def gpu_kernel_breakdown(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Time by kinds of kernels that ran at once, and the durations of each kernel by name."""
    types = dict[str, int]()
    for activity in activities(tables):
        for name, ns in _at_once(activity).items():
            types[name] = types.get(name, 0) + ns
    kinds = pd.DataFrame({"kernel_type": types.keys(), "sum": [ns / US for ns in types.values()]})
    kinds = kinds[kinds["sum"] > 0].sort_values("sum", ascending=False, ignore_index=True)
    kinds["percentage"] = (100 * kinds["sum"] / kinds["sum"].sum()).round(1)
    kernels = [_durations(tables, ran).assign(rank=host) for host, ran in _launched(tables)]
    return kinds, pd.concat(kernels, ignore_index=True)


FIVE = (temporal_breakdown, comm_comp_overlap, idle_time_breakdown, queue_length_summary, gpu_kernel_breakdown)


def _launched(tables: Tables) -> Iterator[tuple[str, Launched]]:
    for activity in activities(tables):
        for capture, start_ns in captures_of(tables, activity.host):
            yield activity.host, launched(tables, capture, start_ns, activity.device)


def _at_once(activity: Activity) -> dict[str, int]:
    """Nanoseconds in which exactly these kinds of kernels ran."""
    unions = (activity.computation, activity.communication, activity.memory)
    found: list[tuple[frozenset[int], int]] = []
    both = [(frozenset((a, b)), common(unions[a], unions[b])[0]) for a, b in ((0, 1), (0, 2), (1, 2))]
    every = common(both[0][1], unions[2])[0]
    for some, spans in [(frozenset(range(3)), every), *both, *((frozenset((n,)), unions[n]) for n in range(3))]:
        found.append((some, length(spans) - sum(ns for more, ns in found if some < more)))
    return {" overlapping ".join(TYPES[n] for n in sorted(some)): ns for some, ns in found}


def _durations(tables: Tables, ran: Launched) -> pd.DataFrame:
    """Sum, extremes, mean and deviation of the durations of each kernel, by name."""
    numbers, names = _kernels(tables, ran)
    us = pd.Series((ran.end - ran.start) / US).groupby(numbers[ran.op])
    rows = us.agg(["sum", "max", "min", "std", "mean"]).fillna({"std": 0.0})
    return rows.assign(name=[names[n] for n in rows.index]).sort_values("name", ignore_index=True)


def _kernels(tables: Tables, ran: Launched) -> tuple[np.ndarray, list[str]]:
    """The number of each operation's kernel, and the names by number; of a kernel without one the operation's."""
    where: Where = [("capture", "==", ran.capture)]
    named = tables.arrow("ops", ["op_id", "op"], where)
    stats = tables.arrow("op_stats", ["op_id", "text_value"], [*where, ("name", "==", "kernel")])
    pairs = (dict(zip(*(c.to_pylist() for c in rows.columns), strict=True)) for rows in (named, stats))
    name_of, place = ChainMap(*reversed(list(pairs))), dict[str, int]()
    ids = range(int(ran.op.max(initial=0)) + 1)
    return np.array([place.setdefault(name_of.get(n) or "", len(place)) for n in ids]), list(place)
