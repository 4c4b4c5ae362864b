"""Rows from the events of one job in log order: steps as they are, intervals from a start and the next end."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.reading import textlog
from collectors.training.goodput_log.keys import FIRST_PAIR, KINDS, NONE, RESTORE, SAVE, SLICES, STEP
from collectors.training.goodput_log.log import Ordered
from runs.schema import SCHEMAS

_DOWN, _UP = "elastic_slice_down", "elastic_scale_up"
_WAIT = next(i for i, (_, kind, _) in enumerate(KINDS) if kind == "elastic_wait")
_PAIRS = (_DOWN if i == _WAIT else kind for i, (_, kind, _) in enumerate(KINDS))
_LIFE = ("slices", "checkpoint_save", "checkpoint_restore", *_PAIRS, _UP)
_NUMBERS = {SLICES: 0, SAVE: 1, RESTORE: 2}  # in _LIFE; then the KINDS, and last the second kind of elastic wait


def rows_of(events: Ordered, name: str, format_name: str) -> Iterator[Rows]:
    """Batches of `steps`, then of `lifecycle`, each in log order (an interval where its start is, or its lone end)."""
    attempt = events.attempt
    yield from _steps(events, attempt, name, format_name)
    yield from _lifecycle(events, attempt, name)


def _steps(events: Ordered, attempt: np.ndarray, name: str, format_name: str) -> Iterator[Rows]:
    for at in _pieces(np.flatnonzero(events.code == STEP)):
        columns = {
            "attempt": pa.array(attempt[at]),
            "step": pa.array(events.value[at]),
            "start_ns": pa.array(events.time[at]),
            "order": pa.array(events.order[at]),
            "logged_ns": _or_null(events.logged[at]),
            "format": _same(format_name, len(at)),
            "source": _same(name, len(at)),
        }
        yield Rows("steps", SCHEMAS["steps"].batch(columns))


def _lifecycle(events: Ordered, attempt: np.ndarray, name: str) -> Iterator[Rows]:
    life = np.flatnonzero(events.code != STEP)
    end_of, is_taken = _pairing(events.code[life], events.value[life])
    details = _Details(events)
    for which in _pieces(np.flatnonzero(~is_taken)):
        at, code = life[which], events.code[life[which]]
        lone = _is_end(code)
        end = np.where(lone, at, np.where(end_of[which] >= 0, life[end_of[which]], -1))
        point, step = details.checkpoint(code, events.value[at])
        columns = {
            "kind": details.kind(code, events.value[at]),
            "start_ns": _or_null(np.where(lone, NONE, events.time[at])),
            "end_ns": _or_null(np.where(end >= 0, events.time[end], point)),
            "attempt": pa.array(attempt[at]),
            "step": _or_null(step),
            "detail": details.detail(code, events.value[at]),
            "logged_ns": _or_null(events.logged[at]),
            "order": pa.array(events.order[at]),
            "end_logged_ns": _or_null(np.where(end >= 0, events.logged[end], NONE)),
            "end_order": _or_null(np.where(end >= 0, events.order[end], NONE)),
            "source": _same(name, len(at)),
        }
        yield Rows("lifecycle", SCHEMAS["lifecycle"].batch(columns))


def _is_end(code: np.ndarray) -> np.ndarray:
    return (code >= FIRST_PAIR) & ((code - FIRST_PAIR) % 2 == 1)


def _pairing(code: np.ndarray, text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the end of each start, or -1; which events are such an end): a start and the next end of its kind and label.

    A start that another start of its kind and label follows never ended.
    """
    pairs = np.flatnonzero(code >= FIRST_PAIR)
    group = (code[pairs].astype("i8") - FIRST_PAIR) // 2 + (text[pairs] + 1) * len(KINDS)
    few = group.size and group.max() < 1 << 15  # groups, as usual: numpy sorts 16 bits ten times as fast
    by_group = np.argsort(group.astype("i2") if few else group, kind="stable")
    group, place = group[by_group], pairs[by_group]
    is_end = _is_end(code[place])
    ends = 1 + np.flatnonzero(is_end[1:] & ~is_end[:-1] & (group[1:] == group[:-1]))
    end_of, is_taken = np.full(len(code), -1, "i8"), np.zeros(len(code), bool)
    end_of[place[ends - 1]] = place[ends]
    is_taken[place[ends]] = True
    return end_of, is_taken


class _Details:
    """What the values of events stand for: labels, slice counts, checkpoints."""

    def __init__(self, events: Ordered):
        texts, points = events.texts, events.checkpoints
        self._labels, self._points = len(texts), len(points)
        self._kinds = pa.array(_LIFE)
        self._is_up = np.array([*("scale_up" in text.lower() for text in texts), False], bool)  # as the library tells
        waits = [json.dumps({"event_type": text}) for text in texts]
        self._texts = pa.array([*texts, *waits, *(detail for _, _, detail in points)], pa.string())
        self._ends = np.array([*(end for end, _, _ in points), NONE], "i8")
        self._steps = np.array([*(step for _, step, _ in points), NONE], "i8")

    def kind(self, code: np.ndarray, value: np.ndarray) -> pa.DictionaryArray:
        pair = (code.astype("i8") - FIRST_PAIR) // 2
        number = len(_NUMBERS) + pair
        for special, n in _NUMBERS.items():
            number[code == special] = n
        waits = np.flatnonzero((code >= FIRST_PAIR) & (pair == _WAIT))
        number[waits[self._is_up[value[waits]]]] = len(_LIFE) - 1
        return pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), self._kinds)

    def detail(self, code: np.ndarray, value: np.ndarray) -> pa.StringArray:
        pair = (code.astype("i8") - FIRST_PAIR) // 2
        number = np.where(_is_checkpoint(code), 2 * self._labels + value, value)
        number[(code >= FIRST_PAIR) & (pair == _WAIT) & (value >= 0)] += self._labels
        return self._texts.take(pa.array(number, pa.int64(), mask=number < 0))

    def checkpoint(self, code: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(end, step) of checkpoints, NONE for anything else."""
        point = np.where(_is_checkpoint(code), value, -1)
        return self._ends[point], self._steps[point]


def _is_checkpoint(code: np.ndarray) -> np.ndarray:
    return (code == SAVE) | (code == RESTORE)


def _pieces(places: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(places), textlog.BATCH_ROWS):
        yield places[begin : begin + textlog.BATCH_ROWS]


def _or_null(values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=values == NONE)


def _same(text: str, count: int) -> pa.DictionaryArray:
    """One text for all rows."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, "i4"), pa.int32()), pa.array([text]))
