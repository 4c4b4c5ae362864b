"""Saves that nothing but a profile shows: how long its devices stand while hosts work on a checkpoint, with the copies
to hosts that a save is made of.

How often the job saves a profile of a few steps does not tell, so that nothing is said of how far apart they should be.
"""

from analyzers.device.overlap import OverlapResult
from analyzers.findings.base import Band, Evidence, Finding, Rule, Seen, Told, Where
from analyzers.findings.carried import carried
from analyzers.findings.parts import StepParts, step_parts
from analyzers.findings.places import spaced
from analyzers.findings.rules.checkpoints import LEFT
from analyzers.lost.checkpoints import CheckpointsResult
from errors import format as fmt

CAUSE, QUESTION = "slow_checkpoint", "ledger"
ACCOUNT, COPIES, WORK = "idle_checkpointing", "exposed_copies", "checkpointing"
WAITS = ("straggler_wait", "exposed_communication", "communication_or_wait")
"""What other ranks do while one saves."""
LEAST_S = 1e-3  # of a step's time: less is no save
LOW = 0.5  # of what saves take: at least so much would not be waited for


def find(seen: Seen) -> Told:
    told = seen.answer("checkpoints", CheckpointsResult)
    held = step_parts(seen.tables, seen.facts)
    steps = held.steps_with(WORK, LEAST_S)
    if (told is not None and told.save.count) or not 0 < len(steps) < held.seen.sum():
        return Told()  # the job's own log knows more; what is in each step is no save
    idle, copies = seen.amount(ACCOUNT), _copies(seen, steps)
    took = float(held.of(WORK).sum()) * seen.chips
    spent = min(max(took, idle + copies), idle + copies + seen.amount(*WAITS))
    whole = carried(seen, spent, WORK, of_all_ranks=spent > idle + copies)
    if whole.likely < seen.least:
        return Told()
    return Told((_finding(seen, held, steps, whole.scaled(1 - LEFT).likely, whole.likely, copies),))


def _copies(seen: Seen, steps: list[int]) -> float:
    """Chip-seconds of copies that nothing covers in these steps, beyond what a step without a save has of them."""
    found = seen.answer("overlap", OverlapResult)
    if found is None or not len(found.steps):
        return 0.0
    each = found.steps.groupby("step")["copies_s"].sum().astype(float)
    saving = each.index.isin(steps)
    beyond = (each[saving] - float(each[~saving].median() if (~saving).any() else 0.0)).clip(lower=0.0)
    return seen.amount(COPIES) * float(beyond.sum() / each.sum()) if each.sum() > 0 else 0.0


def _finding(seen: Seen, held: StepParts, steps: list[int], likely: float, most: float, copies: float) -> Finding:
    copied = min(copies, likely)
    place = spaced(steps)
    often = f", every {place.every} steps" if place is not None and place.every > 1 else ""
    alone = f", in step {steps[0]:,}" if len(steps) == 1 else often
    return Finding(
        cause=CAUSE,
        title=f"Training stands while hosts work on a checkpoint{alone}: {fmt.whole_share(most / seen.whole)} of the "
        "chip time.",
        gain=Band(LOW * most, likely, most),
        draws={COPIES: copied} | seen.drawn(likely - copied, ACCOUNT, *WAITS, "unattributed"),
        question=QUESTION,
        confidence=0.85,
        basis="measured",
        where=Where(steps=place or tuple(steps)),
        evidence=(
            Evidence("devices idle meanwhile", seen.amount(ACCOUNT), "chip-seconds", QUESTION),
            Evidence("copies that nothing covers", copies, "chip-seconds", "overlap"),
            Evidence("a save, at the longest", float(held.of(WORK).max()), "s", QUESTION),
        ),
    )


RULE = Rule(name="profiled_saves", causes=(CAUSE,), find=find)
