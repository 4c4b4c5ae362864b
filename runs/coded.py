# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""Columns as arrays of numbers, without a frame of pandas: that takes longer to make of a small table, or of one with
much text, than most questions do with it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Coded:
    """A text column: the number of each row's text, and the texts by number. What is not known is "", and a text may
    have several numbers."""

    code: np.ndarray
    texts: tuple[str, ...]

    def among(self, words: Collection[str]) -> np.ndarray:
        """Which rows hold one of these words."""
        return np.array([text in words for text in self.texts], dtype=bool)[self.code]

    def of(self, rows: np.ndarray) -> "Coded":
        """Some of the rows, by a mask or by their numbers."""
        return Coded(self.code[rows], self.texts)

    def as_they_come(self) -> "Coded":
        """The same with the texts that there are, each once, in the order in which they come first."""
        first = np.full(len(self.texts), -1, np.int64)
        first[self.code[::-1]] = np.arange(len(self.code))[::-1]  # of what is written twice the last stays
        order = [n for n in np.argsort(first, kind="stable").tolist() if first[n] >= 0]
        number = {text: n for n, text in enumerate(dict.fromkeys(self.texts[n] for n in order))}
        place = np.array([number.get(text, -1) for text in self.texts], dtype=np.int64)
        return Coded(place[self.code], tuple(number))


def coded(table: pa.Table, name: str) -> Coded:
    column: Any = _whole(table[name])
    texts = [text or "" for text in column.dictionary.to_pylist()]
    code = column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(code, (*texts, ""))


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column of numbers, none of which is missing, as it lies in memory: not to be changed."""
    return _whole(table[name]).to_numpy(zero_copy_only=False)


def flags(table: pa.Table, name: str) -> np.ndarray:
    """What is true or false of each row; what is not known is false."""
    known = table[name].fill_null(False)  # pyright: ignore[reportArgumentType]  # the stubs want a scalar
    return _whole(known).to_numpy(zero_copy_only=False)


def told(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows in which all these columns hold something."""
    for name in names:
        if table[name].null_count:
            table = table.filter(pc.is_valid(table[name]))
    return table


def _whole(column: "pa.ChunkedArray[Any]") -> Any:
    """The column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.array([], type=column.type)
    return pa.concat_arrays(column.unify_dictionaries().chunks)
