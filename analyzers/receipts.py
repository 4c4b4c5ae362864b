"""What mending a finding gave: a later run of the same job beside the one that it was promised of.

    gave = (what those accounts held a unit of work, before - after) x units of work before

as a share of the chip time before. A unit of work is a kept step, or an output token; what a start costs is held a
start. Only the accounts that the promise was to come from are looked at: what changed in others is neither credited nor
charged, and of an account that several promises of a run are to come from each is given its part. Where profiles cover
the steps of the one run and not of the other, accounts of a step cannot be compared; then kept steps as wholes are, in
which all else is as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzers.base import Facts, fact
from analyzers.serving.loads_told_twice import without
from analyzers.time.job_past import steps_taken
from errors import ChipledgerError
from errors import format as fmt
from runs.ledger import Ledger
from runs.tables import Tables, frame

SAME = ("chip", "chips", "slices", "topology", "parallelism", "precision", "parameters", "model", "seq", "batch")
"""Facts that must not differ, where both runs have them: else it is other work."""
CHANGED: Mapping[str, tuple[str, ...]] = {
    "precision": ("precision",),
    "dims_padding": ("model", "parameters"),
    "batch_padding": ("model", "batch"),
    "excess_collectives": ("parallelism", "topology"),
}
"""Facts that mending a cause changes, so that they are no other work: the model is the same but for what was padded."""
STARTS = (
    "accelerator_initialization",
    "training_preparation",
    "program_startup",
    "data_loading",
    "checkpoint_restore",
)
"""Accounts that are held a start of the job, whatever it does then."""
COVERED = 0.15  # of kept steps: by how much two runs' profiles may cover more or less of them
UNKNOWN = ("", "unattributed")
LEAST = 0.2
"""What is drawn from no account, or from what nothing tells, is taken to have given as much of itself as the accounts
that are known, where these are such a share of all at least."""
FEW = 5  # kept steps: fewer say nothing of a step


@dataclass(frozen=True)
class Side:
    """One of the two runs. `units`: kept steps, or output tokens; `starts`: attempts; `dark_share`: of kept steps, what
    nothing tells."""

    ledger: Ledger
    unit: str
    units: float
    starts: int
    work: Mapping[str, Any]

    @property
    def dark_share(self) -> float:
        kept = self.ledger.find("productive")
        return kept.unknown / kept.chip_seconds if kept is not None and kept.chip_seconds else 0.0


@dataclass(frozen=True)
class Said:
    """What was promised: shares of the chip time of the run before; `draws`: chip-seconds by account; `together`: the
    same of all promises of that run."""

    cause: str
    low: float
    likely: float
    high: float
    draws: Mapping[str, float]
    together: Mapping[str, float] = field(default_factory=dict)

    def part(self, account: str) -> float:
        """Of what is drawn from an account, how much is this promise's."""
        mine = self.draws[account]
        return mine / max(self.together.get(account, mine), mine)


@dataclass(frozen=True)
class Receipt:
    """What a promise gave. `gave`: share of the chip time before; None: cannot be told, and `why`. `whole`: by how much
    less chip time a unit of work takes, all changes together. `by`: accounts, or steps (as wholes)."""

    gave: float | None
    whole: float | None
    by: str
    why: str
    within: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "gave_share": self.gave,
            "whole_share": self.whole,
            "by": self.by,
            "why": self.why,
            "within_band": self.within,
        }


def side(tables: Tables, facts: Facts, ledger: Ledger, serving: bool) -> Side:
    """What of a run is compared."""
    work = {name: fact(facts, name) for name in SAME if fact(facts, name) is not None}
    if serving:
        tokens = without(tables, frame(tables, "requests", ["stage", "output_tokens"]))["output_tokens"]
        return Side(ledger, "output token", float(tokens.fillna(0).sum()), 1, work)
    try:
        rows = steps_taken(tables, facts).rows
    except ChipledgerError:
        return Side(ledger, "kept step", 0.0, 1, work)
    kept = rows[rows["kept"].astype(bool)]
    return Side(ledger, "kept step", float(len(kept)), max(int(kept["attempt"].nunique()), 1), work)


def receipt(said: Said, before: Side, after: Side) -> Receipt:
    """What the later run gave of what was said of the earlier one."""
    if why := _apart(said.cause, before, after):
        return Receipt(None, None, "", why)
    scale, whole = before.units / after.units, before.ledger.chip_seconds
    in_all = _per_step(before, after, scale) / whole
    drawn = sum(said.draws.values())
    names = [name for name, s in said.draws.items() if name not in UNKNOWN and s > 0]
    known = sum(said.draws[name] for name in names)
    if known < LEAST * drawn or not names:
        return _judged(said, in_all, in_all, "steps", "it was to come out of time that no profile tells of")
    within_steps = [n for n in names if n not in STARTS]
    if within_steps and abs(before.dark_share - after.dark_share) > COVERED:
        why = (
            f"profiles cover {fmt.share(1 - before.dark_share)} of the kept steps before and "
            f"{fmt.share(1 - after.dark_share)} now"
        )
        return _judged(said, in_all, in_all, "steps", why)
    gave = 0.0
    for name in names:
        factor = before.starts / after.starts if name in STARTS else scale
        gave += said.part(name) * (before.ledger.amount(name) - after.ledger.amount(name) * factor)
    return _judged(said, gave / whole * drawn / known, in_all, "accounts", "")


def _judged(said: Said, gave: float, whole: float, by: str, why: str) -> Receipt:
    return Receipt(gave, whole, by, why, said.low <= gave <= said.high)


def _per_step(before: Side, after: Side, scale: float) -> float:
    """Chip-seconds that the work before would have taken less at the pace of the later run, without starts."""

    def held(one: Side) -> float:
        return one.ledger.chip_seconds - sum(one.ledger.amount(name) for name in STARTS)

    return held(before) - held(after) * scale


def _apart(cause: str, before: Side, after: Side) -> str:
    """Why the two runs cannot be compared; empty where they can."""
    same = [n for n in SAME if n not in CHANGED.get(cause, ())]
    differ = [n for n in same if n in before.work and n in after.work and before.work[n] != after.work[n]]
    if differ:
        name = differ[0]
        was, now = (str(one.work[name])[:60] for one in (before, after))
        told = f": {name} was {was} and is {now}" if not isinstance(before.work[name], dict) else f": another {name}"
        return f"the later run does other work{told}"
    if before.unit != after.unit:
        return "one of the two trains and the other serves"
    if min(before.units, after.units) < FEW:
        return f"one of the two runs has fewer than {FEW} {before.unit}s"
    if not before.ledger.chip_seconds:
        return "no chip time is accounted for in the run before"
    return ""
