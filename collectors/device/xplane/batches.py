"""Buffers that the compiled decoder fills, and their way into record batches without copying."""

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.xplane.arrays import coded, over
from collectors.device.xplane.planes import Numbers
from collectors.device.xplane.tables import (
    ARENA,
    BAD_AT,
    COUNTERS,
    GENERATION,
    INT,
    N_EVENTS,
    N_INLINE,
    N_STATS,
    REAL,
    SCRATCH,
    TEXT,
    Events,
    Inline,
    Marks,
    Stats,
    compact,
)
from runs.schema import SCHEMAS

EVENT_ROWS = 1 << 17
STAT_ROWS = 1 << 18
_MARK_ROWS = 1 << 14
_INLINE_ROWS = 1 << 16
_ARENA = 1 << 23
_RAW_SHOWN = 256  # bytes of a bytes value that are kept, in hexadecimal


class Batches:
    """Events and stats on their way out, across lines and planes, so that small lines make no small batches."""

    def __init__(self, capture: int, numbers: Numbers):
        self.capture = capture
        self.numbers = numbers
        self.counters = np.zeros(COUNTERS, np.int64)
        self.counters[BAD_AT] = -1
        self.scratch = np.zeros(SCRATCH, np.int64)
        self.marks = Marks(np.zeros((_MARK_ROWS, 6), np.int64))
        self.inline = _inline(_INLINE_ROWS, _ARENA)
        self._constant = over(pa.int32(), np.full(max(EVENT_ROWS, STAT_ROWS), capture, np.int32))
        self._no_real = pa.nulls(STAT_ROWS, pa.float64())
        self._new_events()
        self._new_stats()

    def _new_events(self) -> None:
        self.events = Events(*(_room(EVENT_ROWS, np.int64) for _ in range(3)))
        self.device = _room(EVENT_ROWS, np.int32)
        self.counters[N_EVENTS] = 0

    def _new_stats(self) -> None:
        n = STAT_ROWS
        self.stats = Stats(
            _room(n, np.int64), _room(n, np.int32), _room(n, np.uint8), _room(n, np.int64), _room(n, np.int32)
        )
        self.counters[N_STATS] = 0

    def inline_text(self, number: int) -> str:
        """Text with number `number` among the inline ones."""
        a, b = self.inline.start[number : number + 2].tolist()
        data = self.inline.arena[a:b].tobytes()
        if self.inline.raw[number]:
            return data[:_RAW_SHOWN].hex() + ("..." if len(data) > _RAW_SHOWN else "")
        return data.decode("utf-8", "replace")

    def op_text(self, number: int) -> str | None:
        """Text of an operation's key: a text number, or an inline one made unique by its generation."""
        if number >= 0:
            return self.numbers.texts[number].decode("utf-8", "replace")
        if number == -1:
            return None
        return self.inline_text(-2 - number - int(self.counters[GENERATION]))

    def op_text_now(self, number: int) -> str | None:
        """Text of a stat of the batch at hand."""
        if number >= 0:
            return self.numbers.texts[number].decode("utf-8", "replace")
        return None if number == -1 else self.inline_text(-2 - number)

    def flush_events(self, next_event: int) -> Rows | None:
        """The events so far as rows; `next_event` is the number that the next event will get."""
        n = int(self.counters[N_EVENTS])
        if not n:
            return None
        schema = SCHEMAS["op_events"].arrow
        device = self.device[:n]
        columns = [
            self._constant.slice(0, n),
            over(pa.int64(), np.arange(next_event - n, next_event)),
            over(pa.int32(), device, device >= 0),
            over(pa.int64(), self.events.op[:n]),
            over(pa.int64(), self.events.start[:n]),
            over(pa.int64(), self.events.dur[:n]),
        ]
        self._new_events()
        return Rows("op_events", pa.RecordBatch.from_arrays(columns, schema=schema))

    def flush_stats(self) -> Rows | None:
        """The stats so far as rows; inline texts start anew."""
        n = int(self.counters[N_STATS])
        rows = None
        if n:
            stats = self.stats
            kind = stats.kind[:n]
            stats.text[:n][kind != TEXT] = -1
            integers = kind == INT
            reals = kind == REAL
            columns = [
                self._constant.slice(0, n),
                over(pa.int64(), stats.event[:n]),
                self._texts(stats.name[:n]),
                over(pa.int64(), stats.value[:n], integers),
                over(pa.float64(), stats.value[:n], reals) if reals.any() else self._no_real.slice(0, n),
                self._texts(stats.text[:n]),
            ]
            rows = Rows("event_stats", pa.RecordBatch.from_arrays(columns, schema=SCHEMAS["event_stats"].arrow))
            self._new_stats()
        if self.counters[N_INLINE]:
            self.inline.table.fill(-1)
            self.counters[GENERATION] += self.counters[N_INLINE]
            self.counters[N_INLINE] = self.counters[ARENA] = 0
        return rows

    def more_inline(self) -> None:
        """Twice the room for inline texts, where those of one event do not fit. To be called after `flush_stats`."""
        self.inline = _inline(2 * len(self.inline.raw), 2 * len(self.inline.arena))

    def _texts(self, values: np.ndarray) -> pa.DictionaryArray:
        """Text numbers as a dictionary array that holds only the texts in use."""
        n_texts, n_inline = len(self.numbers.texts), int(self.counters[N_INLINE])
        used = np.empty(n_texts + n_inline, np.int32)
        m = compact(values, len(values), np.full(n_texts, -1, np.int32), np.full(n_inline, -1, np.int32), used)
        used_words = [
            self.numbers.texts[i].decode("utf-8", "replace") if i >= 0 else self.inline_text(-2 - i)
            for i in used[:m].tolist()
        ]
        return coded(values, used_words)


def _inline(texts: int, size: int) -> Inline:
    """Room for so many texts of so many bytes."""
    return Inline(
        np.full(2 * texts, -1, np.int32),
        np.zeros(texts + 1, np.int64),
        np.zeros(texts, np.uint8),
        np.zeros(size, np.uint8),
    )


def _room(rows: int, kind: type) -> np.ndarray:
    """Memory from Arrow's pool, which hands out again what written batches gave back; its content is arbitrary."""
    return np.zeros(rows, kind)
