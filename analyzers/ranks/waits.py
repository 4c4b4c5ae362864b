"""Who waited for whom in collectives, without trusting any clock.

All ranks leave a synchronising collective together, so the rank that arrives last has the shortest duration D,
and rank r waited W[r, i] = D[r, i] - min over q of D[q, i] before the last one had arrived. Only durations are
compared, each taken by one host's own clock, so clocks that differ by any amount change nothing.

A step is blamed on the rank that waited least, where it stands apart: its peers' median wait exceeds its own by
3.5 robust standard deviations (1.4826 MAD of the peers, in this step or the median over all steps, whichever is larger,
+ 1 % of the step), and the margin (second smallest wait less the smallest: the time saved if only that rank were
mended) exceeds 2 % of the step. What the others waited, up to the margin, is then charged to it; the rest is nobody's,
and so is what it waited itself. A step in which a rank's waits are not known is blamed on nobody.

Where ranks of a group have no profile, the others still waited for the last of those that have one; what it took that
one, beyond the usual transfer, may have been waiting for a rank that nobody watched: it is not known, and never
communication.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analyzers.ranks.meetings import Meetings, combined, meetings
from analyzers.shared import Shared
from runs.tables import Tables, frame

COMPARED, FIRST_STEP, KIND, NAMELESS, LONE, UNEQUAL = range(6)
ENTER_Z = 3.5
ENTER_SHARE = 0.02  # of the step


@dataclass(frozen=True)
class Waits:
    """`rows`: one per row of `collectives` that counts (`parts.py`), in its order, with host, device, start_ns, end_ns
    (its own clock), group, module, op, kind, session, step (-1: not known), matched (whether its group's ranks were
    compared), wait_ns (before the last rank came), blamed_ns (the part of it charged to `blamed`), blamed (a host,
    or "" where nobody is, or one of no known host), unknown_ns and reason. Text is categorical.

    reason      COMPARED, or why a row was not: FIRST_STEP of a capture, where it is not known when the others came;
                KIND: ranks do not all wait for each other in it; NAMELESS: which ranks take part is not known;
                LONE: it was not found on every rank; UNEQUAL: kind, size or number differ between ranks
    unknown_ns  of a row that was not compared, but in a group of one rank, its time after wait_ns and before what the
                same operation usually takes when all ranks are there: waiting or communication, it is not known which.
                Who receives waits for who sends, so that holds of every kind

    `matched`: how many were found on every rank of their group; `lone`: how many were not.
    """

    rows: pd.DataFrame
    matched: int
    lone: int


def waits(tables: Tables) -> Waits:
    """Waits in every collective that all ranks of its group recorded. O(n log n)."""
    found = Shared(tables).get(("waits",), lambda: _waits(tables))
    return replace(found, rows=found.rows.copy(deep=False))


def _waits(tables: Tables) -> Waits:
    met = meetings(tables)
    first = _of_any(met, (met.step == _first_steps(met)) & (met.step >= 0))
    usable = met.comparable & ~first
    dur = met.dur_ns
    least = met.least(dur)
    wait = np.where(usable | met.partial, dur - least[met.meeting], 0)
    unknown = _unknown(met, usable, ~usable & ~met.alone, least, dur - wait)
    who, charged = _blame(met, usable, np.where(usable, wait, 0), _usual_step_ns(tables))
    hosts = list(dict.fromkeys([*met.ranks["host"], ""]))  # "" is nobody, and whoever's host is not known
    host_of = pd.Index(hosts).get_indexer(met.ranks["host"])
    texts = {n: pd.Categorical.from_codes(getattr(met, n), met.names[n]) for n in ("group", "module", "op", "kind")}
    device = met.ranks["device"].to_numpy(dtype=np.int64)
    rows = pd.DataFrame(
        {
            "host": pd.Categorical.from_codes(host_of[met.rank], hosts),
            "device": device[met.rank],
            "start_ns": met.start_ns,
            "end_ns": met.end_ns,
            **texts,
            "session": met.session,
            "step": met.step,
            "matched": usable,
            "wait_ns": wait,
            "blamed_ns": charged,
            "blamed": pd.Categorical.from_codes(np.append(host_of, hosts.index(""))[who], hosts),
            "unknown_ns": unknown,
            "reason": _reasons(met, usable),
        }
    )
    return Waits(rows, matched=int(met.complete.sum()), lone=int((~met.complete).sum()))


def _of_any(met: Meetings, rows: np.ndarray) -> np.ndarray:
    """Whether it holds of any row of each row's meeting: one rank's capture may begin within a step that others saw
    whole."""
    return np.logical_or.reduceat(rows[met.order], met.begins)[met.meeting] if len(met.order) else rows


def _unknown(met: Meetings, usable: np.ndarray, some: np.ndarray, least: np.ndarray, rest_ns: np.ndarray) -> np.ndarray:
    """Of each row in `some`, the part of `rest_ns` beyond the usual transfer of its operation: the median over the
    meetings that were compared of the shortest duration. All of it where none was."""
    unknown = np.zeros(len(some), dtype=np.int64)
    if not some.any():
        return unknown
    place = combined(met.group, met.module, met.op)
    one = met.order[met.begins]
    seen = one[usable[one]]
    usual = pd.Series(least[met.meeting[seen]]).groupby(place[seen]).median()
    known = usual.reindex(place[some]).fillna(0).to_numpy(dtype=float)
    unknown[some] = np.maximum(rest_ns[some] - np.rint(known), 0).astype(np.int64)
    return unknown


def _reasons(met: Meetings, usable: np.ndarray) -> np.ndarray:
    why = np.full(len(usable), UNEQUAL, dtype=np.int8)
    why[met.comparable & ~usable] = FIRST_STEP
    why[~met.complete] = LONE
    why[met.nameless] = NAMELESS
    why[~met.synchronising] = KIND
    why[usable] = COMPARED
    return why


def _first_steps(met: Meetings) -> np.ndarray:
    """For each row, the least step of its rank's capture: what was cut off by the capture's start is not compared."""
    key = combined(met.rank, met.capture + 1)
    _, cell = np.unique(key, return_inverse=True)
    least = np.full(int(cell.max()) + 1 if len(cell) else 0, np.iinfo(np.int64).max)
    stepped = met.step >= 0  # collectives between steps, or after the last one, have none
    np.minimum.at(least, cell[stepped], met.step[stepped])
    return least[cell]


def _blame(met: Meetings, usable: np.ndarray, wait: np.ndarray, step_ns: float) -> tuple[np.ndarray, np.ndarray]:
    """The rank blamed for each row's step (its position; -1: nobody), and the part of the row's wait charged to it:
    none of its own. Of a step, only rows that were compared count: a rank without one waited no one knows how long."""
    who, charged = np.full(len(wait), -1, dtype=np.int64), np.zeros(len(wait), dtype=np.int64)
    stepped = usable & (met.step >= 0)
    if not wait[stepped].any():
        return who, charged
    place, column = np.unique(combined(met.session[stepped] + 1, met.step[stepped]), return_inverse=True)
    cell = met.rank[stepped] * len(place) + column
    shape = (len(met.ranks), len(place))
    summed = np.bincount(cell, wait[stepped], shape[0] * shape[1]).reshape(shape)
    seen = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape) > 0
    whole = np.flatnonzero(seen.all(axis=0))
    if not len(whole):
        return who, charged
    ordered = np.sort(summed[:, whole], axis=0)
    least, peers = ordered[0], ordered[1:]
    usual, margin = np.median(peers, axis=0), peers[0] - least
    here = np.median(np.abs(peers - usual), axis=0)
    spread = 1.4826 * np.maximum(here, np.median(here)) + 0.01 * step_ns
    clear = (usual - least > ENTER_Z * spread) & (margin > ENTER_SHARE * step_ns)
    culprit, limit = np.full(len(place), -1, dtype=np.int64), np.zeros(len(place))
    culprit[whole[clear]] = summed[:, whole[clear]].argmin(axis=0)
    limit[whole] = margin
    mine = summed.ravel()[cell]
    share = np.divide(np.minimum(mine, limit[column]), mine, out=np.zeros_like(mine), where=mine > 0)
    who[stepped] = culprit[column]
    due = (culprit[column] >= 0) & (culprit[column] != met.rank[stepped])
    charged[stepped] = np.where(due, wait[stepped] * share, 0).astype(np.int64)
    return who, charged


def _usual_step_ns(tables: Tables) -> float:
    steps = frame(tables, "steps", ["dur_ns", "capture"])
    dur = steps[steps["capture"].notna()]["dur_ns"].dropna()
    return float(dur.median()) if len(dur) else 0.0
