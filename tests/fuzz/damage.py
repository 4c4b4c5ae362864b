"""Damage as disks, networks and people do it: cut short, bits turned over, pieces lost, doubled or foreign."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.ingesting.unpack import BROKEN
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.conftest import seeds


@st.composite
def damaged(draw, originals: list[bytes]) -> bytes:
    """One of the originals after one to four accidents."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        match draw(st.sampled_from(("cut", "head", "bit", "lost", "twice", "foreign"))):
            case "cut":
                del data[at:]
            case "head":
                del data[:at]
            case "bit" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "lost":
                del data[at:end]
            case "twice":
                data[at:at] = data[at:end]
            case "foreign":
                data[at:end] = draw(st.binary(max_size=20) | st.sampled_from(FOREIGN))
    return bytes(data)


FOREIGN = [
    b"\0",
    b"\r\n",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 400,
    b"null",
    b"\xff\xfe",
    b"\\ud800",
    b"\x1b[31m",
    "é日本".encode(),
    b'{"a":' * 2000,
    b"[" * 2000,
    b"completed step: 5, ",
    b"I0230 25:61:61.1 x ",
]


def survive(reader, folder, data: bytes, name: str) -> None:
    """The reader takes it or refuses it in one line that names the file; what it hands on fits the seam. What begins as
    gzip does may be none: what reading it raises is told by whoever asks a reader."""
    source = source_of(folder, data, name)
    assert 0 <= reader.sniff(source) <= 1
    try:
        read(reader, source)  # checks every item against the seam
    except InputError as error:
        assert "\n" not in str(error) and name in str(error)
    except BROKEN:
        assert source.gzipped


EMPTY_AND_DEEP = (b"", b"{" * 100_000, b'{"a":' * 100_000, b"[" * 100_000, b"\xef\xbb\xbf")
Tests = tuple[Callable, Callable, Callable, Callable]


def checks_of(
    originals: Mapping[ModuleType, Sequence[bytes]],
    name: str,
    noise: Sequence[bytes] = (),
    *,
    cuts: int = 200,
    noises: int = 100,
    facts_alone: Sequence[ModuleType] = (),
) -> Tests:
    """Four tests of readers with files that each of them reads: as they are, damaged, other bytes (`noise` among them),
    and cut at some `cuts` places. `name`: of the input; `facts_alone`: readers whose files may hold no rows."""
    readers = pytest.mark.parametrize("reader", originals, ids=lambda reader: reader.NAME)

    @readers
    def undamaged(reader, tmp_path):
        for data in originals[reader]:
            source = source_of(tmp_path, data, name)
            assert reader.sniff(source) >= 0.5
            found = read(reader, source)
            assert found.rows or (reader in facts_alone and found.facts)

    @readers
    @settings(max_examples=150, deadline=None)
    @given(data=st.data())
    def damage(reader, data, tmp_path_factory):
        survive(reader, tmp_path_factory.getbasetemp(), data.draw(damaged(originals[reader])), name)

    @readers
    @settings(max_examples=noises, deadline=None)
    @given(data=st.binary(max_size=2_000))
    def other(reader, data, tmp_path_factory):
        if data[:2] != b"\x1f\x8b":  # a broken archive is the business of whoever opens it, see test_ingest
            survive(reader, tmp_path_factory.getbasetemp(), data, name)

    for data in (*EMPTY_AND_DEEP, *noise):
        other = example(data=data)(other)

    @readers
    def cut(reader, tmp_path):
        for data in originals[reader]:
            ends = range(0, len(data), max(1, len(data) // cuts))
            for end in (ends[n] for n in seeds(len(ends))):
                survive(reader, tmp_path, data[:end], name)

    return undamaged, damage, other, cut
