"""What a finding is, and what a rule sees when it looks for some.

A rule reads the answers of other questions and gives findings: each one cause of `catalog.cures`, where it is, what
mending it would give back, and from which accounts of the ledger. What it looked for and did not find is ruled out with
the reason; what it could not look for, for want of an input, is not told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from analyzers.base import Facts, Result
from catalog.cures import WRONGS
from runs.ledger import Ledger
from runs.tables import Tables

R = TypeVar("R", bound=Result)

FLOOR = 0.02
"""Share of the chip time below which nothing is called a finding, unless another is asked for."""
MEASURED = 0.12
"""By how much of itself an amount that a profile shows may be off: a cure changes other waiting as well."""
SHOWN = ("compute_unsplit", "communication_or_wait")  # accounts of what a profile shows, though not what it was


@dataclass(frozen=True)
class Band:
    """Chip-seconds: what is likely, and between which two it lies."""

    low: float
    likely: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"a band out of order: {self.low}, {self.likely}, {self.high}")

    @classmethod
    def within(cls, likely: float, share: float) -> "Band":
        """The amount give or take a share of it."""
        return cls(likely * (1 - share), likely, likely * (1 + share))

    def scaled(self, factor: float) -> "Band":
        return Band(self.low * factor, self.likely * factor, self.high * factor)

    def at_most(self, whole: float) -> "Band":
        return Band(*(min(part, whole) for part in (self.low, self.likely, self.high)))

    def to_dict(self) -> dict[str, float]:
        return {"low": self.low, "likely": self.likely, "high": self.high}


@dataclass(frozen=True)
class Steps:
    """The steps from `first` to `last`, or every so many of them."""

    first: int
    last: int
    every: int = 1

    def to_dict(self) -> dict[str, int]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Where:
    """The place of a finding, as far as it has one. `ranks` and `hosts` by name, `links` as pairs of ranks, `code` as
    `file:line`."""

    ranks: tuple[int | str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: tuple[tuple[int | str, int | str], ...] = ()
    steps: Steps | tuple[int, ...] | None = None
    operations: tuple[str, ...] = ()
    code: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What there is of it."""
        steps = self.steps.to_dict() if isinstance(self.steps, Steps) else list(self.steps or ())
        held = {
            "ranks": list(self.ranks),
            "hosts": list(self.hosts),
            "links": [list(pair) for pair in self.links],
            "steps": steps,
            "operations": list(self.operations),
            "code": list(self.code),
        }
        return {name: value for name, value in held.items() if value}


@dataclass(frozen=True)
class Evidence:
    """A number that a finding rests on, and the question that shows it. `unit` as in `catalog.terms`."""

    name: str
    value: float | str
    unit: str
    question: str

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    cause       a key of `catalog.cures.WRONGS`
    title       what is wrong, in one sentence
    gain        chip-seconds given back if it were mended; None: it costs something of which the amount is not known
    draws       accounts of the ledger that the likely gain comes out of, in chip-seconds: no two findings are given the
                same chip-second twice. `""`: from no account in particular
    question    whose page shows it
    confidence  0 to 1: how sure it is that this is what is wrong
    basis       how the gain is known
    since_ns    since when, on the calendar of the job
    least       chip-seconds, where it is no finding below more than the floor: what others leave of it must reach that
    """

    cause: str
    title: str
    gain: Band | None
    draws: Mapping[str, float]
    question: str
    confidence: float
    basis: str = "derived"
    where: Where = field(default_factory=Where)
    evidence: tuple[Evidence, ...] = ()
    since_ns: int | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.cause not in WRONGS:
            raise ValueError(f"no such cause: {self.cause!r}")

    @property
    def likely(self) -> float:
        return self.gain.likely if self.gain else 0.0

    def drawing(self, draws: Mapping[str, float]) -> "Finding":
        """The same with these draws left to it: of its gain as much is left as of what it drew."""
        whole = sum(self.draws.values())
        gain = self.gain.scaled(sum(draws.values()) / whole) if self.gain and whole else self.gain
        return replace(self, gain=gain, draws=draws)


@dataclass(frozen=True)
class RuledOut:
    """A cause that was looked for and is not there, with why; `question` shows it."""

    cause: str
    why: str
    question: str


@dataclass(frozen=True)
class NotTold:
    """Causes that this run cannot tell: why, and what to add so that it could."""

    causes: tuple[str, ...]
    why: str
    add: str


@dataclass(frozen=True)
class Told:
    """What a rule says."""

    findings: tuple[Finding, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    not_told: tuple[NotTold, ...] = ()

    def __add__(self, other: "Told") -> "Told":
        return Told(self.findings + other.findings, self.ruled_out + other.ruled_out, self.not_told + other.not_told)


class Answers(Protocol):
    """Answers of the other questions about the same run."""

    def get(self, question: str) -> Result | None:
        """The answer; None where this run has none."""
        ...

    def why(self, question: str) -> str:
        """Why there is none."""
        ...

    @property
    def frameworks(self) -> tuple[str, ...]:
        """What the job was written in, the nearest first: keys of `catalog.cures.FRAMEWORKS`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a rule sees. `floor`: share of the chip time below which nothing is called a finding; `least`: the same in
    chip-seconds. `whole`: chip-seconds held; `chips`: chips held at one time."""

    tables: Tables
    facts: Facts
    answers: Answers
    ledger: Ledger
    floor: float = FLOOR

    @property
    def whole(self) -> float:
        return self.ledger.chip_seconds

    @property
    def chips(self) -> int:
        return self.ledger.chips

    @property
    def least(self) -> float:
        return self.floor * self.whole

    def drawn(self, likely: float, *accounts: str) -> dict[str, float]:
        """A gain by the accounts that it comes out of: of each as much as it holds, in this order; the rest of none in
        particular."""
        draws, left = {}, likely
        for name in accounts:
            draws[name] = min(left, self.amount(name))
            left -= draws[name]
        return {**draws, "": max(left, 0.0)}

    def amount(self, *accounts: str) -> float:
        """Chip-seconds in all accounts of these names."""
        return sum(self.ledger.amount(name) for name in accounts)

    def beyond_profile(self, amount: float) -> Band:
        """What is found in kept steps that a profile covers, carried over to those that none does: as much of each."""
        productive = self.ledger.find("productive")
        dark = max(productive.unknown - self.amount(*SHOWN), 0.0) if productive else 0.0
        watched = productive.chip_seconds - dark if productive else 0.0
        if not dark or watched <= 0:
            return Band.within(amount, MEASURED)
        likely = amount * (1 + dark / watched)
        most = amount + dark * min(1.0, 1.5 * amount / watched)
        return Band(min(amount, likely * (1 - MEASURED)), likely, max(most, likely * (1 + MEASURED)))

    def answer(self, question: str, of: type[R]) -> R | None:
        """The answer of another question; None where there is none."""
        found = self.answers.get(question)
        return found if isinstance(found, of) else None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule. `causes`: what it may find."""

    name: str
    causes: tuple[str, ...]
    find: Callable[[Seen], Told]
