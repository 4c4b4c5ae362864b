# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""Tables for whoever asks capture by capture and device by device: of a thousand devices each question would read the
file once more. What fits in memory is read once and looked through there; what does not is asked for as ever."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from runs.coded import numbers
from runs.matching import Where, matching
from runs.tables import Tables, int_column, state_of

MOST_ROWS = 1 << 21  # of a table that is held
CAPTURE = "capture"


class AtOnce:
    """The same rows in the same order. It is for one walk over a run: what it read it holds as long as it lives."""

    def __init__(self, tables: Tables, most_rows: int = MOST_ROWS):
        self._tables, self._most = tables, most_rows
        self.state: Hashable | None = state_of(tables)  # looked at once: of a thousand files that is no little
        self._rows: dict[str, int] = {}
        self._held: dict[str, _Held] = {}

    def rows(self, name: str) -> int:
        if name not in self._rows:
            self._rows[name] = self._tables.rows(name)
        return self._rows[name]

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        first = where[0] if where else None
        if not where or not first or columns is None or first[:2] != (CAPTURE, "==") or self.rows(name) > self._most:
            return self._tables.arrow(name, columns, where)
        if name not in self._held:
            self._held[name] = _Held(self._tables, name)
        return self._held[name].of(int(first[2]), columns, where[1:])


class _Held:
    """One table by capture; each column is read when it is asked for first."""

    def __init__(self, tables: Tables, name: str):
        self._tables, self._name = tables, name
        told = tables.arrow(name, [CAPTURE])
        known = told[CAPTURE].is_valid().to_numpy()  # a row of no capture is of none that is asked for
        capture = numbers(told, CAPTURE) if known.all() else int_column(told, CAPTURE)[known]
        ordered = len(capture) == len(known) and bool((capture[1:] >= capture[:-1]).all())
        self._order = None if ordered else np.flatnonzero(known)[np.argsort(capture, kind="stable")]
        capture = capture if ordered else np.sort(capture)
        self._first = np.flatnonzero(np.append(True, capture[1:] != capture[:-1])) if len(capture) else capture
        self._captures = capture[self._first]
        self._last = np.append(self._first[1:], len(capture))
        self._columns: dict[str, pa.ChunkedArray[Any]] = {}

    def of(self, capture: int, columns: Sequence[str], where: Where) -> pa.Table:
        """Rows of a capture for which the conditions hold."""
        needed = list(dict.fromkeys([*columns, *(column for column, _, _ in where)]))
        self._read([column for column in needed if column not in self._columns])
        at = int(np.searchsorted(self._captures, capture))
        there = at < len(self._captures) and self._captures[at] == capture
        low, high = (int(self._first[at]), int(self._last[at])) if there else (0, 0)
        some = pa.table([self._columns[column].slice(low, high - low) for column in needed], names=needed)
        found = matching(some, where)
        return found.select(list(columns))

    def _read(self, columns: list[str]) -> None:
        if not columns:
            return
        told = self._tables.arrow(self._name, columns)
        for column in columns:
            self._columns[column] = told[column] if self._order is None else told[column].take(self._order)
