"""The answer by our own rules: time is painted, not added up, so the shares always sum to the whole.

It is the painting of the ledger (`analyzers.time.calendar`): each instant from the first start of the job to its end
has one heading, kept steps are productive, every other heading is a bucket of badput, and what lies between the end of
the job and its next start is not counted at all. A window, an attempt or excluded times are cuts of that painting.

Where no input has times of day, step lines alone tell of the steps that were kept and of those that were not.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.intervals import Spans, common, length, paint, spans
from analyzers.lost.goodput.buckets import ASYNC, BUCKET, BUCKETS, CUSTOM, EVAL, HANG, Badput
from analyzers.lost.goodput.entries import Entries
from analyzers.lost.goodput.painted import CUSTOM_CODE, KEPT, OUTSIDE, Painted, by_attempt, over_time, painted
from analyzers.lost.goodput.query import EXACT, Query, counted, said
from analyzers.lost.goodput.result import GoodputResult
from analyzers.lost.goodput.slices import exact_efficiency, slice_counts
from analyzers.lost.goodput.step_deviation import are_spikes, ideal_step_s, spikes
from analyzers.time.calendar import CODE, HEADINGS, Calendar, between_said, no_steps, startup_ns
from analyzers.time.history import History
from analyzers.time.job_past import job_past
from analyzers.time.pauses import paused_ns
from analyzers.time.undated_pauses import NOTE, undated_pauses_s
from errors import QuestionError
from runs.tables import Tables

ROLLING_PARTS = 20  # a rolling share looks back over this part of the time told of, where nothing else is asked


def by_exact_rules(
    tables: Tables, facts: Facts, log: Entries | None, asked: Query, bins: int, rolling_s: float | None
) -> GoodputResult:
    """Goodput by the exact rules. `log`: the goodput entries, for slice counts; None without any.

    Raises QuestionError where nothing tells of the job's life or steps, and for a time in which it held no chips.
    """
    past, days = job_past(tables, facts, asked.now_ns)
    if days is None:
        return _from_step_lines(past, asked, undated_pauses_s(tables, past.rows["step"]))
    whole = painted(days)
    first, last = asked.window(days.start_ns, days.end_ns)
    keep = _asked_for(days, asked, first, last)
    held = whole.only(keep)
    start, end = max(int(keep.start[0]), days.start_ns), min(int(keep.end[-1]), days.end_ns)
    ns = held.painting.amounts(held.labels)
    total = int(ns.sum() - ns[OUTSIDE])
    if not total:
        raise QuestionError(
            f"the job held no chips in the time asked about; it ran from {said(days.start_ns)} to {said(days.end_ns)}"
        )
    steps = _steps(days, keep, past.origin == "step lines")
    spiky = spikes(steps["deviation_s"].to_numpy())
    taken = days.steps
    inside = _inside(taken, keep)
    proven = taken["kept"].to_numpy(dtype=bool) & (taken["end_ns"] > taken["start_ns"]).to_numpy(dtype=bool) & inside
    numbers = taken["step"].to_numpy(dtype=np.int64, na_value=-1)[proven]
    excluded = asked.excluded
    badput = _badput(ns, whole.names)
    counts = None if log is None else slice_counts(log)
    rolling = rolling_s or (end - start) / 1e9 / ROLLING_PARTS
    usual = steps.loc[~steps["first"], "step_s"].to_numpy()
    read = len(days.steps) > 0
    return GoodputResult(
        rules=EXACT,
        goodput_share=ns[KEPT] / total if read else None,
        steps_read=read,
        why_no_steps=days.why_no_steps,
        productive_s=ns[KEPT] / 1e9,
        total_s=total / 1e9,
        badput_s=badput,
        badput_share=_badput(ns * (1e9 / total), whole.names),
        data_loading_async_s=length(common(_merged(days.loading_in_steps), keep)[0]) / 1e9,
        excluded_s=_excluded_s(whole, excluded, first, last),
        disruptions=_disruptions(days, keep),
        max_step=int(numbers.max()) if len(numbers) else None,
        ideal_step_s=ideal_step_s(usual if len(usual) else steps["step_s"].to_numpy()),
        steps=steps.drop(columns="first"),
        spike_cumulative_s=spiky.cumulative_s,
        spike_interval_s=spiky.interval_s,
        slice_efficiency=exact_efficiency(counts, _held(held)) if counts else None,
        slice_counts=counts.table if counts else pd.DataFrame(),
        attempts=_shares_known(by_attempt(days, held), read),
        over_time=_shares_known(over_time(held, start, end, bins, rolling), read),
        rolling_s=rolling,
        start_ns=start,
        end_ns=end,
        chips=None,
        usd_per_chip_hour=None,
        finished=bool(days.finished[-1]),
        notes=tuple(_notes(days, asked, past)),
    )


def _merged(x: Spans) -> Spans:
    order = np.argsort(x.start, kind="stable")
    start, end = x.start[order], x.end[order]
    begin = (
        np.maximum(start, np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])))
        if len(end)
        else start
    )
    return spans(begin, end)


def _asked_for(days: Calendar, asked: Query, first: int, last: int) -> Spans:
    """The time that is asked about, as sorted, disjoint spans. Raises QuestionError where nothing is left of it."""
    if asked.attempt is not None:
        if asked.attempt >= len(days.attempts.start):
            raise QuestionError(f"no attempt {asked.attempt} here", expected=f"0 to {len(days.attempts.start) - 1}")
        first = max(first, int(days.attempts.start[asked.attempt]))
        last = min(last, int(days.attempts.end[asked.attempt]))
    if first >= last:
        raise QuestionError(f"attempt {asked.attempt} does not lie in the window that is asked about")
    keep = paint(first, last, [(1, asked.excluded)]).spans(0)
    if not len(keep.start):
        raise QuestionError(f"all time from {said(first)} to {said(last)} is excluded")
    return keep


def _excluded_s(whole: Painted, excluded: Spans, first: int, last: int) -> float:
    """Held time that was left out."""
    clipped = spans(np.clip(excluded.start, first, last), np.clip(excluded.end, first, last))
    out = whole.until(clipped.end) - whole.until(clipped.start)
    return float(out.sum() - out[:, OUTSIDE].sum()) / 1e9


def _held(held: Painted) -> Spans:
    outside = held.painting.spans(OUTSIDE)
    return paint(int(held.painting.edges[0]), int(held.painting.edges[-1]), [(1, outside)]).spans(0)


def _badput(ns: np.ndarray, names: tuple[str, ...]) -> Badput:
    """Seconds by bucket from nanoseconds by label."""
    out: dict[str, float | dict[str, float]] = {}
    for bucket in BUCKETS:
        if bucket == CUSTOM:
            custom = {n: float(s) / 1e9 for n, s in zip(names, ns[len(HEADINGS) :], strict=True) if s}
            for name, heading in ((EVAL, "eval"), (HANG, "hang")):
                if ns[CODE[heading]]:
                    custom[name] = custom.get(name, 0.0) + float(ns[CODE[heading]]) / 1e9
            if ns[CUSTOM_CODE]:
                custom["UNNAMED"] = custom.get("UNNAMED", 0.0) + float(ns[CUSTOM_CODE]) / 1e9
            out[bucket] = custom
        elif bucket != ASYNC:
            out[bucket] = float(sum(ns[CODE[h]] for h, b in BUCKET.items() if b == bucket)) / 1e9
    return out


def _inside(steps: pd.DataFrame, keep: Spans) -> np.ndarray:
    """Which steps begin in the time asked about."""
    at = steps["start_ns"].to_numpy(dtype=np.int64)
    return np.searchsorted(keep.start, at, side="right") > np.searchsorted(keep.end, at, side="right")


def _steps(days: Calendar, keep: Spans, lines: bool) -> pd.DataFrame:
    """Kept steps that began in the time asked about, their time less recorded pauses. `lines`: see `paused_ns`.

    The ideal is that of steps which are not the first of their segment.
    """
    rows = days.steps
    mine = rows["kept"].to_numpy(dtype=bool) & rows["dur_ns"].notna().to_numpy() & _inside(rows, keep)
    rows = rows[mine]
    begin, until = rows["start_ns"].to_numpy(dtype=np.int64), rows["end_ns"].to_numpy(dtype=np.int64)
    took = (until - begin - paused_ns(days.painting, begin, until, lines)) / 1e9
    first = rows["first"].to_numpy(dtype=bool)
    ideal = ideal_step_s(took[~first] if (~first).any() else took)
    return pd.DataFrame(
        {
            "step": rows["step"].to_numpy(dtype=np.int64, na_value=-1),
            "step_s": took,
            "deviation_s": np.abs(took - (ideal or 0.0)),
            "spike": are_spikes(took),
            "first": first,
        }
    )


def _disruptions(days: Calendar, keep: Spans) -> int:
    """Attempts that ended without the job ending, and steps taken again inside an attempt, in the time asked about."""
    steps = days.steps
    start, number = (steps[c].to_numpy(dtype=np.int64, na_value=-1) for c in ("start_ns", "step"))
    attempt = np.searchsorted(days.attempts.start, start, side="right")
    back = start[1:][(np.diff(number) <= 0) & (np.diff(attempt) == 0)]
    stops = [min(i.last_sign_ns, i.restart_ns - 1) for i in days.interruptions]
    at = np.concatenate((back, np.array(stops, dtype=np.int64)))
    return int((np.searchsorted(keep.start, at, side="right") > np.searchsorted(keep.end, at, side="right")).sum())


def _shares_known(table: pd.DataFrame, read: bool) -> pd.DataFrame:
    """The table, its shares not known where no step was read."""
    return table if read else table.assign(**{c: np.nan for c in table if c.endswith("share")})


def _from_step_lines(past: History, asked: Query, pauses_s: Mapping[str, float]) -> GoodputResult:
    """Without times of day: the steps kept, those taken again and what first ones started up, and of what lies between
    the pauses of which numbers tell how long they took."""
    rows = past.rows[past.rows["dur_ns"].notna()]
    if past.origin == "profile" or not len(rows):
        raise QuestionError(
            "this run tells neither when its job started and ended nor which steps it kept",
            advice="Add the job's goodput log or its training log to the same ingest; a profile alone cannot tell.",
        )
    if asked.windowed or asked.exclude or asked.attempt is not None or asked.now_ns is not None:
        raise QuestionError(
            "a time of day was asked about, but this run's step lines carry none",
            advice="Add the job's goodput log, or a training log with dates.",
        )
    took_ns, kept = rows["dur_ns"].to_numpy(dtype=np.int64), rows["kept"].to_numpy(dtype=bool)
    took, starting = took_ns / 1e9, startup_ns(rows, took_ns) / 1e9
    first = rows["first"].to_numpy(dtype=bool)
    usual = took[kept & ~first] if (kept & ~first).any() else took[kept]
    ideal = ideal_step_s(usual)
    number = rows["step"].to_numpy(dtype=np.int64, na_value=-1)[kept]
    steps = pd.DataFrame(
        {
            "step": number,
            "step_s": took[kept],
            "deviation_s": np.abs(took[kept] - (ideal or 0.0)),
            "spike": are_spikes(took[kept]),
        }
    )
    spiky = spikes(steps["deviation_s"].to_numpy())
    hung = rows["hung_ns"].to_numpy(dtype=np.int64) / 1e9
    stepping = took - hung - starting
    total, productive = float(took.sum()) + sum(pauses_s.values()), float(stepping[kept].sum())
    badput = {b: {} if b == CUSTOM else 0.0 for b in BUCKETS if b != ASYNC}
    badput["wasted_progress_from_disruption"] = float(stepping[~kept].sum())
    badput["program_startup"] = float(starting.sum())
    segment = rows["segment"].to_numpy(dtype=np.int64)
    custom = {EVAL: pauses_s.get("eval", 0.0), HANG: float(hung.sum())}
    badput[CUSTOM] = {name: s for name, s in custom.items() if s}
    badput["unproductive_checkpoint_save_time"] = pauses_s.get("checkpoint_save", 0.0)
    return GoodputResult(
        rules=EXACT,
        goodput_share=productive / total if total else None,
        productive_s=productive,
        total_s=total,
        badput_s=badput,
        badput_share={
            b: {n: s / total for n, s in v.items()} if isinstance(v, dict) else v / total if total else 0.0
            for b, v in badput.items()
        },
        data_loading_async_s=0.0,
        excluded_s=0.0,
        disruptions=int(segment.max() - segment.min()),
        max_step=int(number.max()) if len(number) else None,
        ideal_step_s=ideal,
        steps=steps,
        spike_cumulative_s=spiky.cumulative_s,
        spike_interval_s=spiky.interval_s,
        slice_efficiency=None,
        slice_counts=pd.DataFrame(),
        attempts=pd.DataFrame(),
        over_time=pd.DataFrame(),
        rolling_s=None,
        start_ns=None,
        end_ns=None,
        chips=None,
        usd_per_chip_hour=None,
        finished=None,
        notes=(
            "Only step lines without times of day were given: time before the first step, between attempts and "
            "after the last is in none of these numbers. A goodput log would bring it.",
            *([NOTE] if pauses_s else []),
            *past.notes,
        ),
    )


def _notes(days: Calendar, asked: Query, past: History) -> list[str]:
    notes = [*days.notes]
    if not len(days.steps):
        notes.append(no_steps(past))
    if len(days.loading_in_steps.start):
        notes.append(
            "Fetches inside steps (data_loading_async) are no badput: a device may work meanwhile. They are "
            "told beside, and only a profile can say what of them the device waited for."
        )
    if length(days.painting.spans(OUTSIDE)):
        notes.append(between_said(days))
    if days.open_ended:
        unended = counted(days.open_ended, "recorded interval has no end", "recorded intervals have no end")
        notes.append(
            f"{unended}: phases were entered up to their attempt's next event, custom events and saves left out."
        )
    if not days.ended[-1]:
        last, until = int(days.last_sign_ns[-1]), int(days.attempts.end[-1])
        if asked.now_ns is not None and until > last:
            notes.append(
                f"The job has no end recorded: {(until - last) / 1e9:,.1f} s after its last sign of "
                "life, up to the time asked about, are entered as other."
            )
        elif until > last:
            notes.append(
                f"The job has no end recorded: {(until - last) / 1e9:,.1f} s after its last sign of life, in "
                "which its ranks waited until a collective timed out, are entered as infrastructure recovery."
            )
        else:
            notes.append(
                "The job has no end recorded: it is told of up to its last sign of life. The last step counts "
                "only once something proves that it was done."
            )
    if past.origin == "step lines" and len(days.steps):
        notes.append("Steps are taken from step lines with dates, not from a goodput log.")
    if asked.reversed:
        notes.append(asked.passed_over)
    return notes
