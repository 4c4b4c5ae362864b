"""What was read on its way to the store: written by threads of its own, while the next is read."""

from collections import defaultdict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from collectors.base import Blob, Rows
from errors import InputError
from runs.writer import RunWriter

QUEUED = 8  # batches read ahead of the Parquet writer: keeps both busy, and memory small


class StoreFault(InputError):
    """The run could not be written."""


class Lane:
    """Writes batches, those of each table in order on a thread of its own, never more than QUEUED behind the reader."""

    def __init__(self, writer: RunWriter):
        self._writer = writer
        self._of_table = defaultdict[str, ThreadPoolExecutor](lambda: ThreadPoolExecutor(max_workers=1))
        self._pending: deque[Future] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._of_table.values():
            pool.shutdown(wait=True, cancel_futures=True)

    def put(self, item: Rows | Blob) -> None:
        pool = self._of_table[item.table if isinstance(item, Rows) else ""]
        self._pending.append(pool.submit(self._write, item))
        while len(self._pending) > QUEUED:
            self._pending.popleft().result()

    def finish(self) -> None:
        while self._pending:
            self._pending.popleft().result()

    def _write(self, item: Rows | Blob) -> None:
        try:
            if isinstance(item, Rows):
                self._writer.rows(item.table, item.batch)
            else:
                self._writer.blob(item.name, item.data)
        except OSError as e:
            raise StoreFault(f"the run cannot be written ({e.strerror or e})", advice="Is the disk full?") from e
