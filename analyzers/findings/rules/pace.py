"""Steps that grow, that became slower, or every so many of which is longer, where nothing that a profile names does it.

Fetches, compiling, logging and whatever else a host's events name are taken off each step before its pace is judged, so
that a stalling loader is no change of pace; and so is what a late rank cost in the steps in which it was late.
"""

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.parts import step_parts
from analyzers.ranks.stragglers import StragglersResult
from analyzers.time.step_changes import changes_of
from analyzers.time.step_patterns import StepPattern, step_patterns
from errors import format as fmt

CAUSES = ("growing_steps", "step_change", "periodic_pause")
BY_KIND = {"growing": "growing_steps", "changed": "step_change", "periodic": "periodic_pause"}
SPREAD = 0.15  # of the likely gain: by how much sums of steps of one draw differ from those of another
WHERE = ("idle_host_code", "idle_unexplained", "unattributed", "below_roofline", "exposed_communication")
"""Accounts that longer steps lie in where no rank is blamed, those that are a sign of trouble first."""


def find(seen: Seen) -> Told:
    found = seen.answer("steps", object)  # type: ignore[type-var]
    if found is None:
        return Told(not_told=(NotTold(CAUSES, seen.answers.why("steps"), "a log that prints the job's steps"),))
    held = step_parts(seen.tables, seen.facts)
    patterns = step_patterns(changes_of(held.bare()))
    late = seen.answer("stragglers", StragglersResult)
    told, out = [], []
    for pattern in patterns:
        chip_s = pattern.excess_s * seen.chips
        blamed = _blamed(late, pattern)
        if blamed >= 0.5 * chip_s:
            out.append(RuledOut(BY_KIND[pattern.kind], "a rank that is late in these steps explains it", "stragglers"))
        else:
            told.append(_finding(seen, pattern, chip_s - blamed))
    missing = set(CAUSES) - {f.cause for f in told} - {r.cause for r in out}
    out += [RuledOut(cause, "steps keep their pace", "steps") for cause in CAUSES if cause in missing]
    return Told(tuple(told), tuple(out))


def _blamed(late: StragglersResult | None, pattern: StepPattern) -> float:
    """Chip-seconds that late ranks cost in the steps of the pattern."""
    if late is None or not len(late.ranks):
        return 0.0
    total = 0.0
    for row in late.ranks.to_dict("records"):
        first, last = max(row["first_step"], pattern.first_step), min(row["last_step"], pattern.last_step)
        span = row["last_step"] - row["first_step"] + 1
        total += row["gain_chip_seconds"] * max(last - first + 1, 0) / span
    return total


def _finding(seen: Seen, pattern: StepPattern, chip_s: float) -> Finding:
    usual, slow = fmt.duration(pattern.usual_s), fmt.duration(pattern.slow_s)
    steps = f"steps {pattern.first_step:,} to {pattern.last_step:,}"
    title = {
        "growing": f"Steps grow from {usual} to {slow} over {steps}, and nothing in a profile says why.",
        "changed": f"Steps take {slow} in {steps}, in place of {usual}.",
        "periodic": f"Every {pattern.every} steps one takes {slow} in place of {usual}: something holds it up that no "
        "event names.",
    }[pattern.kind]
    return Finding(
        cause=BY_KIND[pattern.kind],
        title=title,
        gain=Band.within(chip_s, SPREAD),
        draws=_draws(seen, chip_s),
        question="steps",
        confidence=0.8,
        where=Where(steps=Steps(pattern.first_step, pattern.last_step, pattern.every or 1)),
        evidence=(
            Evidence("a step without it", pattern.usual_s, "s", "steps"),
            Evidence("a step with it", pattern.slow_s, "s", "steps"),
        ),
    )


def _draws(seen: Seen, chip_s: float) -> dict[str, float]:
    """From which accounts: as far as each reaches."""
    draws, left = {}, chip_s
    for name in WHERE:
        draws[name] = min(left, seen.amount(name))
        left -= draws[name]
    return {**{name: s for name, s in draws.items() if s > 0}, "": max(left, 0.0)}


RULE = Rule(name="pace", causes=CAUSES, reads=("steps", "stragglers"), find=find)
