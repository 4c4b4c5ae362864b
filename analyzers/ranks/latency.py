"""Which collectives latency binds: those so small that what starts them takes longer than what they move."""

import pandas as pd

LATENCY_FACTOR = 2.0  # a collective this close to the quickest of its kind and group is bound by latency


def sizes_differ(sizes: pd.Series) -> bool:
    """Whether sizes of one kind and group differ so much that the quickest tells of latency."""
    return len(sizes) > 1 and bool(sizes.max() >= 4 * sizes.min())


def latency_bound(rows: pd.DataFrame) -> pd.Series:
    """Nullable: of each kind and group size, where sizes differ, which take hardly longer than the quickest, and more
    than twice what the link alone would need; where that is not known, what their bytes take at the rate of the
    largest. Of those in which waiting may still be inside nothing tells."""
    out = pd.Series(pd.NA, index=rows.index, dtype="boolean")
    known = rows["matched"].fillna(False).astype(bool) & rows["transfer_median_s"].notna() & (rows["bytes"] > 0)
    for _, timed in rows[known.fillna(False).astype(bool)].groupby(["kind", "group_size"], dropna=False):
        size, took = timed["bytes"].astype(float), timed["transfer_median_s"].astype(float)
        if not sizes_differ(size):
            continue
        near = took <= LATENCY_FACTOR * took.min()
        wire = timed["bound_s"].astype(float).fillna(size * (took / size).iloc[int(size.argmax())])
        out.loc[timed.index] = near & (LATENCY_FACTOR * wire < took) & (size < size.max())
    return out
