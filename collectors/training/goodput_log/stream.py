"""A file of log entries in batches: blocks of whole entries by pyarrow's JSON reader on several threads, anything that
does not fit there entry by entry. Both give the same rows.

What stands between two entries is taken from the file's beginning. A block ends where that occurs last, so it may end
in the middle of something: then it is no JSON, and is read entry by entry, as far as its last object goes.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import BinaryIO, Generic, TypeVar

from collectors.base import Source
from collectors.reading import json_stream
from collectors.reading.textlog import Tally
from collectors.training.goodput_log.batch import Batch, from_entries, from_json
from collectors.training.goodput_log.places import Unread

T = TypeVar("T")  # what becomes of a batch

BLOCK = 3 << 20  # bytes: fewer blocks cost less, larger ones find no room in a processor's cache
ENTRIES = 20_000  # in a batch of those read one by one
THREADS = min(8, os.cpu_count() or 1)
_BETWEEN = b" \t\r\n,[]"
_SKIP = re.compile(rb"[ \t\r\n,\[\]]*")
_GAP = re.compile(rb"\s*+(?:,\s*+)?(?=\{)")
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]{1,100}"')


def batches(source: Source, tally: Tally, use: Callable[[Batch], T]) -> Iterator[T]:
    """What `use` makes of each batch of the file's objects, in order; it is called on other threads.

    Raises InputError where the file is more broken than whole.
    """
    walk = json_stream.Walk(source.name, tally)
    separator = _separator(source.head)
    with source.as_far() as f:
        if separator is None:
            yield from map(use, one_by_one(walk.objects(f.read)))
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                yield from _Blocks(f, separator, walk, pool, use).results()


def one_by_one(objects: Iterator[tuple[int, dict]]) -> Iterator[Batch]:
    """Batches of (offset, object) pairs."""
    while entries := list(islice(objects, ENTRIES)):
        yield from_entries(entries)


def _separator(head: bytes) -> bytes | None:
    """The bytes from an entry's last brace to the next entry's first, or to its first key where that is one line.

    No string of valid JSON holds them: it would need a raw line break, or a quote without its backslash. None where
    the beginning of the file tells of no entry.
    """
    pieces = iter((head, b""))
    found = next(json_stream.Walk("", Tally()).objects(lambda _: next(pieces)), None)
    if found is None:
        return None
    begin = found[0]
    first = json_stream.first(head[begin:])
    if first is None:
        return None
    end = begin + first[1]
    gap, key = _GAP.match(head, end), _FIRST_KEY.match(head, begin)
    if gap is None or key is None:
        return b"}\n{" if not head[end:].strip() else None
    return b"}" + gap[0] + (b"{" if b"\n" in gap[0] else key[0])


class _Blocks(Generic[T]):
    """Cuts the file into blocks and keeps some of them being read ahead."""

    def __init__(
        self, f: BinaryIO, separator: bytes, walk: json_stream.Walk, pool: ThreadPoolExecutor, use: Callable[[Batch], T]
    ):
        self.f, self.separator, self.walk, self.pool, self.use = f, separator, walk, pool, use
        self.rest, self.at, self.ended = b"", 0, False  # bytes not yet cut off, where they begin, whether all were read
        self.ahead: deque[tuple[int, memoryview, Future]] = deque()  # (where it begins, block, its batch being made)

    def results(self) -> Iterator[T]:
        while True:
            while len(self.ahead) < THREADS + 2 and (data := self._cut()):
                self.ahead.append(self._begun(self.at - len(data), data))
            if not self.ahead:
                return
            begin, data, reading = self.ahead.popleft()
            read = reading.result()
            if read is None:
                yield from self._slowly(begin, data)
            else:
                self.walk.good += read[0]
                yield read[1]

    def _cut(self) -> memoryview:
        """The next block; nothing at the end."""
        size, end = BLOCK, 0
        while not end and not self.ended and len(self.rest) < json_stream.OBJECT_LIMIT:
            while len(self.rest) < size and not self.ended:
                self.rest += self._read(BLOCK)
            end = 0 if self.ended else self.rest.rfind(self.separator) + 1
            size *= 2  # an entry may be longer than a block
        data = memoryview(self.rest)[: end or len(self.rest)]
        self.rest = self.rest[len(data) :]
        self.at += len(data)
        return data

    def _read(self, size: int) -> bytes:
        data = self.f.read(size)
        self.ended |= not data
        return data

    def _begun(self, begin: int, data: memoryview) -> tuple[int, memoryview, Future]:
        return begin, data, self.pool.submit(_Block(begin, data, self.separator).read, self.use)

    def _slowly(self, begin: int, data: memoryview) -> Iterator[T]:
        """The objects that begin in a block, one by one. The last, and what is damaged, may reach into those behind."""
        known = deque([data, *(block for _, block, _ in self.ahead), self.rest])

        def read(size: int) -> bytes:
            while known and not known[0]:
                known.popleft()
            if not known:
                known.append(self._read(size))
                self.rest += known[0]
            piece, known[0] = known[0][:size], known[0][size:]
            return bytes(piece)

        yield from map(self.use, one_by_one(self.walk.objects(read, begin, begin + len(data))))
        while self.ahead and self.ahead[0][0] < self.walk.at:
            start, block, _ = self.ahead.popleft()
            if left := block[self.walk.at - start :]:
                self.ahead.appendleft(self._begun(self.walk.at, left))
        if self.walk.at > self.at:
            self.rest, self.at = self.rest[self.walk.at - self.at :], self.walk.at


class _Block:
    """A piece of the file that may hold whole entries and nothing else."""

    def __init__(self, begin: int, data: memoryview, separator: bytes):
        bom = len(json_stream.BOM) if begin == 0 and data[:3] == json_stream.BOM else 0
        skipped = _SKIP.match(data, bom)
        assert skipped is not None, "it may be of no length"
        first = skipped.end()
        self.begin = begin + first
        self.separator = separator.replace(b",", b" ")  # of the same length: places stay
        if separator != self.separator:
            data = memoryview(bytes(data).replace(separator, self.separator))
        end = len(data)
        while end > first and data[end - 1] in _BETWEEN:
            end -= 1
        self.body = data[first:end]

    def read(self, use: Callable[[Batch], T]) -> tuple[int, T] | None:
        """(how many entries, what `use` makes of them); None where they must be read one by one."""
        if not 0 < len(self.body) <= json_stream.OBJECT_LIMIT:
            return None
        try:
            batch = from_json(self.body, self.begin, self.separator)
            return None if batch is None else (batch.count, use(batch))
        except Unread:
            return None
