"""How far a timeline is that is being made: told to whoever listens, who may end it by raising an error.

What was begun lies below the store's `partial/` and goes with the error, or with the process (`runs/scratch.py`).
"""

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar

READING, PLACING, SUMMING = "reading", "placing", "summing"
STAGES = (READING, PLACING, SUMMING)
Listener = Callable[[str, int, int], None]
"""The stage, how many events it is through with, and of how many."""
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_MADE: ContextVar[Hashable] = ContextVar("made", default=None)
_afar: dict[Hashable, Listener] = {}


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Within it the listener hears of every timeline that this thread makes."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextlib.contextmanager
def making(what: Hashable) -> Iterator[None]:
    """Within it this thread makes the timeline of these tables (`Tables.state`), for whoever asked."""
    token = _MADE.set(what)
    try:
        yield
    finally:
        _MADE.reset(token)


@contextlib.contextmanager
def heard_from_afar(what: Hashable, listener: Listener) -> Iterator[None]:
    """Within it the listener hears of the timeline of these tables, whichever thread makes it."""
    _afar[what] = listener
    try:
        yield
    finally:
        _afar.pop(what, None)


def tell(stage: str, done: int, whole: int) -> None:
    near, afar = _LISTENER.get(), _afar.get(_MADE.get()) if _afar else None
    for listener in (near, None if afar == near else afar):
        if listener is not None:
            listener(stage, done, whole)
