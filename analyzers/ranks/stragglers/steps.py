"""Which step each collective belongs to: as the trace says, else by the host's own step marks, else by repetition."""

from dataclasses import dataclass

import numpy as np

from analyzers.device.activity import profiled_steps
from analyzers.ranks.meetings import Meetings, combined
from runs.tables import Tables, frame

WINDOW = 20  # steps that a verdict needs


@dataclass(frozen=True)
class Columns:
    """`column`: for each row of the meetings its step's position in `step` and `session`, by time; -1: not used.

    The first step of a session is left out: captures begin in the middle of it, on each rank elsewhere.
    `step_s`: the usual time from step to step. `how`: trace, marks or repetition.
    """

    column: np.ndarray
    step: np.ndarray
    session: np.ndarray
    step_s: float
    how: str


def columns_of(met: Meetings, tables: Tables) -> Columns:
    """Steps of all comparable rows."""
    how, step = "trace", met.step
    if not (step >= 0).any():
        how, step = "marks", _by_marks(met, tables)
    if not (step >= 0).any():
        how, step = "repetition", _by_repetition(met)
    met_by_some = met.comparable | watched_in_part(met)
    there = (step >= 0) & (met.session >= -1)
    first = np.full(int(met.session.max()) + 2 if len(step) else 1, np.iinfo(np.int64).max)
    np.minimum.at(first, met.session[there] + 1, step[there])
    used = there & met_by_some & (step > first[met.session + 1])
    column = np.full(len(step), -1, dtype=np.int64)
    key, at = np.unique(combined(met.session[used] + 1, step[used]), return_inverse=True)
    column[used] = at.reshape(-1)
    place = np.empty(len(key), dtype=np.int64)
    place[column[used]] = np.flatnonzero(used)
    return Columns(column, step[place], met.session[place], _step_s(met, tables, column, used), how)


def watched_in_part(met: Meetings) -> np.ndarray:
    """Rows of groups of which some ranks have no profile at all, where all that have one took part: these can be held
    against one another. How long they waited for the rest is not known."""
    groups = len(met.names["group"])
    whole = np.bincount(met.group[met.complete], minlength=groups) > 0
    some = met.partial & ~whole[met.group]
    if not some.any():
        return some
    pairs = np.unique(met.group[some] * len(met.ranks) + met.rank[some])
    watched = np.bincount(pairs // len(met.ranks), minlength=groups)
    there = np.bincount(met.meeting[some], minlength=int(met.meeting.max()) + 1)
    return some & (there[met.meeting] == watched[met.group])


def _by_marks(met: Meetings, tables: Tables) -> np.ndarray:
    """The step that was under way on the row's host, by that host's clock, when its meeting began."""
    out = np.full(len(met.step), -1, dtype=np.int64)
    marks = profiled_steps(tables)
    by_host = dict(tuple(marks.groupby("host")))
    for host, ranks in met.ranks.groupby("host"):
        if host not in by_host:
            continue
        mine = np.isin(met.rank, ranks.index)
        begin = by_host[host]["start_ns"].to_numpy()
        at = np.searchsorted(begin, met.start_ns[mine], side="right") - 1
        out[mine] = np.where(at >= 0, by_host[host]["step"].to_numpy()[np.maximum(at, 0)], -1)
    leads = met.order[met.begins] if len(met.begins) else met.order
    return out[leads][met.meeting] if len(leads) else out  # one meeting is in one step, whatever its ranks say


def _by_repetition(met: Meetings) -> np.ndarray:
    """Steps counted by the operation that repeats least often, if at all: it ends a step, on all its ranks at once."""
    rows = np.flatnonzero(met.comparable)
    out = np.full(len(met.step), -1, dtype=np.int64)
    if not len(rows):
        return out
    meeting_rows = np.zeros(int(met.meeting.max()) + 1, dtype=np.int64)
    meeting_rows[met.meeting[rows]] = rows
    lead = meeting_rows[np.unique(met.meeting[rows])]
    what = combined(met.kind, met.op)
    kinds, times = np.unique(what[lead] * (int(met.group.max()) + 1) + met.group[lead], return_counts=True)
    repeated = np.flatnonzero(times >= min(WINDOW, times.max()))
    chosen = kinds[repeated[times[repeated].argmin()]] // (int(met.group.max()) + 1)
    ends = met.comparable & (what == chosen)
    order = np.lexsort((met.start_ns, met.session, met.rank))
    marks = ends[order].astype(np.int64)
    count = np.cumsum(marks) - marks
    where = combined(met.rank, met.session + 1)[order]
    opens = np.concatenate(([True], where[1:] != where[:-1]))
    out[order] = count - np.maximum.accumulate(np.where(opens, count, 0))
    leads = met.order[met.begins]
    return out[leads][met.meeting]


def _step_s(met: Meetings, tables: Tables, column: np.ndarray, used: np.ndarray) -> float:
    """Median seconds of a step: by the hosts' marks, else from the end of a step's last meeting to the next one's."""
    steps = frame(tables, "steps", ["host", "dur_ns", "capture"])
    steps = steps[steps["host"].notna() & steps["dur_ns"].notna()]
    if len(steps):
        return float(steps["dur_ns"].astype(float).median()) / 1e9
    if not used.any():
        return 0.0
    rank = int(np.bincount(met.rank[used]).argmax())
    rows = np.flatnonzero(used & (met.rank == rank))
    last = np.full(int(column.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, column[rows], met.end_ns[rows])
    session = np.full(len(last), -2, dtype=np.int64)
    session[column[rows]] = met.session[rows]
    there = np.flatnonzero(session > -2)
    between = np.diff(last[there])[(np.diff(session[there]) == 0) & (np.diff(there) == 1)]
    return float(np.median(between)) / 1e9 if len(between) else float(np.median(met.dur_ns[rows])) / 1e9
