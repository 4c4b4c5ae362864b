"""A worked case in words: what a terminal says."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.cases.base import Case


def words(result: "Case") -> Words:
    """Its verdict, then what was published beside what we compute."""
    rows = tuple(
        (
            r.what,
            _number(r.stated),
            _number(r.computed) if r.low is None else f"{_number(r.low)} to {_number(r.high)}",
            r.unit,
            r.basis,
            r.note,
        )
        for r in result.rows
    )
    head = ("", "published", "ours", "unit", "basis", "")
    return Words(result.verdict, Table(head, rows, right=(1, 2)), result.notes)


def _number(value: float | None) -> str:
    return "" if value is None else fmt.number(value)
