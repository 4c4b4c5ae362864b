"""Fetches that a job notes itself, put into the steps that they belong to."""

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, overlap_with


def add_job_fetches(out: pd.DataFrame, rows: pd.DataFrame, job: Spans, steps: pd.DataFrame) -> None:
    """Add fetch_s from the job's own entries, and let a step begin with its fetch where that comes before its mark.

    Whether it does is seen from profiled steps, or else from the gaps: the end of a fetch lies nearer to the next mark
    than its start to the last.
    """
    known = np.flatnonzero((rows["start_ns"].notna() & rows["dur_ns"].notna()).to_numpy())
    if not len(known) or not len(job.start):
        return
    mark = rows["start_ns"].to_numpy(dtype=np.int64, na_value=0)[known]
    end = mark + rows["dur_ns"].to_numpy(dtype=np.int64, na_value=0)[known]
    after = np.searchsorted(mark, job.end, side="left")  # the first step marked once the fetch was done
    inner = (after > 0) & (after < len(mark))
    begin = mark.copy()
    if inner.any():
        lead = mark[after[inner]] - job.end[inner]
        leads = _fetched_before(mark, rows["step"].to_numpy()[known], job, steps)
        if leads is None:
            leads = bool(np.median(lead) < np.median(job.start[inner] - mark[after[inner] - 1]))
        if leads:
            reach = (after < len(mark)) & (mark[np.minimum(after, len(mark) - 1)] - job.end < np.median(end - mark))
            begin[after[reach]] = np.minimum(job.start[reach], begin[after[reach]])
    touching = np.append(end[:-1] == mark[1:], False)
    end = np.where(touching, np.append(begin[1:], 0), end)
    out.loc[known, "fetch_s"] = overlap_with(job, Spans(begin, end)) / 1e9
    out.loc[known, "dur_s"] = (end - begin) / 1e9


def _fetched_before(mark: np.ndarray, number: np.ndarray, job: Spans, steps: pd.DataFrame) -> bool | None:
    """Whether profiled steps hold a fetch of the job's before the job marks their start; None where they hold none."""
    begun = pd.Series(mark, index=number).groupby(level=0).min()
    seen = steps[steps["step"].isin(begun.index)]
    begin, end = (seen[name].to_numpy(dtype=np.int64) for name in ("start_ns", "end_ns"))
    at = np.searchsorted(job.start, begin, side="left")
    held = (at < len(job.start)) & (job.end[np.minimum(at, len(job.end) - 1)] <= end)
    marked = begun.reindex(seen["step"]).to_numpy()
    inside = held & (marked >= begin) & (marked < end)
    return float((job.end[at[inside]] <= marked[inside]).mean()) > 0.5 if inside.any() else None
