"""The checkpoints that a job saved and restored: when, how long training stood still, how far apart, in which tier."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.time.job_times import of_the_job
from runs.tables import Tables, frame

REMOTE = r"^[a-z0-9+.-]+://"  # gs://, s3://, abfs://: storage that outlives the machines
TELLERS_NS = 10 * 10**9  # within which several processes tell of one end
SAFE_NS = 300 * 10**9  # behind its end also what of a save goes on in the background is done
COLUMNS = ["attempt", "step", "tier", "start_ns", "end_ns", "blocked_s", "synchronous"]


@dataclass(frozen=True)
class Spread:
    """How long something took, over `count` times: median, 90th percentile, mean and sum, seconds. None without any."""

    count: int
    median_s: float | None = None
    p90_s: float | None = None
    mean_s: float | None = None
    total_s: float = 0.0

    def to_dict(self) -> dict[str, float | int | None]:
        return {
            "count": self.count,
            "median_s": self.median_s,
            "p90_s": self.p90_s,
            "mean_s": self.mean_s,
            "total_s": self.total_s,
        }


def spread(seconds: np.ndarray) -> Spread:
    """Of durations in seconds; those that are not known (NaN) are left out."""
    seconds = np.asarray(seconds, dtype=float)
    seconds = seconds[np.isfinite(seconds)]
    if not len(seconds):
        return Spread(0)
    return Spread(
        len(seconds),
        float(np.median(seconds)),
        float(np.quantile(seconds, 0.9)),
        float(seconds.mean()),
        float(seconds.sum()),
    )


@dataclass(frozen=True)
class Checkpoints:
    """`rows`: one per checkpoint in order of time, columns COLUMNS. `unended`: of which no end was recorded. `ends`:
    one per further checkpoint of which the end alone was, columns attempt, step, tier, start_ns and end_ns: that end.

    attempt, step  Int64, null where the input does not tell
    tier           remote or local where a job uses both, else all
    blocked_s      time covered by its intervals on all hosts: a checkpoint that several hosts report counts once
    synchronous    True, False (written in the background), or null
    """

    rows: pd.DataFrame
    unended: int
    ends: pd.DataFrame


def checkpoints(
    tables: Tables,
    kind: str,
    again_ns: np.ndarray | None = None,
    starts_ns: np.ndarray | None = None,
    shifts: Mapping[str, int] | None = None,
    without: Collection[str] = (),
) -> Checkpoints:
    """Checkpoints of one lifecycle kind, checkpoint_save or checkpoint_restore. O(n log n) in their rows.

    Rows of the job as a whole count where there are any, else those of its hosts. Rows of one checkpoint are those of
    one attempt, step and tier; where the step is not known, those that overlap. `again_ns`: when steps began that had
    been taken before: what is told of a step before and after such a one is told of two checkpoints. `starts_ns`: when
    each attempt of the job began, by which a checkpoint's is told: each input counts its own. `shifts`, `without`: the
    shifts and the strangers of a History.
    """
    columns = ["kind", "start_ns", "end_ns", "attempt", "step", "host", "detail", "source"]
    found = of_the_job(frame(tables, "lifecycle", columns, [("kind", "==", kind)]), shifts, without)
    whole = found["host"].isna()
    found = found[whole] if whole.any() else found
    alone = found[found["start_ns"].isna() & found["end_ns"].notna()].sort_values("end_ns", kind="stable")
    found = found[found["start_ns"].notna()]
    ended = found["end_ns"].notna() & (found["end_ns"] >= found["start_ns"]).fillna(False)
    known = found[ended].sort_values("start_ns", kind="stable").reset_index(drop=True)
    alone = alone.assign(start_ns=alone["end_ns"], tier="all")[["attempt", "step", "tier", "start_ns", "end_ns"]]
    known, alone = (_attempts_told(rows, starts_ns) for rows in (known, alone))
    detail = known["detail"].astype("string")
    known["synchronous"] = detail.str.extract(r'"synchronous":\s*(true|false)')[0].map({"true": True, "false": False})
    known["tier"] = _tiers(detail.str.extract(r'"directory":\s*"([^"]*)"')[0])
    rows = _joined(known, np.sort(again_ns) if again_ns is not None else None)
    return Checkpoints(rows, int((~ended).sum()), _told_by_ends_alone(alone.reset_index(drop=True), rows))


def _told_by_ends_alone(ends: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Ends, which are in order, of checkpoints that no row tells; each once, by the last of those who tell of it: of a
    step in an attempt, or within TELLERS_NS where the step is not known."""
    key, stepped, at = ["attempt", "step"], ends["step"].notna().to_numpy(), ends["end_ns"].to_numpy(dtype=np.int64)
    whole = ends[key].merge(rows[key].drop_duplicates(), on=key, how="left", indicator=True)["_merge"].eq("both")
    of_a_step = whole.to_numpy() | ends.duplicated(key, keep="last").to_numpy()
    start, end = (rows[c].to_numpy(dtype=np.int64) for c in ("start_ns", "end_ns"))
    place = np.searchsorted(start, at, side="right") - 1
    near = place >= 0
    near[near] = at[near] <= end[place[near]] + TELLERS_NS
    near[:-1] |= np.diff(at) <= TELLERS_NS
    return ends[~np.where(stepped, of_a_step, near)].reset_index(drop=True)


def _attempts_told(rows: pd.DataFrame, starts_ns: np.ndarray | None) -> pd.DataFrame:
    if starts_ns is None or not len(starts_ns):
        return rows
    begun = np.searchsorted(starts_ns, rows["start_ns"].to_numpy(dtype=np.int64), side="right")
    return rows.assign(attempt=pd.array(np.maximum(begun - 1, 0), dtype="Int64"))


def _tiers(directory: pd.Series) -> pd.Series:
    remote = directory.str.contains(REMOTE, na=False)
    local = directory.notna() & ~remote
    if not (remote.any() and local.any()):
        return pd.Series("all", index=directory.index)
    return pd.Series(np.where(remote, "remote", np.where(local, "local", "all")), index=directory.index)


def _groups(rows: pd.DataFrame, again_ns: np.ndarray | None) -> pd.Series:
    """A key for each checkpoint."""
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    end = np.maximum.accumulate(rows["end_ns"].to_numpy(dtype=np.int64)) if len(rows) else start
    apart = np.cumsum(np.concatenate(([False], start[1:] > end[:-1]))) if len(rows) else start
    attempt = rows["attempt"].astype("string").fillna("?")
    step = rows["step"].astype("string").fillna(pd.Series(apart, index=rows.index).astype("string").radd("@"))
    key = attempt + "/" + step + "/" + rows["tier"]
    if again_ns is None or not len(again_ns) or not len(rows):
        return key
    done = pd.Series(rows["end_ns"].to_numpy(dtype=np.int64), index=rows.index).groupby(key).cummax()
    before = done.groupby(key).shift(fill_value=np.iinfo(np.int64).max).to_numpy(dtype=np.int64)
    anew = np.searchsorted(again_ns, start) > np.searchsorted(again_ns, before)
    return key + "/" + pd.Series(anew, index=rows.index).groupby(key).cumsum().astype("string")


def _joined(known: pd.DataFrame, again_ns: np.ndarray | None) -> pd.DataFrame:
    """One row per checkpoint from those of its hosts, which are sorted by start."""
    which = pd.factorize(_groups(known, again_ns))[0]
    order = np.argsort(which, kind="stable")
    start = known["start_ns"].to_numpy(dtype=np.int64)[order]
    end = known["end_ns"].to_numpy(dtype=np.int64)[order]
    opens = np.diff(which[order], prepend=-1) != 0
    reached = pd.Series(end).groupby(which[order]).cummax().to_numpy(dtype=np.int64)
    covered = np.where(opens, start, np.r_[start[:1], reached[:-1]])  # until where earlier rows of the same one reach
    fresh_ns = np.maximum(end - np.maximum(start, covered), 0)
    by = known.groupby(which, sort=True)
    table = pd.DataFrame(
        {
            "attempt": by["attempt"].nth(0).array,
            "step": by["step"].nth(0).array,
            "tier": by["tier"].nth(0).array,
            "start_ns": by["start_ns"].min().array,
            "end_ns": by["end_ns"].max().array,
            "blocked_s": np.bincount(which[order], fresh_ns) / 1e9 if len(known) else np.zeros(0),
            "synchronous": by["synchronous"].first().astype(object).array,
        }
    )[COLUMNS].astype({"attempt": "Int64", "step": "Int64"})
    return table.sort_values("start_ns", kind="stable").reset_index(drop=True)


def gaps(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, steps) from the end of each save to the beginning of the next of its tier in the same attempt.

    Steps are NaN where they are not known; a step that is saved again is no interval.
    """
    seconds, steps = [], []
    for _, part in rows.groupby(["attempt", "tier"], sort=False, dropna=False):
        start, end = part["start_ns"].to_numpy(dtype=np.int64), part["end_ns"].to_numpy(dtype=np.int64)
        number = part["step"].to_numpy(dtype=float, na_value=np.nan)
        between, ahead = (start[1:] - end[:-1]) / 1e9, np.diff(number)
        forward = (between > 0) & ~(ahead <= 0)
        seconds.append(between[forward])
        steps.append(ahead[forward])
    if not seconds:
        return np.zeros(0), np.zeros(0)
    return np.concatenate(seconds), np.concatenate(steps)


def passed_over_s(stops: pd.DataFrame, saved: Checkpoints) -> np.ndarray:
    """Of the steps that were taken again after each stop, seconds of those that a save held which was safe by then: the
    job went on from an earlier one. Of two tiers the remote one counts: what is local may be lost with its machine.
    `stops`: rows as `analyzers.lost.stops.Stops`."""
    out = np.zeros(len(stops))
    saves = pd.concat([saved.rows, saved.ends])
    saves = saves.loc[saves["tier"] != "local", ["step", "end_ns"]].dropna()
    if not len(saves) or not len(stops):
        return out
    end, step = saves["end_ns"].to_numpy(dtype=np.int64), saves["step"].to_numpy(dtype=np.int64)
    sign = stops["last_sign_ns"].to_numpy(dtype=np.int64, na_value=0)
    told = stops[["last_step", "resumed_step", "lost_steps", "wasted_s"]].astype("Float64")
    for k, (last, resumed, lost, wasted_s) in enumerate(told.to_numpy(dtype=float, na_value=np.nan).tolist()):
        held = step[(end <= sign[k] - SAFE_NS) & (step > resumed) & (step <= last)]
        if len(held) and lost > 0 and wasted_s > 0:
            out[k] = wasted_s * min((int(held.max()) - resumed + 1) / lost, 1.0)
    return out
