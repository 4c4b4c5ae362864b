"""Goodput by the rules of ml-goodput-measurement 0.2.3: its own numbers, flaws and all.

Entries are walked in log order. A step number that was seen since the last disruption is a disruption: the steps up
to there are a segment. Of neighbouring steps of a segment those up to the step that is taken again are productive
where their numbers follow one another, less the custom events that lie wholly inside; later ones are wasted. The
first step of a segment beyond the mean of its others is start-up. What the fact sheets list as wrong in it is kept.

Here the walk is arithmetic on columns. Only disruptions are found one by one, among the steps that occur again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.intervals import pairs
from analyzers.lost.goodput.buckets import ASYNC, BUCKETS, CUSTOM
from analyzers.lost.goodput.entries import NONE, RESTORE, SAVE, STEP, Entries, code_of, numbers, strings
from errors import QuestionError

UNNAMED = "UNNAMED"
MICRO_NS = 1000  # the library keeps times of the job and of windows as microseconds


@dataclass(frozen=True)
class Sums:
    """What the walk found: seconds by bucket (OTHER not yet among them), and what it counted."""

    productive_s: float
    badput_s: dict[str, float | dict[str, float]]
    max_step: int
    disruptions: int


@dataclass(frozen=True)
class Steps:
    """The step entries of a log, cut into segments where a step number occurs again.

    pos      position in the log             number, at_s   step number and start, s since the epoch
    opens    where each segment begins, the first at 0; one more at the end
    segment  number of the segment of each step
    """

    pos: np.ndarray
    number: np.ndarray
    at_s: np.ndarray
    opens: np.ndarray
    segment: np.ndarray

    @property
    def disruptions(self) -> np.ndarray:
        return self.opens[1:-1]

    @property
    def limit(self) -> np.ndarray:
        """The step each segment is taken to have reached: the one taken again, at the end the highest."""
        last = self.number[self.opens[-2] : self.opens[-1]].max()
        return np.append(self.number[self.disruptions], last)


def segmented(log: Entries) -> Steps:
    """The steps of a log and its disruptions. O(n log n)."""
    pos = log.at(STEP)
    number, at_s = log.step[pos], log.time_s[pos]
    opens, begin = [0], 0
    if len(number) and (np.diff(number) <= 0).any():
        by_number = np.argsort(number, kind="stable")
        same = number[by_number][1:] == number[by_number][:-1]
        before = np.full(len(number), -1)
        before[by_number[1:][same]] = by_number[:-1][same]
        again = np.flatnonzero(before >= 0)
        for here, there in zip(again.tolist(), before[again].tolist(), strict=True):
            if there >= begin:
                begin = here
                opens.append(here)
    bounds = np.array([*opens, len(number)], dtype=np.int64)
    return Steps(pos, number, at_s, bounds, np.repeat(np.arange(len(opens)), np.diff(bounds)))


def walk(log: Entries) -> Sums:
    """Productive and unproductive seconds of a log (or of the part of it that lies in a window)."""
    steps = segmented(log)
    badput = _phases(log)
    badput |= _loading(log, steps)
    save_s = _checkpoints(log, SAVE)
    badput["unproductive_checkpoint_save_time"] = save_s
    badput["unproductive_checkpoint_restore_time"] = _checkpoints(log, RESTORE)
    count = len(steps.disruptions)
    if not len(steps.number):
        return Sums(0.0, badput, 0, count)
    productive, startup, wasted, custom, max_step = _segments(log, steps)
    badput |= {
        "program_startup": startup,
        "wasted_progress_from_disruption": wasted,
        CUSTOM: custom,
        "infrastructure_recovery_from_disruption": _recovery(log, steps),
    }
    ends = log.at(code_of("job", end=True))
    if len(ends):
        here = steps.opens[-2] + int(steps.number[steps.opens[-2] :].argmax())
        productive += float(log.time_s[ends[-1:]][0] - steps.at_s[here])
        max_step = int(steps.number[here])
    return Sums(productive - save_s, badput, max_step, count)


def neighbours(steps: Steps) -> np.ndarray:
    """Positions of the steps that have one before them in their segment."""
    here = np.arange(1, len(steps.number))
    return here[steps.segment[here] == steps.segment[here - 1]]


def _segments(log: Entries, steps: Steps) -> tuple[float, float, float, dict[str, float], int]:
    """(productive, start-up, wasted, custom events, last productive step of the last segment)."""
    count, limit = len(steps.opens) - 1, steps.limit
    here = neighbours(steps)
    here = here[limit[steps.segment[here]] != 0]  # a segment that reached step 0 is left out as a whole
    mine = steps.segment[here]
    delta = steps.at_s[here] - steps.at_s[here - 1]
    lost = steps.number[here] > limit[mine]
    wasted = np.bincount(mine[lost], delta[lost], count)
    good = ~lost & (steps.number[here] == steps.number[here - 1] + 1)
    here, mine, delta = here[good], mine[good], delta[good]
    events = custom_events(log)
    inside, custom_s = _contained(events, steps.at_s[here - 1], steps.at_s[here])
    delta = np.maximum(delta - inside, 0.0)
    is_first = steps.number[here - 1] == np.minimum.reduceat(steps.number, steps.opens[:-1])[mine]
    total, first = np.bincount(mine, delta, count), np.bincount(mine[is_first], delta[is_first], count)
    others = np.bincount(mine[~is_first], minlength=count)
    usual = np.divide(total - first, others, out=np.zeros(count), where=others > 0)
    startup = np.where(others > 0, np.maximum(first - usual, 0.0), 0.0)
    last = here[mine == count - 1]
    max_step = int(steps.number[last[-1] - 1]) if len(last) else 0
    return float((total - startup).sum()), float(startup.sum()), float(wasted.sum()), custom_s, max_step


def _recovery(log: Entries, steps: Steps) -> float:
    """From the last step start before each disruption to the latest start of the job, where that came later."""
    starts = log.at(code_of("job"))
    if not len(starts) or not len(steps.disruptions):
        return 0.0
    latest = np.searchsorted(starts, steps.pos[steps.disruptions], side="right") - 1
    known = latest >= 0
    gap = log.time_s[starts][latest[known]] - steps.at_s[steps.disruptions[known] - 1]
    return float(np.maximum(gap, 0.0).sum())


def closed(log: Entries, kind: str, at: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(position of the end, start s, end s) of intervals of a paired kind: an end closes the start right before it.
    `at`: positions of the entries to look at, in order; default all of the kind."""
    at = both_ends(log, kind) if at is None else at
    is_end = log.code[at] == code_of(kind, end=True)
    closing = np.flatnonzero(is_end[1:] & ~is_end[:-1]) + 1
    when = log.time_s[at]
    return at[closing], when[closing - 1], when[closing]


def both_ends(log: Entries, kind: str) -> np.ndarray:
    """Positions of the entries that begin or end intervals of a paired kind."""
    return np.flatnonzero((log.code == code_of(kind)) | (log.code == code_of(kind, end=True)))


def _phases(log: Entries) -> dict[str, float | dict[str, float]]:
    """Initialisation, preparation, and what elastic training adds and takes from them."""
    spans = {
        kind: closed(log, kind)[1:]
        for kind in ("accelerator_initialization", "training_preparation", "elastic_reinitialization")
    }
    out = {"tpu_initialization": spans["accelerator_initialization"], "training_prep": spans["training_preparation"]}
    badput = {bucket: float((end - start).sum()) for bucket, (start, end) in out.items()}
    again = _positive(*spans["elastic_reinitialization"])
    for bucket, (start, end) in out.items():
        start, end = _positive(start, end)
        if overlap := float(_overlaps((start, end), *again)[0].sum()):
            badput[bucket] = max(0.0, badput[bucket] - overlap)
    down = up = 0.0
    waits = both_ends(log, "elastic_wait")
    labels = np.array([label or "unknown" for label in strings(log.text[waits], "event_type")], dtype=object)
    for label in dict.fromkeys(labels):
        start, end = _positive(*closed(log, "elastic_wait", waits[labels == label])[1:])
        waited = float((end - start).sum())
        down, up = (down, up + waited) if "scale_up" in label.lower() else (down + waited, up)
    return {
        **badput,
        "elastic_slice_down": down,
        "elastic_scale_up": up,
        "elastic_reinitialization": float((again[1] - again[0]).sum()),
    }


def _positive(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return start[start < end], end[start < end]


def _loading(log: Entries, steps: Steps) -> dict[str, float]:
    """The first load after the start and after each disruption is synchronous, and so is, once more, the last load
    before each disruption; all others are asynchronous."""
    pos, start, end = closed(log, "data_loading")
    took = end - start
    breaks = steps.pos[steps.disruptions]
    bounds = np.concatenate(([0], np.searchsorted(pos, breaks), [len(pos)]))
    some = np.diff(bounds) > 0
    first, last = took[bounds[:-1][some]], took[bounds[1:-1][some[:-1]] - 1]
    sync = float(first.sum() + last.sum())
    return {"data_loading_sync": sync, ASYNC: float(took.sum()) - sync}


def checkpoint_seconds(log: Entries, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """(key of step and place, duration in s, NaN where the entry has none) of each save or restore. What Orbax did not
    write lasts from its start to its end."""
    at = log.at(kind)
    name = "checkpoint_manager_blocking_duration_secs" if kind == SAVE else "checkpoint_manager_duration_secs"
    local = np.array([not str(d or "").startswith("gs://") for d in strings(log.text[at], "directory")], dtype=bool)
    took = numbers(log.text[at], name)
    elsewhere = (log.end_ns[at] != NONE) & ~told_by_orbax(log.text[at])
    took[elsewhere] = (log.end_ns[at] - log.time_ns[at])[elsewhere] / 1e9
    step = np.where(log.step[at] == NONE, NONE + 1 + np.arange(len(at)), log.step[at])  # without one: each its own
    return np.stack((step, local)), took


def told_by_orbax(texts: np.ndarray) -> np.ndarray:
    """Which details are those of a checkpoint entry of the library's own log."""
    return np.array([t is not None for t in strings(texts, "event_type")], dtype=bool)


def _checkpoints(log: Entries, kind: int) -> float:
    """The mean duration of the entries of one step and place, summed; an entry without a duration counts as 0 s."""
    key, took = checkpoint_seconds(log, kind)
    if not len(took):
        return 0.0
    _, which = np.unique(key, axis=1, return_inverse=True)
    which = which.ravel()
    return float((np.bincount(which, np.nan_to_num(took)) / np.bincount(which)).sum())


@dataclass(frozen=True)
class Events:
    """Custom events that have both ends: start and end in s, and which of `names` each is."""

    start_s: np.ndarray
    end_s: np.ndarray
    which: np.ndarray
    names: tuple[str, ...]


def custom_events(log: Entries) -> Events:
    """Custom events by name in capitals, as the library knows them, in the order of their ends."""
    at = both_ends(log, "custom")
    code, names = pd.factorize(np.array([str(t or UNNAMED).upper() for t in log.text[at]], dtype=object))
    at = at[np.argsort(code, kind="stable")]
    code = np.sort(code)
    is_end = log.code[at] == code_of("custom", end=True)
    closing = np.flatnonzero(is_end[1:] & ~is_end[:-1] & (code[1:] == code[:-1])) + 1
    when = log.time_s[at]
    closing = closing[when[closing - 1] < when[closing]]
    closing = closing[np.argsort(at[closing], kind="stable")]
    return Events(when[closing - 1], when[closing], code[closing], tuple(map(str, names)))


def _contained(events: Events, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """For each step (begin, end) the seconds of the events wholly inside it; and those seconds by event name."""
    order = np.argsort(begin, kind="stable")
    reach = np.maximum.accumulate(end[order]) if len(order) else end
    first = np.searchsorted(reach, events.end_s, side="left")
    after = np.searchsorted(begin[order], events.start_s, side="right")
    event, step = pairs(first, after)
    step = order[step]
    whole = end[step] >= events.end_s[event]
    event, step = event[whole], step[whole]
    took = (events.end_s - events.start_s)[event]
    by_name = np.bincount(events.which[event], took, len(events.names))
    seen = np.bincount(events.which[event], minlength=len(events.names)) > 0
    named = {n: float(s) for n, s, there in zip(events.names, by_name, seen, strict=True) if there}
    return np.bincount(step, took, len(begin)), named


def _overlaps(
    spans: tuple[np.ndarray, np.ndarray], begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(seconds, which of `spans`, which window) of every overlap of spans with windows (begin, end)."""
    order = np.argsort(begin, kind="stable")
    reach = np.maximum.accumulate(end[order]) if len(order) else end
    which, window = pairs(
        np.searchsorted(reach, spans[0], side="right"), np.searchsorted(begin[order], spans[1], side="left")
    )
    window = order[window]
    both = np.minimum(spans[1][which], end[window]) - np.maximum(spans[0][which], begin[window])
    there = both > 0
    return both[there], which[there], window[there]


def overlaps(events: Events, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds by which events and windows (begin, end) overlap, counted once for each event: by window, by name."""
    both, event, window = _overlaps((events.start_s, events.end_s), begin, end)
    return np.bincount(window, both, len(begin)), np.bincount(events.which[event], both, len(events.names))


def with_other(sums: Sums, total_s: float) -> dict[str, float | dict[str, float]]:
    """Every bucket in s: what is negative or above the total becomes 0, what is left over is `other`."""

    def possible(s: float) -> float:
        return 0.0 if s < 0 or s > total_s else s

    badput = {
        bucket: {n: possible(s) for n, s in value.items()} if isinstance(value, Mapping) else possible(value)
        for bucket, value in {**dict.fromkeys(BUCKETS, 0.0), CUSTOM: {}, **sums.badput_s}.items()
    }
    badput["other"] = 0.0
    known = sum(sum(v.values()) if isinstance(v, Mapping) else v for b, v in badput.items() if b != ASYNC)
    badput["other"] = max(0.0, total_s - sums.productive_s - known)
    return badput


def shares(badput: Mapping[str, float | Mapping[str, float]], total_s: float) -> dict:
    """Parts of the total, 0 to 1; a bucket as large as the total is shown as none, as the library does."""

    def part(s: float) -> float:
        return s / total_s if 0 < s < total_s else 0.0

    return {b: {n: part(s) for n, s in v.items()} if isinstance(v, Mapping) else part(v) for b, v in badput.items()}


def job_seconds(log: Entries, now_ns: int) -> tuple[float, float]:
    """(start, length) of the job in s: from its first start in the log to its last end, else to `now_ns`.

    Raises QuestionError without a start of the job.
    """
    starts, ends = log.at(code_of("job")), log.at(code_of("job", end=True))
    if not len(starts):
        raise QuestionError(
            "the library gives no number for this log: it has no start of the job (job_start_time)",
            advice="Ask with rules=exact, which begins with the first sign of life.",
        )
    begin = micro_seconds(int(log.time_ns[starts[0]]))
    return begin, micro_seconds(int(log.time_ns[ends[-1]]) if len(ends) else now_ns) - begin


def micro_seconds(ns: int) -> float:
    """Seconds since the epoch, kept to the microsecond like the library's own dates."""
    whole, rest = divmod(ns, MICRO_NS)
    micro = whole + (rest > MICRO_NS // 2 or (rest == MICRO_NS // 2 and whole % 2 == 1))
    return micro // 1_000_000 + (micro % 1_000_000) / 1_000_000


def checked(productive_s: float, total_s: float) -> None:
    """Raises QuestionError where the library raises its own: no total, or more productive time than there was."""
    if total_s == 0:
        raise QuestionError(
            "the library gives no number for this log: the job's total time is zero", advice="Ask with rules=exact."
        )
    if not 0 <= productive_s <= total_s:
        raise QuestionError(
            f"the library gives no number for this log: it finds {productive_s:,.3f} s productive of {total_s:,.3f} s",
            advice="Ask with rules=exact.",
        )


def step_times(log: Entries) -> tuple[np.ndarray, np.ndarray]:
    """(step, time in s) by the library: from each start to the next entry's, where that is the next step. A step
    timed again takes its later time and keeps its place."""
    at = log.at(STEP)
    number, when = log.step[at], log.time_s[at]
    follows = np.flatnonzero(np.diff(number) == 1)
    step, took = number[follows], when[follows + 1] - when[follows]
    if (np.diff(step) > 0).all():
        return step, took
    unique, first = np.unique(step, return_index=True)
    _, last = np.unique(step[::-1], return_index=True)
    place = np.argsort(first, kind="stable")
    return unique[place], took[::-1][last][place]
