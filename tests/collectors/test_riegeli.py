"""Profiles in pieces, as continuous profiling writes them (`.xplane.riegeli`): the same tables as the whole tells."""

import io
import random
import struct
import tracemalloc

import pytest

from collectors import ingest
from collectors.base import Lost, Source
from collectors.device import xplane
from collectors.device.xplane.riegeli import SIGNATURE, records
from collectors.device.xplane.riegeli.records import Record, unpack
from errors import InputError
from tests.collectors.riegeli_files import BLOCK, File, continuous, simple_data, varint
from tests.collectors.traces import (
    START_NS,
    Got,
    PlaneBuilder,
    XSpace,
    environment,
    got,
    jax_trace,
    sharded_program,
    tpu_steps,
)

CODECS = ("none", "brotli", "zstd", "snappy")
NAME = "host.xplane.riegeli"


def cut(space, pieces: int, seed: int = 0) -> list[bytes]:
    """A space cut into several by its events in their order, as a profiler does that hands on what it has: each piece
    holds the planes and lines that it has events of, with numbers of names of its own."""
    rng = random.Random(seed)
    out = [XSpace(hostnames=space.hostnames) for _ in range(pieces)]
    for plane in space.planes:
        for n, piece in enumerate(out):
            _take(plane, piece, n, pieces, rng)
    return [piece.SerializeToString() for piece in out]


def _take(plane, piece, n: int, pieces: int, rng: random.Random) -> None:
    mine = piece.planes.add(name=plane.name, stats=plane.stats)
    events, number = [entry.key for entry in plane.event_metadata], {}
    if plane.lines or n == 0:
        fresh = rng.sample(range(1, 5 * len(events) + 1), len(events))
        number = dict(zip(events, fresh, strict=True))
        for entry in plane.event_metadata:
            added = mine.event_metadata.add(key=number[entry.key], value=entry.value)
            added.value.id = number[entry.key]
    mine.stat_metadata.extend(plane.stat_metadata)
    for line in plane.lines:
        size = len(line.events)
        part = line.events[n * size // pieces : (n + 1) * size // pieces]
        if part:
            put = mine.lines.add(id=line.id, name=line.name, timestamp_ns=line.timestamp_ns, events=part)
            for event in put.events:
                event.metadata_id = number.get(event.metadata_id, 0)


def told(read: Got) -> dict:
    """All that a trace tells, but for the numbers of events and operations and the order of rows."""

    def key(row: dict) -> list[str]:
        return sorted(f"{k}={v}" for k, v in row.items() if k not in ("op_id", "event", "call_event"))

    ops = {o["op_id"]: str(key(o)) for o in read.rows["ops"]}
    tables = {t: sorted(map(key, rows)) for t, rows in read.rows.items() if t not in ("event_stats", "op_stats")}
    tables["op_events"] = sorted([*key(e), str(sorted(map(str, e["stats"])))] for e in read.events())
    tables["op_stats"] = sorted([ops[s["op_id"]], *key(s)] for s in read.rows["op_stats"])
    return tables | {"facts": read.facts, "blobs": read.blobs, "lost": sorted(map(str, read.lost))}


def nested_space():
    """Two hosts' threads, a GPU and a TPU, with operations that last over any cut."""
    space = XSpace(hostnames=[b"h"])
    environment(space)
    PlaneBuilder(space, "/host:metadata").metadata(
        "jit_step(9)", "", **{"Hlo Proto": sharded_program([[0, 1]], [[0, 1]])}
    )
    host = PlaneBuilder(space, "/host:CPU")
    host.line(
        "python",
        [("train", i * 100, 90, {"_r": 1, "step_num": i}) for i in range(40)],
        timestamp_ns=START_NS,
    )
    gpu = PlaneBuilder(space, "/device:GPU:0").stats(device_vendor="Nvidia", core_count=108)
    gpu.line(
        "Stream #7(Compute)",
        [("k", 0, 5000)] + [(f"k{i % 3}", 1 + i * 20, 10, {"correlation_id": i}) for i in range(200)],
    )
    tpu = PlaneBuilder(space, "/device:TPU:0").stats(device_type_string="TPU v6 lite")
    tpu.metadata("%while.1 = f32[8]{0} while(f32[8]{0} %x)", hlo_category="while", program_id=9)
    tpu.line("Steps", [(str(i), i * 100, 90) for i in range(40)])
    own = [{"device_offset_ps": 1000 * (7 + 10 * i), "device_duration_ps": 9000} for i in range(400)]
    tpu.line(
        "XLA Ops",
        [("%while.1 = f32[8]{0} while(f32[8]{0} %x)", 0, 4000)]
        + [("%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)", i * 10, 8, own[i]) for i in range(1, 400)],
    )
    tpu.line("Async XLA Ops", [("%copy-start.3 = f32[8]{0} copy-start(f32[8]{0} %x)", i * 50, 60) for i in range(80)])
    return space


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_pieces_tell_what_the_whole_tells(tmp_path, codec, pieces):
    space = nested_space()
    whole = told(got(tmp_path, space.SerializeToString(), NAME))
    assert told(got(tmp_path, continuous(cut(space, pieces), codec), NAME)) == whole
    together = File().records(*cut(space, pieces, seed=1), codec=codec).padded()  # as later versions write them
    assert told(got(tmp_path, together, NAME)) == whole


def test_collectives_of_pieces_are_numbered_through(tmp_path):
    data = tpu_steps(
        sharded_program([[0, 1], [2, 3]], [[0, 1, 2, 3]]), [[0, 1], [2, 3]], {d: [3, 5, 4] for d in range(4)}
    )
    space = XSpace.FromString(data)
    assert told(got(tmp_path, continuous(cut(space, 3)), NAME)) == told(got(tmp_path, data, NAME))


def test_a_real_trace_in_pieces(tmp_path):
    path, _ = jax_trace(tmp_path / "jax")
    space = XSpace.FromString(path.read_bytes())
    whole = told(got(tmp_path, space.SerializeToString(), NAME))
    assert told(got(tmp_path, continuous(cut(space, 4)), NAME)) == whole


def test_pieces_that_count_their_time_from_their_own_start(tmp_path):
    pieces = []
    for n in range(3):
        space = XSpace()
        environment(space, START_NS + n * 10**6, START_NS + (n + 1) * 10**6)
        PlaneBuilder(space, "/device:TPU:0").line("XLA Ops", [("a", 10, 5)], timestamp_ns=100)
        pieces.append(space.SerializeToString())
    read = got(tmp_path, continuous(pieces[::-1]), NAME)
    assert sorted(e["start_ps"] for e in read.events()) == [n * 10**9 + 110_000 for n in range(3)]
    (capture,) = read.rows["captures"]
    assert (capture["start_ns"], capture["stop_ns"]) == (START_NS, START_NS + 3 * 10**6)
    assert capture["devices"] == 1


def test_a_part_whose_start_is_damaged_costs_only_itself(tmp_path):
    """One far before all others, or so far behind that no whole number of 64 bits holds it in ps."""
    for wrong in (2 * 10**17, (1 << 62) - 1):
        pieces = []
        for n, start in enumerate((START_NS, wrong, START_NS + 10**6)):
            space = XSpace()
            environment(space, start, start + 10**6)
            PlaneBuilder(space, "/device:TPU:0").line("XLA Ops", [("a", 10 + n, 5)])
            pieces.append(space.SerializeToString())
        read = got(tmp_path, continuous(pieces), NAME)
        assert sorted(e["start_ps"] for e in read.events()) == [10_000, 10**9 + 12_000]
        assert [lost for lost in read.lost if "timestamp" in lost.reason]


def test_the_start_of_a_file_is_the_published_one():
    assert File().data[: len(SIGNATURE)] == SIGNATURE


def unpacked(data: bytes) -> tuple[list[bytes], list[Lost]]:
    out = io.BytesIO()
    found = list(unpack(io.BytesIO(data), out, "x"))
    parts = [out.getvalue()[r.start : r.end] for r in found if isinstance(r, Record)]
    return parts, [f for f in found if isinstance(f, Lost)]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_any_size_come_back(codec):
    rng = random.Random(codec)
    sizes = [0, 1, 31, 32, 33, BLOCK - 64, BLOCK - 63, BLOCK - 24, BLOCK, 3 * BLOCK + 5, *range(50, 83)]
    own = [rng.randbytes(n) for n in sizes]
    file = File()
    for record in own:
        file.records(record, codec=codec)
    assert unpacked(bytes(file.data)) == (own, [])
    assert unpacked(File().records(*own, codec=codec).padded() + continuous(own, codec)) == (own + own, [])


def test_a_damaged_record_costs_only_itself():
    own = [bytes([n]) * 200_000 for n in range(5)]
    data = bytearray(continuous(own, "none"))
    begins = [data.index(record[:1000]) for record in own]
    data[begins[2] + 150_000] ^= 1
    parts, lost = unpacked(bytes(data))
    assert parts == own[:2] + own[3:]
    assert [(one.offset, "hash" in one.reason) for one in lost] == [(begins[2] // BLOCK * BLOCK + 64, True)]


def test_behind_a_damaged_header_the_next_chunk_is_found():
    own = [bytes([n]) * 200_000 for n in range(5)]
    data = bytearray(continuous(own, "none"))
    begin = data.index(own[2][:1000]) // BLOCK * BLOCK
    data[begin + 70] ^= 1
    parts, lost = unpacked(bytes(data))
    assert parts == own[:2] + own[3:]
    assert len(lost) == 1 and lost[0].offset == begin + 64 and "damaged" in lost[0].reason


def test_every_cut_keeps_what_is_whole():
    own = [random.Random(n).randbytes(30_000 + 40_000 * n) for n in range(4)]
    data = continuous(own, "none")
    ends = [data.index(record[-50:]) + 50 for record in own]
    for end in range(100, len(data), 1024):
        parts, lost = unpacked(data[:end])
        whole = sum(e <= end for e in ends)
        assert parts == own[:whole]
        assert end % BLOCK == 0 or lost or end > ends[-1]


def test_pieces_out_of_order_and_twice_are_read_as_they_come():
    own = [random.Random(n).randbytes(100_000) for n in range(4)]
    blocks = [continuous([record]) for record in own]
    assert unpacked(b"".join(blocks[n] for n in (2, 0, 3, 0, 1))) == ([own[n] for n in (2, 0, 3, 0, 1)], [])


@pytest.mark.parametrize(
    ("kind", "data", "head", "word"),
    [
        (b"t", b"x", {"records": 1, "decoded": 5}, "transpose"),
        (b"q", b"x", {"records": 1, "decoded": 5}, "unknown kind"),
        (b"r", b"x\0\0", {"records": 1, "decoded": 5}, "unknown way"),
        (b"r", b"", {"records": 1, "decoded": 5}, "unknown way"),
        (b"r", simple_data([b"hello"]), {"records": 2, "decoded": 5}, "length"),
        (b"r", simple_data([b"hello", b""]), {"records": 1, "decoded": 5}, "sizes"),
        (b"r", simple_data([b"hello"]), {"records": 1, "decoded": 6}, "sizes"),
        (b"r", simple_data([b"hello"])[:-3], {"records": 1, "decoded": 5}, "unpack"),
        (b"r", simple_data([b"hello"], "none") + b"!", {"records": 1, "decoded": 5}, "unpack"),
        (b"r", simple_data([b"hello"]), {"records": 1, "decoded": 1 << 60}, "proportion"),
        (b"r", simple_data([b"hello"]), {"records": 1, "decoded": 5, "size": 1 << 62}, "ends in it"),
        (b"r", simple_data([b"hello"]), {"records": 1, "decoded": 5, "size": 1 << 20}, "ends in it"),
        (b"r", simple_data([b"hello"]), {"records": 1, "decoded": 5, "hash": 5}, "hash"),
        (b"r", simple_data([b""] * 3), {"records": 1 << 55, "decoded": 0, "size": 9}, ""),
    ],
)
def test_what_is_wrong_with_a_chunk_is_said(kind, data, head, word):
    file = File().records(b"first")
    at = len(file.data)
    size = head.pop("size", None)
    if head["records"] > 1 << 50:  # the file would have to be as long
        rest = struct.pack("<QQQQ", size, 0, kind[0] | head["records"] << 8, 0)
        from collectors.device.xplane.highway import highway

        file.data += struct.pack("<Q", highway(rest)) + rest + data
    else:
        file.chunk(kind, data, **head, **({} if size is None else {"size": size}))
    parts, lost = unpacked(bytes(file.data))
    assert parts == [b"first"]
    assert len(lost) == 1 and word in lost[0].reason and lost[0].offset == at


@pytest.mark.parametrize("codec", ["brotli", "zstd", "snappy"])
def test_a_bomb_is_not_unpacked(codec):
    """Much that says it is small, and little that says it is much."""
    import pyarrow as pa

    zeros = bytes(1 << 27)
    number = {"brotli": 98, "zstd": 122, "snappy": 115}[codec]
    packed = pa.Codec(codec).compress(zeros, asbytes=True)
    sizes = [varint(len(b)) + pa.Codec(codec).compress(b, asbytes=True) for b in (varint(5), varint(len(zeros)))]
    bombs = (
        (bytes([number]) + varint(len(sizes[0])) + sizes[0] + varint(5) + packed, 5),
        (bytes([number]) + varint(len(sizes[1])) + sizes[1] + varint(len(zeros)) + packed[:4000], len(zeros)),
    )
    for data, decoded in bombs:
        raw = bytes(File().chunk(b"r", data, records=1, decoded=decoded).data)
        tracemalloc.start()
        parts, lost = unpacked(raw)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert parts == [] and len(lost) == 1
        assert most < 4 * len(raw) + (8 << 20) < len(zeros)


def test_more_than_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(records, "MAX_UNPACKED_BYTES", 150_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        unpacked(continuous([bytes(100_000)] * 2))


def test_a_file_without_a_record_is_refused_in_a_sentence(tmp_path):
    for data, word in (
        (bytes(File().data), "no record can be read;|no record can be read: "),
        (bytes(File().chunk(b"t", b"x", 1, 5).data), "transposed"),
    ):
        with pytest.raises(InputError, match=word) as error:
            got(tmp_path, data, NAME)
        assert NAME in str(error.value) and "\n" not in str(error.value)


def test_it_is_known_by_its_beginning_and_its_name(tmp_path):
    (path := tmp_path / "f").write_bytes(continuous([nested_space().SerializeToString()]))
    assert xplane.sniff(Source(path, NAME)) == 0.9
    assert xplane.sniff(Source(path, "x.riegeli")) == 0.0  # records of anything


def test_an_empty_profile_is_named_beside_others(tmp_path, store):
    (tmp_path / "a.xplane.pb").write_bytes(b"")
    with pytest.raises(InputError, match="2 GiB") as error:
        ingest.ingest([tmp_path / "a.xplane.pb"], store)
    assert "enable_continuous_profiling" in str(error.value) and store.ids() == []
    (folder := tmp_path / "job").mkdir()
    (folder / "a.xplane.pb").write_bytes(b"")
    (folder / NAME).write_bytes(continuous(cut(nested_space(), 3)))
    done = ingest.ingest([folder], store)
    assert done.tables["op_events"] > 600
    assert [w for w in done.warnings if "a.xplane.pb" in w and "2 GiB" in w and "enable_continuous_profiling" in w]


def test_chunks_and_records_without_number_end(monkeypatch):
    """Each costs a moment however small it is."""
    monkeypatch.setattr(records, "MOST_CHUNKS", 4)
    monkeypatch.setattr(records, "MOST_RECORDS", 5)
    file = File().records(b"a", b"b")
    few = bytes(file.data)
    assert unpacked(few) == ([b"a", b"b"], [])
    more = bytes(file.records(*[b"c"] * 4).records(b"d").data)
    parts, lost = unpacked(more)
    assert parts == [b"a", b"b"]
    assert [one.reason for one in lost] == ["more than 5 records are said to be in the file"] * 2
    parts, lost = unpacked(more + bytes(File().records(b"e").data))
    assert parts == [b"a", b"b"] and lost[-1].reason == "they lie behind the first 4 chunks"
    assert lost[-1].offset == len(more)
