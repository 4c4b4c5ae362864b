"""What a topology is called: `NAME:SHAPE[:OPTION]...`, such as v5p:4x4x8:twisted or v5e:16x16:slices=199.

A system is a module in `systems/`, listed once in `SYSTEMS`, with:

    FORMS              how it is written: (example, what it is)
    reads(name)        whether it reads what stands before the first colon
    parse(text, name, shape, options) -> Spec    raises QuestionError: the rule broken, and the nearest that exist
    build(spec) -> Network
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from errors import QuestionError
from simulators.topology.network import Network

MOST_CHIPS = 65_536  # of all slices together: what a browser can still draw, and twice the largest machine known
MOST_SLICES = 512
LONGEST = 200
LONGEST_EDGES = 4000  # of an edge list inside a name: what an address still carries


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A topology that may be built. `text`: as it is written in full; two spellings of one topology have one text.

    `dims` of one slice in ascending order where the maker orders them so; empty where it is no lattice.
    `inferred`: such a shape is not published; `notes` say so. `more`: what only one system knows, such as groups or
    oversubscription.
    """

    text: str
    kind: str
    chip: str | None
    chips: int
    dims: tuple[int, ...] = ()
    wraps: tuple[bool, ...] = ()
    twisted: bool = False
    slices: int = 1
    more: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    inferred: bool = False


class System(Protocol):
    FORMS: tuple[tuple[str, str], ...]

    def reads(self, name: str) -> bool: ...

    def parse(self, text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec: ...

    def build(self, spec: Spec) -> Network: ...


def split(text: str) -> tuple[str, str, dict[str, str]]:
    """(name, shape, options); an option without `=` has the value "yes". Raises QuestionError."""
    longest = LONGEST_EDGES if text.lstrip()[:6].lower() == "edges:" else LONGEST
    if len(text) > longest:
        raise QuestionError(
            f"a topology of more than {longest:,} characters",
            expected="such as v5p:4x4x8, boardfly:1024, or graph: for a long edge list",
        )
    name, _, rest = text.strip().partition(":")
    shape, *options = rest.split(":") if rest else [""]
    given = {}
    for option in options:
        key, _, value = option.partition("=")
        given[key.strip().lower()] = value.strip() or "yes"
    return name.strip(), shape.strip().lower(), given


def dims_of(shape: str, text: str, axes: Sequence[int] = range(1, 7)) -> tuple[int, ...]:
    """`4x4x8` as numbers. Raises QuestionError where it is none, or has another number of axes than allowed."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", shape):
        what = f"{shape!r} is no shape" if shape else "the shape is missing"
        raise QuestionError(f"topology {text!r}: {what}", expected="chips along each axis, 1 or more, such as 4x4x8")
    dims = tuple(int(n) for n in shape.split("x"))
    if len(dims) not in axes:
        raise QuestionError(f"topology {text!r} has {len(dims)} axes", expected=" or ".join(map(str, axes)))
    return dims


def refuse_options(text: str, options: Mapping[str, str], known: Sequence[str]) -> None:
    """Raises QuestionError for an option that this system does not know."""
    for option in options:
        if option not in known:
            expected = "one of " + ", ".join(known) if known else "none here"
            raise QuestionError(f"topology {text!r}: no option {option!r}", expected=expected)


def whole(text: str, what: str, value: str, least: int, most: int) -> int:
    """A whole number of an option or shape, within bounds. Raises QuestionError."""
    number = int(value) if re.fullmatch(r"[0-9]{1,9}", value) else -1
    if not least <= number <= most:
        said = f"{what} must be a whole number, not {value!r}" if number < 0 else f"{what} {number:,}"
        raise QuestionError(f"topology {text!r}: {said}", expected=f"{least:,} to {most:,}")
    return number


def yes_no(text: str, options: Mapping[str, str], option: str, default: bool = False) -> bool:
    """Whether an option is set: `:twisted`, `:twisted=yes` or `:twisted=no`. Raises QuestionError for other values."""
    value = options.get(option, "yes" if default else "no").lower()
    if value not in ("yes", "no"):
        raise QuestionError(f"topology {text!r}: {option}={value!r}", expected="yes or no")
    return value == "yes"
