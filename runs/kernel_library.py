"""A shared library of one kernel, made of the object that LLVM writes of it, so that the system's own loader maps it.

No linker need be installed: of what an object can hold, the code of a kernel holds little. Everything in it is private
but its entry; what it takes from elsewhere are a few functions of C's libraries (`memset`, `pow`), each reached through
a slot that the loader fills. The file is laid out as it lies in memory:

    code, constants, tables for the loader      read and executed, never written
    a page on: the loader's list, slots, data   written by the loader alone
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

ENTRY, GIVES = "kernel", "gives"  # the two names of a library: the code, and a text of what it gives back
_PAGE = 4096
_HEADERS = 64 + 4 * 56
_X86_64, _ALLOCATED, _WRITABLE, _NO_BITS, _RELA = 62, 2, 1, 8, 4
# kinds of places that an object leaves open, and those of them that the loader fills
_ADDRESS, _NEAR, _CALL, _SLOTS, _FAR = 1, 2, 4, (9, 41, 42), 24
_FILLED, _MOVED = 6, 8
_STUB = b"\xff\x25"  # jump to where the slot at this distance points
_STUB_BYTES = 8
_HASH, _NAMES, _SYMBOLS, _RELOCATIONS, _RELOCATIONS_BYTES = 4, 5, 6, 7, 8
_RELOCATION_BYTES, _NAMES_BYTES, _SYMBOL_BYTES, _NEEDED = 9, 10, 11, 1
_GLOBAL_FUNCTION, _GLOBAL_OBJECT = 0x12, 0x11
_TAKEN_FROM = ("libm.so.6", "libc.so.6")


class NotLinked(ValueError):
    """An object holds what this does not link; the text says what."""


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    of: int
    align: int

    @property
    def loaded(self) -> bool:
        return bool(self.flags & _ALLOCATED) and self.name != ".eh_frame"

    @property
    def written(self) -> bool:
        return bool(self.flags & _WRITABLE)


@dataclass(frozen=True)
class Symbol:
    name: str
    section: int
    value: int


@dataclass(frozen=True)
class Place:
    """What is to be filled in: where in which section, how, and with what."""

    section: int
    at: int
    kind: int
    symbol: int
    added: int


@dataclass(frozen=True)
class Object:
    """What LLVM writes for x86-64 and Linux."""

    raw: bytes

    def __post_init__(self) -> None:
        if self.raw[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", self.raw, 18) != (_X86_64,):
            raise NotLinked("it is no object for x86-64 and Linux")

    @cached_property
    def sections(self) -> list[Section]:
        (at,) = struct.unpack_from("<Q", self.raw, 40)
        size, count, names = struct.unpack_from("<HHH", self.raw, 58)
        rows = [struct.unpack_from("<IIQQQQIIQ", self.raw, at + n * size) for n in range(count)]
        texts = rows[names][4]
        return [
            Section(self._text(texts + name), kind, flags, offset, n_bytes, link, of, max(align, 1))
            for name, kind, flags, _, offset, n_bytes, link, of, align in rows
        ]

    @cached_property
    def symbols(self) -> list[Symbol]:
        (table,) = [s for s in self.sections if s.name == ".symtab"]
        texts = self.sections[table.link].offset
        rows = struct.iter_unpack("<IBBHQQ", self.raw[table.offset : table.offset + table.size])
        return [Symbol(self._text(texts + name), section, value) for name, _, _, section, value, _ in rows]

    @cached_property
    def places(self) -> list[Place]:
        return list(self._places())

    def content(self, section: Section) -> bytes:
        return bytes(section.size) if section.kind == _NO_BITS else self.raw[section.offset :][: section.size]

    def _places(self) -> Iterator[Place]:
        for table in self.sections:
            if table.kind == _RELA and self.sections[table.of].loaded:
                for at, what, added in struct.iter_unpack("<QQq", self.raw[table.offset : table.offset + table.size]):
                    yield Place(table.of, at, what & 0xFFFFFFFF, what >> 32, added)

    def _text(self, at: int) -> str:
        return self.raw[at : self.raw.index(b"\0", at)].decode()


class _Layout:
    """Where everything of a library lies, and what the loader is told."""

    def __init__(self, of: Object, entry: str, gives: bytes):
        self.of, self.gives = of, gives + b"\0"
        loaded = [n for n, s in enumerate(of.sections) if s.loaded]
        used = list(dict.fromkeys(p.symbol for p in of.places))
        self.outside = [n for n in used if not of.symbols[n].section]
        self.slots = list(dict.fromkeys([*self.outside, *(p.symbol for p in of.places if p.kind in _SLOTS)]))
        (self.entry,) = [s for s in of.symbols if s.name == entry]
        needed = _TAKEN_FROM if self.outside else ()
        self.names = _texts([ENTRY, GIVES, *(of.symbols[n].name for n in self.outside), *needed])
        moved = sum(p.kind == _ADDRESS for p in of.places) + len(self.slots)
        symbols = 3 + len(self.outside)
        at = _HEADERS
        self.hash, at = at, _aligned(at + 4 * (3 + symbols), 8)
        self.symbols, at = at, at + 24 * symbols
        self.relocations, at = at, at + 24 * moved
        self.texts, at = at, at + len(self.names.raw)
        self.told, at = at, at + len(self.gives)
        self.base = dict[int, int]()
        at = self._put([n for n in loaded if not of.sections[n].written], at)
        self.stubs, at = _aligned(at, 16), _aligned(at, 16) + _STUB_BYTES * len(self.outside)
        self.read = at
        self.listed, at = _aligned(at, _PAGE), _aligned(at, _PAGE) + 16 * (len(needed) + 9)
        self.filled, at = at, at + 8 * len(self.slots)
        self.end = self._put([n for n in loaded if of.sections[n].written], at)
        self.needed = needed

    def _put(self, sections: Iterable[int], at: int) -> int:
        for n in sections:
            self.base[n] = at = _aligned(at, self.of.sections[n].align)
            at += self.of.sections[n].size
        return at

    def address(self, symbol: Symbol) -> int:
        if symbol.section not in self.base:
            raise NotLinked(f"{symbol.name or 'a symbol'} lies where nothing is loaded")
        return self.base[symbol.section] + symbol.value

    def slot(self, symbol: int) -> int:
        return self.filled + 8 * self.slots.index(symbol)

    def stub(self, symbol: int) -> int:
        return self.stubs + _STUB_BYTES * self.outside.index(symbol)


@dataclass(frozen=True)
class _Texts:
    raw: bytes
    at: dict[str, int]


def linked(code: bytes, entry: str, gives: str) -> bytes:
    """The library. `entry`: the name of the kernel's code in the object; `gives`: what is told of its results.

    Raises NotLinked where the object holds anything that no kernel's code has held yet.
    """
    of = Object(code)
    lies = _Layout(of, entry, gives.encode())
    out = bytearray(lies.end)
    for n, base in lies.base.items():
        out[base : base + of.sections[n].size] = of.content(of.sections[n])
    for n in lies.outside:
        stub = lies.stub(n)
        out[stub : stub + 6] = _STUB + struct.pack("<i", lies.slot(n) - (stub + 6))
    moves = list(_filled(out, lies))
    _tell(out, lies, moves)
    return bytes(out)


def _filled(out: bytearray, lies: _Layout) -> Iterator[tuple[int, int, int]]:
    """Fill in what is known here; yields what the loader must: (where, what, added)."""
    for place in lies.of.places:
        at, symbol = lies.base[place.section] + place.at, lies.of.symbols[place.symbol]
        if place.kind == _ADDRESS:
            if not symbol.section or not lies.of.sections[place.section].written:
                raise NotLinked("an address stands among what is never written")
            yield at, _MOVED, lies.address(symbol) + place.added
        elif place.kind in _SLOTS:
            struct.pack_into("<i", out, at, lies.slot(place.symbol) + place.added - at)
        elif place.kind in (_NEAR, _CALL, _FAR):
            if not symbol.section and place.kind != _CALL:
                raise NotLinked(f"{symbol.name} is read where it is not known to lie")
            to = lies.address(symbol) if symbol.section else lies.stub(place.symbol)
            struct.pack_into("<q" if place.kind == _FAR else "<i", out, at, to + place.added - at)
        else:
            raise NotLinked(f"a place of kind {place.kind}")
    for n in lies.slots:
        if n in lies.outside:
            yield lies.slot(n), _FILLED | (3 + lies.outside.index(n)) << 32, 0
        else:
            yield lies.slot(n), _MOVED, lies.address(lies.of.symbols[n])


def _tell(out: bytearray, lies: _Layout, moves: list[tuple[int, int, int]]) -> None:
    """Write what the loader reads: headers, names, its list."""
    count = 3 + len(lies.outside)
    struct.pack_into(f"<{3 + count}I", out, lies.hash, 1, count, 1, 0, *(n + 1 for n in range(1, count - 1)), 0)
    names = [ENTRY, GIVES, *(lies.of.symbols[n].name for n in lies.outside)]
    own = [(_GLOBAL_FUNCTION, 1, lies.address(lies.entry)), (_GLOBAL_OBJECT, 1, lies.told)]
    rows = [*own, *[(_GLOBAL_FUNCTION, 0, 0)] * len(lies.outside)]
    for n, (name, (kind, where, value)) in enumerate(zip(names, rows, strict=True), 1):
        struct.pack_into("<IBBHQQ", out, lies.symbols + 24 * n, lies.names.at[name], kind, 0, where, value, 0)
    for n, move in enumerate(moves):
        struct.pack_into("<QQq", out, lies.relocations + 24 * n, *move)
    out[lies.texts : lies.texts + len(lies.names.raw)] = lies.names.raw
    out[lies.told : lies.told + len(lies.gives)] = lies.gives
    told = [(_NEEDED, lies.names.at[name]) for name in lies.needed]
    told += [(_HASH, lies.hash), (_NAMES, lies.texts), (_SYMBOLS, lies.symbols)]
    told += [(_NAMES_BYTES, len(lies.names.raw)), (_SYMBOL_BYTES, 24)]
    told += [(_RELOCATIONS, lies.relocations), (_RELOCATIONS_BYTES, 24 * len(moves)), (_RELOCATION_BYTES, 24), (0, 0)]
    for n, pair in enumerate(told):
        struct.pack_into("<QQ", out, lies.listed + 16 * n, *pair)
    out[:_HEADERS] = _headers(lies)


def _headers(lies: _Layout) -> bytes:
    kind = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = kind + struct.pack("<HHIQQQIHHHHHH", 3, _X86_64, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
    written = lies.end - lies.listed

    def part(kind: int, flags: int, at: int, size: int, align: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, size, align)

    parts = [part(1, 5, 0, lies.read, _PAGE), part(1, 6, lies.listed, written, _PAGE)]
    parts += [part(2, 6, lies.listed, 16 * (len(lies.needed) + 9), 8), part(0x6474E551, 6, 0, 0, 16)]
    return head + b"".join(parts)


def _aligned(at: int, to: int) -> int:
    return -(-at // to) * to


def _texts(texts: Iterable[str]) -> _Texts:
    raw, at = b"\0", dict[str, int]()
    for text in texts:
        at[text] = len(raw)
        raw += text.encode() + b"\0"
    return _Texts(raw, at)
