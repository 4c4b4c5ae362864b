"""What a server keeps is looked at seldom, and what it no longer needs goes all the same."""

import asyncio
import gc
import inspect
import json
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.runtime import Runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from app.serve import settled
from tests.app.serving import PROJECT


class Left:
    """Something of a session that left: a circle, which only a collection finds."""

    def __init__(self):
        self.itself = self


def what_was_set_aside_and_is_no_longer_needed_goes_when_all_is_looked_at():
    left = Left()
    gone = weakref.ref(left)
    gc.collect()
    gc.freeze()
    del left
    gc.collect()
    assert gone() is not None, "nothing looks at what was set aside"
    settled.look_at_all()
    assert gone() is None


def a_look_sets_aside_what_takes_long_to_look_at_and_nothing_else():
    gc.unfreeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settled, "LONG_S", float("inf"))
        settled.look()
        assert gc.get_freeze_count() == 0
        patch.setattr(settled, "LONG_S", -1.0)
        settled.look()
        assert gc.get_freeze_count() > 50_000


def sessions_that_nobody_came_back_to_are_given_up_though_no_other_leaves():
    """Streamlit's own storage, with a clock that is put forward; what a server has is of this kind."""
    storage = MemorySessionStorage()
    stays, goes = SimpleNamespace(session=SimpleNamespace(id="stays")), SimpleNamespace(session=Left())
    goes.session.id = "goes"
    gone, hour = weakref.ref(goes.session), [0.0]
    storage._cache._timer = lambda: hour[0]
    storage.save(goes)
    hour[0] = 100.0
    storage.save(stays)
    hour[0] = 130.0
    del goes
    gc.collect()
    assert gone() is not None and [s.session.id for s in storage.list()] == ["stays"], "it is kept, and cannot be had"
    manager = SimpleNamespace(_session_storage=storage)

    async def serving():
        await asyncio.to_thread(settled.give_up_sessions, asyncio.get_running_loop())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settled, "get_instance", lambda: SimpleNamespace(_session_mgr=manager))
        asyncio.run(serving())
    gc.collect()
    assert gone() is None and [s.session.id for s in storage.list()] == ["stays"]


LOOKS: tuple[Callable[[], None], ...] = (
    what_was_set_aside_and_is_no_longer_needed_goes_when_all_is_looked_at,
    a_look_sets_aside_what_takes_long_to_look_at_and_nothing_else,
    sessions_that_nobody_came_back_to_are_given_up_though_no_other_leaves,
)


def tell() -> None:
    """Print what fails in each look, by its name."""
    told = dict.fromkeys((look.__name__ for look in LOOKS), "")
    for look in LOOKS:
        try:
            look()
        except Exception:
            told[look.__name__] = traceback.format_exc()
    print(json.dumps(told))


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """Of a process that holds what a server holds: to look at all that a session of tests has collected takes
    seconds, each time."""
    code = "from tests.app.test_settled import tell; tell()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("look", [look.__name__ for look in LOOKS])
def test_in_a_process_of_its_own(told, look):
    assert not told[look], told[look]


def test_a_server_looks_after_drawings_and_at_all_once_nobody_is_there(monkeypatch):
    looks, enough = [], threading.Event()
    monkeypatch.setattr(settled, "bring", lambda stop: looks.append("bring"))
    monkeypatch.setattr(settled, "look", lambda: looks.append("look"))
    monkeypatch.setattr(settled, "look_at_all", lambda: (looks.append("all"), looks.count("all") > 1 and enough.set()))
    monkeypatch.setattr(settled, "SOON_S", 0.0)
    monkeypatch.setattr(settled, "EVERY_S", 0.01)
    monkeypatch.setattr(settled, "IDLE_S", 0.05)
    monkeypatch.setattr(settled, "LEFT_S", float("inf"))
    with settled.settled():
        while looks != ["bring", "all"]:
            time.sleep(0.01)
        time.sleep(0.1)
        assert looks == ["bring", "all"], "nothing was drawn: there is nothing to look for"
        settled._drawings.one_more()
        assert enough.wait(30)
    assert looks[2:4] == ["look", "all"] and looks.count("all") == 2


def test_what_a_server_gives_up_sessions_by_is_there():
    """The names of Streamlit's own that it goes by: were they others, nothing would be given up, and nobody told."""
    assert "_session_mgr" in inspect.getsource(Runtime.__init__)
    assert "_session_storage" in inspect.getsource(WebsocketSessionManager.__init__)
    assert callable(MemorySessionStorage()._cache.expire) and MemorySessionStorage()._cache.ttl < settled.LEFT_S


def test_a_server_that_ends_soon_loads_nothing(monkeypatch):
    looks = []
    monkeypatch.setattr(settled, "bring", lambda stop: looks.append("bring"))
    with settled.settled():
        (thread,) = (t for t in threading.enumerate() if t.name == "settling")
    thread.join(30)
    assert looks == []


BROUGHT = """
import sys, threading
from app.serve import settled
settled.bring()
loaded = [name for name in sys.modules if name.startswith("app.questions.")]
assert any(name.endswith(".figure") for name in loaded)
assert not [name for name in loaded if name.endswith(".page")]
before, stopped = set(sys.modules), threading.Event()
stopped.set()
settled.bring(stopped)
assert set(sys.modules) == before
"""


def test_what_pages_are_drawn_with_is_loaded_before_somebody_asks():
    done = subprocess.run([sys.executable, "-c", BROUGHT], capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stderr


ARENAS_OF = """
import ctypes, os, sys, threading
from app.serve.settled import few_arenas
if sys.argv[1] == "few":
    few_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(12)
def ask():
    together.wait()
    for _ in range(2000):
        libc.free(ctypes.c_void_p(libc.malloc(50_000)))
    together.wait()
threads = [threading.Thread(target=ask) for _ in range(12)]
[t.start() for t in threads], [t.join() for t in threads]
libc.malloc_stats()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of the GNU C library")
def test_threads_share_memory_that_each_would_keep():
    def arenas(how: str) -> int:
        told = subprocess.run(
            [sys.executable, "-c", ARENAS_OF, how], cwd=PROJECT, capture_output=True, text=True, timeout=60
        )
        return told.stderr.count("Arena ")

    every, few = arenas("every"), arenas("few")
    if not every:
        pytest.skip("not the GNU C library")
    assert few <= settled.ARENAS < every
