"""Traces of Chakra: what their nodes become, with and without times, and those of which nothing was measured."""

import gzip
from types import SimpleNamespace

import pytest

from analyzers.device.modules import modules
from collectors.device import chakra, kineto, xplane
from collectors.ingest import ingest
from collectors.ingesting.beside import left_out
from errors import InputError
from errors.options import parse_options
from runs.store import Store
from tests.collectors.reading import read, source_of

COMP, COLLECTIVE, META = 4, 7, 1
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)"


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def sized(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def attr(name, number, value):
    body = sized(number, value) if isinstance(value, bytes) else varint(number << 3) + varint(value)
    return sized(10, sized(1, name) + body)


def node(name, dur, on_cpu=False, tid=7, kind=COMP, start=0, number=5):
    body = varint(1 << 3) + varint(number) + sized(2, name.encode()) + varint(3 << 3) + varint(kind)
    body += varint(6 << 3) + varint(start) if start else b""
    body += varint(7 << 3) + varint(dur) if dur else b""
    told = b"" if on_cpu is None else attr(b"is_cpu_op", 27, int(on_cpu))
    return body + sized(8, sized(1, b"[[1, 2]]")) + told + (attr(b"tid", 9, tid) if tid is not None else b"")


WHOLE = sized(2, sized(1, b"schema") + sized(29, b"1.0.2"))


def trace(*nodes):
    return b"".join(varint(len(m)) + m for m in (WHOLE, *nodes))


NODES = [
    node("aten::mm(0)", 30, True, 1),
    node("aten::mm(1)", 20, True, 1),
    node("sm80_xmma_gemm_f16f16", 500),
    node("sm80_xmma_gemm_f16f16", 700),
    node(NCCL, 250, kind=COLLECTIVE, tid=14),
    node("[pytorch|profiler]", 0, True, kind=META),
]
STARTED = [node(f"k{n % 3}", 10 + n, start=1_700_000_000_000_000 + 100 * n) for n in range(9)]
VALID = [trace(*NODES), trace(*STARTED)]


def told(tmp_path, data, name="run/chakra.0.et"):
    source = source_of(tmp_path, data, name)
    assert chakra.sniff(source) == 0.9
    return read(chakra, source)


def test_without_starts(tmp_path):
    got = told(tmp_path, VALID[0])
    keys = ("device", "line", "role", "op", "category", "count", "total_ns", "self_ns")
    assert [tuple(row[key] for key in keys) for row in got.rows["ops"]] == [
        (None, "thread 1", "host", "aten::mm(0)", "host", 1, 30_000, None),
        (None, "thread 1", "host", "aten::mm(1)", "host", 1, 20_000, None),
        (0, "stream 7", "compute", "sm80_xmma_gemm_f16f16", "matmul", 2, 1_200_000, 1_200_000),
        (0, "stream 14", "compute", NCCL, "collective", 1, 250_000, 250_000),
    ]
    [capture] = got.rows["captures"]
    assert (capture["host"], capture["start_ns"], capture["devices"]) == ("chakra.0", None, 1)
    assert "op_events" not in got.rows and "no node tells its start" in got.reasons()


def test_with_starts(tmp_path):
    got = told(tmp_path, VALID[1])
    assert [row["start_ps"] for row in got.rows["op_events"]] == [100_000_000 * n for n in range(9)]
    assert [row["dur_ps"] for row in got.rows["op_events"]] == [(10 + n) * 1_000_000 for n in range(9)]
    assert got.rows["captures"][0]["start_ns"] == 1_700_000_000_000_000_000 and not got.lost
    relative = told(tmp_path, trace(node("k", 1, start=5), node("k", 2, start=9), node("k", 2, start=1 << 51)))
    assert relative.column("op_events", "start_ps") == [0, 4_000_000]
    assert "1970" in relative.reasons() and "months before" in relative.reasons()


def test_what_was_generated_is_refused(tmp_path):
    generated = trace(*(node(f"COMP_NODE_{n}", 7, None, None) for n in range(3)))
    with pytest.raises(InputError, match="3 nodes that do not tell whether the CPU or a device") as said:
        told(tmp_path, generated)
    assert "simulator" in str(said.value)
    with pytest.raises(InputError, match="no node that took any time"):
        told(tmp_path, trace(node("aten::mm", 0, True)))


def test_damage(tmp_path):
    whole = VALID[0]
    cut = told(tmp_path, whole[: -len(NODES[-1]) - 30])
    assert len(cut.rows["ops"]) == 3 and "in the middle of a node" in cut.reasons()
    packed = gzip.compress(trace(*NODES * 500), 1)
    assert told(tmp_path, packed[: len(packed) * 2 // 3]).rows["ops"]
    odd = [b"\xff\xff\xff", node("é\x1b\n", 1, tid=None)]
    long = node("x" * 1_000_000, (1 << 64) - 1)
    got = told(tmp_path, trace(*NODES, *odd, long, node("y" * 100_000, 1)))
    assert "they are damaged" in got.reasons() and "their time is none" in got.reasons()
    assert max(len(row["op"]) for row in got.rows["ops"]) == 4_000
    assert "stream that is not told" in got.column("ops", "line")
    endless = told(tmp_path, trace(*NODES) + b"\xff" * 9 + b"\x01")
    assert len(endless.rows["ops"]) == 4 and "damaged" in endless.reasons()


def test_one_beside_traces_of_the_profiler_is_left_out():
    def job(collector, name):
        return SimpleNamespace(collector=collector, size=9, source=SimpleNamespace(name=name))

    mine, other = job(chakra, "a/chakra.0.et"), job(chakra, "b/chakra.0.et")
    traced = job(kineto, "a/rank0.pt.trace.json")
    kept, aside = left_out([mine, other, traced])
    assert kept == [traced] and [name for name, _ in aside] == ["a/chakra.0.et", "b/chakra.0.et"]
    assert left_out([mine, other])[0] == [mine, other]


def test_what_is_not_known_of_order_is_not_told_as_nothing(tmp_path):
    """Which part of a collective nothing runs beside is none of 0 s where nobody tells when it ran."""
    (tmp_path / "chakra.0.et").write_bytes(VALID[0])
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / "chakra.0.et"], store).run_id)
    told = modules.analyze(run.tables, run.manifest.facts, parse_options(modules.OPTIONS, {}))
    assert told.device_seconds == 1.45e-3 and told.rows["exposed_communication_seconds"].isna().all()


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x0a\x05hello", b"{}", b"\x02\x12\x00\x04\x08\x05\x12\x00", b"\x05abc"]
)
def test_what_others_write_is_not_claimed(tmp_path, data):
    from tests.fuzz.test_xplane_fuzz import trace as profile

    assert chakra.sniff(source_of(tmp_path, data)) == 0
    assert chakra.sniff(source_of(tmp_path, profile())) == 0
    assert all(xplane.sniff(source_of(tmp_path, valid)) < 0.9 for valid in VALID)
