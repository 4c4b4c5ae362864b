"""A snapshot's pickle read to its end: bytes into the compiled reader, and what it refuses as one sentence."""

import zlib

import numpy as np

from collectors.base import Source
from collectors.device.memory_snapshot.scan import DONE, NEEDS_BYTES, NEEDS_ROOM, REFUSED, run
from collectors.device.memory_snapshot.shapes import (
    DICT,
    DICTS,
    EVENTS,
    KIND_BITS,
    LIST,
    LISTS,
    MARKED,
    MEMOED,
    POS,
    ROOT_DICT,
    ROOT_SEGMENTS,
    STACKED,
    TOP,
)
from collectors.device.memory_snapshot.state import State
from errors import InputError

_CHUNK = 1 << 23
MOST_TEXT = 1 << 24  # bytes of one text or number
MOST_EVENTS = 30_000_000
MOST_VALUES = 80_000_000  # containers, marks, and what the pickle may refer to again
_EXPECTED = "what torch.cuda.memory._dump_snapshot writes"
_ADVICE = "Write the snapshot again with torch.cuda.memory._dump_snapshot(file) and copy all of it"


def read(source: Source) -> State:
    """Everything that the snapshot tells, as arrays.

    Raises InputError for what is no whole snapshot, and for a pickle that would import, call or build anything.
    """
    state, buf = State(), np.empty(_CHUNK, np.uint8)
    stop = gone = 0
    try:
        with source.binary() as file:
            while True:
                how = run(buf, stop, state.machine, state.kept, state.rows, state.counters, state.field)
                at = int(state.counters[POS])
                if how == NEEDS_ROOM:
                    _bounded(state, source)
                    state.grow(stop - at)
                elif how == NEEDS_BYTES:
                    buf[: stop - at] = buf[at:stop]
                    gone, stop = gone + at, stop - at
                    state.counters[POS] = 0
                    if stop == len(buf):
                        buf = _longer(buf, source, gone)
                    more = file.readinto(memoryview(buf)[stop:])  # type: ignore[attr-defined]
                    if not more:
                        raise _broken(source, "the file ends in the middle of the snapshot", gone + stop)
                    stop += more
                else:
                    break
    except (EOFError, zlib.error, OSError) as e:
        raise _broken(source, f"the file cannot be unpacked ({e})", gone + stop) from e
    if how == REFUSED:
        raise _refused(source, int(buf[at]), gone + at)
    if how != DONE:
        raise _broken(source, "the pickle contradicts itself", gone + at)
    _rooted(state, source)
    return state


def _bounded(state: State, source: Source) -> None:
    c = state.counters
    if c[EVENTS] > MOST_EVENTS or max(c[[STACKED, MARKED, MEMOED, DICTS, LISTS]]) > MOST_VALUES:
        raise InputError(
            f"a snapshot of more than {MOST_EVENTS:,} events",
            where=source.name,
            expected=f"up to {MOST_EVENTS:,} events and {MOST_VALUES:,} lists and dictionaries",
            advice="Record less: torch.cuda.memory._record_memory_history(max_entries=1_000_000)",
        )


def _longer(buf: np.ndarray, source: Source, at: int) -> np.ndarray:
    if len(buf) > MOST_TEXT:
        raise _broken(source, f"a text longer than {MOST_TEXT:,} bytes", at)
    return np.concatenate([buf, np.empty(len(buf), np.uint8)])


def _broken(source: Source, what: str, at: int) -> InputError:
    return InputError(f"{what} (byte {at:,})", where=source.name, expected=_EXPECTED, advice=_ADVICE)


def _refused(source: Source, op: int, at: int) -> InputError:
    return InputError(
        f"the pickle holds more than plain values: opcode {op:#04x} at byte {at:,}",
        where=source.name,
        expected="dictionaries, lists, texts and numbers alone; nothing that imports or calls is read",
        advice=_ADVICE,
    )


def _rooted(state: State, source: Source) -> None:
    """Notes the list of segments. The oldest snapshots are that list alone."""
    top = int(state.counters[TOP])
    kind, number = top & ((1 << KIND_BITS) - 1), top >> KIND_BITS
    if kind == LIST:
        state.counters[ROOT_SEGMENTS] = number
    elif kind != DICT or number != state.counters[ROOT_DICT] or state.counters[ROOT_SEGMENTS] < 0:
        raise _broken(source, "no `segments` in the pickle", int(state.counters[POS]))
