"""Programs compiled inside the job: at a new shape, or at a new constant; and start-up that compiles what could be
kept."""

import numpy as np

from analyzers.device.host_work import COMPILING
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told, Where
from analyzers.findings.carried import carried
from analyzers.findings.parts import step_parts
from analyzers.findings.places import spaced
from analyzers.lost.interruptions import InterruptionsResult
from analyzers.time.job_past import steps_taken
from errors import format as fmt
from runs.tables import frame

QUESTION = "ledger"
LEAST_S = 1e-3  # of a step: less is no compiling of its program
COLD_SHARE, COLD_S = 0.2, 2.0
"""Start-up that is worth telling: its share of the chip time, and seconds an attempt. To read programs that are kept
takes more than one on a machine that has fewer cores than the job has processes."""


def find(seen: Seen) -> Told:
    amount = seen.amount("compilation")
    if not seen.tables.rows("op_events"):
        return Told(not_told=(NotTold(("recompilation",), "no profile tells what hosts did", "a profile"),))
    gain = carried(seen, amount, COMPILING)
    if gain.likely < seen.least:
        share = fmt.share(gain.likely / seen.whole) if seen.whole else "nothing"
        return Told(ruled_out=(RuledOut("recompilation", f"compiling inside steps took {share}", QUESTION),))
    held = step_parts(seen.tables, seen.facts)
    steps = held.steps_with("compilation", LEAST_S)
    versions, why = _programs(seen)
    if versions < 2 and len(steps) == 1:
        why = f"a program was compiled at its first use, in step {steps[0]:,}"
        return Told(ruled_out=(RuledOut("recompilation", why, QUESTION),))
    place = spaced(steps)
    often = fmt.count(len(steps), "step") if steps else "steps"
    each = f", {fmt.duration(float(np.median([held.of('compilation')[s] for s in steps])))} each" if steps else ""
    return Told(
        (
            Finding(
                cause="recompilation",
                title=f"A program is compiled inside {often}{each}{why}.",
                gain=gain,
                draws={"compilation": amount, "unattributed": gain.likely - amount},
                question=QUESTION,
                confidence=0.95,
                basis="measured",
                where=Where(steps=place or (tuple(steps) or None)),
                evidence=(
                    Evidence("compiling inside steps", amount, "chip-seconds", QUESTION),
                    Evidence("versions of the program that ran most", float(versions), "", QUESTION),
                ),
            ),
        )
    )


def _programs(seen: Seen) -> tuple[int, str]:
    """How many versions of one program ran, and what they differ in."""
    rows = frame(seen.tables, "modules", ["capture", "program", "name", "flops", "bytes"])
    if not len(rows):
        return 0, ""
    rows = rows.drop_duplicates(["name", "program"])
    counts = rows.groupby("name", observed=True).size()
    name = str(counts.idxmax())
    mine = rows[rows["name"] == name]
    if len(mine) < 2:
        return len(mine), ""
    shapes = len(mine.drop_duplicates(["flops", "bytes"]))
    if shapes > 1:
        return len(mine), f": {len(mine):,} versions of {name} of {shapes:,} sizes, so its shapes change"
    return len(mine), f": {len(mine):,} versions of {name}, all of one size, so a constant in it changes"


def starting(seen: Seen) -> Told:
    """Start-up that holds much of the chip time: whether it could be read from a cache is not measured."""
    amount = seen.amount("program_startup")
    each_s = amount / seen.chips / max(_attempts(seen), 1)
    if seen.ledger.find("badput") is None:  # steps or a profile alone begin after it
        add = "the job's goodput log, or its text log from its start on"
        return Told(not_told=(NotTold(("cold_cache",), "no input tells how long the job took to start", add),))
    if amount < COLD_SHARE * seen.whole or each_s < COLD_S:
        share = fmt.share(amount / seen.whole) if seen.whole else "nothing"
        return Told(ruled_out=(RuledOut("cold_cache", f"start-up and compiling took {share}", "goodput"),))
    share = fmt.whole_share(amount / seen.whole)
    return Told(
        (
            Finding(
                cause="cold_cache",
                title=f"Start-up and compiling take {fmt.duration(each_s)} an attempt, {share} of the chip time.",
                gain=Band(0.0, amount * 0.85, amount),
                draws={"program_startup": amount * 0.85},
                question="goodput",
                confidence=0.6,
                evidence=(Evidence("start-up and compiling", amount, "chip-seconds", "goodput"),),
            ),
        )
    )


def _attempts(seen: Seen) -> int:
    """As the calendar counts them: logs number those of their own file, and many record no start of the job."""
    told = seen.answer("interruptions", InterruptionsResult)
    if told is None:
        return int(steps_taken(seen.tables, seen.facts).rows["attempt"].nunique())
    return len(told.attempts)


RULES = (
    Rule(name="compiling", causes=("recompilation",), find=find),
    Rule(name="starting", causes=("cold_cache",), find=starting),
)
