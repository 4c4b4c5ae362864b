"""What every worked case shares: the shape of its module and of its answer.

A case is a module in this folder, listed once in `app.whatif.cases.CASES`, with:

    NAME, TITLE, QUESTION   its name in `whatif case --name NAME`, its title, the question in one sentence
    answer()                -> Case: the question worked through, published figures beside our own
"""

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Row:
    """One quantity: as it was published (`stated`, by whom) and as we compute it, with a range where that is one.

    `basis` of what we compute: derived (follows from published figures alone) or modelled.
    """

    what: str
    unit: str
    stated: float | None
    stated_by: str
    computed: float | None
    basis: str = "derived"
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """What we compute by what was published."""
        return self.computed / self.stated if self.computed is not None and self.stated else None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "ratio": self.ratio}


@dataclass(frozen=True)
class Case:
    """A question worked through. Where it compares two `machines`, `slopes`: (by whose figures, the price of the second
    by the price of the first at which both give tokens at the same cost)."""

    name: str
    title: str
    question: str
    verdict: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    machines: tuple[str, str] = ("", "")
    slopes: tuple[tuple[str, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "verdict": self.verdict,
            "rows": [r.to_dict() for r in self.rows],
            "numbers": self.numbers,
            "break_even": dict(self.slopes),
            "notes": list(self.notes),
        }


class Worked(Protocol):
    NAME: str
    TITLE: str
    QUESTION: str

    def answer(self) -> Case: ...
