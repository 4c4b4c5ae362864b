"""Every text of a trace once: compiled look-up by bytes, decoded when it is asked for."""

import contextlib
import json
from typing import NamedTuple

import numpy as np

from collectors.device.kineto.tokens import hashed, kernel

MOST_TEXTS = 1 << 22  # different ones that are kept apart
MOST_BYTES = 1 << 28
OTHER = -2  # the number of a text for which there is no room any more
N_TEXTS, ARENA, REFUSED, TEXT_COUNTERS = range(4)


class Store(NamedTuple):
    table: np.ndarray  # open addressing, -1 is free
    start: np.ndarray  # places in the arena, one more than texts
    arena: np.ndarray
    counters: np.ndarray


@kernel
def number(store, buf, pos, end):
    """Number of the text in [pos, end) of `buf`, a new one where it is new; -1 where tables must grow for it.

    Where no more are kept (`Texts.close`), a new one is OTHER.
    """
    mask = store.table.shape[0] - 1
    size = end - pos
    slot = hashed(buf, pos, end) & mask
    while True:
        n = np.int64(store.table[slot])
        if n < 0:
            break
        at = store.start[n]
        if store.start[n + 1] - at == size:
            same = True
            for i in range(size):
                if store.arena[at + i] != buf[pos + i]:
                    same = False
                    break
            if same:
                return n
        slot = (slot + 1) & mask
    n = store.counters[N_TEXTS]
    at = store.counters[ARENA]
    if store.counters[REFUSED] >= 0:
        store.counters[REFUSED] += 1
        return np.int64(OTHER)
    if n + 1 >= store.start.shape[0] or at + size > store.arena.shape[0]:
        return np.int64(-1)
    store.table[slot] = n
    for i in range(size):
        store.arena[at + i] = buf[pos + i]
    store.start[n + 1] = at + size
    store.counters[N_TEXTS] = n + 1
    store.counters[ARENA] = at + size
    return n


@kernel
def enter_again(store):
    """Enters all texts in an empty, larger table."""
    mask = store.table.shape[0] - 1
    for n in range(store.counters[N_TEXTS]):
        slot = hashed(store.arena, store.start[n], store.start[n + 1]) & mask
        while store.table[slot] >= 0:
            slot = (slot + 1) & mask
        store.table[slot] = n


class Texts:
    """The texts met so far, by number."""

    def __init__(self, rows: int = 1 << 14, room: int = 1 << 20) -> None:
        self.store = Store(
            np.full(4 * rows, -1, np.int32),
            np.zeros(rows + 1, np.int64),
            np.zeros(room, np.uint8),
            np.array([0, 0, -1], np.int64),
        )

    def __len__(self) -> int:
        return int(self.store.counters[N_TEXTS])

    @property
    def refused(self) -> int:
        """How often a text was met for which there was no room."""
        return max(int(self.store.counters[REFUSED]), 0)

    def grow(self, need: int = 0) -> None:
        """Doubles what is short of room, to a limit; `need`: bytes of the text at hand."""
        if len(self) >= MOST_TEXTS or int(self.store.counters[ARENA]) + need > MOST_BYTES:
            self.store.counters[REFUSED] = max(int(self.store.counters[REFUSED]), 0)
            return
        table, start, arena, counters = self.store
        if len(self) + 1 >= len(start):
            start = np.concatenate([start, np.zeros(len(start) - 1, np.int64)])
            table = np.full(2 * len(table), -1, np.int32)
        if int(counters[ARENA]) + need > len(arena):
            arena = np.concatenate([arena, np.zeros(max(len(arena), need), np.uint8)])
        renewed = table is not self.store.table
        self.store = Store(table, start, arena, counters)
        if renewed:
            enter_again(self.store)

    def of(self, text: str) -> int:
        """Number of a text of one's own."""
        return self.of_raw(text.encode())

    def of_raw(self, text: bytes) -> int:
        """Number of a text as it stands in a trace."""
        raw = np.frombuffer(text, np.uint8)
        while (found := number(self.store, raw, 0, len(raw))) == -1:
            self.grow(len(raw))
        return int(found)

    def raw(self, code: int) -> bytes:
        """A text's bytes as they stand in the trace, escapes and all."""
        a, b = self.store.start[code : code + 2].tolist()
        return self.store.arena[a:b].tobytes()

    def __getitem__(self, code: int) -> str:
        if code < 0:
            return "" if code != OTHER else "one of too many names"
        raw = self.raw(code)
        text = raw.decode("utf-8", "replace")
        if b"\\" in raw and raw[:1] not in (b"[", b"{"):
            with contextlib.suppress(ValueError):  # a path of Windows with bare backslashes stays as it is
                text = json.loads(f'"{text}"', strict=False).encode("utf-8", "replace").decode()
        return text
