"""Inputs whose times count from a zero of their own, such as the start of a load generator: one after another.

Read as they stand, loads that ran at different times would be in flight together. Inputs that count from one clock keep
their times: the stages of a load test, which do not overlap, and clients on one machine whose clock counts since that
started, which was long before they did.
"""

import numpy as np
import pandas as pd

CALENDAR_NS = 900_000_000 * 10**9  # 1998: an earlier time is no time of day
FROM_ZERO_NS = 3600 * 10**9  # what counts from its own start begins no later
_TIMES = ("arrival_ns", "scheduled_ns", "first_token_ns", "last_token_ns")


def put_in_turn(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Requests, those of inputs that overlap on clocks of their own one input after another, by name; and what must be
    said of that. Columns: source, status, and of times arrival_ns and any other of the table `requests`."""
    at = rows["arrival_ns"]
    mine = rows["status"].notna() & (at < CALENDAR_NS).fillna(False)
    source = rows["source"].astype("string").fillna("").where(mine)
    if source.nunique() < 2:
        return rows, []
    spans = (
        pd.DataFrame({"begin": at, "end": _ends(rows)})[mine]
        .groupby(source[mine].astype(str))
        .agg({"begin": "min", "end": "max"})
    )
    spans = spans[spans["begin"] < FROM_ZERO_NS]
    timely = spans.sort_values("begin")
    if (timely["begin"].to_numpy()[1:] >= timely["end"].to_numpy()[:-1]).all():
        return rows, []
    lasts = (spans["end"] - spans["begin"]).to_numpy(dtype=np.int64)
    later = pd.Series(np.cumsum(lasts) - lasts, index=spans.index, dtype="Int64") - spans["begin"].astype("Int64")
    shift = source.map(later).astype("Int64").fillna(0)
    moved = {name: rows[name] + shift for name in _TIMES if name in rows}
    return rows.assign(**moved), [
        f"The times of {len(spans)} inputs count from zero in each, and nothing says when that was: they are put one "
        "after another."
    ]


def _ends(rows: pd.DataFrame) -> pd.Series:
    """When each request ended, or came where that is not told."""
    ends = rows["arrival_ns"]
    if "e2e_ns" in rows:
        ends = ends + rows["e2e_ns"].fillna(0).clip(lower=0)
    for name in _TIMES[1:]:
        if name in rows:
            ends = ends.where(~(rows[name] > ends).fillna(False), rows[name])
    return ends
