"""Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`): who held device memory, by line, over time.

They are pickles. Nothing in one is ever executed: opcodes of plain values alone are read, straight into flat arrays.
Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

from collections.abc import Iterator

from collectors.base import Item, Source

NAME = "memory_snapshot"
TITLE = "PyTorch memory snapshot"
HELP = (
    "Memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot, `.pickle`, `.pickle.gz`): every allocation with "
    "its stack, segments, failed allocations."
)


def sniff(source: Source) -> float:
    """0.97 for a pickle that begins with segments of the caching allocator, or with a snapshot's keys."""
    head = source.head
    if head[:1] != b"\x80" or head[1:2] not in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return 0.0
    segments = b"total_size" in head and (b"blocks" in head or b"segment_type" in head)
    empty = b"segments" in head[:64] and b"device_traces" in head
    return 0.97 if segments or empty else 0.0


def read(source: Source) -> Iterator[Item]:
    """Allocations, stacks, segments and samples. Raises InputError for what is no whole snapshot."""
    from collectors.device.memory_snapshot.reader import Reader

    yield from Reader(source).items()
