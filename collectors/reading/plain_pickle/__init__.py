"""Pickles that hold plain data alone, read without running anything.

Python's own unpickler builds whatever a file names. So compiled code (`scan.py`) looks through the whole file first. It
knows only the codes that make dicts with text as keys, lists, tuples, text, whole and real numbers, true, false and
none; any other code (a class, a call, a reference to elsewhere) is refused by name. Only what it has found to be plain
is given to Python's unpickler, which here can look nothing up by name either.

Each code makes at most one value, and codes, containers, text and open marks are bounded, so that memory is too: a
value that is referred to again is the same value, never a copy. Whoever looks into the result must not follow it
without end, since lists may hold each other.
"""

import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from collectors.reading.plain_pickle import codes
from collectors.reading.plain_pickle.scan import scan

MOST_CODES = 20_000_000  # of one file: 20,000 operations with 30 frames each take a third
MOST_CONTAINERS = 3_000_000  # dicts, lists and tuples: 0.2 KB each at most
MOST_TEXT = 64 << 20  # bytes of all texts together: four times as many where one sign of each needs 32 bits
DEEPEST = 1_000  # marks that are open at once: Python's pickler nests no deeper
_FIRST_NOTED = 4_096  # frames and foreign texts of an ordinary file
_SAID = {
    codes.PROTOCOL: "pickle protocol {told}",
    codes.CODES: "more than {most:,} codes",
    codes.CONTAINERS: "more than {most:,} dicts, lists and tuples",
    codes.DEPTH: "more than {most:,} marks open at byte {at:,}",
    codes.TEXT_BYTES: "more than {most:,} bytes of text",
    codes.NO_VALUE: "a value is missing at byte {at:,}",
    codes.NO_LIST: "no list to fill at byte {at:,}",
    codes.NO_DICT: "no dict to fill at byte {at:,}",
    codes.NO_MARK: "a mark is missing at byte {at:,}",
    codes.NO_TEXT_KEYS: "a dict whose keys are no text at byte {at:,}",
    codes.LONG_NUMBER: "a number of {told} bytes at byte {at:,}",
    codes.NOT_KEPT: "nothing to keep at byte {at:,}",
    codes.NO_REFERENCE: "a reference to nothing at byte {at:,}",
    codes.FAR_PLACE: "a value to keep at place {told:,} at byte {at:,}, which fewer codes than that come before",
}


class Refused(ValueError):
    """The file holds what is no plain data, or more of it than anybody writes."""


class CutShort(ValueError):
    """The file ends before its data does."""


class _Plain(pickle.Unpickler):
    """Python's unpickler, which finds nothing outside the file."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise Refused("it names what is no plain data")

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("it refers to what only its writer has")


def loads(data: bytes) -> Any:
    """The value that a pickle holds. Raises Refused, and CutShort where the file ends in the middle."""
    end, noted = _looked_through(data)
    program = io.BufferedReader(_program(data, end, noted), 1 << 17)
    try:
        with _no_search_for_garbage():
            return _Plain(program).load()
    except Refused:
        raise
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError) as e:
        raise Refused(f"Python's unpickler does not take it ({str(e)[:100]})") from e


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Half of the time of reading would go into looking through what has just been made."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _looked_through(data: bytes) -> tuple[int, Any]:
    """Where the pickle ends, and the places of its frames and of its texts that are not of ASCII alone."""
    buf, size = np.frombuffer(data, np.uint8), len(data) + 1
    room = _FIRST_NOTED
    while True:
        stack, memo = np.empty(size, np.uint8), np.zeros(size, np.uint8)
        noted, c = np.empty(room, np.int64), np.zeros(3, np.int64)
        marks = np.empty(DEEPEST, np.int64)
        how = scan(buf, stack, marks, memo, noted, c, MOST_CODES, MOST_CONTAINERS, MOST_TEXT)
        if how != codes.DONE:
            raise _error(data, int(how), int(c[codes.POS]), int(c[codes.TOLD]))
        if c[codes.NOTED] <= room:
            return int(c[codes.POS]), noted[: c[codes.NOTED]]
        room = int(c[codes.NOTED])


def _program(data: bytes, end: int, noted: Any) -> io.BytesIO:
    """The codes that Python's unpickler is given: without frames, from whose lengths it would tell where to read on,
    and with what is no Unicode in texts replaced."""
    out, done, view = io.BytesIO(), 0, memoryview(data)
    for at in noted:
        place = int(at)
        replaced, behind = _foreign(data, place)
        if replaced is not None:
            out.write(view[done:place])
            out.write(replaced)
            done = behind
    if not done:
        return io.BytesIO(data if end == len(data) else data[:end])
    out.write(view[done:end])
    out.seek(0)
    return out


def _foreign(data: bytes, at: int) -> tuple[bytes | None, int]:
    """What stands for the frame or text whose code lies at `at`, and where it ends; None where it stays."""
    width = {0x95: 8, 0x8D: 8, 0x8C: 1}.get(data[at], 4)
    begin = at + 1 + width
    if data[at] == 0x95:
        return b"", begin
    end = begin + int.from_bytes(data[at + 1 : begin], "little")
    raw = data[begin:end]
    try:
        raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace").encode()
        return b"X" + len(text).to_bytes(4, "little") + text, end
    return None, end


def _error(data: bytes, how: int, at: int, told: int) -> ValueError:
    """What a look through the file that ended as `how` is told as."""
    if how == codes.CUT:
        return CutShort(f"it ends at byte {len(data):,}, in the middle")
    if how == codes.NO_PLAIN_CODE:
        return Refused(f"code {_named(data[at])} at byte {at:,}, which no plain data needs")
    most = {codes.CODES: MOST_CODES, codes.CONTAINERS: MOST_CONTAINERS, codes.TEXT_BYTES: MOST_TEXT}
    return Refused(_SAID[how].format(at=at, told=told, most=most.get(how, DEEPEST)))


def _named(code: int) -> str:
    """A code by the name that Python gives it, where it has one."""
    import pickletools

    names = {op.code: op.name for op in pickletools.opcodes}
    return names.get(chr(code), f"0x{code:02x}")
