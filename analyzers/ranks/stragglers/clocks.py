"""How far the ranks' clocks are apart, from the ends of collectives: for display only, no verdict rests on it.

All ranks leave a meeting together, so the ends that they recorded differ by their clocks:

    theta_r = median over meetings i of ( e[r, i] - median over q of e[q, i] )
    rho     = 1.4826 median |e[r, i] - median over q of e[q, i] - theta_r - drift_r (t_i - middle)|

drift_r is the Theil-Sen slope (median slope between stretches), fitted where a run is watched for a minute or longer.
Groups are joined by least squares over the ranks they share.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import lsqr

from analyzers.ranks.meetings import Meetings

SAMPLE, CELLS = 256, 1 << 19  # meetings of a group that are looked at, evenly spread, and ends in all of them
LONG_S, STRETCHES = 60.0, 16
MOST_GROUPS = 4096


@dataclass(frozen=True)
class Clocks:
    """Per rank: `offset_s`, by how much its clock is ahead of the median (NaN: not known), and `drift` in s per s (0
    where not fitted). `resolution_s`: rho, what offsets are good to; None where nothing tells."""

    offset_s: np.ndarray
    drift: np.ndarray
    resolution_s: float | None


def clocks(met: Meetings, used: np.ndarray) -> Clocks:
    """Offsets of all ranks that meet in the `used` rows."""
    ranks = len(met.ranks)
    offset, drift = np.full(ranks, np.nan), np.full(ranks, np.nan)
    order = met.order[used[met.order]]
    if not len(order):
        return Clocks(offset, np.zeros(ranks), None)
    group = met.group[order]
    by_group = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[by_group])) + 1
    parts = sorted(np.split(order[by_group], cuts), key=lambda rows: -_size(met, rows))[:MOST_GROUPS]
    found, scatter = [], []
    for rows in parts:  # the largest first: the drift of a rank is told best there
        who, theta, drift_here, off = _of_group(met, rows, drift)
        found.append((who, theta))
        scatter.append(off.ravel()[:: max(off.size >> 18, 1)])
        drift[who] = drift_here
    drift = np.nan_to_num(drift)
    if len(found) == 1:
        offset[found[0][0]] = found[0][1]
    else:
        offset = _joined(found, ranks)
    return Clocks(offset, drift, 1.4826 * float(np.median(np.concatenate(scatter))) / 1e9)


def _size(met: Meetings, rows: np.ndarray) -> int:
    return int((met.meeting[rows[: len(met.ranks)]] == met.meeting[rows[0]]).sum())


def _of_group(
    met: Meetings, rows: np.ndarray, drift: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of one group, whose rows come meeting by meeting: its ranks, offsets (s), drifts (as known, else fitted), and
    what is left over (ns)."""
    size = _size(met, rows)
    table = rows.reshape(-1, size)
    most = max(min(SAMPLE, CELLS // size), 2 * STRETCHES)
    if len(table) > most:
        table = table[np.linspace(0, len(table) - 1, most).astype(np.int64)]
    who, end = met.rank[table[0]], met.end_ns[table]
    at = (end[:, 0] - end[0, 0]) / 1e9
    apart = (end - end[:, :1]).astype(float)
    apart -= np.median(apart, axis=1)[:, None]
    slope = drift[who] * 1e9
    if np.isnan(slope).any():
        slope = _slopes(at, apart)
    apart -= slope * (at - np.median(at))[:, None]
    theta = np.median(apart, axis=0)
    return who, theta / 1e9, slope / 1e9, np.abs(apart - theta)


def _slopes(at: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Theil-Sen slope per rank (ns per s) over stretches of the run; 0 for short ones."""
    if np.ptp(at) < LONG_S or len(at) < 2 * STRETCHES:
        return np.zeros(apart.shape[1])
    parts = np.array_split(np.argsort(at, kind="stable"), STRETCHES)
    x = np.array([np.median(at[p]) for p in parts])
    y = np.stack([np.median(apart[p], axis=0) for p in parts])
    i, j = np.triu_indices(len(x), 1)
    apart_s = x[j] - x[i]
    i, j, apart_s = i[apart_s > 0], j[apart_s > 0], apart_s[apart_s > 0]
    return np.median((y[j] - y[i]) / apart_s[:, None], axis=0) if len(i) else np.zeros(apart.shape[1])


def _joined(found: list[tuple[np.ndarray, np.ndarray]], ranks: int) -> np.ndarray:
    """Offsets of ranks that agree best with the offsets within each group, the median rank's being 0."""
    who = np.concatenate([w for w, _ in found])
    theta = np.concatenate([t for _, t in found])
    group = np.repeat(np.arange(len(found)), [len(w) for w, _ in found])
    at = np.arange(len(who))
    equations = coo_matrix(
        (np.tile([1.0, -1.0], (len(who), 1)).T.ravel(), (np.tile(at, 2), np.concatenate([who, ranks + group]))),
        shape=(len(who), ranks + len(found)),
    )
    solved = lsqr(equations.tocsr(), theta, atol=1e-12, btol=1e-12, iter_lim=1000)[0][:ranks]
    out = np.full(ranks, np.nan)
    out[who] = solved[who]
    return out - np.nanmedian(out)
