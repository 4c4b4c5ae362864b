"""Damaged traces: what is lost is named, what can be read is kept, and what is no trace is refused."""

import gzip

import pytest

from collectors.base import Source
from collectors.device import xplane
from errors import InputError
from tests.collectors.traces import Got, PlaneBuilder, XSpace, environment, got


def two_planes() -> bytes:
    space = XSpace()
    environment(space)
    PlaneBuilder(space, "/host:CPU").line("first", [(f"a{i}", i * 10, 5, {"n": i}) for i in range(50)])
    PlaneBuilder(space, "/device:TPU:0").line("XLA Ops", [(f"b{i}", i * 10, 5) for i in range(50)])
    return space.SerializeToString()


def test_a_truncated_tail_is_named_and_the_rest_kept(tmp_path):
    data = two_planes()
    read = got(tmp_path, data[: len(data) - len(data) // 8])
    assert sum(e["line"] == "first" for e in read.events()) == 50
    assert any(lost.offset is not None and ("rest of" in lost.what or "part of" in lost.what) for lost in read.lost)


def test_a_damaged_event_costs_only_itself(tmp_path):
    data = bytearray(two_planes())
    at = data.index(b"first") + 5
    event = data.index(b"\x22", at)
    data[event + 2] = 0x0F  # its first tag: wire type 7 exists nowhere
    read = got(tmp_path, bytes(data))
    assert len(read.events()) == 99
    assert [(lost.what.split(" of ")[0], lost.offset) for lost in read.lost] == [("1 events", event)]


def test_a_damaged_stat_costs_only_itself(tmp_path):
    data = bytearray(two_planes())
    at = data.index(b"\x22\x04\x08\x01\x20", data.index(b"first"))
    data[at + 2] = 0x0F
    read = got(tmp_path, bytes(data))
    assert len(read.events()) == 100 and len(read.rows["event_stats"]) == 49
    assert [lost.what.split(" of ")[0] for lost in read.lost] == ["1 stats"]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\x0a\xff\xff\xff\xff\x7f\x12", "damaged"),
        (b"this is no trace\n" * 20, "damaged"),
        (b"\x0a\x00", "no plane"),
        (bytes(range(200, 256)), "damaged"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, data, word):
    with pytest.raises(InputError, match=word) as error:
        got(tmp_path, data)
    assert "host.xplane.pb" in str(error.value)


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_beginning_like_a_mark_of_text_is_taken_as_bytes(tmp_path, mark, pack):
    """A byte-order mark says nothing in a binary file: what it begins with is damage like other damage."""
    (path := tmp_path / "x.xplane.pb").write_bytes(pack(mark + two_planes()))
    with pytest.raises(InputError, match="x.xplane.pb"):
        Got(Source(path, path.name))


def test_a_text_filter_is_recognised(tmp_path):
    mangled = two_planes().decode("utf-8", "replace").encode()
    path = tmp_path / "mangled"
    path.write_bytes(mangled)
    source = Source(path, "m.xplane.pb")
    assert xplane.sniff(source) >= 0.9
    at = mangled.index("\N{REPLACEMENT CHARACTER}".encode())
    with pytest.raises(InputError, match=f"first at byte {at}"):
        Got(source)


def test_sniff_goes_by_content(tmp_path):
    def score(data, name):
        path = tmp_path / "f"
        path.write_bytes(data)
        return xplane.sniff(Source(path, name))

    assert score(two_planes(), "anything.bin") == 1.0
    assert score(b'{"traceEvents": []}', "x.json") == 0
    assert score(b"\x0a\x05hello" * 30, "x.bin") == 0
    assert score(b"", "x.log") == 0
    assert score(b"", "x.xplane.pb") == 0.9  # what JAX leaves beyond 2 GiB: `read` says so
    assert score(b"see /host:CPU\n" * 50, "notes.txt") == 0


def test_a_plane_beyond_two_gigabytes_is_stepped_over(tmp_path):
    """A field of 2.5 GB, a hole in a sparse file, stands before the line: only a reader that seeks gets past it."""
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("behind", [("x", 0, 1)])
    plane = space.planes[0].SerializeToString()
    hole = 5 << 29
    head = b"\x7a" + _varint(hole)  # field 15, which no plane has
    start = b"\x0a" + _varint(len(head) + hole + len(plane)) + head
    path = tmp_path / "huge.xplane.pb"
    with path.open("wb") as file:
        file.write(start)
        file.seek(hole, 1)
        file.write(plane)
    assert [e["op"] for e in Got(Source(path, path.name)).events()] == ["x"]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_a_broken_archive_keeps_what_unpacked(tmp_path):
    packed = gzip.compress(two_planes() * 1, 0)
    read = got(tmp_path, packed[:-12], "x.xplane.pb.gz")
    assert len(read.events()) >= 50 and any("gzip" in lost.what for lost in read.lost)


def test_prepare_compiles_every_kernel():
    xplane.prepare()
    from collectors.device.xplane import events, header, own_time, tables, wire

    for module, names in (
        (wire, ["index_fields", "index_entries"]),
        (events, ["decode"]),
        (own_time, ["own_time"]),
        (header, ["line_header"]),
        (tables, ["rehash", "compact"]),
    ):
        for name in names:
            assert getattr(module, name).forms, name
