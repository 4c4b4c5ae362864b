"""How late each rank was in each step, and what the others waited for it: from durations alone.

In a meeting i (a collective that all ranks of its group recorded) rank r waited W[r, i] = D[r, i] - min over q of
D[q, i]. The last to arrive waited nothing; the margin, second smallest D less the smallest, is what would be saved if
only it had come earlier. It is charged with what the others waited, up to the margin.

A rank may be last because it was kept in another group before: the tensor-parallel peer of a slow rank is late at its
data-parallel group through no fault of its own. Where the last rank met another group just before,

    margin = (own time since then of the last rank) - (own time since then of the last but one) + what it brought along

and what it brought along is charged to the rank of those other groups that waited least in the step as a whole.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from analyzers.base import Facts
from analyzers.device.activity import activities
from analyzers.intervals import Spans, overlap_with
from analyzers.ranks.meetings import Meetings, combined
from analyzers.ranks.mesh import mesh_of
from analyzers.ranks.stragglers.steps import columns_of
from runs.tables import Tables

PIPELINE_AXES = ("pipeline", "pipe", "stage", "pp")
HANDED_ON = 4  # groups that a delay is followed through
SAMPLED = 1 << 18  # rows that tell how exactly ranks leave together
FEW_RANKS = 5  # below, each rank is held against the others alone


@dataclass(frozen=True)
class Lateness:
    """Arrays with one row per rank (as `Meetings.ranks`) and one column per step, by time; NaN: not compared.

    wait_s      what the rank waited in meetings while its device computed nothing, two at once counted once
    lag_s       median of its peers' waits less its own: by how much later than usual it arrives
    charge_s    chip-seconds that others waited for it, 0 where none did
    halves      lag in the first and second half of each step's meetings, or None where steps have one meeting
    spread_s    per step: 1.4826 MAD of the lags among peers, the widest of the peer groups
    moved_s     per step: shortest duration of each meeting, summed over meetings and averaged over ranks
    usual_s     the same, had each meeting been as quick as in the quietest fifth of its kind
    step, session   per column; `step_s`: the usual time of a step
    peers       per rank: which ranks it is held against (equal numbers: same role, and they meet)
    others      per rank: how many ranks meet it, directly or through others
    resolution_s    how far apart ranks leave a meeting, 1.4826 MAD: what waits of one step are good to
    column      for each row of the meetings its step's position; -1: not used
    how         where steps come from: trace, marks or repetition
    """

    wait_s: np.ndarray
    lag_s: np.ndarray
    charge_s: np.ndarray
    halves: tuple[np.ndarray, np.ndarray] | None
    spread_s: np.ndarray
    moved_s: np.ndarray
    usual_s: np.ndarray
    step: np.ndarray
    session: np.ndarray
    step_s: float
    peers: np.ndarray
    others: np.ndarray
    resolution_s: float
    column: np.ndarray
    how: str


def lateness(met: Meetings, tables: Tables, facts: Facts) -> Lateness:
    """Waits, lags and charges of every rank and step. O(n log n) in the rows of `collectives`."""
    columns = columns_of(met, tables)
    column, steps = columns.column, len(columns.step)
    used = column >= 0
    dur = met.dur_ns
    arrivals = _arrivals(met, dur)
    first = arrivals[0]
    wait = _uncovered(met, tables, np.where(used, dur - first[met.meeting], 0))
    peers, others = _peers(met, facts, used)
    cell = met.rank * steps + column
    counts = _sums(cell, used, None, len(met.ranks), steps)
    one_each = counts.max(initial=0) <= 1
    once, half = (wait, None) if one_each else _counted_once(met, cell, used, wait)
    waited = _sums(cell, used, once, len(met.ranks), steps) / 1e9
    waited[_lacking(counts, peers)] = np.nan
    halves = None
    if half is not None:
        halves = tuple(
            _lag(np.where(np.isnan(waited), np.nan, _sums(cell, used & (half == h), wait, *waited.shape) / 1e9), peers)
            for h in (0, 1)
        )
    lag = _lag(waited, peers)
    charges = _charges(met, column, used, once, arrivals, waited)
    return Lateness(
        wait_s=waited,
        lag_s=lag,
        charge_s=charges,
        halves=halves,
        spread_s=spreads(lag, peers),
        **_transfers(met, used, column, first, steps),
        step=columns.step,
        session=columns.session,
        step_s=columns.step_s,
        peers=peers,
        resolution_s=_resolution(met, used, column),
        column=column,
        how=columns.how,
        others=others,
    )


def _uncovered(met: Meetings, tables: Tables, wait: np.ndarray) -> np.ndarray:
    """Waits less what their device computed meanwhile: nobody is held up by a collective that runs beside its work."""
    out, waited = wait.copy(), np.flatnonzero(wait > 0)
    if not len(waited):
        return out
    order = waited[np.argsort(met.rank[waited], kind="stable")]
    places = zip(met.ranks["host"], met.ranks["device"], strict=True)
    at = {(host, int(device)): number for number, (host, device) in enumerate(places)}
    for activity in activities(tables):
        number = at.get((activity.host, activity.device), -1)
        low, high = np.searchsorted(met.rank[order], [number, number + 1])
        rows = order[low:high]
        begin = met.start_ns[rows]
        out[rows] -= overlap_with(activity.computation, Spans(begin, begin + wait[rows]))
    return out


def _sums(cell: np.ndarray, used: np.ndarray, values: np.ndarray | None, ranks: int, steps: int) -> np.ndarray:
    """Values summed by rank and step (None: rows counted)."""
    weights = None if values is None else values[used].astype(float)
    return np.bincount(cell[used], weights, minlength=ranks * steps).reshape(ranks, steps)


def _arrivals(met: Meetings, dur: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each meeting: shortest duration, row of the second shortest, row of the shortest (the last to arrive)."""
    rows, begins = met.order, met.begins
    if not len(rows):
        return dur[:0], rows, rows
    sorted_dur = dur[rows]
    first = np.minimum.reduceat(sorted_dur, begins)
    sizes = np.diff(np.append(begins, len(rows)))
    number = np.repeat(np.arange(len(begins)), sizes)
    last = _where_first(sorted_dur == first[number], number, len(begins))
    rest = sorted_dur.copy()
    rest[last] = np.iinfo(np.int64).max
    least = np.minimum.reduceat(rest, begins)
    second = _where_first(rest == least[number], number, len(begins))
    return first, rows[second], rows[last]


def _where_first(hit: np.ndarray, number: np.ndarray, meetings: int) -> np.ndarray:
    at = np.flatnonzero(hit)
    out = np.empty(meetings, dtype=np.int64)
    out[number[at][::-1]] = at[::-1]  # of several in one meeting the first is written last
    return out


def _peers(met: Meetings, facts: Facts, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each rank a number (ranks of one number have one role and meet, directly or through others), and how many
    others it meets so."""
    ranks = len(met.ranks)
    pairs, span = _groups_of(met, np.flatnonzero(used))
    who, group = pairs // span, pairs % span
    graph = coo_matrix((np.ones(len(pairs), dtype=np.int8), (who, ranks + group)), shape=(ranks + span,) * 2)
    together = connected_components(graph, directed=False)[1][:ranks]
    others = np.bincount(together, minlength=1)[together] - 1
    return np.unique(combined(together, _roles(met, facts)), return_inverse=True)[1].reshape(-1), others


def _groups_of(met: Meetings, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Each pair of a rank and a group that it meets in, once, as rank x span + group; and the span."""
    span = len(met.names["group"]) or 1
    size = len(met.ranks) * span
    key = met.rank[rows] * span + met.group[rows]
    return (np.flatnonzero(np.bincount(key, minlength=size)) if size < 1 << 26 else np.unique(key)), span


def _roles(met: Meetings, facts: Facts) -> np.ndarray:
    """A number per rank: its role as the input has it, else its pipeline stage by the mesh, else the same for all."""
    said = met.ranks["role"].astype(str)
    if (said != "").any():
        return pd.factorize(said)[0].astype(np.int64)
    mesh, number = mesh_of(facts) or {}, met.ranks["place"]
    axis = next((a for a in mesh if any(a.lower().startswith(p) for p in PIPELINE_AXES)), None)
    if axis is None or not len(number) or number.isna().any() or int(number.max()) >= int(np.prod(list(mesh.values()))):
        return np.zeros(len(met.ranks), dtype=np.int64)
    at = np.unravel_index(number.to_numpy(dtype=np.int64), tuple(mesh.values()))
    return np.asarray(at[list(mesh).index(axis)], dtype=np.int64)


def _lacking(counts: np.ndarray, peers: np.ndarray) -> np.ndarray:
    """Where a rank has other than the usual number of its peers' meetings in a step: its sum says nothing."""
    out = counts == 0
    for number in np.unique(peers):
        mine = peers == number
        some = counts if mine.all() else counts[mine]
        out[mine] |= some != some.max(axis=0)
    return out


def _lag(waited: np.ndarray, peers: np.ndarray) -> np.ndarray:
    """Median wait of a rank's peers less its own; NaN without a peer."""
    out = np.full(waited.shape, np.nan)
    for number in np.unique(peers):
        mine = np.flatnonzero(peers == number)
        some = waited if len(mine) == len(waited) else waited[mine]
        if len(mine) >= FEW_RANKS:
            out[mine] = median(some) - some
        elif len(mine) > 1:
            for i, row in enumerate(mine):
                out[row] = median(np.delete(some, i, axis=0)) - some[i]
    return out


def median(values: np.ndarray) -> np.ndarray:
    """Median over the first axis without NaN, NaN where there is none; without NaN's price where there are none."""
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    if not np.isnan(values).any():
        return np.median(values, axis=0)
    ordered = np.sort(values, axis=0)  # NaN last
    n = (~np.isnan(values)).sum(axis=0)
    at = np.arange(values.shape[1])
    out = (ordered[np.maximum(n - 1, 0) // 2, at] + ordered[np.minimum(n // 2, len(values) - 1), at]) / 2
    return np.where(n > 0, out, np.nan)


def spreads(lag: np.ndarray, peers: np.ndarray) -> np.ndarray:
    """Per column the robust standard deviation, 1.4826 MAD, of the lags among peers; the widest of the peer groups."""
    out = np.zeros(lag.shape[1])
    for number in np.unique(peers):
        mine = peers == number
        if mine.sum() > 1:
            out = np.fmax(out, 1.4826 * median(np.abs(lag[mine])))
    return out


def _counted_once(met: Meetings, cell: np.ndarray, used: np.ndarray, wait: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Waits less what meetings at the same time have already counted, and the half of its step that each row is in."""
    rows = np.flatnonzero(used)
    rows = rows[np.lexsort((met.start_ns[rows], cell[rows]))]
    mine = cell[rows]
    opens = np.flatnonzero(np.concatenate(([True], mine[1:] != mine[:-1])))
    sizes = np.diff(np.append(opens, len(rows)))
    at = met.start_ns[rows] - np.repeat(met.start_ns[rows[opens]], sizes)
    end = at + wait[rows]
    reach = int(end.max(initial=0)) + 1
    before = np.zeros(len(rows), dtype=np.int64)
    chunk = max((1 << 62) // reach, 1)  # so many cells can be told apart by an offset in 63 bits
    number = np.repeat(np.arange(len(opens)), sizes)
    for low in range(0, len(opens), chunk):
        some = slice(opens[low], opens[low + chunk] if low + chunk < len(opens) else len(rows))
        shift = (number[some] - low) * reach
        highest = np.maximum.accumulate(end[some] + shift)
        before[some] = np.concatenate(([0], highest[:-1])) - shift
    once = np.zeros_like(wait)
    once[rows] = np.maximum(end - np.maximum(at, before), 0)
    half = np.zeros(len(wait), dtype=np.int8)
    place = np.arange(len(rows)) - np.repeat(opens, sizes)
    half[rows] = place * 2 >= np.repeat(sizes, sizes)
    return once, half


def _charges(
    met: Meetings, column: np.ndarray, used: np.ndarray, once: np.ndarray, arrivals: tuple, waited: np.ndarray
) -> np.ndarray:
    """Chip-seconds that others waited for each rank in each step, up to the margins."""
    first, second, last = arrivals
    steps = waited.shape[1]
    margin = met.dur_ns[second] - first
    part = np.where(used, np.minimum(once, margin[met.meeting]), 0).astype(float)
    amount = np.bincount(met.meeting, part, minlength=len(last)) / 1e9
    at = np.flatnonzero(amount > 0)
    rank, where = met.rank[last[at]], column[last[at]]
    own, root = _roots(met, used, last[at], second[at], margin[at], waited, column)
    cells = np.concatenate([rank, root]) * steps + np.tile(where, 2)
    amounts = np.concatenate([amount[at] * own, amount[at] * (1 - own)])
    return np.bincount(cells, amounts, minlength=waited.size).reshape(waited.shape)


def _roots(
    met: Meetings,
    used: np.ndarray,
    last: np.ndarray,
    second: np.ndarray,
    margin: np.ndarray,
    waited: np.ndarray,
    column: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """For meetings by their last and last but one row: the part of the margin that the last owes to itself, and the
    rank that the rest is charged to."""
    own, root = np.ones(len(last)), met.rank[last].copy()
    rows = np.flatnonzero(used)
    pairs, span = _groups_of(met, rows)
    groups_of = np.bincount(pairs // span, minlength=len(met.ranks))
    if not len(last) or groups_of.max() < 2:
        return own, root
    rows = rows[np.lexsort((met.start_ns[rows], met.session[rows], met.rank[rows]))]
    previous = np.full(len(met.rank), -1, dtype=np.int64)
    follows = (met.rank[rows[1:]] == met.rank[rows[:-1]]) & (met.session[rows[1:]] == met.session[rows[:-1]])
    previous[rows[1:][follows]] = rows[:-1][follows]
    a, b = previous[last], previous[second]
    other = (a >= 0) & (b >= 0) & (met.group[np.maximum(a, 0)] != met.group[last])
    gap = (met.start_ns[last] - met.end_ns[a]) - (met.start_ns[second] - met.end_ns[b])
    own[other] = np.clip(gap[other] / margin[other], 0, 1)
    slots = np.full((len(met.ranks), groups_of.max()), -1, dtype=np.int64)
    slots[pairs // span, np.arange(len(pairs)) - (np.cumsum(groups_of) - groups_of)[pairs // span]] = pairs % span
    where, wait = column[last], np.where(np.isnan(waited), np.inf, waited)
    latest = _latest(pairs // span, pairs % span, wait, span)
    for _ in range(HANDED_ON):
        before = root.copy()
        for slot in slots.T:
            group = slot[before]
            there = other & (group >= 0) & (group != met.group[last])
            mate = latest[np.maximum(group, 0), where]
            better = there & (mate >= 0) & (wait[mate, where] < wait[root, where])
            root = np.where(better, mate, root)
        if (root == before).all():
            break
    return own, root


def _latest(rank: np.ndarray, group: np.ndarray, wait: np.ndarray, groups: int) -> np.ndarray:
    """For each group and step the rank of it (by pairs of rank and group) that waited least in the whole step."""
    order = np.argsort(group, kind="stable")
    rank, group = rank[order], group[order]
    begins = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    mine = wait[rank]
    least = np.minimum.reduceat(mine, begins, axis=0)
    hit = mine == np.repeat(least, np.diff(np.append(begins, len(rank))), axis=0)
    out = np.full((groups, wait.shape[1]), -1, dtype=np.int64)
    out[group[begins]] = np.maximum.reduceat(np.where(hit, rank[:, None], -1), begins, axis=0)
    return out


def _transfers(
    met: Meetings, used: np.ndarray, column: np.ndarray, first: np.ndarray, steps: int
) -> dict[str, np.ndarray]:
    """Time in which nobody waited, per step and rank, and what it would be at the pace of the quietest fifth."""
    opening = met.order[met.begins] if len(met.begins) else met.order
    taking = used[opening]
    where, size = column[opening][taking], np.diff(np.append(met.begins, len(met.order)))[taking]
    shortest = first[taking].astype(float)
    kind = combined(met.group[opening], met.module[opening], met.op[opening])[taking]
    order = np.lexsort((shortest, kind))
    begins = np.flatnonzero(np.concatenate(([True], kind[order][1:] != kind[order][:-1]))) if len(order) else order
    sizes = np.diff(np.append(begins, len(order)))
    quiet = np.empty(len(shortest))
    quiet[order] = np.repeat(shortest[order[begins + sizes // 5]], sizes) if len(order) else 0
    ranks = max(len(met.ranks), 1)
    return {
        "moved_s": np.bincount(where, shortest * size, minlength=steps) / ranks / 1e9,
        "usual_s": np.bincount(where, quiet * size, minlength=steps) / ranks / 1e9,
    }


def _resolution(met: Meetings, used: np.ndarray, column: np.ndarray) -> float:
    """How exactly ranks leave together, in s: the scatter of the time between two meetings' ends among the ranks of a
    group, 1.4826 MAD / sqrt 2, times the square root of a step's meetings. Offsets of clocks drop out of it."""
    some = np.flatnonzero(used)
    if len(some) > SAMPLED:  # whole meetings, one after the other, are enough
        mean = len(some) / max(len(np.unique(met.meeting[met.order[met.begins]])), 1)
        lowest = int(met.meeting[some].min())
        some = some[met.meeting[some] < lowest + max(SAMPLED / mean, 3)]
    if not len(some):
        return 0.0
    order = some[np.lexsort((met.meeting[some], met.group[some], met.rank[some]))]
    same = (met.rank[order[1:]] == met.rank[order[:-1]]) & (met.group[order[1:]] == met.group[order[:-1]])
    pair = combined(met.meeting[order[1:]], met.meeting[order[:-1]])[same]
    between = (met.end_ns[order[1:]] - met.end_ns[order[:-1]])[same]
    by_pair = np.lexsort((between, pair))
    pair, between = pair[by_pair], between[by_pair]
    if not len(pair):
        return 0.0
    begins = np.flatnonzero(np.concatenate(([True], pair[1:] != pair[:-1])))
    sizes = np.diff(np.append(begins, len(pair)))
    middle = np.repeat((between[begins + (sizes - 1) // 2] + between[begins + sizes // 2]) / 2, sizes)
    off = np.abs(between - middle)[np.repeat(sizes, sizes) > 1]
    per_step = len(np.unique(met.meeting[some])) / max(len(np.unique(column[some])), 1)
    return 1.4826 * float(np.median(off)) / np.sqrt(2) * np.sqrt(max(per_step, 1)) / 1e9 if len(off) else 0.0
