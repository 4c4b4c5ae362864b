"""Rows of the library that are made as they are asked for."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

from app.library.columns import Row

CHUNK = 500  # rows that are made at a time


class Makes(Protocol):
    """What makes the rows of runs: of those that are gone it makes none. See `Table`."""

    def made(self, run_ids: Iterable[str], /) -> list[Row]: ...


class Rows(Sequence[Row]):
    """Rows that one set of people sees, made as they are asked for. Those of runs that are gone by then are passed
    over."""

    def __init__(self, of: Makes, run_ids: Sequence[str]):
        self._of, self.run_ids = of, run_ids

    def __len__(self) -> int:
        return len(self.run_ids)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> "Rows": ...
    def __getitem__(self, at: int | slice) -> "Row | Rows":
        if isinstance(at, slice):
            return Rows(self._of, self.run_ids[at])
        run_id = self.run_ids[at]
        return next(iter(self._of.made([run_id])), gone(run_id))

    def __iter__(self) -> Iterator[Row]:
        for at in range(0, len(self.run_ids), CHUNK):
            yield from self._of.made(self.run_ids[at : at + CHUNK])


def gone(run_id: str) -> Row:
    """In the place of a row whose run is no more."""
    return Row(run_id=run_id, address=run_id, name=run_id, readable=False, problem="was removed meanwhile")
