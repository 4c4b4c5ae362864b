"""Who asks just now: set by the guard for a request, by the dashboard for a script, and else the server itself."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from app.identity.base import SERVER, Identity

_WHO: ContextVar[Identity] = ContextVar("who", default=SERVER)


def who() -> Identity:
    """Whoever asks in this thread or task; `SERVER` where nobody does, such as on the command line."""
    return _WHO.get()


@contextlib.contextmanager
def acting_as(identity: Identity) -> Iterator[None]:
    """Within it, `identity` asks. Threads that are started meanwhile do not inherit it, tasks do."""
    token = _WHO.set(identity)
    try:
        yield
    finally:
        _WHO.reset(token)
