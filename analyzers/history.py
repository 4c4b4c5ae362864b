"""The steps that a job took, put together from whatever tells of them: goodput entries, step lines, profiles.

Goodput entries say when each step started, step lines how long it took and how fast it was, profiles both but
only for the steps they saw. One row comes out per step taken; a step taken again after a restart has two rows.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.subject import devices_per_chip
from runs.tables import Tables, frame

NS_PER_S = 1_000_000_000
AHEAD_NS = 60 * NS_PER_S  # an event named this much later than it was written cannot be: its clock was wrong
SAME_STEP = 0.5  # a step marked again within this share of a usual step is the same one, told twice
PER_DEVICE = ("maxtext", "maxtext_metrics")  # what they print is of a JAX device: half a chip on v2, v3 and 7x
PLAUSIBLE_SHARE = 0.2  # a step faster than this share of the median was timed before the device had finished


@dataclass(frozen=True)
class History:
    """`rows`, in order of time, one per step taken:

    segment     unbroken stretch of rising step numbers, from 0 (a restart, in the process or of it, opens a new one)
    attempt     start of the job it belongs to, from 0
    step        number as the job counts it
    start_ns    Int64, null where no input gives a time of day
    dur_ns      Int64, null where nothing tells how long it took (the last step before a crash)
    first       first step of its segment: it compiles, allocates, warms up
    kept        False where a later segment took this step number again; a job that ended and was then run again from
                its beginning keeps what it did: it was not interrupted
    tokens_per_s_per_chip, model_flops_per_chip, loss   as the job printed them
    implausible "" or why its printed speed cannot be true

    `timed`: whether the rows have times of day. `origin`: goodput entries, step lines or profile. `notes`: what was
    left out of the step starts, and why. `jobs`: the job's own times, where they were needed.
    """

    rows: pd.DataFrame
    timed: bool
    origin: str
    notes: tuple[str, ...] = ()
    jobs: "Jobs | None" = None


@dataclass(frozen=True)
class Jobs:
    """When the job was started and when it ended: sorted, without repeats, ns since the epoch."""

    starts: np.ndarray
    ends: np.ndarray


COLUMNS = ["attempt", "step", "start_ns", "dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip", "loss"]


def history(tables: Tables, facts: Facts, now_ns: int | None = None) -> History:
    """The steps of the whole job, or those begun by `now_ns`. Pure; O(n log n) in the number of step rows."""
    rows = step_rows(tables, facts, [*COLUMNS, "host", "capture", "order", "logged_ns", "source"])
    if now_ns is not None:
        rows = rows[~(rows["start_ns"] > now_ns).fillna(False).to_numpy(dtype=bool)]
    seen = rows["capture"].notna().to_numpy()
    timed, lasting = rows["start_ns"].notna().to_numpy(), rows["dur_ns"].notna().to_numpy()
    marks, lines = rows[~seen & ~lasting & timed], rows[~seen & lasting]
    if len(marks):
        jobs = job_times(tables, now_ns)
        steps, notes = _from_marks(marks, jobs.starts)
        _add_lines(steps, _from_lines(lines))
        _close(steps)
        return History(_judged(steps, facts, jobs.ends), True, "goodput entries", notes, jobs)
    if len(lines):
        steps = _from_lines(lines)
        if seen.any() and not steps["start_ns"].notna().any():
            _anchor(steps, _from_profile(rows[seen]))
        return History(_judged(steps, facts), bool(steps["start_ns"].notna().all()), "step lines")
    steps = _from_profile(rows[seen])
    return History(_judged(steps, facts), True, "profile")


def step_rows(tables: Tables, facts: Facts, columns: list[str]) -> pd.DataFrame:
    """Rows of `steps`, rates and FLOPs of a chip: of those formats that print them for a device, times its devices."""
    rows = frame(tables, "steps", [*columns, "format"])
    devices = devices_per_chip(facts)
    if devices > 1:
        of_device = rows["format"].isin(PER_DEVICE)
        for name in ("tokens_per_s_per_chip", "model_flops_per_chip"):
            if name in rows:
                rows[name] = rows[name].where(~of_device, rows[name] * devices)
    return rows


def job_times(tables: Tables, now_ns: int | None = None) -> Jobs:
    """Starts and ends of the job itself, up to `now_ns`. Where hosts tell of them one by one, one host counts."""
    columns = ["kind", "start_ns", "end_ns", "host", "logged_ns", "end_logged_ns"]
    rows = frame(tables, "lifecycle", columns, [("kind", "==", "job")])
    if len(rows) and rows["host"].notna().any():
        whole = rows["host"].isna()
        rows = rows[whole if whole.any() else rows["host"] == rows["host"].value_counts().index[0]]
    found = []
    for at, logged in (("start_ns", "logged_ns"), ("end_ns", "end_logged_ns")):
        told = rows[rows[at].notna()]
        told = told[~from_the_future(told[at], told[logged])]
        times = np.unique(told[at].to_numpy(dtype=np.int64))
        found.append(times if now_ns is None else times[times <= now_ns])
    return Jobs(*found)


def job_starts(tables: Tables) -> np.ndarray:
    """Times at which the job was started, sorted, without repeats."""
    return job_times(tables).starts


def from_the_future(times: pd.Series, logged: pd.Series) -> np.ndarray:
    """Which events name a time well after they were written. If the clock that names is ahead as a rule, by more than
    that rule."""
    ahead = times.to_numpy(dtype=np.int64) - logged.fillna(times).to_numpy(dtype=np.int64)
    if not len(ahead) or ahead.max() <= AHEAD_NS:
        return np.zeros(len(ahead), dtype=bool)
    return ahead > max(float(np.median(ahead)), 0.0) + AHEAD_NS


def _from_marks(marks: pd.DataFrame, starts: np.ndarray) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Step starts in the order of the times they name (entries may be written late), each once, and what was left
    out."""
    notes = []
    if marks["host"].notna().any():  # of several hosts that mark the job's steps, one counts
        told = marks["host"].astype(str).fillna("")
        marks = marks[told == told.value_counts().index[0]]
    if (false := from_the_future(marks["start_ns"], marks["logged_ns"])).any():
        count = int(false.sum())
        notes.append(f"{count:,} step {'start names' if count == 1 else 'starts name'} a time more than a minute after "
                     "being written: left out.")  # fmt: skip
        marks = marks[~false]
    at, number = (marks[c].to_numpy(dtype=np.int64, na_value=-1) for c in ("start_ns", "step"))
    order = np.lexsort((number, at)) if (np.diff(at) <= 0).any() else np.arange(len(at))
    at, number = at[order], number[order]
    attempt = np.maximum(np.searchsorted(starts, at, side="right") - 1, 0)
    again = _told_again(at, number, attempt)
    if again.any():
        count = int(again.sum())
        notes.append(f"{count:,} step {'start was' if count == 1 else 'starts were'} told twice and counted once.")
        order = order[~again]
    steps = marks[COLUMNS].take(order).reset_index(drop=True)
    steps["attempt"] = attempt[~again]
    return _segmented(steps), tuple(notes)


def _told_again(at: np.ndarray, number: np.ndarray, attempt: np.ndarray) -> np.ndarray:
    """Which marks repeat the one before them: the same step, in the same attempt, sooner than a step could take."""
    gap, up = np.diff(at), np.diff(number)
    usual = np.median(gap[(up == 1) & (gap > 0)]) if ((up == 1) & (gap > 0)).any() else 0
    same = (up == 0) & (np.diff(attempt) == 0) & ((gap == 0) | (gap < SAME_STEP * usual))
    return np.concatenate(([False], same))


def _from_lines(lines: pd.DataFrame) -> pd.DataFrame:
    """Step lines, file by file in the order of their names, attempts within a file as the log tells them. A file that
    goes on where the one before ended continues its attempt. Where several formats tell of the job (its log and its
    metrics files), the one that tells of most steps counts."""
    for column in ("format", "host"):  # of several hosts that print the job's steps, one counts
        told = lines[column].astype(str).fillna("")
        lines = lines[told == told.value_counts().index[0]] if len(lines) else lines
    file = lines["source"].astype(str).fillna("")
    rank = file.map({name: i for i, name in enumerate(sorted(file.unique(), key=natural_key))})
    steps = lines.assign(_file=rank).sort_values(["_file", "order"], kind="stable")
    other_file = (steps["_file"] != steps["_file"].shift()).fillna(True)
    goes_on = (steps["step"] == steps["step"].shift() + 1).fillna(False)
    announced = (steps["attempt"] != steps["attempt"].shift()).fillna(False)
    restart = (other_file & ~goes_on) | (~other_file & announced)
    steps = steps[COLUMNS].reset_index(drop=True)
    steps["attempt"] = np.maximum(restart.to_numpy(dtype=bool).cumsum() - 1, 0)
    return _segmented(steps)


def _from_profile(seen: pd.DataFrame) -> pd.DataFrame:
    """Steps of the profile's first host (its captures in order of time); every host has the same ones."""
    if not len(seen):
        return _segmented(seen[COLUMNS].reset_index(drop=True))
    host = sorted(seen["host"].dropna().astype(str).unique(), key=natural_key)[0]
    steps = seen[seen["host"] == host].sort_values("start_ns", kind="stable")[COLUMNS].reset_index(drop=True)
    return _segmented(steps)


def natural_key(name: str) -> list:
    """Sorts `attempt_2` before `attempt_10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _segmented(steps: pd.DataFrame) -> pd.DataFrame:
    number = steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    attempt = steps["attempt"].to_numpy(dtype=np.int64, na_value=0)
    opens = np.ones(len(steps), dtype=bool)
    opens[1:] = (np.diff(number) <= 0) | (np.diff(attempt) != 0)
    steps["segment"] = np.cumsum(opens) - 1
    steps["attempt"] = attempt
    steps["first"] = opens
    return steps


def _anchor(steps: pd.DataFrame, profiled: pd.DataFrame) -> None:
    """Give untimed step lines times of day: their durations laid end to end, each segment moved so that the steps
    that a profile saw start when they did there. A segment without such a step follows the one before it."""
    dur = steps["dur_ns"].to_numpy(dtype=np.int64)
    laid = np.cumsum(dur) - dur
    seen = profiled.drop_duplicates("step", keep="last").set_index("step")["start_ns"]
    first = int(seen.iloc[0])  # differences from it are small enough for a double, an epoch in ns is not
    gap = (seen - first).reindex(steps["step"]).to_numpy(dtype=float, na_value=np.nan) - laid
    shift = pd.Series(gap).groupby(steps["segment"].to_numpy()).median().ffill().bfill()
    if shift.notna().all():
        moved = shift.reindex(steps["segment"]).to_numpy().astype(np.int64)
        steps["start_ns"] = pd.array(first + laid + moved, dtype="Int64")


def _add_lines(steps: pd.DataFrame, lines: pd.DataFrame) -> None:
    """Give each marked step what its step line printed. A stretch of lines belongs to the first marked segment,
    not used yet, that holds its first step number: both are in the order of time."""
    if not len(lines):
        return
    unused = [(k, set(g["step"]), g.index) for k, g in steps.groupby("segment")]
    for _, stretch in lines.groupby("segment"):
        match = next((u for u in unused if stretch["step"].iloc[0] in u[1]), None)
        if match is None:
            continue
        unused = [u for u in unused if u[0] > match[0]]
        printed = stretch.drop_duplicates("step").set_index("step")
        rows = match[2]
        for column in ("dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip", "loss"):
            steps.loc[rows, column] = printed[column].reindex(steps.loc[rows, "step"]).array


def _close(steps: pd.DataFrame) -> None:
    """A step lasts until the next one of its segment starts; the last keeps the duration that was printed."""
    gap = steps["start_ns"].shift(-1) - steps["start_ns"]
    inside = (~steps["first"]).shift(-1, fill_value=False)
    steps["dur_ns"] = gap.where(inside, steps["dur_ns"])


def _judged(steps: pd.DataFrame, facts: Facts, ends: np.ndarray | None = None) -> pd.DataFrame:
    """Add `kept` and `implausible`. `ends`: when the job ended, where that is known."""
    steps["kept"] = _kept(steps, np.empty(0, np.int64) if ends is None else ends)
    dur = steps["dur_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    flops = steps["model_flops_per_chip"].to_numpy(dtype=np.float64, na_value=np.nan)
    peak = fact(facts, "peak_flops_per_s")
    if peak and facts["peak_flops_per_s"].basis == "measured":  # a trace states the peak of a device
        peak *= devices_per_chip(facts)
    reason = np.full(len(steps), "", dtype=object)
    usual = dur[~steps["first"].to_numpy(dtype=bool) & np.isfinite(dur)]
    if len(usual) >= 3:
        reason[dur < PLAUSIBLE_SHARE * np.median(usual)] = "far faster than the median step: timed before it had run"
    if peak:
        with np.errstate(divide="ignore", invalid="ignore"):
            over = flops / (dur / 1e9) > peak
        reason[over] = "its FLOP/s exceed the chip's peak"
    steps["implausible"] = reason
    return steps.reset_index(drop=True)


def _kept(steps: pd.DataFrame, ends: np.ndarray) -> np.ndarray:
    """Steps that no later segment took again, as far as the job went on: where it had ended and then began anew, at
    or before the step it had begun with, it had finished what it did."""
    number = steps["step"].to_numpy(dtype=np.int64, na_value=-1)
    segment = steps["segment"].to_numpy(dtype=np.int64)
    if not len(number):
        return np.zeros(0, dtype=bool)
    opens = np.flatnonzero(steps["first"].to_numpy(dtype=bool))
    begun_with = number[opens]
    anew = np.zeros(len(opens), dtype=bool)
    if len(ends) and steps["start_ns"].notna().all():
        at = steps["start_ns"].to_numpy(dtype=np.int64)
        ended = np.searchsorted(ends, at[opens[1:]], side="right") > np.searchsorted(ends, at[opens[1:] - 1])
        first = begun_with[0]
        for k in np.flatnonzero(ended) + 1:
            anew[k] = begun_with[k] <= first
            first = begun_with[k] if anew[k] else first
    limit, least = np.empty(len(opens), dtype=np.int64), np.iinfo(np.int64).max
    for k in range(len(opens) - 1, -1, -1):
        limit[k] = least
        least = np.iinfo(np.int64).max if anew[k] else min(least, int(begun_with[k]))
    return number < limit[segment]
