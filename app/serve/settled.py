"""What a server keeps is looked through by no collection of garbage again and again.

Streamlit asks for a whole collection after each drawing, in which all visitors wait: it looks at every object there is,
and a server that has answered much holds millions, nearly all of which stay. It is told not to (`runner.postScriptGC`).
Instead what has stayed is set aside (`gc.freeze`) as soon as to look at it takes long, and is looked at again when
nobody is there: what was set aside and is no longer needed, such as a session that left, goes then.
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import importlib
import pkgutil
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field

from streamlit.runtime import get_instance

SOON_S = 10.0  # after the start: a server that is asked one thing and ended need not load all others
EVERY_S = 1.0  # between two looks, where pages were drawn
LONG_S = 0.02  # of a processor: a look that takes longer sets aside what it found
IDLE_S = 15.0  # without a drawing: then nobody waits for a look at all
LEFT_S = 135.0  # without a drawing: sessions that nobody came back to, which are kept for 120 s, can be given up
AT_LEAST_S = 600.0  # a server that is never left alone looks at all so often
ARENAS, ARENA_MAX = 2, -8  # of the GNU C library's memory for threads; how `mallopt` calls their number
DRAWN_WITH = ("app.components", "app.figures", "app.pages", "app.questions")  # with all modules below them


@dataclass
class _Drawings:
    """How many there were in this process, and when the last one was."""

    count: int = 0
    last_s: float = field(default_factory=time.monotonic)

    def one_more(self) -> None:
        self.count, self.last_s = self.count + 1, time.monotonic()


_drawings = _Drawings()


def settle() -> None:
    """To be called when a page was drawn. What the first one brought along, nearly all of it code, is set aside."""
    _first()
    _drawings.one_more()


@functools.cache
def _first() -> None:
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def settled() -> Generator[None]:
    """Within it what pages need is loaded before somebody asks for it, and what is kept is set aside; leaving does not
    wait for what is being done."""
    stop, loop = threading.Event(), _loop()
    threading.Thread(target=_keep, args=(stop, loop), name="settling", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def few_arenas() -> None:
    """Have threads share memory. Else each of those that draw pages may have an arena of its own, eight a processor at
    most, of which none gives back what is free at its end: ten megabytes each. To be called before they start."""
    with contextlib.suppress(OSError, AttributeError):  # as in `_give_back`
        ctypes.CDLL(None).mallopt(ARENA_MAX, ARENAS)


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # of a caller that serves nobody
        return None


def _keep(stop: threading.Event, loop: asyncio.AbstractEventLoop | None) -> None:
    if stop.wait(SOON_S):
        return
    bring(stop)
    look_at_all()
    seen, owed, since_s = _drawings.count, deque[float](), time.monotonic()
    while not stop.wait(EVERY_S):
        now = time.monotonic()
        if _drawings.count != seen:
            seen, owed = _drawings.count, deque((IDLE_S, LEFT_S))
            look()
        if owed and now - _drawings.last_s > owed[0]:
            if owed.popleft() == LEFT_S and loop is not None:
                give_up_sessions(loop)
            look_at_all()
            since_s = now
        elif owed and now - since_s > AT_LEAST_S:
            look_at_all()
            since_s = now


def give_up_sessions(loop: asyncio.AbstractEventLoop) -> None:
    """Have Streamlit give up the sessions whose time to come back is over. It does so by itself when the next one
    leaves, which may be never: what they hold would stay."""
    done = threading.Event()

    def give_up() -> None:
        with contextlib.suppress(Exception):  # of another Streamlit: they go when the next one leaves
            get_instance()._session_mgr._session_storage._cache.expire()  # type: ignore[attr-defined]
        done.set()

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is served any more
        loop.call_soon_threadsafe(give_up)
        done.wait(EVERY_S)


def bring(stop: threading.Event | None = None) -> None:
    """Load what pages are drawn with: the first visitor of each would wait for it."""
    for package in map(importlib.import_module, DRAWN_WITH):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if stop is not None and stop.is_set():
                return
            if not module.name.endswith(".page"):  # it draws where it is loaded
                importlib.import_module(module.name)


def look() -> None:
    """Collect what is garbage of all that is not set aside; set aside the rest where that took long."""
    began = time.thread_time()
    gc.collect()
    if time.thread_time() - began > LONG_S:
        gc.freeze()


def look_at_all() -> None:
    """Collect what is garbage of all there is, set aside the rest, and give free memory back to the system."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    _give_back()


def _give_back() -> None:
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # what is not the GNU C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
