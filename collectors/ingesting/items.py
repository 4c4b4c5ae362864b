"""What one file holds, as its collector reads it; a damaged or vanished file becomes an InputError that names it."""

import contextlib
from collections.abc import Iterator
from typing import Any

from collectors.base import Item
from collectors.ingesting.plausible import plausible
from collectors.ingesting.unpack import SafeSource
from collectors.reading.as_far import BROKEN
from errors import InputError


def items_of(source: SafeSource, collector: Any) -> Iterator[Item]:
    """What a collector reads: a module, or what has a `read` like one."""
    with reading(source):
        yield from plausible(collector.read(source))


@contextlib.contextmanager
def reading(source: SafeSource) -> Iterator[None]:
    """Within it, whatever a broken file raises is an InputError that says how far it was read."""
    try:
        yield
    except BROKEN as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e) or type(e).__name__
        raise _unreadable(source, reason) from e
    except InputError as e:
        if not source.broken_off:
            raise
        raise _unreadable(source, source.broken_off) from e
    if source.broken_off:  # what came before that was handed on
        raise _unreadable(source, source.broken_off)


def _unreadable(source: SafeSource, reason: str) -> InputError:
    at = source.bytes_read()
    return InputError(
        f"cannot be read beyond byte {at:,} ({reason})" if at else f"cannot be read ({reason})",
        where=source.name,
        advice="Is it complete?",
    )
