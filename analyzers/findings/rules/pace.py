"""Steps that grow, that became slower, or some of which are longer, where nothing that a profile names does it.

Fetches, compiling, logging and whatever else a host's events name are taken off each step before its pace is judged, so
that a stalling loader is no change of pace; and so is what a late rank cost in the steps in which it was late. Longer
steps at no one distance are told where no profile saw a step: of one, other rules say what each of them waited for.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.parts import StepParts, step_parts
from analyzers.findings.places import spaced
from analyzers.findings.rules import held_down
from analyzers.findings.rules.profiling import captured
from analyzers.ranks.stragglers import StragglersResult
from analyzers.time.step_changes import SHORTEST, changes_of
from analyzers.time.step_patterns import StepPattern, step_patterns
from analyzers.time.steps import StepsResult
from analyzers.time.useful import tokens_of_steps
from errors import format as fmt

BY_KIND = {
    "growing": "growing_steps",
    "changed": "step_change",
    "periodic": "periodic_pause",
    "irregular": "irregular_pauses",
}
CAUSES = tuple(BY_KIND.values())
SPREAD = 0.15  # of the likely gain: by how much sums of steps of one draw differ from those of another
WHERE = (
    "idle_host_code",
    "idle_unexplained",
    "unattributed",
    "straggler_wait",
    "exposed_communication",
    "below_roofline",
    "compilation",
)
"""Accounts that longer steps may lie in where no rank is blamed, the likeliest first."""
PLAIN = 1.05  # times what is left of a usual step: up to here its duration is what is judged
NAMELESS = NotTold(
    ("evaluation", "logging"),
    "every so many steps something holds one up that no event names",
    "a profile of such a step, or a log that says what the job does then",
)
PAUSES = ("evaluation", "logging", "device_to_host", "garbage_collection")
"""Kinds of host work that every so many steps may hold."""
MOSTLY = 0.5  # of a pause: so much of it a kind of work must take to be what it is
APART = 4  # steps between two pauses: of fewer, all steps are next to one
BRIEF_S, BRIEF_SHARE = 60.0, 0.05  # a change of level that lasts less is told from this share of the chip time on
TAKEN = 0.75  # of a step: where events take more, what they leave is no measure of its pace
OF_GROWTH = 0.1  # of what steps grow by: a smaller change of level is of that
QUIET = 0.2  # of the steps: so many must be as quick as is called usual


def find(seen: Seen) -> Told:
    if seen.answer("steps", StepsResult) is None:
        return Told(not_told=(NotTold(CAUSES, seen.answers.why("steps"), "a log that prints the job's steps"),))
    patterns, taken_off = _patterns(seen)
    held = step_parts(seen.tables, seen.facts)
    down = held_down.amount(seen)
    untold = [p for p in patterns if _work_of(p, held) is None]
    told = [_finding(seen, p, taken_off) for p in untold if not _of_clocks(seen, p, down)]
    if len(held.rows) < 2 * SHORTEST:
        why = f"{fmt.count(len(held.rows), 'usual step')} of known duration: too few to tell their pace"
        return Told(tuple(told), not_told=(NotTold(CAUSES, why, "a log of more steps"),))
    named = {BY_KIND[p.kind] for p in untold}
    judged = [c for c in CAUSES if c != "irregular_pauses" or not held.seen.any()]
    out = tuple(RuledOut(c, "steps keep their pace", "steps") for c in judged if c not in named)
    return Told(tuple(told), out, (NAMELESS,) if "periodic_pause" in named else ())


def _of_clocks(seen: Seen, pattern: StepPattern, down: float) -> bool:
    """Whether clocks that were held down, for so many chip-seconds, are most of what steps took more."""
    return pattern.kind != "growing" and down >= MOSTLY * pattern.excess_s * seen.chips > 0


def named_pauses(seen: Seen) -> dict[str, tuple[StepPattern, float]]:
    """By kind of host work: the pattern of the pauses that it makes, and their seconds in all steps."""
    held = step_parts(seen.tables, seen.facts)
    if all(held.of(work).max() <= 0 for work in PAUSES):
        return {}
    found = _patterns(seen, PAUSES)[0]
    works = {work: pattern for pattern in found if (work := _work_of(pattern, held)) is not None}
    return {work: (pattern, pattern.excess_s) for work, pattern in works.items()}


def grown(seen: Seen) -> float:
    """Chip-seconds by which steps grow, beyond what events and late ranks tell."""
    return sum((p.excess_s * seen.chips for p in _patterns(seen)[0] if p.kind == "growing"), 0.0)


def _work_of(pattern: StepPattern, held: StepParts) -> str | None:
    """What a pause is, where a profile saw one and others that were none: hosts spend most of it on one kind of work,
    and in no step of another place. A log and a profile may count steps from one to the next, so that of every second
    or third step any place may be that of the pauses."""
    if pattern.kind != "periodic" or not pattern.every:
        return None
    places = {0, 1, pattern.every - 1}
    for work in PAUSES:
        took = held.of(work)
        there = took.index[took >= MOSTLY * (pattern.slow_s - pattern.usual_s)]
        where = {int(step - pattern.first_step) % pattern.every for step in there}
        alone = len(where) == 1 or pattern.every >= APART
        if where and where <= places and alone and len(there) < int(held.seen.sum()):
            return work
    return None


def _patterns(seen: Seen, but: Sequence[str] = ()) -> tuple[list[StepPattern], bool]:
    """What steps show without what is named in them but for these kinds of work, and whether much was taken off a usual
    one."""
    held = step_parts(seen.tables, seen.facts)
    whole = held.rows["dur_s"].to_numpy(dtype=float)
    bare = held.bare(but)["dur_s"].to_numpy(dtype=float)
    late = whole - _late(seen, held.rows["step"])  # what a late rank did is among the parts, where an event names it
    left = _as_around(np.minimum(bare, late).clip(min=0.0), whole - bare > TAKEN * whole)
    rows = _unprofiled(seen, held.rows.assign(dur_s=np.minimum(left, whole)))
    taken_off = float(np.median(whole)) > PLAIN * float(rows["dur_s"].median()) if len(rows) else False
    found = _joined(step_patterns(changes_of(rows)))
    grown = max((p.slow_s - p.usual_s for p in found if p.kind == "growing"), default=0.0)
    fits = _as_held(seen, rows)
    if held.seen.any():
        found = [p for p in found if p.kind != "irregular"]
    found = [p for p in found if not _of_tokens(seen, p, rows)]
    told = [p for p in found if _referred(p, rows) and not _of_growth(p, grown) and not _of_captures(seen, p)]
    told = [replace(p, excess_s=p.excess_s * fits) for p in told]
    return [p for p in told if p.excess_s * seen.chips >= _least(seen, p)], taken_off


def _of_tokens(seen: Seen, pattern: StepPattern, rows: pd.DataFrame) -> bool:
    """Whether longer steps at no one distance are longer for their tokens, as those of batches of many lengths are."""
    tokens = tokens_of_steps(seen.tables, seen.facts, rows["step"]) if pattern.kind == "irregular" else None
    if tokens is None:
        return False
    longer = rows["dur_s"].to_numpy(dtype=float) > (pattern.usual_s + pattern.slow_s) / 2
    more = pd.Series(tokens[longer]).median() / pd.Series(tokens[~longer]).median()
    return bool(more - 1 >= MOSTLY * (pattern.slow_s / pattern.usual_s - 1))


def _as_held(seen: Seen, rows: pd.DataFrame) -> float:
    """Which part of what steps are said to take the ledger holds: durations may reach into one another, and no more can
    be given back than kept steps have."""
    said = float(rows["dur_s"].sum()) * seen.chips
    return min(1.0, seen.amount("productive") / said) if said else 1.0


def _of_growth(pattern: StepPattern, grown_s: float) -> bool:
    """Whether a change of level is what a line leaves of steps that grow, though not quite along it."""
    return pattern.kind == "changed" and pattern.slow_s - pattern.usual_s < OF_GROWTH * grown_s


def _of_captures(seen: Seen, pattern: StepPattern) -> bool:
    """Whether a pause comes as often as a profiler that goes on and off: it is of that, in whichever step it is."""
    steps = spaced(sorted(captured(seen)))
    return pattern.kind == "periodic" and steps is not None and steps.every > 1 and pattern.every == steps.every


def _as_around(left_s: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """What is left of steps, and of those that hold little else than a save or the like what is left of the steps
    around them: theirs is a small difference of two long times, by clocks that need not agree."""
    if not taken.any() or taken.mean() > 0.5:
        return left_s
    at = np.arange(len(left_s))
    return np.where(taken, np.interp(at, at[~taken], left_s[~taken]), left_s)


def _least(seen: Seen, pattern: StepPattern) -> float:
    """Chip-seconds that a pattern must cost: a change of level for seconds is what any machine has now and then."""
    lasted_s = (pattern.last_step - pattern.first_step + 1) * pattern.slow_s
    return BRIEF_SHARE * seen.whole if pattern.kind == "changed" and lasted_s < BRIEF_S else 0.0


def _unprofiled(seen: Seen, rows: pd.DataFrame) -> pd.DataFrame:
    """The steps without what a profiler that goes on and off cost them: as quick as those that it left alone."""
    within = rows["step"].isin(captured(seen)).to_numpy()
    if not within.any() or within.all():
        return rows
    quiet = float(rows.loc[~within, "dur_s"].median())
    return rows.assign(dur_s=np.where(within, np.minimum(rows["dur_s"], quiet), rows["dur_s"]))


def _late(seen: Seen, step: pd.Series) -> np.ndarray:
    """By how much the ranks that Stragglers names made each of these steps longer, in seconds."""
    found = seen.answer("stragglers", StragglersResult)
    if found is None or not len(found.ranks):
        return np.zeros(len(step))
    named = found.every["rank"].astype(str).isin(found.ranks["rank"].astype(str)).to_numpy()
    lag = found.lateness.to_numpy(dtype=float)[named]
    late = np.nan_to_num(lag, nan=0.0).clip(min=0.0).max(axis=0) if lag.size else np.zeros(len(found.steps))
    by_step = pd.Series(late, index=found.steps["step"].to_numpy()).groupby(level=0).max()
    return by_step.reindex(step.to_numpy()).fillna(float(by_step.median())).to_numpy()


def _referred(pattern: StepPattern, rows: pd.DataFrame) -> bool:
    """Whether enough steps are without it for their time to be called usual: a few quick ones at the start are none,
    and a job that begins slowly and then gets quicker has become no slower."""
    if pattern.kind != "changed":
        return True
    if pattern.first_step <= int(rows["step"].min()) + 1:
        return False
    there = ((rows["step"] >= pattern.first_step) & (rows["step"] <= pattern.last_step)).mean()
    return float(there) <= 1 - QUIET


def _joined(patterns: list[StepPattern]) -> list[StepPattern]:
    """Changes that follow one another are one: steps became slower, and then a little more so."""
    out: list[StepPattern] = []
    for pattern in sorted(patterns, key=lambda p: p.first_step):
        last = out[-1] if out else None
        if last is not None and last.kind == pattern.kind == "changed" and pattern.first_step <= last.last_step + 2:
            steps = last.last_step - last.first_step + 1, pattern.last_step - pattern.first_step + 1
            slow = (last.slow_s * steps[0] + pattern.slow_s * steps[1]) / sum(steps)
            excess = last.excess_s + pattern.excess_s
            out[-1] = replace(last, last_step=pattern.last_step, slow_s=slow, excess_s=excess)
        else:
            out.append(pattern)
    return out


def _title(pattern: StepPattern, taken_off: bool) -> str:
    """The pattern in one sentence. `taken_off`: what is judged is a step without what events name, so that it is no
    step's duration that grows, but what it takes beyond them."""
    usual, slow = fmt.duration(pattern.usual_s), fmt.duration(pattern.slow_s)
    steps = f"steps {pattern.first_step:,} to {pattern.last_step:,}"
    if taken_off:
        more = f"{fmt.duration(max(pattern.slow_s - pattern.usual_s, 0.0))} longer"
        return {
            "growing": f"Steps become {more} over {steps}, and nothing in a profile says why.",
            "changed": f"Steps take {more} in {steps}, and no event names what they do then.",
            "periodic": f"Every {pattern.every} steps one takes {more}: something holds it up that no event names.",
            "irregular": f"{pattern.times or 0:,} steps take {more} than those around them, at no one distance: "
            "something holds them up that no event names.",
        }[pattern.kind]
    return {
        "growing": f"Steps grow from {usual} to {slow} over {steps}, and nothing in a profile says why.",
        "changed": f"Steps take {slow} in {steps}, in place of {usual}.",
        "periodic": f"Every {pattern.every} steps one takes {slow} in place of {usual}: something holds it up that no "
        "event names.",
        "irregular": f"{pattern.times or 0:,} steps take {slow} in place of {usual}, at no one distance: something "
        "holds them up that no event names.",
    }[pattern.kind]


def _finding(seen: Seen, pattern: StepPattern, taken_off: bool) -> Finding:
    chip_s = pattern.excess_s * seen.chips
    of = "what events do not name of a step" if taken_off else "a step"
    return Finding(
        cause=BY_KIND[pattern.kind],
        title=_title(pattern, taken_off),
        gain=Band.within(chip_s, SPREAD),
        draws=seen.drawn(chip_s, *WHERE),
        least=_least(seen, pattern),
        question="steps",
        confidence=0.8,
        where=Where(steps=Steps(pattern.first_step, pattern.last_step, pattern.every or 1)),
        evidence=(
            Evidence(f"{of} without it", pattern.usual_s, "s", "steps"),
            Evidence(f"{of} with it", pattern.slow_s, "s", "steps"),
        ),
    )


RULE = Rule(name="pace", causes=CAUSES, find=find)
