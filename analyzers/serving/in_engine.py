"""When requests were in each server of a run, and when that is known.

Requests that name their replica tell it of each; those that do not tell it where there is one server. Else samples of
each server do: what one says holds until the next, and outside its own samples nothing is known of a server. Nor is it
in a gap of many usual ones (see `sampling`): what the sample before says holds there for one usual gap. Servers of
which one took the place of another (see `seats`) are one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, joined, length, spans, union
from analyzers.serving.sampling import gaps_of
from analyzers.serving.seats import seats
from analyzers.serving.served import Served
from analyzers.serving.servers import ONE, samples_of_servers
from errors import format as fmt
from runs.tables import Tables


@dataclass(frozen=True)
class Presence:
    """`busy`: when at least one request was in a server; `seen`: when that is known. `own`: of this server; False where
    it is known of all servers together alone. `unsampled`: gaps between samples in which it is not known."""

    busy: Spans
    seen: Spans
    own: bool = True
    unsampled: Spans = field(default_factory=spans)


def presence(asked: Served | None, tables: Tables, start: int, end: int, names: Sequence[str]) -> dict[str, Presence]:
    """By server; `names`: those whose passes are recorded, else whoever the requests or the samples name."""
    whole = _one(start, end)
    rows = _timed(asked)
    sampled = _sampled(tables, start, end)
    if rows is not None:
        told = rows["replica"].notna().all()
        of = {str(n): _requests(mine) for n, mine in rows.groupby(rows["replica"].astype(str))} if told else {}
        shared = set(of) <= set(names) or set(names) <= set(of)  # passes of some replicas alone may be recorded
        if of and (shared if names else len(of) > 1):
            return {name: Presence(of.get(name, spans()), whole) for name in names or of}
        every = Presence(_requests(rows), whole)
        if max(len(names), len(sampled)) < 2:
            return {name: every for name in names or [ONE]}
        if set(names or sampled) <= set(sampled):
            return {name: sampled[name] for name in names or sampled}
        return {name: Presence(every.busy, whole, own=False) for name in names}
    if not names:
        return _in_their_places(sampled) or {ONE: Presence(spans(), whole)}
    if set(names) <= set(sampled):
        return {name: sampled[name] for name in names}
    together = union(joined([p.busy for p in sampled.values()]))
    return {name: Presence(together, whole, own=len(names) == 1) for name in names}


def _in_their_places(sampled: Mapping[str, Presence]) -> dict[str, Presence]:
    """Those of which one took the place of another as one, under the name of the first."""
    seen = {name: p.seen for name, p in sampled.items() if len(p.seen.start)}
    if len(seen) < 2:
        return dict(sampled)
    ends = [(int(s.start.min()), int(s.end.max())) for s in seen.values()]
    place = seats(*np.array(ends, dtype=float).T)
    if place.max() + 1 == len(seen):
        return dict(sampled)
    found = {name: p for name, p in sampled.items() if name not in seen}
    names = np.array(list(seen), dtype=object)
    for number in range(int(place.max()) + 1):
        mine = [sampled[name] for name in names[place == number]]
        found[str(names[place == number][0])] = Presence(
            union(joined([p.busy for p in mine])),
            union(joined([p.seen for p in mine])),
            unsampled=union(joined([p.unsampled for p in mine])),
        )
    return found


def told_of(found: Mapping[str, Presence]) -> list[str]:
    """What must be said of servers side by side, and of when they were not sampled."""
    notes = []
    if dark := max((length(p.unsampled) for p in found.values()), default=0):
        whose = "its samples" if len(found) == 1 else "a replica's samples"
        notes.append(
            f"Between {whose} lie gaps of {fmt.at_most(dark / 1e9, 4)} s in all: whether requests were in the engine "
            "then is not known."
        )
    if len(found) < 2:
        return notes
    notes.append(f"{len(found)} replicas, each taken to hold an equal share of the chips.")
    if not all(p.own for p in found.values()):
        notes.append(
            "Which replica the requests were in is not told: what a replica did while it computed nothing and "
            "requests were in any is not known."
        )
    return notes


def _timed(asked: Served | None) -> pd.DataFrame | None:
    """Requests that tell when they came, those left out of the statistics of time aside; None where none does."""
    if asked is None or not asked.rows["arrival_ns"].notna().any():
        return None
    return asked.rows[(asked.rows["out_of"] == "") & asked.rows["arrival_ns"].notna()]


def _requests(rows: pd.DataFrame) -> Spans:
    until = rows["last_token_ns"].fillna(rows["arrival_ns"] + (rows["e2e_s"] * 1e9).round().astype("Int64"))
    until = until.fillna(rows["arrival_ns"])
    return union(spans(rows["arrival_ns"].to_numpy(dtype=np.int64), until.to_numpy(dtype=np.int64)))


def _sampled(tables: Tables, start: int, end: int) -> dict[str, Presence]:
    """By samples that count requests. One server is seen all the time; of several each between its own samples."""
    rows, _ = samples_of_servers(tables)
    rows = rows.dropna(subset=["ts_ns"]).sort_values("ts_ns", kind="stable")
    counts = rows[["running", "waiting"]].sum(axis=1, min_count=1)
    rows = rows.assign(some=counts > 0)[counts.notna()]  # a sample that counts no requests ends nothing
    alone = rows["replica"].nunique() == 1
    found = {}
    for name, mine in rows.groupby("replica", sort=True):
        at = mine["ts_ns"].to_numpy(dtype=np.int64)
        some = mine["some"].to_numpy(dtype=bool)
        sampled = gaps_of(mine, at)
        until = np.append(at[1:], end if alone else at[-1])
        far = np.append(sampled.far[1:], False)
        dark = spans(at[far] + round(sampled.usual or 0), until[far])
        until[far] = dark.start
        seen = spans(np.append(start, dark.end), np.append(dark.start, end)) if alone else spans(at, until)
        found[str(name)] = Presence(union(spans(at[some], until[some])), union(seen), unsampled=dark)
    return found


def _one(start: int, end: int) -> Spans:
    return spans([start], [end])
