"""How far a timeline is that is being made: told to whoever listens, who may end it by raising an error.

What was begun lies below the store's `partial/` and goes with the error, or with the process (`runs/scratch.py`).
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

READING, PLACING, SUMMING = "reading", "placing", "summing"
STAGES = (READING, PLACING, SUMMING)
Listener = Callable[[str, int, int], None]
"""The stage, how many events it is through with, and of how many."""
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Within it the listener hears of every timeline that this thread makes."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(stage: str, done: int, whole: int) -> None:
    listener = _LISTENER.get()
    if listener is not None:
        listener(stage, done, whole)
