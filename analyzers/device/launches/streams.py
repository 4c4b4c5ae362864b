"""Streams one by one, as Holistic Trace Analysis (HTA) defines it: why each was idle, and how long its queue was.

HTA judges every stream from its first execution to its last, whatever other streams did meanwhile:

    host wait     the call that launched the execution began after the one before it had ended
    kernel wait   else, and less than 30 microseconds lay between the two
    other         else: held back by an event, a copy or another stream

Queue length: executions whose call has begun and which have not begun themselves, counted at each such beginning.
"""

import numpy as np
import pandas as pd

from analyzers.device.launches.seen import Launched

KERNEL_WAIT_NS = 30_000  # HTA's threshold, in the microseconds that traces were written in
HOST_WAIT, KERNEL_WAIT, OTHER = "host_wait", "kernel_wait", "other"
COLUMNS = (
    "line",
    "executions",
    *(f"{kind}_{what}" for kind in (HOST_WAIT, KERNEL_WAIT, OTHER) for what in ("s", "count")),
    "queue_mean",
    "queue_median",
    "queue_max",
)


def streams(ran: Launched) -> pd.DataFrame:
    """One row per stream of a device in a capture, the most executions first; see COLUMNS. The queue is null where no
    call is known."""
    rows = []
    for number, line in enumerate(ran.streams):
        mine = np.flatnonzero(ran.stream == number)
        if len(mine):
            rows.append({"line": line, "executions": len(mine), **_idle(ran, mine), **_queue(ran, mine)})
    return pd.DataFrame(rows, columns=list(COLUMNS)).sort_values(
        "executions", ascending=False, kind="stable", ignore_index=True
    )


def _idle(ran: Launched, mine: np.ndarray) -> dict[str, float]:
    before, begin = ran.end[mine[:-1]], ran.start[mine[1:]]
    gap, call = begin - before, ran.call_start[mine[1:]]
    late = ran.known[mine[1:]] & (call > before)
    short = ~late & (gap < KERNEL_WAIT_NS)
    out = {}
    for kind, chosen in ((HOST_WAIT, late), (KERNEL_WAIT, short), (OTHER, ~late & ~short)):
        out[f"{kind}_s"] = float(gap[chosen].sum()) / 1e9
        out[f"{kind}_count"] = int(chosen.sum())
    return out


def _queue(ran: Launched, mine: np.ndarray) -> dict[str, float | None]:
    length = queue_lengths(ran, mine)
    if not len(length):
        return {"queue_mean": None, "queue_median": None, "queue_max": None}
    return {
        "queue_mean": float(length.mean()),
        "queue_median": float(np.median(length)),
        "queue_max": int(length.max()),
    }


def queue_lengths(ran: Launched, mine: np.ndarray) -> np.ndarray:
    """The length of a stream's queue at each begin of a call and of an execution, in order of time; `mine`: which
    executions are the stream's."""
    mine = mine[ran.known[mine] & ~ran.graph[mine]]  # the executions of a graph are queued as one
    begins, starts = ran.call_start[mine], ran.start[mine]
    if not len(mine):
        return begins
    since = min(int(begins.min()), int(starts.min()))
    turns = np.sort(np.concatenate([(begins - since) * 2, (starts - since) * 2 + 1]))  # odd: an execution
    return np.cumsum(1 - 2 * (turns & 1))
