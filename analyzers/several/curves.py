"""A value of each kept step of a run over step number, time or tokens, reduced to what a screen shows.

step time, tokens/s and MFU   of settled steps; the others are set apart as a comparison of two runs does: the first
                              of an attempt, those before the pace settled, stalls, and those that cannot be true
loss                          of every kept step that tells it
smoothed                      mean of `smooth` neighbours, as many to either side; at the ends of those there are
reduced                       of more than POINTS values each point is a stretch of equally many: its median, with
                              the least and the greatest
hours                         since the first kept step began; where no time of day is told, of kept steps alone
tokens                        of all chips, of the kept steps so far
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

POINTS = 400
MOST_APART = 100  # steps set apart that are drawn, the furthest out
COLUMNS = {"step_time": "dur_s", "loss": "loss", "throughput": "tokens_per_s_per_chip", "mfu": "mfu"}
OF_ALL_CHIPS = ("throughput",)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """`x`, `y`: the curve; `low`, `high`: of the stretch that each point stands for, the same as `y` where it is one
    step. `apart_x`, `apart_y`: steps set apart, of `apart` in all. `width`: steps of a point; `steps`: in the curve."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    apart_x: Floats
    apart_y: Floats
    apart: int
    width: int
    steps: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "x": self.x.tolist(),
            "y": self.y.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "steps": self.steps,
            "steps_a_point": self.width,
            "set_apart": self.apart,
        }


def curve(
    rows: pd.DataFrame,
    usual: NDArray[np.int64],
    of: str,
    over: str,
    chips: int | None,
    smooth: int = 1,
    points: int = POINTS,
) -> Curve | str:
    """`rows`: steps as they were taken, with kept, step, start_ns, dur_s, implausible and the column of `of`; `usual`:
    numbers of the settled steps. A text: why there is no curve."""
    rows = rows[rows["kept"].astype(bool)].drop_duplicates("step", keep="last")
    if of not in COLUMNS or COLUMNS[of] not in rows:
        return "it does not tell it"
    x = _along(rows, over, chips)
    if isinstance(x, str):
        return x
    y = _numbers(rows[COLUMNS[of]])
    if of in OF_ALL_CHIPS:
        if not chips:
            return "its number of chips is not known"
        y = y * chips
    step = rows["step"].to_numpy(dtype=np.int64)
    there = np.isfinite(y) & np.isfinite(x)
    if not there.any():
        return "it does not tell it"
    settled = there if of == "loss" else there & np.isin(step, usual)
    if not settled.any():
        return "none of its steps is a settled one"
    return _drawn(x, y, settled, there & ~settled, smooth, points)


def _drawn(
    x: Floats, y: Floats, settled: NDArray[np.bool_], apart: NDArray[np.bool_], smooth: int, points: int
) -> Curve:
    order = np.argsort(x[settled], kind="stable")
    along, value = x[settled][order], smoothed(y[settled][order], smooth)
    mid, low, high, at, width = reduced(along, value, points)
    away = np.abs(y[apart] - np.median(y[settled]))
    shown = np.sort(np.argsort(-away, kind="stable")[:MOST_APART])
    return Curve(at, mid, low, high, x[apart][shown], y[apart][shown], int(apart.sum()), width, len(value))


def smoothed(values: Floats, width: int) -> Floats:
    """The mean of `width` neighbours around each value, fewer at the ends, where as many lie to either side."""
    if width <= 1 or len(values) < 2:
        return values
    half = min(width // 2, (len(values) - 1) // 2)
    whole = 2 * half + 1
    # Sums from the start and the end of stretches of one window: a window is the end of one and the start of the next.
    # A running sum over all of them would lose what follows a spike.
    stretches = np.pad(values, (0, -len(values) % whole)).reshape(-1, whole)
    before = np.cumsum(stretches, axis=1).ravel()
    after = np.cumsum(stretches[:, ::-1], axis=1)[:, ::-1].ravel()
    first = np.arange(len(values) - 2 * half)
    inner = (before[first + 2 * half] + np.where(first % whole == 0, 0.0, after[first])) / whole
    odd = np.arange(1, 2 * half, 2)
    head = np.cumsum(values[: 2 * half])[::2] / odd
    tail = np.cumsum(values[::-1][: 2 * half])[::2] / odd
    return np.concatenate([head, inner, tail[::-1]])


def reduced(x: Floats, y: Floats, points: int) -> tuple[Floats, Floats, Floats, Floats, int]:
    """(median, least, greatest, middle of x, how many values) of each of at most `points` stretches."""
    width = -(-len(y) // points)
    if width == 1:
        return y, y, y, x, 1
    starts = np.arange(0, len(y), width)
    parts = [y[a : a + width] for a in starts]
    mid = np.array([float(np.median(part)) for part in parts])
    at = np.array([float(np.median(x[a : a + width])) for a in starts])
    return mid, np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts), at, width


def _along(rows: pd.DataFrame, over: str, chips: int | None) -> Floats | str:
    if over == "step":
        return rows["step"].to_numpy(dtype=float)
    took = _numbers(rows["dur_s"])
    usual = float(np.nanmedian(took)) if np.isfinite(took).any() else 0.0
    took = np.where(np.isfinite(took), took, usual)
    if over == "time":
        starts = _numbers(rows["start_ns"])
        if np.isfinite(starts).all() and len(starts):
            return (starts - starts.min()) / 3.6e12
        return (np.cumsum(took) - took) / 3600
    if not chips:
        return "its number of chips, and so its tokens, are not known"
    rate = _numbers(rows["tokens_per_s_per_chip"])
    if not np.isfinite(rate).any():
        return "it does not tell its tokens"
    tokens = rate * took * chips
    return np.cumsum(np.where(np.isfinite(tokens), tokens, np.nanmedian(tokens)))


def _numbers(values: pd.Series) -> Floats:
    return np.asarray(values.astype("Float64").to_numpy(dtype=float, na_value=np.nan), np.float64)
