"""Fetches that stalled a step, and what a longer fetch costs."""

import numpy as np
import pandas as pd

STALL_SHARE = 0.05  # of the usual step: a shorter delay is noise
STALL_Z = 3.5  # robust standard deviations of the fetch
RESAMPLES, SEED = 1000, 0
MOST_RESAMPLED, Z_95 = 50_000, 1.96  # steps; more would be drawn a thousand times over, for minutes


def mark_stalls(rows: pd.DataFrame, usual: pd.DataFrame, step_s: float | None, fetch_s: float | None) -> None:
    """Add extra_s and stalled: both the fetch and the step exceed the usual ones, by more than noise."""
    rows["extra_s"], rows["stalled"] = 0.0, False
    if step_s is None or fetch_s is None:
        return
    excess = np.minimum(rows["fetch_s"] - fetch_s, rows["dur_s"] - step_s).astype("Float64").fillna(0)
    spread = 1.4826 * float((usual["fetch_s"] - fetch_s).abs().median())
    stalled = rows["usual"] & (excess > max(STALL_SHARE * step_s, STALL_Z * spread))
    rows["stalled"] = stalled.astype(bool)
    rows["extra_s"] = excess.astype(float).where(rows["stalled"], 0.0)


def slope_of(usual: pd.DataFrame, step_s: float | None, fetch_s: float | None) -> tuple[float, float, float] | None:
    """Least squares through the medians over steps whose fetch exceeds the median, with a bootstrap interval over
    steps: of very many steps the one that bootstraps tend to, by linearisation. None where fewer than three of them
    differ by a hundredth of a step: chance would decide."""
    if step_s is None or fetch_s is None:
        return None
    some = usual.dropna(subset=["fetch_s", "dur_s"])
    x = (some["fetch_s"].astype(float) - fetch_s).clip(lower=0).to_numpy()
    y = some["dur_s"].astype(float).to_numpy() - step_s
    if (x > 0.01 * step_s).sum() < 3:
        return None
    xy, xx = x * y, x * x
    slope = float(xy.sum() / xx.sum())
    if len(x) > MOST_RESAMPLED:
        margin = Z_95 * float(np.sqrt(((xy - slope * xx) ** 2).sum())) / float(xx.sum())
        return slope, slope - margin, slope + margin
    rng, drawn = np.random.default_rng(SEED), []
    for _ in range(RESAMPLES):
        pick = rng.integers(0, len(x), len(x))
        if whole := xx[pick].sum():
            drawn.append(xy[pick].sum() / whole)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return slope, float(low), float(high)
