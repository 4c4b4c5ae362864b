"""Damaged traces: whatever the bytes, the reader keeps what it can and names the rest, or refuses; it never fails else.

In the suite a few hundred examples run. For a long hunt, with real traces as a start:

    python -m tests.fuzz.test_xplane_fuzz SECONDS [TRACE...]

It writes each input that broke the reader to the current folder.
"""

import contextlib
import random
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Source
from collectors.device import xplane
from collectors.device.hlo.module import analyse
from collectors.device.hlo.shapes import HLO
from collectors.device.xplane import batches, reader
from errors import InputError
from tests.collectors.traces import Got, PlaneBuilder, XSpace, environment
from tests.fuzz.damage import damaged


def module() -> bytes:
    """A small program with a loop, a fusion around a product, a collective and a window."""
    proto = HLO["HloProto"]()
    m = proto.hlo_module
    m.name, m.entry_computation_id = b"jit_f", 3
    for device in (1, 0):
        m.device_assignment.computation_devices.add(replica_device_ids=[device])
    shape = {
        "element_type": 11,
        "dimensions": [8, 8],
        "layout": {"minor_to_major": [1, 0], "tiles": [{"dimensions": [8, 128]}]},
    }
    fused, body, entry = (m.computations.add(id=i) for i in (1, 2, 3))
    fused.instructions.add(id=1, name=b"p", opcode=b"parameter", shape=shape)
    fused.instructions.add(
        id=2,
        name=b"dot",
        opcode=b"dot",
        shape=shape,
        operand_ids=[1, 1],
        dot_dimension_numbers={"lhs_contracting": [1], "rhs_contracting": [0]},
    )
    fused.root_id = 2
    body.instructions.add(id=3, name=b"arg", opcode=b"parameter", shape=shape)
    body.instructions.add(
        id=4, name=b"fusion.1", opcode=b"fusion", shape=shape, operand_ids=[3], called_computation_ids=[1]
    )
    body.instructions.add(
        id=5,
        name=b"all-reduce.1",
        opcode=b"all-reduce",
        shape=shape,
        operand_ids=[4],
        replica_groups=[{"replica_ids": [0, 1]}],
    )
    entry.instructions.add(id=6, name=b"x", opcode=b"parameter", shape=shape)
    entry.instructions.add(
        id=7,
        name=b"while.1",
        opcode=b"while",
        shape=shape,
        operand_ids=[6],
        called_computation_ids=[2, 1],
        backend_config=b'{"known_trip_count":{"n":"5"}}',
    )
    entry.instructions.add(
        id=8,
        name=b"conv",
        opcode=b"convolution",
        shape=shape,
        operand_ids=[6, 7],
        window={"dimensions": [{"size": 3, "stride": 1, "padding_low": 1, "base_dilation": 2}]},
        convolution_dimension_numbers={"input_feature": 1, "kernel_output": 1, "output_feature": 1},
    )
    return proto.SerializeToString()


def trace() -> bytes:
    """A trace with every kind of plane, line and stat that the reader treats on its own."""
    space = XSpace(hostnames=[b"vm"], errors=[b"one error"])
    environment(space)
    PlaneBuilder(space, "/host:metadata").metadata("jit_f(9)", **{"Hlo Proto": module(), "program_id": 9})
    of = {
        "hlo_op": "fusion.1",
        "hlo_module": "jit_f",
        "program_id": 9,
        "device_ordinal": 1,
        "word": ["inline"],
        "x": 0.5,
    }
    PlaneBuilder(space, "/host:CPU").stats(jax_version="0.1").line(
        "python",
        [
            ("train", 0, 900, {"step_num": 3, "_r": 1}),
            ("data_loading", 5, 50),
            ("fusion.1", 60, 20, of),
            ("all-reduce.1", 90, 30, of | {"hlo_op": "all-reduce.1"}),
            ("MemoryAllocation", 95, 0, {"bytes_allocated": 5, "allocator_name": ["GPU_0_bfc"]}),
        ],
    )
    tpu = PlaneBuilder(space, "/device:TPU:0").stats(peak_teraflops_per_second=9.0, core_details=b"\x28\x01\x30\x01")
    tpu.metadata("%all-reduce.2 = f32[8] all-reduce(f32[8] %x), replica_groups=[1,2]<=[2]", hlo_category="all-reduce")
    tpu.line("XLA Modules", [("jit_f(9)", 0, 100)]).line("Steps", [("3", 0, 100)]).line(
        "XLA Ops",
        [
            (
                "%all-reduce.2 = f32[8] all-reduce(f32[8] %x), replica_groups=[1,2]<=[2]",
                5,
                20,
                {"device_offset_ps": 4_000, "device_duration_ps": 21_000},
            ),
            ("fusion.1", 30, 9, {"device_offset_ps": 29_000, "device_duration_ps": 9_000}),
        ],
    )
    PlaneBuilder(space, "/device:GPU:1").stats(core_count=132).line(
        "Stream #1(Compute)",
        [
            ("ncclDevKernel_AllReduce(int)", 0, 9, of),
            ("kernel", 9, 9, of),
            ("MemcpyH2D", 20, 4),
        ],
    )
    return space.SerializeToString()


def survive(path: Path) -> None:
    """Reads a file; anything but rows, facts, blobs, losses or an InputError that names it is a defect."""
    source = Source(path, "some.xplane.pb")
    assert 0 <= xplane.sniff(source) <= 1
    try:
        Got(source)  # checks every batch against the seam
    except InputError as error:
        assert "some.xplane.pb" in str(error) and "\n" not in str(error)


def test_the_original_is_whole(tmp_path):
    (tmp_path / "t").write_bytes(trace())
    read = Got(Source(tmp_path / "t", "some.xplane.pb"))
    assert [lost.what for lost in read.lost] == ["something the profiler itself noted"]
    for table in (
        "ops",
        "op_events",
        "event_stats",
        "op_stats",
        "modules",
        "collectives",
        "matmuls",
        "steps",
        "lifecycle",
        "memory",
        "captures",
    ):
        assert read.rows[table], table
    assert read.rows["matmuls"][0]["count"] == 11  # five times in the body, six in the condition


@pytest.mark.parametrize("capacity", [1 << 23, 48], ids=["one window", "many windows"])
@settings(max_examples=250, deadline=None)
@given(data=damaged([trace()]))
def test_damage(capacity, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LINES_WINDOW", capacity)
        patch.setattr(reader, "_NOTES_WINDOW", capacity)
        if capacity < 1000:
            patch.setattr(batches, "STAT_ROWS", 9)
            patch.setattr(batches, "EVENT_ROWS", 4)
        survive(path)


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=400))
def test_noise(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(data)
    survive(path)


@settings(max_examples=150, deadline=None)
@given(data=damaged([module()]))
def test_damaged_programs(data):
    with contextlib.suppress(InputError):
        analyse(data)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(trace()) - 1), st.integers(1, 9), st.integers(0, 2**63 - 1))
def test_false_lengths_ask_for_no_memory(at, width, value):
    """Any number in the file replaced by a huge one: memory stays at the size of the buffers."""
    data = bytearray(trace())
    data[at : at + width] = bytes([*(((value >> 7 * i) & 127) | 128 for i in range(8)), 0x7F])
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        tracemalloc.start()
        try:
            survive(Path(file.name))
            assert tracemalloc.get_traced_memory()[1] < 200 << 20
        finally:
            tracemalloc.stop()


def hunt(seconds: float, originals: list[bytes]) -> int:
    """Damages and reads until the time is up; returns how many inputs broke the reader."""
    random.seed()
    broken, runs, end = 0, 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.xplane.pb"
        while time.monotonic() < end:
            data = bytearray(random.choice(originals))
            if random.random() < 0.25:
                del data[random.randrange(len(data)) :]
            for _ in range(random.choice((1, 1, 2, 5, 20, 200)) if data else 0):
                at = random.randrange(len(data))
                match random.randrange(4):
                    case 0 | 1:
                        data[at] ^= 1 << random.randrange(8)
                    case 2:
                        data[at] = random.randrange(256)
                    case 3:
                        data[at : at + random.randrange(9)] = random.randbytes(random.randrange(9))
                if not data:
                    break
            path.write_bytes(data)
            started = time.monotonic()
            runs += 1
            try:
                survive(path)
                assert time.monotonic() - started < 10, "took more than ten seconds"
            except Exception as error:  # noqa: BLE001  # whatever it is, it is what the hunt looks for
                broken += 1
                Path(f"broken-{broken}.xplane.pb").write_bytes(data)
                print(f"broken-{broken}.xplane.pb: {type(error).__name__}: {error}")
    print(f"{runs} inputs, {broken} broke the reader")
    return broken


if __name__ == "__main__":
    sys.exit(hunt(float(sys.argv[1]), [Path(p).read_bytes() for p in sys.argv[2:]] or [trace()]) > 0)
