"""What the name of an operation in the user's program tells: the scopes that it lies in, and which pass it belongs to.

JAX writes `jit(train_step)/transpose(jvp(Decoder))/while/body/checkpoint/mlp/dot_general`: name scopes, the
transformations around them, the control flow of XLA, and last the primitive. TensorFlow writes scopes alone.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from runs.scopes import MOST_LEVELS, path_of

_WRAPPER = re.compile(
    r"^(jit|pjit|pmap|xmap|jvp|transpose|vmap|remat|checkpoint|shard_map|custom_jvp|custom_vjp|linearize|named)"
    r"\((.*)\)$",
    re.DOTALL,
)
_FUNCTIONS = ("jit", "pjit", "pmap", "xmap")  # they hold the name of a function
_STRUCTURE = re.compile(
    r"^(while|body|cond|scan|closed_call|core_call|core_closed_call|xla_call|pjit|jit|shard_map|pmap|vmap|checkpoint"
    r"|remat2?|rematted_computation|custom_[jv][jv]p_call(_jaxpr)?|branch_\d+_fun|jvp|transpose|)$"
)
_RECOMPUTED = "rematted_computation"
_OPEN, _CLOSE = "([{", ")]}"
_LONGEST = 4096  # letters of a name that are looked at


class Scope(NamedTuple):
    """`path`: as in `ops.scope`; `direction`: as in `ops.direction`. None where the name does not tell."""

    path: str | None
    direction: str | None


NOWHERE = Scope(None, None)


@lru_cache(maxsize=1 << 14)
def scope_of(name: str, recomputed: bool = False) -> Scope:
    """What the name of an operation tells. `recomputed`: whether the compiler itself says that it computes it again.

    A name of several operations, which XLA joins by `;` or as `a/(b:c)`, tells what they share.
    """
    parts = _split(name[:_LONGEST].partition(";")[0])
    several = parts[-1].startswith("(")
    scopes, met = _unwrapped(parts[:-1])
    told = {_direction(met | _met(each)) for each in _alternatives(parts[-1])} if several else {_direction(met)}
    direction = told.pop() if len(told) == 1 else None
    if recomputed:
        direction = "recompute"
    return Scope(path_of(scopes), direction)


def _direction(met: set[str]) -> str | None:
    if _RECOMPUTED in met:
        return "recompute"
    return "backward" if "transpose" in met else "forward" if "jvp" in met else None


def _unwrapped(parts: list[str]) -> tuple[list[str], set[str]]:
    """(names of scopes, transformations met on the way). The outermost function is the program itself; functions
    whose name begins with an underscore are inner ones of JAX."""
    scopes, met = [], set[str]()
    for place, part in enumerate(parts[: 4 * MOST_LEVELS]):
        last = ""
        while match := _WRAPPER.match(part):
            last, part = match[1], match[2]
            met.add(last)
        met.add(part)
        inner = last in _FUNCTIONS and (place == 0 or part == "main" or part.startswith("_"))
        if not inner and not _STRUCTURE.match(part):
            scopes += [name for name in _split(part) if not _STRUCTURE.match(name)]
    return scopes, met


def _met(text: str) -> set[str]:
    return _unwrapped(_split(text))[1]


def _alternatives(text: str) -> list[str]:
    """The names in `(b:c)`; of one that was cut off all but the last."""
    names = _split(text[1:].removesuffix(")"), ":")
    return names if text.endswith(")") or len(names) == 1 else names[:-1]


def _split(text: str, at: str = "/") -> list[str]:
    """The parts of a text between separators that no bracket holds."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text):
        if letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth = max(depth - 1, 0)
        elif letter == at and not depth:
            parts.append(text[begin:i])
            begin = i + 1
    return [*parts, text[begin:]]
