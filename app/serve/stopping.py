"""How a server is stopped: from the first signal on nothing new is taken, and what is on its way has time to end."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from errors import QuestionError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping(QuestionError):
    """The server is being stopped, and takes nothing new."""


@contextlib.contextmanager
def heard(stop: Callable[[], None], grace_s: float) -> Iterator[None]:
    """Within it `stop` is called at a signal to end, before the web server does what it does then: it waits for
    requests that are answered or sent, for `grace_s` at most, and breaks off those that are not done. By itself it
    would wait for the last byte of an upload however long that takes, and Streamlit has no setting for it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for handler in before.values():
        config: Any = getattr(getattr(handler, "__self__", None), "config", None)
        if hasattr(config, "timeout_graceful_shutdown"):
            config.timeout_graceful_shutdown = grace_s

    def end(number: int, frame: FrameType | None) -> Any:
        stop()
        handler = before[signal.Signals(number)]
        return handler(number, frame) if callable(handler) else None

    for number in SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
