"""Bytes from a network, in blocks worth a write to disk, and the lock of the file that they go to."""

import contextlib
import fcntl
from collections.abc import AsyncIterator
from typing import BinaryIO

WRITE_BYTES = 1 << 20  # one write to disk for many small network chunks


async def blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Small network chunks joined to blocks worth a write. Where the sender is gone, first what came until then."""
    from starlette.requests import ClientDisconnect  # late: the command line reads uploads without it

    buffer, gone = bytearray(), None
    try:
        async for chunk in chunks:
            buffer += chunk
            if len(buffer) >= WRITE_BYTES:
                yield bytes(buffer)
                buffer.clear()
    except ClientDisconnect as e:
        gone = e
    if buffer:
        yield bytes(buffer)
    if gone is not None:
        raise gone


def lock(file: BinaryIO) -> None:
    with contextlib.suppress(OSError):  # a file system without locks: age alone tells then
        fcntl.flock(file, fcntl.LOCK_EX)


def locked_now(file: BinaryIO) -> bool:
    """Whether a file is held from now on: not where another server holds it. It ends with the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
