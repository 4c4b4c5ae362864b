"""The arrays that the compiled reader fills, and how they grow."""

import numpy as np

from collectors.device.memory_snapshot.keeping import MOST_ARENA, enter_again
from collectors.device.memory_snapshot.shapes import (
    ARENA,
    BLOCK_ROWS,
    COUNTERS,
    DICTS,
    EVENTS,
    FRAME_ROWS,
    KEYS,
    LISTS,
    MARKED,
    MEMOED,
    REFS,
    ROOT_DICT,
    ROOT_SEGMENTS,
    ROOT_TRACES,
    SEGMENT_ROWS,
    STACK_ROWS,
    STACKED,
    TEXTS,
    WORDS,
    Kept,
    Machine,
    Rows,
)

_ROOM = 1 << 13  # rows of each table at first
_SPARE = 1 << 12  # rows that are free after it grew, at least
_STEEP = 1 << 22  # rows from which on tables grow by a quarter, no longer by half


class State:
    """What was read so far. `field` is the kernel's own place to lay a dictionary's values."""

    def __init__(self) -> None:
        self.counters = np.zeros(COUNTERS, np.int64)
        self.counters[[ROOT_DICT, ROOT_SEGMENTS, ROOT_TRACES]] = -1
        self.field = np.zeros(KEYS, np.int64)
        self.machine = Machine(*map(_of, (8, 8, 8, 1, 4, 1, 4, 4, 4)))
        events = _of(1), _of(8), _of(8), _of(8), _of(4), _of(4)
        self.rows = Rows(*events, _of(8, 4), _of(4), _of(4), _of(8, 5), _of(4))
        table, start = np.full(4 * _ROOM, -1, np.int32), np.zeros(_ROOM + 1, np.int64)
        refs = np.zeros(1 << 18, np.int32)
        self.kept = Kept(
            table, start, np.zeros(1 << 20, np.uint8), table.copy(), _of(8, 3), table.copy(), start.copy(), refs
        )
        self._know(WORDS)

    def _know(self, words: tuple[str, ...]) -> None:
        """Enters the words that the reader knows as the first texts."""
        arena, start = self.kept.arena, self.kept.text_start
        for n, word in enumerate(words):
            raw = np.frombuffer(word.encode(), np.uint8)
            arena[start[n] : start[n] + len(raw)] = raw
            start[n + 1] = start[n] + len(raw)
        self.counters[TEXTS], self.counters[ARENA] = len(words), start[len(words)]
        enter_again(self.kept, self.counters, 0)

    def grow(self, text_bytes: int) -> None:
        """Makes room wherever there is little; `text_bytes`: of the text at hand, at most."""
        m, rows, kept, c = self.machine, self.rows, self.kept, self.counters
        for count, arrays in (
            (STACKED, (m.stack,)),
            (MARKED, (m.marks,)),
            (MEMOED, (m.memo,)),
            (DICTS, (m.dict_kind, m.dict_row)),
            (LISTS, (m.list_what, m.list_value, m.list_length, m.list_place)),
            (EVENTS, rows[:6]),
            (BLOCK_ROWS, rows[6:9]),
            (SEGMENT_ROWS, rows[9:]),
        ):
            for array in arrays:
                _lengthen(array, int(c[count]) + _SPARE)
        _lengthen(kept.refs, int(c[REFS] + c[STACKED]) + (1 << 17))
        _lengthen(kept.arena, min(int(c[ARENA]) + text_bytes, MOST_ARENA))  # what has no room there is refused
        self._rehash(TEXTS, 0, kept.text_start, "text_table")
        self._rehash(FRAME_ROWS, 1, kept.frame, "frame_table")
        self._rehash(STACK_ROWS, 2, kept.stack_start, "stack_table")

    def forget(self) -> None:
        """Lets go of what only the pickle's own reading needed."""
        empty = np.empty(0, np.int64)
        self.machine = Machine(*(empty for _ in self.machine))

    def _rehash(self, count: int, which: int, rows: np.ndarray, table: str) -> None:
        """Lengthens rows that are looked up by hash, with a larger table."""
        if _lengthen(rows, int(self.counters[count]) + _SPARE):
            room = 1 << int(2 * len(rows)).bit_length()
            self.kept = self.kept._replace(**{table: np.full(room, -1, np.int32)})
            enter_again(self.kept, self.counters, which)


def _of(size: int, *columns: int) -> np.ndarray:
    """Rows of whole numbers of so many bytes."""
    return np.zeros((_ROOM, *columns), f"i{size}")


def _lengthen(array: np.ndarray, need: int) -> bool:
    """Makes an array longer where it lies, if it has fewer rows than needed: no second copy is held meanwhile."""
    if len(array) >= need:
        return False
    more = len(array) // 2 if len(array) < _STEEP else len(array) // 4
    array.resize((max(need, len(array) + more), *array.shape[1:]), refcheck=False)
    return True
