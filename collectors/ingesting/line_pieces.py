"""Lines that a container's runtime cut into pieces, each of which is an entry of its own.

Docker ends the last piece of a line with a line feed, and what comes without one goes on. Containerd and CRI-O say it
beside the text (`P`: part of a line, `F`: the rest of it), where those who collect their logs keep that (`logtag`, `_p`
of Fluent Bit); the text itself has no line feed, and one that says nothing is a line.
"""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MARKS = ("_p", "logtag")
_PART = {"P": True, "F": False}
_LINE, _OPEN, _CUT = 0, 1, 2  # of an entry: a line's end; without a line feed; said to be a part


@dataclass
class Pieces:
    """Which entries are pieces, and of what: the lines of each stream of each place are cut apart from all others'."""

    strand: array = field(default_factory=lambda: array("i"))
    kind: array = field(default_factory=lambda: array("b"))
    _strands: dict[tuple[int, str], int] = field(default_factory=dict)
    _feeds: set[int] = field(default_factory=set)  # strands of which a line feed was seen

    def add(self, entry: dict[str, Any], key: str, text: str, place: int) -> None:
        """Note the next entry, whose text stands under `key`."""
        stream, part = entry.get("stream"), next((_PART.get(str(entry[m])) for m in _MARKS if m in entry), None)
        if not isinstance(stream, str) or (part is None and key != "log"):
            self.strand.append(-1)
            self.kind.append(_LINE)
            return
        strand = self._strands.setdefault((place, stream), len(self._strands))
        ends = text.endswith("\n")
        if ends:
            self._feeds.add(strand)
        self.strand.append(strand)
        self.kind.append(_LINE if ends or part is False else _CUT if part else _OPEN)

    def goes_on(self) -> np.ndarray:
        """Of each entry whether its line goes on in the next of its strand."""
        kind, strand = np.array(self.kind, dtype="i1"), np.array(self.strand, dtype="i4")
        return (kind == _CUT) | ((kind == _OPEN) & np.isin(strand, list(self._feeds)))

    def left(self, order: np.ndarray) -> int:
        """How many strands end, in this order, in the middle of a line."""
        strand, backwards = np.array(self.strand, dtype="i4"), order[::-1]
        _, last = np.unique(strand[backwards], return_index=True)
        return int(self.goes_on()[backwards[last]].sum())
