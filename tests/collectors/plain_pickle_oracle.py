"""Pickles of plain data, read code by code: slow, and the measure of `collectors.reading.plain_pickle`.

Python's own unpickler builds whatever a file names. This one knows only the codes that make dicts with text as keys,
lists, tuples, text, whole and real numbers, true, false and none; any other code (a class, a call, a reference to
elsewhere) is refused by name. Each code makes at most one value, and both are bounded, so that memory is too: a value
that is referred to again is the same value, never a copy. Whoever looks into the result must not follow it without
end, since lists may hold each other.
"""

import struct
from collections.abc import Callable
from typing import Any

MOST_CODES = 20_000_000  # of one file: 20,000 operations with 30 frames each take a third
MOST_CONTAINERS = 3_000_000  # dicts, lists and tuples: 0.2 KB each at most
LONGEST_NUMBER = 9  # bytes of a whole number: 64 bits and a sign
_PROTOCOLS = range(2, 6)
_NO_VALUE = object()


class Refused(ValueError):
    """The file holds what is no plain data, or more of it than anybody writes."""


class CutShort(ValueError):
    """The file ends before its data does."""


def loads(data: bytes) -> Any:
    """The value that a pickle holds. Raises Refused, and CutShort where the file ends in the middle."""
    return _Machine(data).run()


class _Machine:
    """The stack machine that pickles are programs of, with its harmless codes alone."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0
        self.result: Any = _NO_VALUE

    def run(self) -> Any:
        data, end = self.data, len(self.data)
        codes = _CODES
        for _ in range(MOST_CODES):
            if self.at >= end:
                raise CutShort(f"it ends at byte {end:,}, in the middle")
            code = data[self.at]
            self.at += 1
            do = codes[code]
            if do is None:
                raise Refused(f"code {_named(code)} at byte {self.at - 1:,}, which no plain data needs")
            do(self)
            if self.result is not _NO_VALUE:
                return self.result
        raise Refused(f"more than {MOST_CODES:,} codes")

    # What codes are made of

    def take(self, count: int) -> bytes:
        """The next bytes."""
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise CutShort(f"it ends at byte {len(self.data):,}, in the middle")
        self.at += count
        return piece

    def count(self, form: struct.Struct) -> int:
        return form.unpack(self.take(form.size))[0]

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Refused(f"a value is missing at byte {self.at - 1:,}")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        """The container that is filled."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0) or type(self.stack[-1]) is not kind:
            raise Refused(f"no {kind.__name__} to fill at byte {self.at - 1:,}")
        return self.stack[-1]

    def marked(self) -> list[Any]:
        """The values since the last mark, taken off."""
        if not self.marks:
            raise Refused(f"a mark is missing at byte {self.at - 1:,}")
        place = self.marks.pop()
        values = self.stack[place:]
        del self.stack[place:]
        return values

    def contain(self, value: Any) -> None:
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise Refused(f"more than {MOST_CONTAINERS:,} dicts, lists and tuples")
        self.stack.append(value)

    def fill(self, target: dict[str, Any], flat: list[Any]) -> None:
        keys = flat[::2]
        if len(flat) % 2 or not {*map(type, keys)} <= {str}:
            raise Refused(f"a dict whose keys are no text at byte {self.at - 1:,}")
        target.update(zip(keys, flat[1::2], strict=True))

    def text(self, length: int) -> None:
        self.stack.append(self.take(length).decode("utf-8", "replace"))

    # The codes

    def protocol(self) -> None:
        if (version := self.take(1)[0]) not in _PROTOCOLS:
            raise Refused(f"pickle protocol {version}")

    def frame(self) -> None:
        self.take(8)

    def stop(self) -> None:
        self.result = self.pop()

    def mark(self) -> None:
        self.marks.append(len(self.stack))

    def append(self) -> None:
        value = self.pop()
        self.top(list).append(value)

    def appends(self) -> None:
        values = self.marked()
        self.top(list).extend(values)

    def setitem(self) -> None:
        value, key = self.pop(), self.pop()
        self.fill(self.top(dict), [key, value])

    def setitems(self) -> None:
        flat = self.marked()
        self.fill(self.top(dict), flat)

    def tuple_since_mark(self) -> None:
        self.contain(tuple(self.marked()))

    def tuple_of(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.contain(tuple(reversed(values)))

    def whole(self) -> None:
        length = self.take(1)[0]
        if length > LONGEST_NUMBER:
            raise Refused(f"a number of {length} bytes at byte {self.at - 2:,}")
        self.stack.append(int.from_bytes(self.take(length), "little", signed=True))

    def keep(self, place: int) -> None:
        if not self.stack:
            raise Refused(f"nothing to keep at byte {self.at - 1:,}")
        self.memo[place] = self.stack[-1]

    def kept(self, place: int) -> None:
        value = self.memo.get(place, _NO_VALUE)
        if value is _NO_VALUE:
            raise Refused(f"a reference to nothing at byte {self.at - 1:,}")
        self.stack.append(value)


_BYTE, _SHORT, _INT, _SIGNED, _LONG, _REAL = (struct.Struct(f) for f in ("<B", "<H", "<I", "<i", "<Q", ">d"))


def _constant(value: Any) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(value)


def _number(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(m.count(form))


def _text(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.text(m.count(form))


def _keep(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.keep(m.count(form))


def _kept(form: struct.Struct) -> Callable[[_Machine], None]:
    return lambda m: m.kept(m.count(form))


def _of(count: int) -> Callable[[_Machine], None]:
    return lambda m: m.tuple_of(count)


_KNOWN: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _Machine.protocol,
    b"\x95": _Machine.frame,
    b".": _Machine.stop,
    b"(": _Machine.mark,
    b"}": lambda m: m.contain({}),
    b"]": lambda m: m.contain([]),
    b")": _constant(()),
    b"N": _constant(None),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"K": _number(_BYTE),
    b"M": _number(_SHORT),
    b"J": _number(_SIGNED),
    b"G": _number(_REAL),
    b"\x8a": _Machine.whole,
    b"\x8c": _text(_BYTE),
    b"X": _text(_INT),
    b"\x8d": _text(_LONG),
    b"a": _Machine.append,
    b"e": _Machine.appends,
    b"s": _Machine.setitem,
    b"u": _Machine.setitems,
    b"t": _Machine.tuple_since_mark,
    b"\x85": _of(1),
    b"\x86": _of(2),
    b"\x87": _of(3),
    b"q": _keep(_BYTE),
    b"r": _keep(_INT),
    b"\x94": lambda m: m.keep(len(m.memo)),
    b"h": _kept(_BYTE),
    b"j": _kept(_INT),
}
_CODES = tuple(_KNOWN.get(bytes([code])) for code in range(256))


def _named(code: int) -> str:
    """A code by the name that Python gives it, where it has one."""
    import pickletools

    names = {op.code: op.name for op in pickletools.opcodes}
    return names.get(chr(code), f"0x{code:02x}")
