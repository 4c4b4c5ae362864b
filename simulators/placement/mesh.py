"""Logical mesh axes: what they are called, what each does, and how they are written, such as data=8,model=16."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from errors import QuestionError
from simulators.tpu_compile.mesh import ROLES as COMPILED_ROLES

ROLES: dict[str, str] = {
    **COMPILED_ROLES,
    "sequence": "context",
    "pipeline": "pipeline",
    "stage": "pipeline",
    "pp": "pipeline",
}
MEANINGS: dict[str, str] = {
    "data": "copies of the model, each with a part of the batch",
    "fsdp": "weights cut up and gathered before use, each part of the batch on its own chips",
    "tensor": "matrices of a layer cut up",
    "expert": "experts of a layer spread out, with the batch",
    "context": "sequences cut up",
    "pipeline": "layers cut into stages",
}
MOST_AXES = 6
_FORM = "such as data=8,model=16; axes that talk most come last, as in JAX"


@dataclass(frozen=True)
class LogicalAxis:
    name: str
    size: int

    @property
    def role(self) -> str:
        return ROLES[self.name]


def parse_mesh(text: str) -> tuple[LogicalAxis, ...]:
    """The axes in the order given. Raises QuestionError for a name without a meaning, twice the same, or no size."""
    axes = []
    for part in text.split(","):
        name, _, size = (s.strip().lower() for s in part.partition("="))
        if name not in ROLES:
            raise QuestionError(f"no mesh axis {name[:40]!r}", where="mesh", expected=f"one of {', '.join(ROLES)}")
        if not re.fullmatch(r"[1-9][0-9]{0,5}", size):
            raise QuestionError(f"mesh axis {name} = {size[:40]!r}", where="mesh", expected=_FORM)
        axes.append(LogicalAxis(name, int(size)))
    names = [a.name for a in axes]
    if len(set(names)) < len(names) or len(axes) > MOST_AXES:
        raise QuestionError(
            f"mesh {text[:80]!r}", where="mesh", expected=f"each axis once, at most {MOST_AXES}: {_FORM}"
        )
    return tuple(axes)


def ways(axes: Sequence[LogicalAxis], *roles: str) -> int:
    """Into how many parts the axes of these roles cut together."""
    return prod(a.size for a in axes if a.role in roles)


def shown(axes: Sequence[LogicalAxis]) -> str:
    return ",".join(f"{a.name}={a.size}" for a in axes)
