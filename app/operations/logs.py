"""What a server says of itself: one line for each thing that happened, as text or as an object of JSON, on stderr.

A line holds names and numbers that this module was given by name, and nothing that a request carried as its body, its
query or its credentials. It is written by a thread of its own: a log that nobody reads holds up no request, and what
does not fit is counted (`lost`).
"""

import contextlib
import io
import json
import logging
import logging.handlers
import os
import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any, TextIO

from app.operations.log_options import AS_JSON, KINDS, LOG_VARIABLE, TEXT
from errors import InputError

WAITING = 10_000  # lines that wait to be written; more are lost, and counted
STOP_S = 2.0
LONGEST = 4_000  # characters of one value
_NAME = "chipledger"
_LOGGER = logging.getLogger(_NAME)
_REQUEST: ContextVar[str] = ContextVar("request_id", default="")
# what a defect's text may repeat of a request or of the environment
_CREDENTIAL = re.compile(
    r"(?i)(?<![A-Za-z0-9])((?:proxy-)?authorization|bearer|basic"
    r"|[\w-]*(?:pass(?:word|wd)?|secret|token|access[_-]?key|api[_-]?key|private[_-]?key)[\w-]*)"
    r"(['\"]?\s*(?:[:=]|,)\s*|\s+)(?:b?['\"])?(?:(?:bearer|basic)\s+)?['\"]?[^\s'\",;&]{4,}"
)
_COOKIE = re.compile(r"(?i)((?:set-)?cookie['\"]?\s*(?:[:=]|,)\s*)[^\r\n]+")  # several stand on one line
_CODE = re.compile(r"(?i)(?<![A-Za-z0-9])((?:code|state|session)=)[^\s&'\"]{3,}")  # of a login that comes back
_USER = re.compile(r"(://)[^/\s@'\"]+@")
_QUERY = re.compile(r"\?[^\s'\"]*=[^\s'\"]*")
_OWN = re.compile(r"\b(?:cl|clp|chl|chipledger)_[A-Za-z0-9_-]{20,}")  # tokens of this server


class _Queue(logging.handlers.QueueHandler):
    """Hands lines on without waiting; `lost`: how many did not fit."""

    lost = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.lost += 1


_QUEUE = _Queue(queue.Queue(WAITING))


class _Listener(logging.handlers.QueueListener):
    """Ends within STOP_S also where nobody reads what it writes."""

    def __init__(self, waiting: "queue.Queue[Any]", writing: logging.Handler):
        super().__init__(waiting, writing)
        self._waiting = waiting

    def enqueue_sentinel(self) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=STOP_S)

    def stop(self) -> None:
        thread: threading.Thread | None = getattr(self, "_thread", None)
        if thread is not None:
            self.enqueue_sentinel()
            thread.join(STOP_S)
            self._thread = None


def lost() -> int:
    """Lines that were never written, because nobody read those before them."""
    return _QUEUE.lost


def request_id() -> str:
    """Of the request that is being answered here; empty where none is."""
    return _REQUEST.get()


@contextlib.contextmanager
def answering_request(identifier: str) -> Generator[None]:
    token = _REQUEST.set(identifier)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def tell(event: str, *, level: int = logging.INFO, **what: Any) -> None:
    """Say that something happened. `event`: its name; `what`: figures and names, their units in their names."""
    _LOGGER.log(level, event, extra={"what": {"request_id": request_id() or None, **what}})


def tell_defect(error: BaseException) -> None:
    """Say where a defect is. Of a server whose log was not set up, as Python says it."""
    if _QUEUE not in _LOGGER.handlers:
        traceback.print_exception(error)
        return
    where = "".join(traceback.format_exception(error))
    tell("defect", level=logging.ERROR, error=type(error).__name__, traceback=where)


def without_secrets(text: str) -> str:
    """A text without what looks like credentials or the values of a query, and no longer than LONGEST."""
    text = _cut(
        text, 50 * LONGEST
    )  # far from where it is cut at last: no half of a secret stands there without its name
    text = _USER.sub(r"\1[left out]@", _COOKIE.sub(r"\1[left out]", text))
    text = _CREDENTIAL.sub(lambda m: f"{m[1]}{m[2]}[left out]", text)
    return _cut(_OWN.sub("[left out]", _QUERY.sub("?[left out]", _CODE.sub(r"\1[left out]", text))), LONGEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def line_of(record: logging.LogRecord, kind: str) -> str:
    """One line: an object of JSON, or text for a person."""
    told = _told(record)
    if kind == AS_JSON:
        return json.dumps(told, allow_nan=False, default=str)  # plain letters: a pipe of any encoding takes them
    rest = " ".join(f"{k}={_plain(v)}" for k, v in told.items() if k not in _HEAD and v is not None)
    text = f"{told['time']} {told['level']} {told['event']} {rest}"
    where = told.get("traceback")
    if not where:
        return text
    shown = (line if line.isprintable() else repr(line)[1:-1] for line in where.rstrip().split("\n"))
    return "\n".join([text, *(f"    {line}" for line in shown)])  # set in: what an error says can forge no line


_HEAD = ("time", "level", "event", "traceback")


def _plain(value: Any) -> str:
    """As text, on one line: what a terminal would act on is shown as Python writes it."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


def _told(record: logging.LogRecord) -> dict[str, Any]:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    head = {"time": f"{seconds}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
    what = getattr(record, "what", None)
    if what is None:  # a library's
        return {**head, "event": "library", "logger": record.name, "text": without_secrets(record.getMessage())}
    return {**head, "event": record.getMessage(), **{k: _kept(v) for k, v in what.items()}}


def _kept(value: Any) -> Any:
    """A float that JSON has no word for is not known."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return without_secrets(value) if isinstance(value, str) else value


class _Lines(io.TextIOBase):
    """Stands in for stderr where the log is JSON: whatever prints a line there, each line is an object."""

    encoding = "utf-8"

    def __init__(self, real: TextIO):
        self._real, self._open, self._lock = real, "", threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            *whole, self._open = (self._open + text).split("\n")
            self._open = self._open[-LONGEST:]
        for said in whole:
            if said.strip():
                _LOGGER.log(logging.INFO, "output", extra={"what": {"text": said}})
        return len(text)

    def flush(self) -> None:
        self._real.flush()

    def fileno(self) -> int:
        return self._real.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


class _Writing(logging.Handler):
    """Writes each line where it belongs; a stream that is gone is no reason to end."""

    def __init__(self, stream: TextIO, kind: str):
        super().__init__()
        self._stream, self._kind = stream, kind

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line_of(record, self._kind) + "\n")
            self._stream.flush()


def kind_asked() -> str:
    """How the log is written, by the environment. Raises InputError for a way that there is not."""
    asked = os.environ.get(LOG_VARIABLE) or TEXT
    if asked not in KINDS:
        expected = f"one of {', '.join(KINDS)}"
        raise InputError(f"{asked[:40]!r} is no way to write a log", where=f"${LOG_VARIABLE}", expected=expected)
    return asked


@contextlib.contextmanager
def logging_to(stream: TextIO, kind: str) -> Generator[None]:
    """Within it, `tell` writes to `stream`; as JSON, whatever else is printed to stderr does too. Leaving writes what
    waits."""
    _QUEUE.queue = waiting = queue.Queue(WAITING)  # its own: what an earlier one waits to write is not mixed in
    listener = _Listener(waiting, _Writing(stream, kind))
    before, level = sys.stderr, _LOGGER.level
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.propagate = False
    _LOGGER.addHandler(_QUEUE)
    listener.start()
    if kind == AS_JSON:
        sys.stderr = _Lines(stream)
    try:
        yield
    finally:
        sys.stderr = before
        _LOGGER.removeHandler(_QUEUE)
        _LOGGER.setLevel(level)
        listener.stop()
