"""What became of the devices' time, operation by operation: at the roof, wasted below it, in collectives, not known.

One definition for every question. Of an operation with a roof (`roofs.py`), the least time that its FLOPs and bytes
need is no waste, and what it took beyond that is. A collective has no roof of the device. Of all others nobody knows:
those whose FLOPs or bytes nobody counts, copies to and from the host, and those that show more than their roof allows.
"""

import numpy as np
import pandas as pd

SPENT = ("at_roof_seconds", "wasted_seconds", "communication_seconds", "unknown_seconds")


def spent(placed: pd.DataFrame) -> pd.DataFrame:
    """Columns SPENT of each row of `roofline.place`, which together are its `self_seconds`; where nobody timed it, the
    first is its least time and the others are 0."""
    seconds = placed["self_seconds"].to_numpy(dtype=float)
    least = placed["roof_seconds"].to_numpy(dtype=float)
    timed, bound = ~np.isnan(seconds), placed["bound"].to_numpy()
    told = ~np.isnan(least) & (bound != "above")
    within = np.where(timed, np.fmin(least, seconds), least)
    talks = timed & (bound == "communication")
    parts = (
        np.where(told, within, 0.0),
        np.where(told & timed, seconds - within, 0.0),
        np.where(talks, seconds, 0.0),
        np.where(timed & ~told & ~talks, seconds, 0.0),
    )
    return pd.DataFrame(dict(zip(SPENT, parts, strict=True)), index=placed.index)


def wasted_by_unit(placed: pd.DataFrame, unit: pd.Series) -> pd.Series:
    """Seconds wasted of each unit; NaN where it is known of no part of it."""
    told = placed["roof_seconds"].notna() & (placed["bound"] != "above") & placed["self_seconds"].notna()
    return spent(placed)["wasted_seconds"].where(told).groupby(unit).sum(min_count=1)
