"""From streams to the steps that the job took: each take once, whoever told of it.

A job takes a step once at a time. Rows that name a step while it was being taken are therefore copies: of other hosts,
ranks, formats, or of an export that overlaps another. Each stretch of the job is told by the stream that tells most,
what that one lacks by the next; a log that goes on where another ended, a restart under another name of the pod, and a
host whose log was cut are all of one job.

Where no stream has times of day, streams are copies if they tell the same steps at the same speed; others follow one
another, by their steps where these never overlap, else by their names. That is assumed, and said.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import pandas as pd

from analyzers.time.clocks_put_back import moved_said, put_back, put_back_said
from analyzers.time.log_names import ages
from analyzers.time.source_clocks import COARSE_NS, apart
from analyzers.time.step_chains import chains, joined
from analyzers.time.step_streams import NS_PER_S, UNTIMED, Stream, natural_key, streams

PAUSE_NS, PAUSE_STEPS = 60 * NS_PER_S, 10  # a new log that begins after a longer pause is that of a new start
ALIKE, ALIKE_SHARE = 0.1, 0.9  # durations within a tenth of each other, in so many steps: hosts of one attempt
SAME_LOSS = 1e-3
# kept metrics: they tell of no save that a step waited for, and count their times from the epoch, whatever the zone
TRACKED = ("tensorboard", "wandb", "mlflow")
ENTRIES = tuple(f"{name}_entries" for name in TRACKED)  # of which the time between two entries of a loss alone is known
SAID = 4  # names that a note gives


@dataclass(frozen=True)
class Takes:
    """Steps taken, in order: `row` (of the table, whose other columns hold), `step`, `start_ns` (UNTIMED where not
    known), `opens` (a new attempt begins here), `lasted_ns` (by the host that took longest, 0 where not known).
    `shifts`: how far the clock of a source had to be moved, ns. `notes`: what was left out, moved or assumed.
    `foreign`: sources of which nothing was taken, as they are of another job."""

    row: np.ndarray
    step: np.ndarray
    start_ns: np.ndarray
    opens: np.ndarray
    lasted_ns: np.ndarray
    shifts: dict[str, int]
    notes: tuple[str, ...]
    foreign: tuple[str, ...] = ()

    def took_ns(self, told: np.ndarray) -> np.ndarray:
        """How long each took the job, of how long `row` tells: it had not ended before the last host had."""
        return np.where(told > 0, np.maximum(told, self.lasted_ns), told)


def takes(told: Sequence[Stream], took: np.ndarray, loss: np.ndarray, clock: Stream | None = None) -> Takes:
    """Every step taken, once for each time. `took`, `loss`: duration in ns and loss of each row of the table, where
    known. `clock`: a stream of the same steps by whose clock all others are to go."""
    timed, untimed, notes = _by_clock(told)
    if not timed:
        found, said = _without_times(untimed, took, loss)
        return Takes(*found, {}, (*notes, *said))
    aligned, shifts, said = on_one_clock(timed, clock)
    one_job, foreign = of_one_job(aligned)
    found, doubled = _with_times(one_job)
    others = {s.source for s in aligned if s.source} - {s.source for s in one_job}
    return Takes(*found, shifts, (*notes, *said, *foreign, *doubled), foreign=tuple(sorted(others)))


def lines_taken(lines: pd.DataFrame, clock: Stream | None = None) -> Takes:
    """Every step that rows of step lines tell of, once for each time it was taken. `clock`: see `takes`."""
    again: Counter[str] = Counter()
    told, said = streams(lines, again)
    took, loss = (lines[c].to_numpy(dtype=float, na_value=np.nan) for c in ("dur_ns", "loss"))
    found = takes(told, took, loss, clock)
    doubled = [
        f"{name or 'One input'}: {count:,} of its step lines tell of a step once more, as hosts that write into "
        "one log do: counted once."
        for name, count in again.items()
        if count
    ]
    return replace(found, notes=(*said, *doubled, *found.notes))


def _by_clock(told: Sequence[Stream]) -> tuple[list[Stream], list[Stream], list[str]]:
    """Streams with times of day, or those without where these tell of more than twice as many steps, or how long they
    took, as none with times of day does."""
    timed, untimed = [s for s in told if s.timed], [s for s in told if not s.timed and len(s)]
    if not (timed and untimed):
        return timed, untimed, []
    exact = any(s.usual_ns for s in untimed) and 2 * _steps(untimed) >= _steps(timed)
    if exact and all(s.format in ENTRIES for s in timed):
        what = "they tell no step's time, and" if len(timed) > 1 else "it tells no step's time, and"
        return [], untimed, [f"{_named(timed)}: left out, as {what} other inputs of the same job do."]
    better = 2 * _steps(timed) >= _steps(untimed)
    out = untimed if better else timed
    notes = [
        f"{_named(out)}: left out, as {'they carry' if len(out) > 1 else 'it carries'} "
        f"{'no times of day' if better else 'times of day but few of the steps'} and other inputs tell of the "
        "same job."
    ]
    return (timed, [], notes) if better else ([], untimed, notes)


def _steps(told: Sequence[Stream]) -> int:
    return len(pd.unique(np.concatenate([s.step for s in told])))


def _named(told: Sequence[Stream]) -> str:
    names = [s.name for s in told if s.name]
    more = f" and {len(names) - SAID:,} more" if len(names) > SAID else ""
    return (", ".join(names[:SAID]) or "steps without a source") + more


# --- streams with times of day


def on_one_clock(told: Sequence[Stream], clock: Stream | None = None) -> tuple[list[Stream], dict[str, int], list[str]]:
    """The streams by one clock: `clock`'s, else that of kept metrics, else that which most of those go by that tell of
    the same steps; how far each source was moved. Parts of one log that follow one another are compared as a whole."""
    behind = put_back(told)
    told = [one.moved(ns) for one, ns in zip(told, behind, strict=True)]
    firsts = [clock] if clock is not None else []  # of those that share steps, each by its own clock
    more: list[tuple[int, Stream]] = []  # others, by the clock of the first whose steps they share
    alike: list[list[tuple[int, list[int]]]] = [[] for _ in firsts]  # gaps from that clock, and whose they are
    for parts in sorted(chains(told), key=lambda parts: -sum(len(told[k]) for k in parts)):
        whole = joined([told[k] for k in parts])
        known = chain(enumerate(firsts), more)
        k, gap = next(((k, g) for k, other in known if (g := _gap(whole, other)) is not None), (len(firsts), 0))
        if k == len(firsts):  # shares no step with those before: its clock is believed, and later ones may go by it
            firsts.append(whole)
            alike.append([])
        else:
            more.append((k, whole.moved(gap)))
        alike[k].append((gap, parts))
    moves = [0] * len(told)
    for k, found in enumerate(alike):
        dated = [gap for gap, parts in found if any(told[i].format in (*TRACKED, *ENTRIES) for i in parts)]
        base = 0 if clock is not None and k == 0 else _usual_clock(dated or [gap for gap, _ in found])
        for gap, parts in found:
            for i in parts:
                moves[i] = 0 if abs(gap - base) <= told[i].usual_ns / 2 else gap - base
    moved = [ns + gap for ns, gap in zip(behind, moves, strict=True)]
    far = [(one, gap) for one, gap in zip(told, moved, strict=True) if abs(gap) > COARSE_NS]
    right = {one.source for one, gap in zip(told, moved, strict=True) if abs(gap) <= COARSE_NS}
    shifts = {one.source: gap for one, gap in reversed(far) if one.source and one.source not in right}
    notes = put_back_said(told, behind, moves) + moved_said(told, moved, moves)
    return [one.moved(gap) for one, gap in zip(told, moves, strict=True)], shifts, notes


def _gap(one: Stream, other: Stream) -> int | None:
    if one.step.max() < other.step.min() or other.step.max() < one.step.min():
        return None
    return apart(one.step, one.start_ns, other.step, other.start_ns, max(one.usual_ns, other.usual_ns))


def _usual_clock(ahead: Sequence[int]) -> int:
    """The gap that most streams have, to the minute; of several the least, by which clocks show most: all parts of a
    job then go by the same host's."""
    minutes = [round(a / (60 * NS_PER_S)) for a in ahead]
    best = max(sorted(set(minutes)), key=minutes.count)
    return 0 if best == 0 else next(a for a, m in zip(ahead, minutes, strict=True) if m == best)


def of_one_job(told: Sequence[Stream]) -> tuple[list[Stream], list[str]]:
    """The streams without those that mostly name other steps than longer ones do at the same time: no job is at two
    steps at once."""
    judged: list[Stream] = []
    foreign: set[int] = set()
    for k in sorted(range(len(told)), key=lambda k: -len(told[k])):
        beside, agreed = _beside(told[k], judged)
        if 2 * (beside & ~agreed).sum() > len(beside):
            foreign.add(k)
        elif not beside.all():
            judged.append(told[k])
    out = [told[k] for k in sorted(foreign)]
    notes = (
        [
            f"{_named(out)}: left out, as at most of its times other inputs tell of other steps: it is of another "
            "job, or by another clock. Ingest each job alone."
        ]
        if out
        else []
    )
    return [one for k, one in enumerate(told) if k not in foreign], notes


def _beside(one: Stream, others: Sequence[Stream]) -> tuple[np.ndarray, np.ndarray]:
    """Of which rows others were taking a step at that time, and of which it was the same one, as far as their times
    tell: two formats may each tell the mean of several steps, and one of them of a save among these."""
    beside, agreed = np.zeros(len(one), dtype=bool), np.zeros(len(one), dtype=bool)
    for other in others:
        if one.start_ns[-1] < other.start_ns[0] or other.start_ns[-1] < one.start_ns[0]:
            continue
        usual = max(one.usual_ns, other.usual_ns)
        slack = max(usual, COARSE_NS)
        near = slack // max(usual, 1) + 1 + (0 if other.format == one.format else _alike(one) + _alike(other))
        at = np.searchsorted(other.start_ns, one.start_ns, side="right") - 1
        there = (at >= 0) & (one.start_ns < other.end_ns[at] + slack)
        beside |= there
        agreed |= there & (np.abs(other.step[at] - one.step) <= near)
    return beside, agreed


def _alike(one: Stream) -> int:
    """How many steps in a row are told to have taken equally long: those of which a mean is told."""
    changes = np.diff(one.end_ns - one.start_ns) != 0
    return -(-len(one) // (int(changes.sum()) + 1))


def _with_times(told: Sequence[Stream]) -> tuple[tuple, list[str]]:
    """Takes of the format that tells most, a log before kept metrics, and of the others where it tells nothing; last of
    those that tell no step's time."""
    forms = sorted({s.format for s in told})
    if len(forms) > 1:
        forms.sort(key=lambda f: (f in ENTRIES, -_steps([s for s in told if s.format == f]), f in TRACKED))
    ranked = [s for f in forms for s in sorted((s for s in told if s.format == f), key=lambda s: -len(s))]
    taken: list[Stream] = []
    for form in forms:
        more = [s for s in ranked if s.format == form]
        taken += [s for s in (_outside(s, taken) for s in more) if len(s)] if taken else more
    found, used = merged(taken)
    rows = sum(len(s) for s in told)
    if len(told) == 1 or rows == len(found[0]):
        return found, []
    copied = [s for s in told if not used.get((s.source, s.host, s.format))]
    what = f"; nothing was taken from {_named(copied)}" if copied else ""
    return found, [
        f"{rows:,} rows of {len(told):,} hosts or logs tell of {len(found[0]):,} steps taken: each counts "
        f"once, as told by the one that tells most of its stretch, and as long as on the slowest{what}."
    ]


def _outside(one: Stream, taken: Sequence[Stream]) -> Stream:
    """Those rows of a stream before, after and between whose times the others tell of no step."""
    start = np.sort(np.concatenate([s.start_ns for s in taken]))
    end = np.maximum.accumulate(np.sort(np.concatenate([s.end_ns for s in taken])))
    reach = max(PAUSE_NS, PAUSE_STEPS * max(s.usual_ns for s in (*taken, one)))
    before = np.append(end, UNTIMED)[np.searchsorted(start, one.start_ns, side="right") - 1]
    after = np.append(start, np.iinfo(np.int64).max)[np.searchsorted(start, one.start_ns, side="left")]
    beside = (before != UNTIMED) & (one.start_ns - reach < before) | (one.end_ns > after - reach)
    return one.at(np.flatnonzero(~beside))


def merged(told: Sequence[Stream]) -> tuple[tuple, dict[tuple[str, str, str], int]]:
    """(row, step, start, opens, lasted) of each take in order of time, and how many rows each stream gave. `told`: the
    streams by one clock, the one to be believed first going first."""
    rank = np.repeat(np.arange(len(told)), [len(s) for s in told])
    step, start, end, row, announced = (
        np.concatenate([getattr(s, c) for s in told]) for c in ("step", "start_ns", "end_ns", "row", "announced")
    )
    begins = np.concatenate([np.arange(len(s)) == 0 for s in told])
    fresh = np.concatenate([s.fresh for s in told])
    usual = max(s.usual_ns for s in told)
    slack = max(usual, COARSE_NS)
    since = np.concatenate([np.append(s.start_ns[:1], s.start_ns[:-1]) for s in told])
    lasted = end - start
    if len(told) > 1:
        take = _taken_at_once(step, start, end, rank, slack)
        pick = np.lexsort((rank, take))
        opened = np.flatnonzero(np.diff(take[pick], prepend=-1))
        flags = [np.logical_or.reduceat(x[pick], opened) for x in (fresh | begins, announced)]
        since = np.maximum.reduceat(np.where(announced, since, UNTIMED)[pick], opened)
        alone = np.logical_and.reduceat(begins[pick], opened)
        last, longest = (np.maximum.reduceat(x[pick], opened) for x in (end, lasted))
        first = pick[opened]
        order = _in_order(start[first], step[first], rank[first], slack)
        chosen, (fresh, announced), since = first[order], (f[order] for f in flags), since[order]
        begins, end, lasted = alone[order], last[order], longest[order]
    else:
        chosen, fresh = np.arange(len(step)), fresh | begins
    row, step, start, rank = row[chosen], step[chosen], np.maximum.accumulate(start[chosen]), rank[chosen]
    reached = np.maximum.accumulate(end)
    ahead = np.diff(step, prepend=step[:1])
    idle = np.append(0, start[1:] - reached[:-1]) - np.maximum(ahead - 1, 0) * usual
    late = begins & (idle > max(PAUSE_NS, PAUSE_STEPS * usual))
    opens = (ahead <= 0) & fresh | late
    opens[:1] = True
    for i in np.flatnonzero(announced & ~opens).tolist():  # unless another host tells of it since this one's last row
        opens[i] = not opens[np.searchsorted(start, since[i], side="right") : i].any()
    count = np.bincount(rank, minlength=len(told))
    used = {(s.source, s.host, s.format): int(n) for s, n in zip(told, count, strict=True)}
    lasted = np.minimum(lasted, np.append(np.diff(start), np.iinfo(np.int64).max))  # the next one ended it for all
    return (row, step, start, opens, lasted), used


def _taken_at_once(step: np.ndarray, start: np.ndarray, end: np.ndarray, rank: np.ndarray, slack: int) -> np.ndarray:
    """The number of the take that each row tells of: rows of one step near each other, of each stream one."""
    order = np.lexsort((rank, start, step))
    near = (start[order][1:] < end[order][:-1]) | (start[order][1:] - start[order][:-1] < slack)
    group = np.zeros(len(step), dtype=np.int64)
    group[order] = np.cumsum(np.concatenate(([True], ~((np.diff(step[order]) == 0) & near))))
    which = pd.Series(group[order] * (int(rank.max()) + 1) + rank[order])
    nth = np.zeros(len(step), dtype=np.int64)
    nth[order] = which.groupby(which).cumcount().to_numpy()
    return group * (int(nth.max()) + 1) + nth


def _in_order(start: np.ndarray, step: np.ndarray, rank: np.ndarray, slack: int) -> np.ndarray:
    """Positions in order of time; neighbours of different hosts whose clocks cannot tell which came first, by step."""
    order = np.lexsort((step, start))
    for _ in range(PAUSE_STEPS):
        a, b = order[:-1], order[1:]
        wrong = (step[b] < step[a]) & (rank[b] != rank[a]) & (start[b] - start[a] < slack)
        wrong[1:] &= ~wrong[:-1]
        at = np.flatnonzero(wrong)
        if not len(at):
            break
        order[at], order[at + 1] = order[at + 1], order[at].copy()
    return order


# --- streams without times of day


def _without_times(told: Sequence[Stream], took: np.ndarray, loss: np.ndarray) -> tuple[tuple, list[str]]:
    """Takes of the format that tells most, its streams one after the other, of copies the longest."""
    if not told:
        empty = np.zeros(0, dtype=np.int64)
        return (empty, empty, empty, np.zeros(0, dtype=bool), empty), []
    amount = {f: [s for s in told if s.format == f] for f in sorted({s.format for s in told})}
    best, why = _best_form(amount, took)
    mine, others = [s for s in told if s.format == best], [s for s in told if s.format != best]
    notes = [f"{_named(others)}: left out; {why}."] if others else []
    kept, copies = _without_copies(mine, took, loss)
    if copies:
        notes.append(
            f"{_named(copies)}: the same steps at the same speed as in {_named(kept)}. Without times of day "
            "these are taken for hosts of one attempt, not for restarts from the beginning, and left "
            "out."
        )
    kept, by = _one_after_another(kept)
    if len(kept) > 1:
        notes.append(f"{len(kept):,} logs without times of day are taken one after the other, {by}: {_named(kept)}.")
    row, step, fresh, announced = (
        np.concatenate([getattr(s, c) for s in kept]) for c in ("row", "step", "fresh", "announced")
    )
    begins = np.concatenate([np.arange(len(s)) == 0 for s in kept])
    ahead = np.diff(step, prepend=step[:1])
    opens = (ahead <= 0) & (begins | fresh) | announced  # steps that lack between two logs tell of no start
    return (row, step, np.full(len(row), UNTIMED), opens, np.zeros(len(row), dtype=np.int64)), notes


def _best_form(amount: dict[str, list[Stream]], took: np.ndarray) -> tuple[str, str]:
    """The format by which steps go, and why not by others: that which tells of most, but for one that tells a mean over
    all of them where another tells half of them one by one."""
    best = max(amount, key=lambda f: (_steps(amount[f]), sum(len(s) for s in amount[f])))
    if _one_mean(amount[best], took):
        several = [f for f in amount if not _one_mean(amount[f], took)]
        several = [f for f in several if 2 * _steps(amount[f]) >= _steps(amount[best])]
        if several:
            return max(several, key=lambda f: _steps(amount[f])), "of its steps nothing but their mean is known"
    return best, "other inputs tell of more steps"


def _one_mean(told: Sequence[Stream], took: np.ndarray) -> bool:
    """Whether all steps are told to have taken exactly as long: so means over all of them are entered."""
    durations = np.concatenate([took[s.row] for s in told])
    return len(durations) > 1 and bool((durations == durations[0]).all())


def _without_copies(told: Sequence[Stream], took: np.ndarray, loss: np.ndarray) -> tuple[list[Stream], list[Stream]]:
    """Streams that are not copies of a longer one, in their order; the others."""
    kept: list[int] = []
    copies: list[Stream] = []
    for k in sorted(range(len(told)), key=lambda k: -len(told[k])):
        if any(_copies(told[k], told[other], took, loss) for other in kept):
            copies.append(told[k])
        else:
            kept.append(k)
    return [told[k] for k in sorted(kept)], copies


def _copies(one: Stream, other: Stream, took: np.ndarray, loss: np.ndarray) -> bool:
    """Whether two streams without times tell of the same attempts: hosts of one input whose lines lie among each
    other's; else from the same step on the same steps, as long and with the same loss, to about the same end."""
    if one.source == other.source and one.host != other.host:
        low, high = max(one.place.min(), other.place.min()), min(one.place.max(), other.place.max())
        return bool(2 * (high - low) >= min(np.ptp(one.place), np.ptp(other.place)) and high >= low)
    n = min(len(one), len(other))
    a, b = one.row[:n], other.row[:n]
    if (one.step[:n] == other.step[:n]).mean() < ALIKE_SHARE or one.step[0] != other.step[0]:
        return False
    both = np.isfinite(loss[a]) & np.isfinite(loss[b])
    same = np.abs(loss[a] - loss[b])[both] <= SAME_LOSS * np.abs(loss[b][both])
    if both.any() and same.mean() < ALIKE_SHARE:
        return False
    known = (took[a] > 0) & (took[b] > 0)
    alike = np.abs(took[a] - took[b])[known] <= ALIKE * took[b][known]
    if known.any() and alike.mean() < ALIKE_SHARE:
        return False
    return bool(both.any() and (loss[a] == loss[b])[both].all()) or max(len(one), len(other)) - n <= max(2, ALIKE * n)


def _one_after_another(told: list[Stream]) -> tuple[list[Stream], str]:
    """In the order in which the job wrote them, and how that is known."""
    by_step = sorted(told, key=lambda s: int(s.step.min()))
    if all(int(a.step.max()) < int(b.step.min()) for a, b in pairwise(by_step)):
        return by_step, "by their steps"
    of = ages(s.source for s in told)
    return sorted(told, key=lambda s: (of[s.source], natural_key(s.host))), "by their names"
