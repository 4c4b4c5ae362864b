"""The whole of a data set once: listing its files, and reading them with every reader busy.

A store is listed a page of PAGE names at a time, one page after another, each after a latency. Reading goes at the rate
that the slowest part of the pipe allows (`Pipe`), whatever is fetched ahead.
"""

import math
from dataclasses import dataclass, replace

from simulators.storage.pipe import MOST_BATCHES, Pipe

PAGE = 1000  # names that object stores tell a request
LARGE_BYTES = 128e6  # of the few large files that a data set is held against


@dataclass(frozen=True)
class Epoch:
    """Seconds until all names are known, and then until all hosts together have read all files once."""

    files: int
    file_bytes: float
    list_s: float
    read_s: float

    @property
    def bytes(self) -> float:
        return self.files * self.file_bytes


def epoch(pipe: Pipe, files: int) -> Epoch:
    """A data set of so many files of the pipe's size."""
    wide = replace(pipe, prefetch=max(1, math.ceil(pipe.readers / pipe.files)))  # enough to keep all readers busy
    batches = files / (pipe.files * pipe.hosts)
    return Epoch(files, pipe.file_bytes, math.ceil(files / PAGE) * pipe.mean_latency_s, batches * wide.least_batch_s)


def in_large_files(pipe: Pipe, files: int) -> Epoch | None:
    """The same bytes in files of LARGE_BYTES; None where they are as large already, fewer than one a host, or would
    hold more batches than a pipe has."""
    large = files * pipe.file_bytes / LARGE_BYTES
    if pipe.file_bytes >= LARGE_BYTES or large < pipe.hosts or pipe.batch_bytes * MOST_BATCHES < LARGE_BYTES:
        return None
    each = replace(pipe, file_bytes=LARGE_BYTES, readers=max(1, min(pipe.readers, int(large / pipe.hosts))))
    return epoch(each, math.ceil(large))
