"""The steps that a job took, put together from whatever tells of them: goodput entries, step lines, profiles.

Goodput entries say when each step started, step lines how long it took and how fast it was, profiles both but
only for the steps they saw. One row comes out per step taken; a step taken again after a restart has two rows.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.intervals import Spans, spans
from analyzers.subject import devices_per_chip
from analyzers.time.beside_marks import Beside, beside
from analyzers.time.beside_marks import said as beside_said
from analyzers.time.hangs import hangs_said, hung_ns, slow_after_pause
from analyzers.time.job_times import (
    Jobs,
    attempt_of,
    begun_times,
    from_the_future,
    job_times,
    strangers,
    told_apart,
    with_starts_told,
)
from analyzers.time.profiled_steps import COLUMNS, of_profiles, segmented
from analyzers.time.scheduler_clock import begun_again, moved_said, scheduler_shifts
from analyzers.time.step_joins import add_lines, anchor
from analyzers.time.step_streams import NS_PER_S, UNTIMED, Stream, natural_key, streams
from analyzers.time.step_takes import TRACKED, Takes, lines_taken, takes
from analyzers.time.untold import with_unprinted, with_untold
from runs.tables import Tables, frame

__all__ = ["NS_PER_S", "History", "Jobs", "from_the_future", "history", "job_times", "natural_key", "step_rows"]

PER_DEVICE = ("maxtext", "maxtext_metrics", *TRACKED)  # they tell of a JAX device: half a chip on v2, v3 and 7x
PAUSES = ("checkpoint_save", "checkpoint_restore", "eval")
MEANS_LEFT = 2  # means of steps that did not start up, of which a usual step is told
TOO_FAST = "far faster than the median step: timed before it had run"
PLAUSIBLE_SHARE = 0.2  # a step faster than this share of the median was timed before the device had finished


@dataclass(frozen=True)
class History:
    """`rows`, in order of time, one per step taken:

    segment     unbroken stretch of rising step numbers, from 0 (a restart, in the process or of it, opens a new one)
    attempt     start of the job it belongs to, from 0
    step        number as the job counts it
    start_ns    Int64, null where no input gives a time of day
    dur_ns      Int64, null where nothing tells how long it took (the last step before a crash)
    first       first step of its segment, those that share its printed mean, or one that took far longer than
                usual after a pause: it compiles, allocates, warms up
    kept        False where a later segment took this step number again; a job that ended and was then run again from
                its beginning keeps what it did: it was not interrupted
    tokens_per_s_per_chip, model_flops_per_chip, loss   as the job printed them; where another host took longer, the
                rate at which the same tokens were trained in that time
    implausible "" or why its printed speed cannot be true
    hung_ns     how long it hung (analyzers.time.hangs), 0 where it did not

    `timed`: whether the rows have times of day. `origin`: goodput entries, step lines or profile. `notes`: what was
    left out, moved or assumed, and why. `jobs`: the job's own times; where step lines alone tell of a restart, its
    first step stands for the start. `attempts`: the attempt here of each (source, attempt as that input counts);
    `foreign`: those strangers that tell of another job's steps.
    `shifts`: how far the clock of an input is to be moved, ns; `strangers`: inputs whose times lie on another clock
    altogether, or that are of another job. `averaged`: whether durations are means over several steps.
    """

    rows: pd.DataFrame
    timed: bool
    origin: str
    notes: tuple[str, ...] = ()
    jobs: Jobs | None = None
    shifts: Mapping[str, int] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()
    averaged: bool = False
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()


def history(tables: Tables, facts: Facts, now_ns: int | None = None) -> History:
    """The steps of the whole job, or those begun by `now_ns`. Pure; O(n log n) in the number of step rows."""
    rows = step_rows(tables, facts, [*COLUMNS, "host", "capture", "device", "order", "logged_ns", "source"])
    if now_ns is not None:
        rows = rows[~(rows["start_ns"] > now_ns).fillna(False).to_numpy(dtype=bool)]
    rows, notes = _possible(rows)
    seen = rows["capture"].notna().to_numpy()
    timed, lasting = rows["start_ns"].notna().to_numpy(), rows["dur_ns"].notna().to_numpy()
    marks, lines = rows[~seen & ~lasting & timed], rows[~seen & lasting]
    if len(marks):
        return _by_marks(tables, facts, marks, lines, rows[seen], notes, now_ns)
    if len(lines):
        return _by_lines(tables, facts, lines, rows[seen], notes, now_ns)
    steps, said = of_profiles(rows[seen])
    return History(_judged(steps, facts, kept=True), True, "profile", (*notes, *said))


def without_steps(tables: Tables) -> str:
    """What a run is said to lack that has no step of which anything tells its time."""
    told = tables.rows("steps")
    return "this run has no steps" if not told else "this run has no step that tells when it began or how long it took"


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


def _possible(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Rows that name a step from 0 on which took no less than no time; what else was left out."""
    told = rows["capture"].isna()
    checks = (
        ("names no step number", "name no step number", told & rows["step"].isna()),
        ("names a step below 0", "name a step below 0", told & (rows["step"] < 0)),
        (
            "tells of a step that took less than no time",
            "tell of steps that took less than no time",
            rows["dur_ns"] < 0,
        ),
    )
    out, notes = np.zeros(len(rows), dtype=bool), []
    for one, many, wrong in checks:
        wrong = wrong.fillna(False).to_numpy(dtype=bool) & ~out
        out |= wrong
        if count := int(wrong.sum()):
            notes.append(f"{count:,} {'row ' + one if count == 1 else 'rows ' + many}: left out.")
    return (rows[~out] if out.any() else rows), notes


def _by_marks(
    tables: Tables,
    facts: Facts,
    marks: pd.DataFrame,
    lines: pd.DataFrame,
    seen: pd.DataFrame,
    notes: list[str],
    now_ns: int | None,
) -> History:
    """Steps by goodput entries, with what step lines add; by lines where these tell of more at either end."""
    times = marks["start_ns"].to_numpy(dtype=np.int64)
    own = (*_sources(marks), *_sources(lines))
    moved = scheduler_shifts(tables, times, own)
    lone = strangers(tables, (*own, *moved), int(times.min()), int(times.max()))
    jobs = job_times(tables, now_ns, moved, lone, times)
    steps, clock, said = _from_marks(marks, jobs.starts)
    lines, found, told, foreign, left_out = _of_the_marks(lines, clock, _sources(marks))
    notes = [*notes, *left_out, *beside_said(told, _sources(marks), _sources(lines.iloc[found.row]))]
    if told.further:
        return _by_lines(tables, facts, lines, seen, notes, now_ns, clock, foreign)
    found = replace(found, foreign=(*found.foreign, *foreign))
    shifts = {**found.shifts, **moved}
    others = (*lone, *found.foreign)
    if found.shifts or found.foreign:
        jobs = job_times(tables, now_ns, shifts, others, times)
    steps, untold = with_untold(steps)
    add_lines(steps, _stepped(lines, found))
    _close(steps)
    steps = _judged(steps, facts, jobs.own_ends)
    steps["hung_ns"] = hung_ns(steps, tables, others, shifts)
    notes = [*notes, *said, *found.notes, *untold, *told_apart(lone), *moved_said(moved), *hangs_said(steps)]
    return History(steps, True, "goodput entries", tuple(notes), jobs, shifts, others, foreign=found.foreign)


def _of_the_marks(
    lines: pd.DataFrame, clock: Stream, marks: tuple[str, ...]
) -> tuple[pd.DataFrame, Takes, Beside, tuple[str, ...], list[str]]:
    """Step lines without those of sources that are of another job than the entries of `marks`, whose clock is `clock`;
    what is taken of them, how that lies beside the entries; those sources, and what is said of them."""
    found = lines_taken(lines, clock)
    told = _beside(clock, lines, found)
    if not told.of_another:
        return lines, found, told, (), []
    source = lines["source"].astype(str)
    alone = ((name, lines[source == name]) for name in source.unique())
    others = [name for name, its in alone if _beside(clock, its, lines_taken(its, clock)).of_another]
    rest = lines[~source.isin(others)] if others else lines[:0]
    left_out = beside_said(told, marks, others or _sources(lines.iloc[found.row]))
    foreign = tuple(name for name in _sources(lines) if name not in {*marks, *_sources(rest)})
    found = lines_taken(rest, clock)
    return rest, found, _beside(clock, rest, found), foreign, left_out


def _beside(clock: Stream, lines: pd.DataFrame, found: Takes) -> Beside:
    took = lines["dur_ns"].to_numpy(dtype=np.int64)[found.row]
    return beside(clock.step, clock.start_ns, found.step, found.start_ns, clock.usual_ns, took)


def _by_lines(
    tables: Tables,
    facts: Facts,
    lines: pd.DataFrame,
    seen: pd.DataFrame,
    notes: list[str],
    now_ns: int | None,
    clock: Stream | None = None,
    foreign: tuple[str, ...] = (),
) -> History:
    """Steps by step lines, with the times of day of a profile where they have none. `clock`: see `takes`; `foreign`:
    sources of another job that were left out before."""
    found = lines_taken(lines, clock)
    found = replace(found, foreign=(*found.foreign, *foreign))
    steps, notes = _stepped(lines, found), [*notes, *found.notes]
    if len(seen) and not steps["start_ns"].notna().any() and not anchor(steps, seen.dropna(subset=["start_ns"])):
        notes.append(
            "The profile's steps are not those of the log, by their numbers or by how long they took: it "
            "lends no times of day."
        )
    timed = bool(steps["start_ns"].notna().all())
    jobs, lone, shifts = None, (), found.shifts
    if timed and len(steps):
        start = steps["start_ns"].to_numpy(dtype=np.int64)
        end = start + steps["dur_ns"].to_numpy(dtype=np.int64)
        moved = scheduler_shifts(tables, start, _sources(lines))
        shifts = {**found.shifts, **moved}
        notes += moved_said(moved)
        lone = strangers(tables, (*_sources(lines), *moved), int(start.min()), int(end.max()))
        notes += told_apart(lone)
        lone = (*lone, *found.foreign)
        jobs = job_times(tables, now_ns, shifts, lone, start)
        start, end = begun_again(steps, start, end, jobs)
        begun = begun_times(tables, now_ns, shifts, lone)
        attempt = steps["attempt"].to_numpy(dtype=np.int64)
        jobs = replace(jobs, starts=with_starts_told(jobs.starts, start, attempt, begun))
        steps["attempt"] = attempt_of(start, jobs.starts)
        steps = segmented(steps)
        steps["first"] |= slow_after_pause(start, end)
    averaged = _averaged(facts, lines, lines.iloc[found.row])
    if averaged > 1:
        steps["first"] = _sharing_the_first_mean(steps, averaged)
    own = _own_attempts(lines.iloc[found.row], steps["attempt"].to_numpy(dtype=np.int64))
    if timed:
        steps, unprinted = with_unprinted(steps, _paused(tables))
        notes += unprinted
    steps = _judged(steps, facts, None if jobs is None else jobs.own_ends)
    steps["hung_ns"] = hung_ns(steps, tables, lone, shifts)
    notes += hangs_said(steps)
    return History(steps, timed, "step lines", tuple(notes), jobs, shifts, lone, averaged > 1, own, found.foreign)


def _paused(tables: Tables) -> Spans:
    """When the job saved, restored or evaluated, as it records itself."""
    told = frame(tables, "lifecycle", ["start_ns", "end_ns"], [("kind", "in", PAUSES)]).dropna()
    return spans(*(told[c].to_numpy(dtype=np.int64) for c in ("start_ns", "end_ns")))


def _averaged(facts: Facts, lines: pd.DataFrame, taken: pd.DataFrame) -> int:
    """Over how many steps a duration is a mean, where the input that says so is one whose steps are taken."""
    told = facts.get("steps_averaged_over")
    if told is None or told.source in {*_sources(lines)} - {*_sources(taken)}:
        return 1
    return told.value or 1


def _sharing_the_first_mean(steps: pd.DataFrame, averaged: int) -> np.ndarray:
    """Which steps are the first of their segment, or share the mean that was printed for it: what starting up took is
    spread over all of these. None more where too few others are left to tell what a usual step takes."""
    first = steps["first"].to_numpy(dtype=bool)
    took = steps["dur_ns"].to_numpy(dtype=np.int64, na_value=-1)
    alike = np.cumsum(first | (np.diff(took, prepend=-1) != 0))
    shared = np.isin(alike, alike[first])
    return shared if (~shared).sum() >= MEANS_LEFT * averaged else first


def _own_attempts(lines: pd.DataFrame, attempt: np.ndarray) -> dict[tuple[str, int], int]:
    """What each input's own count of attempts stands for."""
    own = pd.DataFrame(
        {
            "source": lines["source"].astype(str).to_numpy(),
            "attempt": attempt,
            "own": lines["attempt"].to_numpy(dtype=np.int64, na_value=0),
        }
    )
    own = own.drop_duplicates(["source", "own"])
    return {(s, k): a for s, k, a in zip(own["source"], own["own"].tolist(), own["attempt"].tolist(), strict=True)}


def _sources(rows: pd.DataFrame) -> tuple[str, ...]:
    return tuple(str(s) for s in rows["source"].dropna().unique())


# --- steps by marks, lines and profiles


def _from_marks(marks: pd.DataFrame, starts: np.ndarray) -> tuple[pd.DataFrame, Stream, list[str]]:
    """Step starts, each once; a stream that keeps their clock; and what was left out."""
    notes = []
    if (false := from_the_future(marks["start_ns"], marks["logged_ns"])).any():
        count = int(false.sum())
        notes.append(
            f"{count:,} step {'start names' if count == 1 else 'starts name'} a time more than a minute after "
            "being written: left out."
        )
        marks = marks[~false]
    again: Counter[str] = Counter()
    told, said = streams(marks, again, starts)
    if count := again.total():
        notes.append(f"{count:,} step {'start was' if count == 1 else 'starts were'} told twice and counted once.")
    found = takes(told, np.zeros(0), np.zeros(0))
    steps = _rows_of(marks, found)
    steps["attempt"] = attempt_of(found.start_ns, starts)
    clock = replace(
        told[0], row=found.row, place=found.row, step=found.step, start_ns=found.start_ns, end_ns=found.start_ns
    )
    return segmented(steps), clock, [*notes, *said, *found.notes]


def _rows_of(rows: pd.DataFrame, found: Takes) -> pd.DataFrame:
    steps = rows[COLUMNS].take(found.row).reset_index(drop=True)
    steps["start_ns"] = pd.array(np.where(found.start_ns == UNTIMED, 0, found.start_ns), dtype="Int64")
    steps.loc[found.start_ns == UNTIMED, "start_ns"] = pd.NA
    return steps


def _stepped(lines: pd.DataFrame, found: Takes) -> pd.DataFrame:
    """Step lines as rows of the history, attempts as their inputs tell them."""
    steps = _rows_of(lines, found)
    told = steps["dur_ns"].to_numpy(dtype=np.int64)
    took = found.took_ns(told)
    steps["dur_ns"] = pd.array(took, dtype="Int64")
    steps["tokens_per_s_per_chip"] *= np.where(took > told, told / np.maximum(took, 1), 1.0)
    steps["attempt"] = np.maximum(found.opens.cumsum() - 1, 0)
    return segmented(steps)


def _close(steps: pd.DataFrame) -> None:
    """A step lasts until the next one of its segment starts; the last keeps the duration that was printed."""
    gap = steps["start_ns"].shift(-1) - steps["start_ns"]
    inside = (~steps["first"]).shift(-1, fill_value=False)
    steps["dur_ns"] = gap.where(inside, steps["dur_ns"])


def _judged(steps: pd.DataFrame, facts: Facts, ends: np.ndarray | None = None, kept: bool = False) -> pd.DataFrame:
    """Add `kept` (of all, where they are taken to be), `implausible`, and that none hung. `ends`: when the job ended,
    where that is known."""
    steps["kept"] = kept or _kept(steps, np.empty(0, np.int64) if ends is None else ends)
    steps["hung_ns"] = 0
    dur = steps["dur_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    flops = steps["model_flops_per_chip"].to_numpy(dtype=np.float64, na_value=np.nan)
    peak = fact(facts, "peak_flops_per_s")
    if peak and facts["peak_flops_per_s"].basis == "measured":  # a trace states the peak of a device
        peak *= devices_per_chip(facts)
    reason = np.full(len(steps), "", dtype=object)
    usual = dur[~steps["first"].to_numpy(dtype=bool) & np.isfinite(dur)]
    if len(usual) >= 3:
        reason[dur < PLAUSIBLE_SHARE * np.median(usual)] = TOO_FAST
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
    opens = np.flatnonzero(np.diff(segment, prepend=-1))
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
