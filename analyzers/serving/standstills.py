"""When an engine that had requests gave none of them anything, by the pieces of all answers: at its start, while it
compiles programs that they need.

A standstill is open time between one piece and the next, of whichever answers, that is far longer than the others are.
Open is the time in which some request is not done.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runs.tables import Tables

LEAST_S = 0.25
TIMES = 10.0  # the time from piece to piece that nine of ten keep to
MOST = 0.9
ROUNDED_S = 5e-6  # clients round times to microseconds: an answer may end that much after its last piece
FEWEST = 2  # a program reads prompts, another generates; one standstill may be anything
LATER = 0.5  # of the requests: those whose first token comes when the last standstill is over


@dataclass(frozen=True)
class Start:
    """Standstills from the first arrival on, and none later: `lost_s` beyond a usual pass, `longest_s`, and how many
    `requests` had arrived before the last was over."""

    count: int
    lost_s: float
    longest_s: float
    requests: int


def at_the_start(tables: Tables, arrival_s: np.ndarray, ttft_s: np.ndarray, e2e_s: np.ndarray) -> Start | None:
    """None where it did not stand still so. Times of each row of `requests`, NaN where it has none."""
    known = ~np.isnan(arrival_s + ttft_s)
    first = arrival_s + ttft_s
    moments = np.sort(np.concatenate([first[known], _later(tables, first)]))
    begin, waited = _open(arrival_s[known], (arrival_s + np.fmax(ttft_s, e2e_s))[known], moments)
    usual = float(np.quantile(waited, MOST)) if len(waited) else 0.0
    still = waited > max(LEAST_S, TIMES * usual)
    if still.sum() < FEWEST or not still[0]:
        return None
    over = float(moments[still][-1])
    if (first[known] >= over).mean() < LATER:
        return None
    lost = waited[still]
    return Start(len(lost), float(lost.sum()) - len(lost) * usual, float(lost.max()), int((arrival_s < over).sum()))


def _later(tables: Tables, first_s: np.ndarray) -> np.ndarray:
    """Times of all pieces after the first ones."""
    gaps = tables.arrow("requests", ["gaps_ns"])["gaps_ns"].combine_chunks()
    owner = pc.list_parent_indices(gaps).to_numpy(zero_copy_only=False)
    each = pc.list_flatten(gaps).cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e9
    sums = np.cumsum(each)
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    before = np.repeat(sums[begins] - each[begins], np.diff(begins, append=len(owner)))
    times = first_s[owner] + sums - before
    return times[~np.isnan(times)]


def _open(arrival_s: np.ndarray, end_s: np.ndarray, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(begin, length) of the open time before each moment."""
    arrival, end = np.sort(arrival_s), np.sort(end_s)
    since = np.concatenate([arrival[:1], moments[:-1]])
    came = np.searchsorted(arrival, since, side="right")
    idle = came <= np.searchsorted(end, since + ROUNDED_S, side="right")
    begin = np.where(idle, np.append(arrival, np.inf)[came], since)
    return begin, np.maximum(moments - np.minimum(begin, moments), 0.0)
