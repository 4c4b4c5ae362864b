"""Damage to bytes, whatever they mean: as disks, networks, people and those who mean harm do it."""

import gzip
import io
import random
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence

MOST_BYTES = 1 << 18  # of a file that was made larger
NUMBERS = (
    *("0", "-0", "-1", "1", "1e308", "-1e308", "1e999", "NaN", "nan", "Infinity", "-Infinity", "1e-320", "0x10", "1_0"),
    *("true", "null", '""', "[]", "{}", "9" * 400, str(2**31), str(2**53), str(2**63), str(2**64), str(-(2**63) - 1)),
)
FOREIGN = (
    *(b"\0", b"\r", b"\r\n", b"\n\n\n", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"=", b"|", b"\t", b"\x1b[31m"),
    *(b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", "é日本\u202e".encode(), b"\xed\xa0\x80"),
    *(b"\x1f\x8b\x08", b"PK\x03\x04", b"ustar\0", b"\x28\xb5\x2f\xfd", b"PAR1", b"SQLite format 3\0", b"\x80\x04"),
    *(b"../../../x", b"%s%n%x", b"1970-01-01T00:00:00Z", b"9999-12-31T23:59:60Z", b"I0230 25:61:61.1 x ", b"-1e999,"),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def flip(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """1 to 64 bits turned over."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16, 64)) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def cut(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    return data[: _place(data, chance)]


def behead(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    return data[_place(data, chance) :]


def lose(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = _place(data, chance)
    return data[:at] + data[at + chance.choice((1, 3, 8, 40, 400)) :]


def repeat(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A piece of it up to a thousand times."""
    at, length = _place(data, chance), chance.choice((1, 7, 40, 400, 4_000))
    piece = data[at : at + length]
    times = min(chance.choice((1, 2, 9, 100, 1_000)), MOST_BYTES // (len(piece) or 1))
    return data[:at] + piece * times + data[at:]


def splice(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The beginning of this one and the end, or a piece, of another."""
    other = chance.choice(others)
    start = _place(other, chance)
    at = _place(data, chance)
    return data[:at] + other[start : start + chance.choice((9, 90, 900, 1 << 20))] + chance.choice((b"", data[at:]))


def foreign(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = _place(data, chance)
    return data[:at] + chance.choice(FOREIGN) + data[at + chance.choice((0, 0, 1, 4)) :]


def number(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A number that stands there in digits becomes another, or no number."""
    places = [m.span() for m in _NUMBER.finditer(data)]
    for start, end in sorted(chance.sample(places, min(len(places), chance.choice((1, 1, 2, 8)))), reverse=True):
        data = data[:start] + chance.choice(NUMBERS).encode() + data[end:]
    return data


def length(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Some bytes become a whole number at an edge, as a field for a length or an offset holds it."""
    width = chance.choice((1, 2, 4, 8))
    value = chance.choice((0, 1, (1 << (8 * width)) - 1, 1 << (8 * width - 1), (1 << (8 * width - 1)) - 1))
    at = _place(data, chance)
    return data[:at] + value.to_bytes(width, chance.choice(("little", "big"))) + data[at + width :]


def varint(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A number of seven bits a byte, as long as such may be, or longer."""
    at = _place(data, chance)
    return data[:at] + b"\xff" * chance.choice((1, 4, 8, 9, 12)) + bytes([chance.randrange(256)]) + data[at + 1 :]


def deep(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at, opened = (
        _place(data, chance),
        chance.choice((b"[", b"{", b'{"a":', b"(", b"- ", b"a: ", b"\x0a\x7f", b"](lp0\n")),
    )
    return data[:at] + opened * min(chance.choice((10, 500, 5_000, 50_000)), MOST_BYTES // len(opened)) + data[at:]


def magic(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The first bytes, and then noise."""
    return data[: chance.choice((2, 4, 8, 16, 64, 100))] + chance.randbytes(chance.choice((0, 5, 100, 3_000)))


def fill(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """A stretch of it all zeros, all ones or noise, as a disk leaves what was never written."""
    at, size = _place(data, chance), chance.choice((8, 64, 512, 4096))
    return data[:at] + chance.choice((b"\0" * size, b"\xff" * size, chance.randbytes(size))) + data[at + size :]


def lines(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Lines in another order, doubled, lost or joined."""
    told = data.split(b"\n")
    match chance.randrange(4):
        case 0:
            chance.shuffle(told)
        case 1:
            told = [line for line in told for _ in range(chance.choice((1, 1, 2, 5)))]
        case 2:
            told = [line for line in told if chance.random() < 0.7]
        case _:
            return data.replace(b"\n", chance.choice((b"\r\n", b"", b" ", b"\r", b"\n\n")))
    return b"\n".join(told)


def long_line(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = _place(data, chance)
    return data[:at] + chance.choice((b" ", b"a", b"1", b"a=", b"1,", b'"', b": ")) * 60_000 + data[at:]


def encoded(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The same text by another encoding."""
    text = data.decode("latin-1")
    return chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")) and text.encode(
        chance.choice(("utf-16", "utf-16-be", "utf-32", "utf-8-sig"))
    )


def zipped(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Packed with gzip, and maybe damaged then."""
    found = gzip.compress(data, 1, mtime=0)  # the same at whatever time it is made
    for _ in range(chance.choice((0, 1, 1, 2))):
        found = chance.choice((flip, cut, length, repeat, fill))(found, chance, others)
    return found


def archived(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """In an archive, which may be damaged then."""
    out = io.BytesIO()
    name = chance.choice(("in/a", "../a", "/a", "a" * 300, "a\0b", "é\u202e", "a.gz", "C:\\a"))
    if chance.random() < 0.5:
        with zipfile.ZipFile(out, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as z:
            z.writestr(name.replace("\0", ""), data)
            z.writestr("b", chance.choice(others)[:10_000])
    else:
        with tarfile.open(fileobj=out, mode=chance.choice(("w", "w:gz"))) as t:
            info = tarfile.TarInfo(name.replace("\0", ""))
            info.size, info.type = len(data), chance.choice((tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.GNUTYPE_SPARSE))
            info.linkname = "../../x"
            if info.type != tarfile.REGTYPE:
                info.size = 0
            t.addfile(info, io.BytesIO(data))
    found = out.getvalue()
    for _ in range(chance.choice((0, 1, 1, 3))):
        found = chance.choice((flip, cut, length, lose, fill, splice))(found, chance, others)
    return found


Damage = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
DAMAGES: tuple[Damage, ...] = (
    *(
        flip,
        flip,
        cut,
        behead,
        lose,
        repeat,
        splice,
        foreign,
        foreign,
        number,
        number,
        length,
        varint,
        deep,
        magic,
        fill,
    ),
    *(lines, long_line, encoded, zipped, archived),
)


def damaged(data: bytes, chance: random.Random, others: Sequence[bytes]) -> tuple[bytes, str]:
    """(the bytes after one to four accidents, how they are called)."""
    names: list[str] = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        how = chance.choice(DAMAGES)
        data = how(data, chance, others)[: 4 * MOST_BYTES]
        names.append(how.__name__)
    return data, "+".join(names)
