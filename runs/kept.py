"""Answers that are kept: computed once for all who ask, bounded by the bytes in them."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa

from errors import QuestionError
from errors.shapes import is_object

FEW_CELLS = 20_000  # of a frame: to look at each of its columns takes longer than its bytes matter


class Answers:
    """Least recently used answers, bounded by the bytes of the tables in them.

    Two sessions that ask the same at once compute it once. That a question has no answer is kept like an answer; any
    other error is known until it is asked again, so that who only looks does not ask for ever.
    """

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._bytes: dict[Hashable, int] = {}  # of the answers there are: measured once, not at every new answer

    def known(self, key: Hashable) -> Any:
        """The answer if it is there, else None. Raises the error where there is none to be had."""
        with self._lock:
            future = self._kept.get(key)
        return _given(future) if future is not None and future.done() else None

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        with self._lock:
            future = self._kept.get(key)
            mine = future is None or _may_be_gone(future)
            if future is None or mine:
                future = self._kept[key] = Future()
            self._kept.move_to_end(key)
        if not mine:
            return _given(future)
        try:
            future.set_result(compute())
        except BaseException as e:
            future.set_exception(_anew(e))
            raise
        finally:
            self._make_room(key, _size(future))
        return future.result()

    def _make_room(self, newest: Hashable, size: int) -> None:
        """Enter the newest answer's bytes and let go of the answers not asked for longest."""
        with self._lock:
            if newest in self._kept:
                self._bytes[newest] = size
            total = sum(self._bytes.values())
            if total <= self._max_bytes:
                return
            for key in [k for k in self._kept if k in self._bytes]:
                if total <= self._max_bytes or key == newest:
                    break
                total -= self._bytes.pop(key)
                del self._kept[key]


def _given(future: "Future[Any]") -> Any:
    """The answer, once it is there; where it is an error, that error anew."""
    error = future.exception()
    if error is not None:
        raise _anew(error)
    return future.result()


def _anew(error: BaseException) -> BaseException:
    """The same error as one that was raised nowhere: each time that one is raised it gathers the frames of who asked,
    with all that a page holds."""
    for made_anew in (_without_its_init, _by_its_init):
        with contextlib.suppress(Exception):
            if str(made := made_anew(error)) == str(error):
                return made
    return error.with_traceback(None)


def _without_its_init(error: BaseException) -> BaseException:
    """What an error is made of may be more than its text, or make another text of that."""
    made = error.__class__.__new__(error.__class__, *error.args)
    made.__dict__.update(error.__dict__)
    return made


def _by_its_init(error: BaseException) -> BaseException:
    """One of Python's own is nothing without its init. Not `copy.copy`: Dask has that copy the frames too."""
    reduced: Any = error.__reduce__()
    made: BaseException = error.__class__(*reduced[1])
    made.__dict__.update(error.__dict__)
    return made


def _may_be_gone(future: "Future[Any]") -> bool:
    """Whether it failed by what may be otherwise the next time: a damaged file, a full disk, a defect."""
    return future.done() and future.exception() is not None and not isinstance(future.exception(), QuestionError)


def _size(future: "Future[Any]") -> int:
    """Bytes that an answer holds: its frames and arrays, those of its parts too, and a flat 20 kB for the rest. What
    says `held_bytes` of itself is believed: it may lie deep, or on disk."""
    return 20_000 + (0 if future.exception() else _in_tables(future.result()))


def _members(value: Any) -> Mapping[str, Any]:
    """What an object, a mapping or a tuple with names holds, by name."""
    if is_object(value):
        return value
    named: Callable[[], Mapping[str, Any]] | None = getattr(value, "_asdict", None)
    return getattr(value, "__dict__", {}) if named is None else named()


def _in_tables(value: Any, depth: int = 2) -> int:
    import pandas as pd  # a fifth of a second that who keeps nothing should not pay

    if isinstance(value, pd.DataFrame):
        return 8 * value.size if value.size < FEW_CELLS else int(value.memory_usage().sum())
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, pa.Table):
        return value.nbytes
    if isinstance(told := getattr(value, "held_bytes", None), int):
        return told
    parts: Mapping[str, Any] = _members(value)
    return sum(_in_tables(part, depth - 1) for part in parts.values()) if depth else 0
