"""Chips whose clocks heat, a brake of the power supply or a power limit holds down, where steps took longer meanwhile.

What it costs is what steps took more while a driver's samples say that it held a clock down, against the others of the
job: in a job all chips wait for the slowest. It is no more than clocks were lower meanwhile: steps of longer sequences
take longer, and draw more. A busy chip often meets its power limit, and is told of only where the limit is below what
the chip's sheet has.
"""

import pandas as pd

from analyzers.device.power.result import Longer, PowerResult
from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Told, Where
from errors import format as fmt

QUESTION = "power"
HEAT, LIMIT = "heat", "power_limit"
CAUSES = (HEAT, LIMIT)
BY = {"heat (software)": HEAT, "heat (hardware)": HEAT, "the power brake": HEAT, "the power limit": LIMIT}
BELOW_SHEET = 0.97  # of what the sheet has: a limit up to here was lowered
SPREAD = 0.3  # of the gain: which steps were held down is told by samples seconds apart
ACCOUNTS = ("straggler_wait", "below_roofline", "compute_unsplit", "exposed_communication", "unattributed")
MOST_HOSTS = 8


def find(seen: Seen) -> Told:
    power = seen.answer(QUESTION, PowerResult)
    if power is None or power.slowed is None:
        return Told()  # nothing samples whether clocks are held down
    found = [f for one in power.longer if (f := _finding(seen, power, one)) is not None]
    first = {f.cause: f for f in reversed(found)}
    out = [RuledOut(cause, _why(power, cause), QUESTION) for cause in CAUSES if cause not in first]
    return Told(tuple(first.values()), tuple(out))


def amount(seen: Seen) -> float:
    """Chip-seconds that steps took more while clocks were held down, of what is a finding."""
    return sum((f.likely for f in find(seen).findings), 0.0)


def _finding(seen: Seen, power: PowerResult, one: Longer) -> Finding | None:
    cause = BY.get(one.by)
    likely = _more_s(power, one) * seen.chips
    if cause is None or likely < seen.least or (cause == LIMIT and not _lowered(power)):
        return None
    hosts = tuple(dict.fromkeys(str(h) for h in _held(power, one.by)["host"].dropna()))[:MOST_HOSTS]
    told = next(s for s in power.slowed or () if s.by == one.by)
    slower = _slower(power, one.by)
    evidence = [
        Evidence("steps while clocks were held down", one.step_s, "s", QUESTION),
        Evidence("other steps", one.other_step_s, "s", QUESTION),
        Evidence("time held down, of the chip that was most", told.most_share, "1", QUESTION),
    ]
    if slower is not None:
        evidence.append(Evidence("clocks below what they are else", slower, "1", QUESTION))
    if cause == LIMIT and power.limit_watts:
        evidence.append(Evidence("power limit in force", power.limit_watts, "W", QUESTION))
    what = "Heat or a brake holds" if cause == HEAT else "A lowered power limit holds"
    several = "one chip" if told.chips == 1 else f"{told.chips:,} chips"
    return Finding(
        cause=cause,
        title=f"{what} the clocks of {several} down ({one.by}): steps take {one.step_s / one.other_step_s:.2f} times "
        "as long meanwhile.",
        gain=Band.within(likely, SPREAD).at_most(seen.whole),
        draws=seen.drawn(min(likely, seen.whole), *ACCOUNTS),
        question=QUESTION,
        confidence=0.75,
        where=Where(hosts=hosts),
        evidence=tuple(evidence),
    )


def _slower(power: PowerResult, by: str) -> float | None:
    """By which share of it clocks of chips that it holds down are lower meanwhile; None where it is not told."""
    told = next((s for s in power.slowed or () if s.by == by), None)
    if told is None or told.clock_mhz is None or not told.clock_else_mhz:
        return None
    return max(1 - told.clock_mhz / told.clock_else_mhz, 0.0)


def _more_s(power: PowerResult, one: Longer) -> float:
    """What steps took more for their clocks: at full clocks they would take as much less as clocks are lower, at the
    most."""
    slower = _slower(power, one.by)
    return one.more_s if slower is None else min(one.more_s, slower * one.step_s * one.steps)


def _held(power: PowerResult, by: str) -> pd.DataFrame:
    return power.devices[power.devices["slowed_by"] == by]


def _lowered(power: PowerResult) -> bool:
    if power.limit_watts is None or power.sheet_watts is None or power.limit_from != "samples":
        return False
    return power.limit_watts <= BELOW_SHEET * power.sheet_watts


def _why(power: PowerResult, cause: str) -> str:
    mine = [one for one in power.slowed or () if BY.get(one.by) == cause and one.share > 0]
    if not mine:
        return f"by the driver's samples {'neither heat nor a brake' if cause == HEAT else 'no limit'} held clocks down"
    if cause == LIMIT and not _lowered(power):
        return "chips meet their power limit as busy ones do: it is not below what their sheet has"
    lower = [s for one in power.longer if BY.get(one.by) == cause and (s := _slower(power, one.by)) is not None]
    if lower:
        return f"clocks were held down by {fmt.share(max(lower))}, which is not why steps took longer meanwhile"
    but = ", but for those that heat or a brake held down too" if cause == LIMIT and power.longer else ""
    return f"clocks were held down, and steps took no longer meanwhile that can be told from chance{but}"


RULE = Rule(name="held_down", causes=CAUSES, find=find)
