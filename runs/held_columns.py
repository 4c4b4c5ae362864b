# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""Columns of tables that were read, held for who asks for them next: the questions about a run ask for the same ones.

A column is known by its file and what tells that the file was touched, so that one that was written anew is another.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pyarrow as pa

MOST_BYTES = 96 << 20
MOST_ROWS = 1 << 21  # of a table that is held: what takes longer to read than that is asked for by few
Columns = dict[str, "pa.ChunkedArray[Any]"]


class HeldColumns:
    """The columns of the files that were asked for last, `most_bytes` of them."""

    def __init__(self, most_bytes: int = MOST_BYTES):
        self._most = most_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, Columns] = OrderedDict()
        self._bytes: dict[Hashable, int] = {}

    def of(self, file: Hashable, names: Sequence[str], read: Callable[[list[str]], pa.Table]) -> pa.Table:
        """Columns of a file, by name. `read`: reads those of them that are not held."""
        with self._lock:
            there = dict(self._held.get(file, {}))
        lacking = [name for name in names if name not in there]
        if lacking:
            told = read(lacking)
            there |= zip(told.column_names, told.columns, strict=True)
        self._hold(file, there, bool(lacking))
        return pa.table([there[name] for name in names], names=list(names))

    def _hold(self, file: Hashable, columns: Columns, more: bool) -> None:
        """Enter what was read; let go of the files not asked for longest."""
        with self._lock:
            if more:
                self._held[file] = self._held.get(file, {}) | columns
                self._bytes[file] = sum(column.nbytes for column in self._held[file].values())
            if file in self._held:
                self._held.move_to_end(file)
            while sum(self._bytes.values()) > self._most:
                gone, _ = self._held.popitem(last=False)
                del self._bytes[gone]
