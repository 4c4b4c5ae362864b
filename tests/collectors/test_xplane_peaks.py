"""What beats a peak that the trace states is counted when it is read, and what may seem to is not."""

import pytest

from collectors.device.xplane.gaps import MISSING_SHARE, Starts
from collectors.reading.protobuf import message_types
from tests.collectors.traces import PlaneBuilder, XSpace, environment, got

ACCESS = message_types(
    "chipledger.tests.access", "Breakdown: Access* accesses=1\nAccess: int64 kind=1, int64 space=2, int64 bytes=3"
)["Breakdown"]


def breakdown(*accesses):
    message = ACCESS()
    for space, size in accesses:
        message.accesses.add(kind=1, space=space, bytes=size)
    return message.SerializeToString()


def tpu(space):
    return PlaneBuilder(space, "/device:TPU:0").stats(
        peak_teraflops_per_second=100.0, peak_hbm_bw_gigabytes_per_second=1000.0
    )


def lost(tmp_path, plane, space):
    environment(space)
    return [x for x in got(tmp_path, space.SerializeToString()).lost if x.what == "rates of operations"]


def test_runs_that_beat_the_memory_or_the_matrix_unit_are_told_once(tmp_path):
    """8 GB at 1,000 GB/s take 8 ms at least, 1e12 FLOPs at 100 TFLOP/s 10 ms."""
    space = XSpace()
    plane = tpu(space)
    copies, maths = "%add.1 = f32[2,1]{1,0} fusion(f32[2,1]{1,0} %x)", "%dot.2 = bf16[8]{0} fusion(bf16[8]{0} %x)"
    plane.metadata(copies, hlo_category="loop fusion", bytes_accessed=8_000_000_000)
    plane.metadata(maths, hlo_category="convolution fusion", flops=10**12, bytes_accessed=8)
    ms = 1_000_000
    plane.line(
        "XLA Ops",
        [
            (copies, 0, 8.1 * ms),
            (copies, 10 * ms, 7.95 * ms),
            (copies, 20 * ms, 4 * ms),
            (copies, 30 * ms, 0),
            (maths, 40 * ms, 10 * ms),
            (maths, 50 * ms, 5 * ms),
        ],
    )
    (told,) = lost(tmp_path, plane, space)
    assert told.reason.startswith(
        "3 of 6 runs of 2 operations were faster than the peak that the trace states "
        "(1,000 GB/s and 100 TFLOP/s) allows; the furthest is add.1: 0.000 ms"
    )
    assert "need 8.000 ms" in told.reason


@pytest.mark.parametrize(
    ("name", "stats"),
    [
        ("%copy-done.2 = f32[8]{0} copy-done((f32[8]{0}) %x)", {"hlo_category": "copy-done"}),
        ("%async-collective-done.3 = f32[8]{0} fusion(f32[8]{0} %x)", {"hlo_category": "custom fusion"}),
        ("%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1}}", {"hlo_category": "all-reduce"}),
        ("%while.1 = (s32[]) while(...)", {"hlo_category": "while"}),
        ("%fusion.1 = f32[8]{0:T(8)S(1)} fusion(f32[8]{0} %x)", {"hlo_category": "loop fusion"}),
        (
            "%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)",
            {"hlo_category": "loop fusion", "memory_access_breakdown": breakdown((3, 8_000_000_000), (1, 1000))},
        ),
    ],
)
def test_what_may_well_seem_faster_is_left_out(tmp_path, name, stats):
    space = XSpace()
    plane = tpu(space)
    plane.metadata(name, bytes_accessed=8_000_000_000, **stats)
    plane.line("XLA Ops", [(name, 0, 1000)])
    assert not lost(tmp_path, plane, space)


def test_products_of_eight_bits_have_another_peak(tmp_path):
    space = XSpace()
    plane = tpu(space)
    plane.metadata("%dot.1 = s32[8]{0} fusion(s8[8]{0} %x)", hlo_category="convolution fusion", flops=10**12)
    plane.line("XLA Ops", [("%dot.1 = s32[8]{0} fusion(s8[8]{0} %x)", 0, 5_000_000)])
    assert not lost(tmp_path, plane, space)


def test_bytes_of_the_devices_memory_count_where_they_are_told(tmp_path):
    space = XSpace()
    plane, name = tpu(space), "%fusion.2 = f32[8]{0:T(8)S(1)} fusion(f32[8]{0} %x)"
    plane.metadata(
        name,
        hlo_category="loop fusion",
        bytes_accessed=9_000_000_000,
        memory_access_breakdown=breakdown((3, 1_000_000_000), (1, 8_000_000_000)),
    )
    plane.line("XLA Ops", [(name, 0, 7_000_000)])
    (told,) = lost(tmp_path, plane, space)
    assert "1 of 1 runs" in told.reason and "need 8.000 ms" in told.reason


def test_without_a_stated_peak_nothing_is_held_against_it(tmp_path):
    space = XSpace()
    plane, name = PlaneBuilder(space, "/device:TPU:0"), "%fusion.2 = f32[8]{0} fusion(f32[8]{0} %x)"
    plane.metadata(name, hlo_category="loop fusion", bytes_accessed=9_000_000_000)
    plane.line("XLA Ops", [(name, 0, 0)])
    assert not lost(tmp_path, plane, space)


# --- runs of programs without operations ------------------------------------------------------------------------------


def gap(tmp_path, empty_ns, order=("XLA Modules", "XLA Ops"), device=0, planes=1):
    """Losses of a device that shows no operation in the last `empty_ns` of a million ns of programs."""
    space = XSpace()
    lines = {
        "XLA Modules": [("jit_f(9)", 0, 1_000_000 - empty_ns), ("jit_f(9)", 1_000_000, empty_ns)],
        "XLA Ops": [("fusion", 10, 800)],
    }
    for _ in range(planes):
        plane = PlaneBuilder(space, f"/device:TPU:{device}")
        for line in order:
            plane.line(line, lines[line])
    environment(space)
    return got(tmp_path, space.SerializeToString()).lost


def test_a_gap_counts_from_one_hundredth_of_the_program_time(tmp_path):
    assert MISSING_SHARE == 0.01
    assert not gap(tmp_path, 10_000)
    (told,) = gap(tmp_path, 10_100)
    assert told.what == "operations of device 0" and told.reason.startswith("1 of 2 program runs")


def test_the_order_of_lines_and_joined_traces_make_no_gap(tmp_path):
    assert not gap(tmp_path, 5_000, order=("XLA Ops", "XLA Modules"))
    assert not gap(tmp_path, 5_000, planes=3)
    assert len(gap(tmp_path, 50_000, order=("XLA Ops", "XLA Modules"), planes=3)) == 1


def test_starts_stay_bounded_and_true(monkeypatch):
    import numpy as np

    from collectors.device.xplane import gaps

    monkeypatch.setattr(gaps, "_MOST_CELLS", 50)
    starts = Starts()
    for part in np.array_split(np.arange(0, 1000) * 2_000_000, 9):
        starts.add(part)
    starts.add(np.array([9_000_000_000]))
    cell = starts.cell_ps
    assert cell > 1_000_000
    begin = np.array([0, 1_500_000_000, 3_000_000_000, 8_000_000_000, 9_000_000_000 - cell])
    found = starts.within(begin, begin + np.array([cell, cell, 2_000_000_000, cell, 2 * cell]))
    assert found.tolist() == [True, True, False, False, True]
