"""The steps of a job as profiles alone tell them: of several hosts and captures, and of devices one by one."""

import numpy as np
import pandas as pd

from analyzers.time.step_streams import natural_key

COLUMNS = ["attempt", "step", "start_ns", "dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip", "loss"]


def of_profiles(seen: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Steps of the host with most of them, its captures in order of time, and of others where these tell of other
    steps at other times; every host of a capture has the same ones, and the slowest tells how long they took."""
    seen = seen.dropna(subset=["start_ns", "dur_ns"])
    if not len(seen):
        return segmented(seen[COLUMNS].reset_index(drop=True)), []
    hosts = seen["host"].astype(str).where(seen["host"].notna(), "")
    ranked = sorted(hosts.unique(), key=lambda h: (-int((hosts == h).sum()), natural_key(h)))
    kept = seen[hosts == ranked[0]]
    for host in ranked[1:]:
        for _, one in seen[hosts == host].groupby("capture"):
            apart = (
                one["start_ns"].min() > (kept["start_ns"] + kept["dur_ns"]).max()
                or (one["start_ns"] + one["dur_ns"]).max() < kept["start_ns"].min()
            )
            if apart and not one["step"].isin(kept["step"]).any():
                kept = pd.concat([kept, one])
    steps = _once(kept).sort_values("start_ns", kind="stable")[COLUMNS].reset_index(drop=True)
    if len(ranked) > 1:
        steps["dur_ns"] = pd.array(_until_all_had_ended(steps, seen), dtype="Int64")
    steps = segmented(steps)
    if steps["segment"].max() == 0:
        return steps, []
    return steps, [
        "The profiles' step numbers begin anew: a profile may count its own steps, and says nothing of "
        "whether they were taken again. All are taken as kept, in order of time."
    ]


def _until_all_had_ended(steps: pd.DataFrame, seen: pd.DataFrame) -> np.ndarray:
    """How long each step lasted, ns, by the host that took longest of those that took it meanwhile: no longer than
    until the next one began, which had ended it for all. What was seen elsewhere is of the step of its number that
    began nearest to it."""
    start, took = (steps[c].to_numpy(dtype=np.int64) for c in ("start_ns", "dur_ns"))
    mine = steps[["step", "start_ns"]].assign(row=np.arange(len(steps))).dropna().astype("int64")
    there = seen[["step", "start_ns", "dur_ns"]].dropna().astype("int64")
    there, mine = (rows.sort_values("start_ns", kind="stable") for rows in (there, mine))
    pairs = pd.merge_asof(there, mine, on="start_ns", by="step", direction="nearest").dropna()
    row, begun, lasted = (pairs[c].to_numpy(dtype=np.int64) for c in ("row", "start_ns", "dur_ns"))
    meanwhile = (begun < start[row] + took[row]) & (start[row] < begun + lasted)
    longest = took.copy()
    np.maximum.at(longest, row[meanwhile], lasted[meanwhile])
    return np.maximum(took, np.minimum(longest, np.append(np.diff(start), np.iinfo(np.int64).max)))


def _once(seen: pd.DataFrame) -> pd.DataFrame:
    """Of a step that each device took at a time of its own, the one of the device that took longest."""
    alone = seen["device"].notna()
    if not alone.any():
        return seen
    longest = seen[alone].sort_values("dur_ns", ascending=False).drop_duplicates(["capture", "step"])
    return pd.concat([seen[~alone], longest])


def segmented(steps: pd.DataFrame) -> pd.DataFrame:
    """Add `segment`, `first` and `attempt` to steps in their order: a segment ends where numbers begin anew."""
    number = steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    attempt = steps["attempt"].to_numpy(dtype=np.int64, na_value=0)
    opens = np.ones(len(steps), dtype=bool)
    opens[1:] = (np.diff(number) <= 0) | (np.diff(attempt) != 0)
    steps["segment"] = np.cumsum(opens) - 1
    steps["attempt"] = attempt
    steps["first"] = opens
    return steps
