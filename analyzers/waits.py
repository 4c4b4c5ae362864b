"""Who waited for whom in collectives, without trusting any clock.

All ranks leave a synchronising collective together, so the rank that arrives last has the shortest duration D,
and rank r waited W[r, i] = D[r, i] - min over q of D[q, i] before the last one had arrived. Only durations are
compared, each taken by one host's own clock, so clocks that differ by any amount change nothing.

A step is blamed on the rank that waited least, where it stands apart: its peers' median wait exceeds its own by
3.5 robust standard deviations (1.4826 MAD of the peers, in this step or the median over all steps, whichever is larger,
+ 1 % of the step), and the margin (second smallest wait
less the smallest: the time saved if only that rank were mended) exceeds 2 % of the step. What the others waited,
up to the margin, is then charged to it; the rest is nobody's.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from runs.tables import Tables, frame

SYNCHRONISING = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
ENTER_Z = 3.5
ENTER_SHARE = 0.02  # of the step


@dataclass(frozen=True)
class Waits:
    """`rows`: one per exposed part in a synchronising collective, with host, device, start_ns, end_ns (its own clock),
    wait_ns (before the last rank came), blamed_ns (the part of it charged to `blamed`) and blamed ("" or a host).

    `matched`: how many collectives were found on every rank of their group; `lone`: how many were not.
    """

    rows: pd.DataFrame
    matched: int
    lone: int


def waits(tables: Tables) -> Waits:
    """Waits in every collective that all ranks of its group recorded. O(n log n)."""
    columns = ["capture", "host", "device", "group", "kind", "op", "module", "seq", "step", "start_ns", "end_ns"]
    rows = frame(tables, "collectives", columns)
    for column in ("group", "kind", "op", "module"):
        rows[column] = rows[column].astype(str).fillna("")  # a null would drop its row from every grouping
    rows["device"] = rows["device"].fillna(0)
    rows["rank"] = rows["host"].astype(str) + "/" + rows["device"].astype(str)
    rows["session"] = rows["capture"].map(_sessions(tables)).fillna(-1).astype(int)
    rows = rows.sort_values(["rank", "capture", "start_ns"], kind="stable").reset_index(drop=True)
    rows["dur_ns"] = (rows["end_ns"] - rows["start_ns"]).astype("int64")

    rows["step"] = rows["step"].fillna(-1).astype("int64")
    place = ["session", "step", "group", "module", "op"]
    rows["nth"] = np.where(rows["step"] >= 0, rows.groupby(["rank", *place]).cumcount(), rows["seq"].fillna(-1))
    meeting = rows.groupby([*place, "nth"], sort=False)
    size = meeting["rank"].transform("nunique")
    expected = rows["group"].map(_group_size)
    complete = (size == expected.where(expected > 0, rows["rank"].nunique())) & (size > 1)
    first = rows["step"] == rows.groupby(["rank", "capture"])["step"].transform("min")
    usable = complete & rows["kind"].isin(SYNCHRONISING) & ~(first & (rows["step"] >= 0))
    rows["wait_ns"] = np.where(usable, rows["dur_ns"] - meeting["dur_ns"].transform("min"), 0)
    rows["blamed"], rows["blamed_ns"] = _blame(rows, tables)
    kept = ["host", "device", "start_ns", "end_ns", "wait_ns", "blamed_ns", "blamed", "session", "step"]
    return Waits(rows[kept], matched=int(complete.sum()), lone=int((~complete).sum()))


def _sessions(tables: Tables) -> dict[int, int]:
    """Which captures were taken together: the k-th of every host, where every host has as many; else all."""
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).sort_values("start_ns")
    counts = captures.groupby(captures["host"].astype(str))["capture"].transform("size")
    nth = captures.groupby(captures["host"].astype(str)).cumcount()
    session = nth if counts.nunique() <= 1 else nth * 0
    return dict(zip(captures["capture"].astype(int), session, strict=True))


def _group_size(group: str) -> int:
    """How many ranks take part; 0 where the trace does not tell."""
    return group.count(",") + 1 if group else 0


def _blame(rows: pd.DataFrame, tables: Tables) -> tuple[pd.Series, np.ndarray]:
    """The host blamed for each row's step, and the part of the row's wait that is charged to it."""
    nobody = pd.Series("", index=rows.index), np.zeros(len(rows), dtype=np.int64)
    stepped = rows[rows["step"] >= 0]
    if not len(stepped) or not rows["wait_ns"].any():
        return nobody
    summed = stepped.groupby(["session", "step", "rank"])["wait_ns"].sum().unstack()
    summed = summed[summed.notna().all(axis=1)]
    if summed.shape[1] < 2 or not len(summed):
        return nobody
    ordered = np.sort(summed.to_numpy(dtype=float), axis=1)
    least, peers = ordered[:, 0], ordered[:, 1:]
    step_ns = _usual_step_ns(tables)
    usual = np.median(peers, axis=1)
    margin = pd.Series(peers[:, 0] - least, index=summed.index)
    here = np.median(np.abs(peers - usual[:, None]), axis=1)
    spread = 1.4826 * np.maximum(here, np.median(here)) + 0.01 * step_ns
    clear = (usual - least > ENTER_Z * spread) & (margin > ENTER_SHARE * step_ns)
    host_of = stepped.drop_duplicates("rank").set_index("rank")["host"].astype(str)
    blamed = summed.idxmin(axis=1).map(host_of).where(clear, "")

    key = pd.MultiIndex.from_frame(rows[["session", "step"]])
    who = pd.Series(blamed.reindex(key).fillna("").to_numpy(), index=rows.index)
    mine = rows.groupby(["session", "step", "rank"])["wait_ns"].transform("sum").to_numpy(dtype=float)
    limit = margin.reindex(key).fillna(0).to_numpy(dtype=float)
    share = np.divide(np.minimum(mine, limit), mine, out=np.zeros_like(mine), where=mine > 0)
    charged = np.where(who != "", rows["wait_ns"].to_numpy() * share, 0).astype(np.int64)
    return who, charged


def _usual_step_ns(tables: Tables) -> float:
    steps = frame(tables, "steps", ["dur_ns", "capture"])
    dur = steps[steps["capture"].notna()]["dur_ns"].dropna()
    return float(dur.median()) if len(dur) else 0.0
