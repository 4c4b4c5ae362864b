"""What differs between two runs before anything is measured: chip, slice, mesh, model, batch, versions, flags."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts

FIRST = (
    "chip",
    "chips",
    "slices",
    "topology",
    "parallelism",
    "model",
    "layers",
    "parameters",
    "precision",
    "weights",
    "attention",
    "remat",
    "optimizer",
    "global_batch",
    "per_device_batch_size",
    "seq",
    "max_target_length",
    "model_flops_per_step",
    "checkpoint_period_steps",
)
"""In this order; what else is known follows by name."""
OF_NO_ACCOUNT = frozenset(
    ("note", "rule", "job_name", "run_name", "compile_s", "peak_basis", "simulated", "outcome", "fits", "why", "hosts")
)
"""What may differ between two runs of the same setup, or is an answer and no setting."""
PEAK, MEASURED = "peak_flops_per_s", "measured"  # a peak that was measured scatters as all that is measured
ALIKE = 1e-6  # relative: the same number, told by another tool
LONGEST = 200
AXES = "parallelism."


@dataclass(frozen=True)
class Differs:
    """A setting of both runs; None: that run does not tell it."""

    name: str
    a: Any
    b: Any

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "a": self.a, "b": self.b}


def differs(a: Facts, b: Facts) -> tuple[Differs, ...]:
    """Settings that the two tell differently, those that both tell first. What one alone tells is no difference known;
    it follows, with None for the other."""
    mine, theirs = dict(flat(a)), dict(flat(b))
    if all("peak_basis" in side and side["peak_basis"].value == MEASURED for side in (a, b)):
        mine.pop(PEAK, None)
        theirs.pop(PEAK, None)
    if all(any(name.startswith(AXES) for name in side) for side in (mine, theirs)):
        axes = dict.fromkeys(name for name in (*mine, *theirs) if name.startswith(AXES))
        mine, theirs = dict.fromkeys(axes, 1) | mine, dict.fromkeys(axes, 1) | theirs  # an axis that is not named
    names = sorted({*mine, *theirs}, key=order_of)
    found = [Differs(n, mine.get(n), theirs.get(n)) for n in names if not alike(mine.get(n), theirs.get(n))]
    return tuple(sorted(found, key=lambda d: d.a is None or d.b is None))


def order_of(name: str) -> tuple[int, str]:
    """Where a setting stands among others."""
    head = name.split(".")[0]
    return (FIRST.index(head) if head in FIRST else len(FIRST)), name


def flat(facts: Facts) -> Iterator[tuple[str, Any]]:
    """What is known of a run, setting by setting."""
    for name, known in facts.items():
        if name not in OF_NO_ACCOUNT:
            yield from _parts(name, known.value)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """`parallelism.data`, `model.head_dim`: an object's members one by one, lists as texts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _parts(f"{name}.{str(key)[:LONGEST]}", inner)
    elif isinstance(value, float) and not math.isfinite(value):
        yield name, str(value)  # a text: JSON knows no such number
    elif isinstance(value, bool | int | float) or value is None:
        yield name, value
    else:
        yield name, str(value)[:LONGEST]


def alike(a: Any, b: Any) -> bool:
    """Whether two tell the same: numbers to ALIKE, all else exactly."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b))
    return math.isclose(a, b, rel_tol=ALIKE) if numbers else a == b
