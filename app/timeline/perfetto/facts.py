"""What the trace says of operations, as annotations that all events of one share: their texts stand in the file once,
the bytes of its annotations are made once and copied into each event."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyzers.timeline.lanes import NONE
from analyzers.timeline.pyramid import Ints
from app.timeline.events import NUMBERS, TOLD
from app.timeline.perfetto import form
from app.timeline.perfetto.wire import NOT_TOLD
from runs.tables import Tables, int_column

OF_ROLE = {"step": "step", "request": "request", "pass": "pass"}
NAMES = ("start_ps", "dur_ps", *OF_ROLE.values(), "number", *TOLD, *NUMBERS)
IID = {name: n for n, name in enumerate(NAMES, 1)}
Key = tuple[int, int, int]  # capture, operation, device
WHOLE = 1 << 53  # up to which a number with a fraction holds every whole one


@dataclass
class Texts:
    """Texts by number, from 1; those that were not yet written."""

    numbers: dict[str, int] = field(default_factory=dict)
    fresh: list[tuple[int, str]] = field(default_factory=list)

    def number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.numbers) + 1
            self.fresh.append((found, text))
        return found

    def taken(self) -> list[tuple[int, str]]:
        fresh, self.fresh = self.fresh, []
        return fresh


class Facts:
    """Of the operations of some captures. A device's own are asked for first; where only one has the number, it is
    that."""

    def __init__(self, tables: Tables, captures: Ints):
        self.texts = Texts()
        where = [("capture", "in", [int(c) for c in captures])]
        columns = ["capture", "op_id", "device", *TOLD, *NUMBERS]
        self._rows = tables.arrow("ops", columns, where if len(captures) else [("capture", "==", NONE)])
        self._at = _numbered(self._rows)
        self._made: dict[Key, bytes] = {}

    def of(self, capture: Ints, op: Ints, device: int) -> tuple[Ints, NDArray[np.uint8], Ints]:
        """(which stretch each event has, NOT_TOLD for none; the stretches' bytes; where each begins, and one more)."""
        which = np.full(len(op), NOT_TOLD, np.int64)
        parts: list[bytes] = []
        for one in np.unique(capture):
            told = np.flatnonzero((capture == one) & (op != NONE))
            numbers, at = np.unique(op[told], return_inverse=True)
            which[told] = at + len(parts)
            parts += [self._bytes((int(one), int(number), device)) for number in numbers]
        first = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
        return which, np.frombuffer(b"".join(parts), np.uint8), first

    def _bytes(self, key: Key) -> bytes:
        if key not in self._made:
            row = self._at.get(key, self._at.get((key[0], key[1], ANY)))
            self._made[key] = b"" if row is None else self._noted(row)
        return self._made[key]

    def _noted(self, row: int) -> bytes:
        return form.Event(debug_annotations=list(self._notes(row))).SerializeToString()

    def _notes(self, row: int) -> Iterator[dict[str, Any]]:
        for name in TOLD:
            if text := self._rows[name][row].as_py():
                yield {"name_iid": IID[name], "string_value_iid": self.texts.number(text)}
        for name in NUMBERS:
            value = self._rows[name][row].as_py()
            if value is not None and math.isfinite(value):
                exact = value == int(value) and abs(value) <= WHOLE
                yield {"name_iid": IID[name], **({"int_value": int(value)} if exact else {"double_value": value})}


ANY = -2  # no device's number: the only operation with its number in its capture


def _numbered(rows: pa.Table) -> dict[Key, int]:
    """Where each operation stands, by its device's number, and by ANY where it is the only one of its number."""
    capture, op, device = (int_column(rows, name, NONE).tolist() for name in ("capture", "op_id", "device"))
    found: dict[Key, int] = {}
    alone: dict[Key, int | None] = {}
    for row, key in enumerate(zip(capture, op, device, strict=True)):
        if key in found:
            continue
        found[key] = row
        single = (key[0], key[1], ANY)
        alone[single] = None if single in alone else row
    return found | {key: row for key, row in alone.items() if row is not None}
