"""Damage as disks, networks and people do it: cut short, bits turned over, pieces lost, doubled or foreign."""

from hypothesis import strategies as st

from errors import InputError
from tests.collectors.reading import read, source_of


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
    b"\0", b"\r\n", b'"', b"{", b"}", b"[", b"]", b",", b"-1", b"1e999", b"NaN", b"9" * 400, b"null", b"\xff\xfe",
    b"\\ud800", b"\x1b[31m", "é日本".encode(), b'{"a":' * 2000, b"[" * 2000, b"completed step: 5, ",
    b"I0230 25:61:61.1 x ",
]  # fmt: skip


def survive(reader, folder, data: bytes, name: str) -> None:
    """The reader takes it or refuses it in one line that names the file; what it hands on fits the seam."""
    source = source_of(folder, data, name)
    assert 0 <= reader.sniff(source) <= 1
    try:
        read(reader, source)  # checks every item against the seam
    except InputError as error:
        assert "\n" not in str(error) and name in str(error)
