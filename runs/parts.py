"""Tables in parts: of a run of many files a large table is a folder of Parquet files, in the order of the inputs.

    tables/op_events/000345.345-360.parquet

The first number is that of the first input whose rows it holds; then the captures of which it has rows, lowest to
highest: what asks about one capture opens no other part. Where a row belongs to no capture, the second is left out, and
the part is always opened. A table is either one file or parts, never both.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runs.integrity import TABLES

ENDING = ".parquet"
_PART = re.compile(rf"{TABLES}([a-z_]+)/([0-9]{{6,12}})(?:\.([0-9]{{1,12}})-([0-9]{{1,12}}))?\.parquet")


@dataclass(frozen=True, order=True, kw_only=True)
class Part:
    """A file of a table in parts. `captures`: the lowest and the highest of which it has rows; None: not told."""

    table: str
    number: int
    captures: tuple[int, int] | None = None

    @property
    def relative(self) -> str:
        """Where it lies in the run's folder."""
        told = f".{self.captures[0]}-{self.captures[1]}" if self.captures else ""
        return f"{TABLES}{self.table}/{self.number:06d}{told}{ENDING}"

    def may_hold(self, where: Sequence[tuple[str, str, Any]]) -> bool:
        """Whether a row of it can fulfil all of these (column, operator, value)."""
        if self.captures is None:
            return True
        low, high = self.captures
        return all(_meets(low, high, operator, value) for column, operator, value in where if column == "capture")


def _meets(low: int, high: int, operator: str, value: Any) -> bool:
    """Whether a whole number from low to high can stand in this relation to the value; where that is not known, yes."""
    if operator in ("==", "="):
        return low <= value <= high
    if operator == "in":
        return any(low <= one <= high for one in value)
    if operator in ("<", "<="):
        return low < value or (operator == "<=" and low == value)
    if operator in (">", ">="):
        return high > value or (operator == ">=" and high == value)
    return True


def one_file(table: str) -> str:
    """Where a table lies that is one file."""
    return f"{TABLES}{table}{ENDING}"


def part_of(relative: str) -> Part | None:
    """The part that a file of a run is; None for any other file."""
    found = _PART.fullmatch(relative)
    if found is None:
        return None
    table, number, low, high = found.groups()
    part = Part(table=table, number=int(number), captures=None if low is None else (int(low), int(high)))
    return part if part.relative == relative else None  # one name for each, or rows would count twice


def parts_of(files: Iterable[str], table: str) -> list[Part]:
    """The parts of a table among the files of a run, in the order of their rows."""
    below = f"{TABLES}{table}/"
    return sorted(_parts(f for f in files if f.startswith(below)), key=lambda part: part.number)


def in_parts(files: Iterable[str]) -> bool:
    """Whether a run of these files has a table in parts."""
    return next(_parts(files), None) is not None


def _parts(files: Iterable[str]) -> Iterator[Part]:
    return (part for part in map(part_of, files) if part is not None)
