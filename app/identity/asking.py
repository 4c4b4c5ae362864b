"""Who asks just now: set by the guard for a request, told by its session for a page, and else the server itself."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from app.identity.base import SERVER, Identity

WHO_CHARACTERS = 100  # of a name that is kept beside what somebody said
_WHO: ContextVar[Identity | None] = ContextVar("who", default=None)
_pages: list[Callable[[], Identity | None]] = []


def who() -> Identity:
    """Whoever asks in this thread or task; `SERVER` where nobody does, such as on the command line."""
    said = _WHO.get()
    return said if said is not None else page_asks() or SERVER


def page_asks() -> Identity | None:
    """Whoever the page of this thread is drawn for; None where it draws none."""
    return next((found for ask in _pages if (found := ask()) is not None), None)


def told_by_pages(ask: Callable[[], Identity | None]) -> None:
    """From now on `ask` says for whom the page of a thread is drawn: parts of a page, and what its buttons call, run
    without the script around them, where `acting_as` would stand."""
    _pages[:] = [ask]


@contextlib.contextmanager
def acting_as(identity: Identity) -> Iterator[None]:
    """Within it, `identity` asks. Threads that are started meanwhile do not inherit it, tasks do."""
    token = _WHO.set(identity)
    try:
        yield
    finally:
        _WHO.reset(token)


def named(said: str) -> str:
    """Under which name something is kept that somebody says of a run: of a known person their own, whatever they
    call themselves; else as they call themselves."""
    asks = who()
    return said if asks.how in ("open", "server") else asks.name[:WHO_CHARACTERS]
