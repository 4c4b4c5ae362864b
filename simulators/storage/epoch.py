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
    """Seconds until all names are known, and then until all hosts together have read all `bytes` once. The last of the
    `files` may hold less than `file_bytes`."""

    files: int
    file_bytes: float
    bytes: float
    list_s: float
    read_s: float


def epoch(pipe: Pipe, files: float) -> Epoch:
    """A data set of so many files of the pipe's size. A host has no more requests in flight than files to read, and no
    data set is read sooner than one file."""
    each = replace(pipe, readers=max(1, min(pipe.readers, math.ceil(files / pipe.hosts))))
    wide = replace(each, prefetch=max(1, math.ceil(each.readers / pipe.files)))  # enough to keep all readers busy
    batches = files / (pipe.files * pipe.hosts)
    return Epoch(
        files=math.ceil(files),
        file_bytes=pipe.file_bytes,
        bytes=files * pipe.file_bytes,
        list_s=math.ceil(files / PAGE) * pipe.mean_latency_s,
        read_s=max(batches * wide.least_batch_s, pipe.mean_latency_s + pipe.transfer_s),
    )


def in_large_files(pipe: Pipe, files: int) -> Epoch | None:
    """The same bytes in files of LARGE_BYTES; None where they are as large already, fewer than one a host, or would
    hold more batches than a pipe has."""
    large = files * pipe.file_bytes / LARGE_BYTES
    if pipe.file_bytes >= LARGE_BYTES or large < pipe.hosts or pipe.batch_bytes * MOST_BATCHES < LARGE_BYTES:
        return None
    return epoch(replace(pipe, file_bytes=LARGE_BYTES), large)
