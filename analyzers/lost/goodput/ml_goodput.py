"""The answer by the library's rules: the whole log, a window of it, or the log less excluded times."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.lost.goodput.buckets import ASYNC, CUSTOM, amount
from analyzers.lost.goodput.differences import WHOLE
from analyzers.lost.goodput.entries import RESTORE, SAVE, STEP, Entries, code_of, numbers
from analyzers.lost.goodput.exclusions import Excluding, merged, walk_excluding
from analyzers.lost.goodput.library import (
    Sums,
    checked,
    checkpoint_seconds,
    job_seconds,
    micro_seconds,
    shares,
    step_times,
    told_by_orbax,
    walk,
    with_other,
)
from analyzers.lost.goodput.query import LIBRARY, Query, counted, said
from analyzers.lost.goodput.result import GoodputResult
from analyzers.lost.goodput.slices import SliceEfficiency, library_efficiency, slice_counts
from analyzers.lost.goodput.step_deviation import are_spikes, library_ideal_s, spikes
from errors import QuestionError

LEAST_STEP_S = 1.0  # shorter steps do not count for the library's ideal step
RETENTION_S = 7 * 86_400
SAVE_NEEDS = ("checkpointer_blocking_duration_secs", "wait_for_prev_duration_secs", "get_old_steps_duration_secs")


@dataclass(frozen=True)
class Found:
    """What the walk of the whole log, of a window or with exclusions comes to."""

    sums: Sums
    total_s: float
    start_ns: int
    end_ns: int
    slices: SliceEfficiency | None
    excluding: Excluding | None = None


def by_library(log: Entries, asked: Query) -> GoodputResult:
    """The library's numbers for this log, to rounding.

    Raises QuestionError where the library raises an error of its own, and for a window with excluded times, which it
    does not know.
    """
    log = _visible(log, asked)
    if asked.exclude and asked.windowed:
        raise QuestionError(
            "the library leaves no times out of a window", advice="Ask for one of the two, or with rules=exact."
        )
    found = _window(log, asked) if asked.windowed else _excluding(log, asked) if asked.exclude else _whole(log, asked)
    badput = with_other(found.sums, found.total_s)
    if found.excluding is not None:
        steps, ideal = _steps_left(found.excluding)
    else:
        steps, ideal = _steps(log)
    spiky = spikes(steps["deviation_s"].to_numpy())
    return GoodputResult(
        rules=LIBRARY,
        goodput_share=found.sums.productive_s / found.total_s if found.total_s else 0.0,
        steps_read=bool((log.code == STEP).any()),
        productive_s=found.sums.productive_s,
        total_s=found.total_s,
        badput_s=badput,
        badput_share=shares(badput, found.total_s),
        data_loading_async_s=amount(badput, ASYNC),
        excluded_s=found.excluding.excluded_s if found.excluding else 0.0,
        disruptions=found.sums.disruptions,
        max_step=found.sums.max_step,
        ideal_step_s=ideal,
        steps=steps,
        spike_cumulative_s=spiky.cumulative_s,
        spike_interval_s=spiky.interval_s,
        slice_efficiency=found.slices,
        slice_counts=slice_counts(log).table,
        attempts=pd.DataFrame(),
        over_time=pd.DataFrame(),
        rolling_s=None,
        start_ns=found.start_ns,
        end_ns=found.end_ns,
        chips=None,
        usd_per_chip_hour=None,
        finished=bool(len(log.at(code_of("job", end=True)))),
        notes=tuple(_notes(log, asked, found, badput)),
    )


def _visible(log: Entries, asked: Query) -> Entries:
    """The entries that the library would have read: those written by now; of one attempt, where one is asked for."""
    if asked.now_ns is not None:
        log = log.where(log.written_ns <= asked.now_ns)
    if asked.attempt is not None:
        starts = np.append(log.at(code_of("job")), len(log))
        if asked.attempt >= len(starts) - 1:
            raise QuestionError(f"no attempt {asked.attempt} here", expected=f"0 to {max(len(starts) - 2, 0)}")
        place = np.arange(len(log))
        log = log.where((place >= starts[asked.attempt]) & (place < starts[asked.attempt + 1]))
    if not len(log):
        raise QuestionError(
            "this run has no goodput entries by that time", advice="Add the job's goodput log, or ask with rules=exact."
        )
    return log


def _now(log: Entries, asked: Query) -> int:
    return int(log.time_ns.max()) if asked.now_ns is None else asked.now_ns


def _whole(log: Entries, asked: Query) -> Found:
    now = _now(log, asked)
    start_s, total_s = job_seconds(log, now)
    sums = walk(log)
    checked(sums.productive_s, total_s)
    slices = library_efficiency(slice_counts(log), start_s, start_s + total_s)
    start_ns = round(start_s * 1e6) * 1000
    return Found(sums, total_s, start_ns, start_ns + round(total_s * 1e6) * 1000, slices)


def _window(log: Entries, asked: Query) -> Found:
    """Entries written in the window that name a time in it; the total is from the first to the last of them."""
    start, end = asked.window(int(log.dated_ns.min()) - 1, int(max(log.written_ns.max(), log.dated_ns.max())))
    part = log.where((log.written_ns > start) & (log.written_ns <= end) & (log.dated_ns > start))
    if not len(part):
        raise QuestionError(f"no entry of the log lies between {said(start)} and {said(end)}")
    first, last = int(part.dated_ns[0]), int(part.dated_ns[-1])
    begin, until = max(start, first), min(end, last)
    total_s = micro_seconds(until) - micro_seconds(begin)
    if total_s <= 0:
        raise QuestionError(
            f"the library gives no number between {said(start)} and {said(end)}: its last entry there "
            "is no later than its first",
            advice="Ask with rules=exact.",
        )
    sums = walk(part)
    checked(sums.productive_s, total_s)
    slices = library_efficiency(slice_counts(part), start / 1e9, end / 1e9)
    return Found(sums, total_s, begin, until, slices)


def _excluding(log: Entries, asked: Query) -> Found:
    now = _now(log, asked)
    start_s, raw_s = job_seconds(log, now)
    done = walk_excluding(log, merged(list(asked.exclude)))
    total_s = max(0.0, raw_s - done.excluded_s)
    start_ns = round(start_s * 1e6) * 1000
    if not total_s:
        done = Excluding(Sums(0.0, {}, done.sums.max_step, done.sums.disruptions), done.excluded_s, {})
    slices = library_efficiency(slice_counts(log), start_s, start_s + total_s)
    return Found(done.sums, total_s, start_ns, start_ns + round(raw_s * 1e6) * 1000, slices, done)


def _steps(log: Entries) -> tuple[pd.DataFrame, float]:
    step, took = step_times(log)
    ideal = library_ideal_s(took, LEAST_STEP_S)
    if ideal is None:  # steps under a second: the library then tells of no step at all
        return _table(step[:0], took[:0], took[:0]), 0.0
    return _table(step, took, np.abs(took - ideal)), ideal


def _steps_left(done: Excluding) -> tuple[pd.DataFrame, float | None]:
    """Steps less what is excluded; the deviation keeps its sign there."""
    step, took = np.array(list(done.steps), dtype=np.int64), np.array(list(done.steps.values()), dtype=float)
    ideal = library_ideal_s(took, LEAST_STEP_S)
    if ideal is None:
        return _table(step[:0], took[:0], took[:0]), None
    return _table(step, took, took - ideal), ideal


def _table(step: np.ndarray, took: np.ndarray, deviation: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"step": step, "step_s": took, "deviation_s": deviation, "spike": are_spikes(took)})


def _notes(log: Entries, asked: Query, found: Found, badput: dict) -> list[str]:
    notes = ["By the rules of ml-goodput-measurement 0.2.3, its known flaws included."]
    total = found.sums.productive_s + sum(amount(badput, b) for b in badput if b != ASYNC)
    if found.total_s and abs(total / found.total_s - 1) > WHOLE:
        notes.append(
            f"Productive time and badput sum to {100 * total / found.total_s:.1f} % of the total: these "
            "rules add up buckets that may overlap."
        )
    if not len(log.at(STEP)):
        notes.append("The log has no step.")
    if not len(log.at(code_of("job", end=True))) and not asked.windowed and asked.now_ns is None:
        notes.append(
            "The job has no end in the log. The library counts up to the moment it is asked; here that is "
            "the last entry, unless `now` is given."
        )
    if np.ptp(log.time_s) > RETENTION_S:
        notes.append(
            "The log spans more than 7 days: the library reads no further back unless it was told to, or kept "
            "a cache all along. Here it is given the whole log."
        )
    if log.assumed_order:
        notes.append("The input keeps no order of entries: the order of time stands for it.")
    if lacking := _unreadable(log):
        notes.append(
            f"{counted(lacking, 'checkpoint entry lacks', 'checkpoint entries lack')} a duration: the library "
            "stops there with an error. Here what is lacking counts as 0 s."
        )
    if asked.reversed:
        notes.append(asked.passed_over)
    if asked.exclude and found.sums.badput_s.get(CUSTOM):
        notes.append("With excluded times the library counts custom events by overlap, and no checkpoint at all.")
    return notes


def _unreadable(log: Entries) -> int:
    """Checkpoint entries of Orbax without a number that the library needs."""
    lacking = 0
    for kind, needs in ((SAVE, SAVE_NEEDS), (RESTORE, ("checkpointer_duration_secs",))):
        at = log.at(kind)
        missing = np.isnan(checkpoint_seconds(log, kind)[1])
        for name in needs:
            missing |= np.isnan(numbers(log.text[at], name))
        lacking += int((missing & told_by_orbax(log.text[at])).sum())
    return lacking
