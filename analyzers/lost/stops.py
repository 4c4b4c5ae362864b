"""Stops: where a job stopped going forward, what it lost there, and what it took to be back.

A stop is a restart of the job, or, inside an attempt, a loss of slices that training survived or a step number that
went back. Time is taken from the painted calendar, so that no instant counts for two stops:

    down      from the last sign of life until the next start, as far as chips were held and nothing was saved, or until
              the next stop
    startup   from that start through the first step, less a usual step: initialisation, preparation, restore, compile
    wasted    steps lost by this stop, what they took the first time; a step lost by two stops counts for the first
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, overlap_with
from analyzers.time.calendar import CODE, HEADINGS, Calendar
from analyzers.time.history import History
from analyzers.time.job_times import of_the_job
from runs.tables import Tables, frame

STARTUP = (
    "accelerator_initialization",
    "training_preparation",
    "checkpoint_restore",
    "data_loading",
    "program_startup",
    "elastic_slice_down",
    "elastic_scale_up",
    "elastic_reinitialization",
    "custom",
    "other",
)
NOT_DOWN = ("outside", "kept", "wasted_progress", "hang", "program_startup", "eval", "checkpoint_save")
DOWN = tuple(name for name in HEADINGS if name not in NOT_DOWN)
KINDS: dict[str, str] = {
    "restart": "the job was started again",
    "final": "it ended the job: nothing was started after it",
    "elastic": "slices were lost and the job went on",
    "rollback": "steps were taken again without a start of the job",
}
BIG = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Stops:
    """`rows`, in order of time, one per stop:

    kind (see KINDS), attempt, begun_ns (start of that attempt), last_sign_ns, restart_ns (of the job, or of the first
    step after where no start of the job was recorded), back_ns (first step that had not been taken before), last_step,
    resumed_step, lost_steps, wasted_s, down_s with one `down_<heading>_s` for each of DOWN (its parts), startup_s with
    one `<heading>_s` for each of STARTUP.

    Times of day are Int64 and null where the input has none, as are seconds that follow from them. Where no step was
    read, what nothing recorded of them is not known.
    `usual_s`: the median step that is not the first of its segment; None without one.
    `finished`: whether the last attempt says that the job was done. Where it does not, the last row is the end of what
    is recorded (kind final): only evidence can tell whether the job stopped there or goes on, unless it is known to
    have `ended`.
    """

    rows: pd.DataFrame
    usual_s: float | None
    finished: bool
    ended: bool = False


def stops(tables: Tables, past: History, days: Calendar | None) -> Stops:
    """Every stop of the job. O(n log n) in steps and events."""
    steps = past.rows
    dur = steps.loc[~steps["first"].astype(bool), "dur_ns"].dropna()
    usual_s = float(dur.astype("float64").median()) / 1e9 if len(dur) else None
    if days is None:
        return Stops(_untimed(past), usual_s, False)
    rows = pd.concat([_between(days), _inside(tables, past, days)], ignore_index=True)
    rows = rows.sort_values("last_sign_ns", kind="stable", ignore_index=True)
    rows = _amounts(rows, days)
    finished = bool(days.finished[-1])
    return Stops(rows if finished else _with_end(rows, days), usual_s, finished, bool(days.ended[-1]))


def _with_end(rows: pd.DataFrame, days: Calendar) -> pd.DataFrame:
    """The rows and the end of the record: no more is known of it than when it was and after which step, and for how
    long chips were held in vain after it, where that is told."""
    sign, until = int(days.last_sign_ns[-1]), int(days.attempts.end[-1])
    end = {
        "kind": "final",
        "attempt": len(days.finished) - 1,
        "begun_ns": int(days.attempts.start[-1]),
        "last_sign_ns": sign,
        "lost_steps": 0,
        "wasted_s": 0.0 if len(days.steps) else np.nan,
        "last_step": days.steps["step"].iloc[-1] if len(days.steps) else pd.NA,
        **(_held_after(days, sign, until) if until > sign else {}),
    }
    last = pd.DataFrame({name: pd.array([end.get(name)], dtype=_nullable(rows[name])) for name in rows})
    return pd.concat([rows.astype({"restart_ns": "Int64"}), last], ignore_index=True) if len(rows) else last


def _held_after(days: Calendar, sign: int, until: int) -> dict[str, float]:
    """What was held after the last sign of life, in the columns of a stop."""
    after = Spans(np.array([sign]), np.array([until]))
    parts = {f"down_{n}_s": float(overlap_with(days.painting.spans(CODE[n]), after)[0]) / 1e9 for n in DOWN}
    return {**parts, "down_s": sum(parts.values()), "startup_s": 0.0}


def _nullable(column: pd.Series) -> str:
    return {"i": "Int64", "f": "float64"}.get(column.dtype.kind, "object")


def _between(days: Calendar) -> pd.DataFrame:
    """Restarts, as the calendar has them; `at`: position of the first step after."""
    found = days.interruptions
    attempt = np.array([i.attempt for i in found], dtype=np.int64)
    restart = np.array([i.restart_ns for i in found], dtype=np.int64)
    return pd.DataFrame(
        {
            "kind": "restart",
            "attempt": attempt,
            "begun_ns": days.attempts.start[attempt],
            "last_sign_ns": np.array([i.last_sign_ns for i in found], dtype=np.int64),
            "restart_ns": restart,
            "at": np.searchsorted(_ns(days.steps["start_ns"]), restart),
        }
    )


def _inside(tables: Tables, past: History, days: Calendar) -> pd.DataFrame:
    """Stops inside an attempt of the calendar: slices lost, and segments of steps that follow without a start."""
    steps, starts = days.steps, days.attempts.start
    began = _ns(steps["start_ns"])
    attempt = np.searchsorted(starts, began, side="right") - 1
    segment = steps["segment"].to_numpy(dtype=np.int64)
    back = np.flatnonzero((np.diff(segment) != 0) & (np.diff(attempt) == 0)) + 1
    said = steps["attempt"].to_numpy(dtype=np.int64, na_value=-1)
    told = ["kind", "host", "start_ns", "source"]
    life = frame(tables, "lifecycle", told, [("kind", "==", "elastic_slice_down")])
    life = of_the_job(life, past.shifts, past.strangers)
    down = np.sort(_ns(life[life["host"].isna()]["start_ns"].dropna()))
    down = down[down >= starts[0]]
    at = np.searchsorted(began, down)
    first = np.ones(len(at), dtype=bool)
    first[1:] = at[1:] != at[:-1]  # slices lost one after the other before training went on are one stop
    down, at = down[first], at[first]
    back = np.setdiff1d(back, at)
    ended = _ns(steps["end_ns"])[back - 1]
    rows = pd.DataFrame(
        {
            "kind": ["elastic"] * len(at) + ["restart" if said[j] != said[j - 1] else "rollback" for j in back],
            "at": np.concatenate((at, back)),
            "last_sign_ns": np.concatenate((down, np.minimum(ended, began[back]))),
        }
    )
    rows["attempt"] = np.searchsorted(starts, _ns(rows["last_sign_ns"]), side="right") - 1
    rows["begun_ns"] = starts[rows["attempt"].to_numpy(dtype=np.int64)]
    following = np.append(began, BIG)[rows["at"].to_numpy(dtype=np.int64)]
    next_start = np.append(starts, BIG)[rows["attempt"].to_numpy(dtype=np.int64) + 1]
    rows["restart_ns"] = np.minimum(following, next_start)
    return rows[rows["restart_ns"] < BIG]


def _amounts(rows: pd.DataFrame, days: Calendar) -> pd.DataFrame:
    steps, starts = days.steps, days.attempts.start
    began, number = _ns(steps["start_ns"]), steps["step"].to_numpy(dtype=np.int64)
    at = rows["at"].to_numpy(dtype=np.int64)
    restart, sign = _ns(rows["restart_ns"]), _ns(rows["last_sign_ns"])
    next_start = np.append(starts, days.end_ns)[np.searchsorted(starts, restart, side="right")]
    next_sign = np.append(sign, days.end_ns)[1:]
    second = np.append(began, [BIG, BIG])[at + 1]
    until = np.maximum(np.minimum.reduce((second, next_start, next_sign)), restart)
    for name in STARTUP:
        rows[f"{name}_s"] = overlap_with(days.painting.spans(CODE[name]), Spans(restart, until)) / 1e9
    if not len(steps):
        rows["other_s"] = 0.0  # a start of which no step was read may have been at work all the time
    rows["startup_s"] = rows[[f"{n}_s" for n in STARTUP]].sum(axis=1)
    down = Spans(sign, np.minimum(restart, next_sign))  # slices were lost, and the job started again before it went on
    for name in DOWN:
        rows[f"down_{name}_s"] = overlap_with(days.painting.spans(CODE[name]), down) / 1e9
    rows["down_s"] = rows[[f"down_{n}_s" for n in DOWN]].sum(axis=1)

    lost_by = _lost_by(steps, at)
    lost = lost_by >= 0
    rows["lost_steps"] = np.bincount(lost_by[lost], minlength=len(rows))
    rows["wasted_s"] = _wasted(days, began, lost_by, len(rows))
    if not len(steps):
        for name in ("down_s", "startup_s", "wasted_s"):
            rows[name] = rows[name].where(rows[name] > 0)
    rows["last_step"] = _step_at(number, at - 1)
    rows["resumed_step"] = _step_at(number, at)
    highest = np.maximum.accumulate(np.append(-1, number))
    fresh = np.flatnonzero(number > highest[:-1])
    new = np.append(fresh, len(number))[np.searchsorted(fresh, at)]
    rows["back_ns"] = pd.array(np.append(began, 0)[new], dtype="Int64")
    rows.loc[new >= len(number), "back_ns"] = pd.NA
    return rows.drop(columns="at")


def _lost_by(steps: pd.DataFrame, at: np.ndarray) -> np.ndarray:
    """For each step the stop that lost it, -1 where none did: the first stop before the segment that took it again."""
    segment, number = steps["segment"].to_numpy(dtype=np.int64), steps["step"].to_numpy(dtype=np.int64)
    out = np.full(len(steps), -1, dtype=np.int64)
    if not len(steps) or not len(at):
        return out
    _, segment = np.unique(segment, return_inverse=True)
    opens = np.flatnonzero(np.diff(segment, prepend=-1))
    resumed = number[opens]
    pending = np.flatnonzero(~steps["kept"].to_numpy(dtype=bool))
    taker = np.full(len(steps), -1, dtype=np.int64)
    for ahead in range(1, len(opens)):
        later = segment[pending] + ahead
        pending, later = pending[later < len(opens)], later[later < len(opens)]
        if not len(pending):
            break
        hit = resumed[later] <= number[pending]
        taker[pending[hit]] = later[hit]
        pending = pending[~hit]
    taken = np.flatnonzero(taker >= 0)
    order = np.argsort(at, kind="stable")  # several stops before the same step: the first of them lost it
    where = np.searchsorted(at[order], opens[taker[taken]], side="left")
    there = where < len(at)
    there[there] = at[order][where[there]] == opens[taker[taken]][there]
    out[taken[there]] = order[where[there]]
    return out


def _wasted(days: Calendar, began: np.ndarray, lost_by: np.ndarray, count: int) -> np.ndarray:
    """Painted seconds of lost steps by the stop that lost them: a cell belongs to the step that began before it."""
    cells = days.painting.label == CODE["wasted_progress"]
    step = np.searchsorted(began, days.painting.edges[:-1][cells], side="right") - 1
    stop = np.where(step >= 0, lost_by[np.maximum(step, 0)], -1) if len(began) else np.full(cells.sum(), -1)
    out = np.zeros(count)
    np.add.at(out, stop[stop >= 0], days.painting.width[cells][stop >= 0] / 1e9)
    return out


def _untimed(past: History) -> pd.DataFrame:
    """Stops of a log without times of day: where its attempts change, and which steps were lost. Nothing of time but
    what the lost steps took."""
    steps = past.rows
    segment = steps["segment"].to_numpy(dtype=np.int64)
    at = np.flatnonzero(np.diff(segment) != 0) + 1
    said, number = steps["attempt"].to_numpy(dtype=np.int64), steps["step"].to_numpy(dtype=np.int64)
    lost_by = _lost_by(steps, at)
    took = steps["dur_ns"].to_numpy(dtype=np.float64, na_value=0.0) / 1e9
    wasted = np.bincount(lost_by[lost_by >= 0], took[lost_by >= 0], minlength=len(at))
    rows = pd.DataFrame(
        {
            "kind": np.where(said[at] != said[at - 1], "restart", "rollback"),
            "attempt": said[at - 1],
            "lost_steps": np.bincount(lost_by[lost_by >= 0], minlength=len(at)),
            "wasted_s": wasted,
            "last_step": _step_at(number, at - 1),
            "resumed_step": _step_at(number, at),
        }
    )
    for name in ("begun_ns", "last_sign_ns", "restart_ns", "back_ns"):
        rows[name] = pd.array([pd.NA] * len(rows), dtype="Int64")
    for name in ("down_s", *(f"down_{n}_s" for n in DOWN), "startup_s", *(f"{n}_s" for n in STARTUP)):
        rows[name] = np.nan
    return rows


def _step_at(number: np.ndarray, at: np.ndarray) -> pd.api.extensions.ExtensionArray:
    """Step numbers at positions, null outside."""
    there = (at >= 0) & (at < len(number))
    values = pd.array(np.append(number, 0)[np.where(there, at, len(number))], dtype="Int64")
    values[~there] = pd.NA
    return values


def _ns(column: pd.Series) -> np.ndarray:
    return column.to_numpy(dtype=np.int64)
