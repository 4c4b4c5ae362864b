"""Times of TPU operations: those that the device measured, where the profiler's mapping onto the host's clock errs."""

import numpy as np
import pytest

from collectors.device.xplane import clock, reader
from collectors.device.xplane.clock import DeviceClock, densest, offsets, samples
from collectors.device.xplane.tables import OWN
from tests.collectors.traces import START_NS, PlaneBuilder, XSpace, environment, got

OP = "%fusion.{0} = f32[8]{{0}} fusion(f32[8]{{0}} %x)"


def timed(name, host, own):
    """An event at (start, duration) ns on the host's clock, as the profiler put it, and on the device's own."""
    stats = {"device_offset_ps": round(own[0] * 1000), "device_duration_ps": round(own[1] * 1000)}
    return (name, *host, stats)


def device(space, number=0):
    return PlaneBuilder(space, f"/device:TPU:{number}").stats(core_details=bytes([0x28, number, 0x30, number]))


def read(tmp_path, space):
    environment(space)
    return got(tmp_path, space.SerializeToString())


def test_durations_gaps_and_order_are_the_devices_own(tmp_path):
    """The profiler squeezed `a` into nothing, stretched `b`, and put `c` and `d` the wrong way round."""
    space = XSpace()
    device(space).line(
        "XLA Ops",
        [
            timed("a", (1000, 0), (1000, 80)),
            timed("b", (1000, 180), (1080, 100)),
            timed("d", (1180, 10), (1240, 10)),
            timed("c", (1190, 50), (1180, 60)),
            timed("e", (1250, 10), (1250, 10)),
            timed("f", (1260, 5), (1260, 5)),
        ],
    )
    events = read(tmp_path, space).events()
    assert [(e["op"], e["start_ps"], e["dur_ps"]) for e in sorted(events, key=lambda e: e["start_ps"])] == [
        ("a", 1_000_000, 80_000),
        ("b", 1_080_000, 100_000),
        ("c", 1_180_000, 60_000),
        ("d", 1_240_000, 10_000),
        ("e", 1_250_000, 10_000),
        ("f", 1_260_000, 5_000),
    ]
    totals = {o["op"]: (o["total_ns"], o["self_ns"]) for o in got(tmp_path, space.SerializeToString()).rows["ops"]}
    assert totals["a"] == (80, 80) and totals["b"] == (100, 100) and totals["c"] == (60, 60)


def test_a_clock_that_counts_from_elsewhere_is_moved_as_a_whole(tmp_path):
    """Times since the device started, hours ago; the profiler places a quarter of the operations late."""
    boot, space = 7.2e13, XSpace()  # ns
    late = [0, 0, 300_000, 0, 0, 0, 900_000, 0, 0, 0]
    device(space).line(
        "XLA Ops",
        [timed(f"op{i}", (1000 + 100 * i + wait, 50), (boot + 1000 + 100 * i, 40)) for i, wait in enumerate(late)],
    )
    events = read(tmp_path, space).events()
    assert [(e["start_ps"], e["dur_ps"]) for e in events] == [((1000 + 100 * i) * 1000, 40_000) for i in range(10)]


def test_lines_that_tell_no_times_of_the_device_go_with_its_operations(tmp_path):
    """Program runs, steps and asynchronous copies were moved by the profiler just like the operations in them; the line
    of operations may stand behind them in the file."""
    space, lag = XSpace(), [0, 2_000_000, 5_000_000, 0]
    at = [10_000_000 * i for i in range(4)]
    device(space).line("XLA Modules", [("jit_f(9)", a + d, 900_000) for a, d in zip(at, lag, strict=True)]).line(
        "Steps", [(str(i), a + d, 900_000) for i, (a, d) in enumerate(zip(at, lag, strict=True))]
    ).line("Async XLA Ops", [("copy-start.1", a + d, 900_000) for a, d in zip(at, lag, strict=True)]).line(
        "XLA Ops", [timed("fusion", (a + d, 900_000), (a, 900_000)) for a, d in zip(at, lag, strict=True)]
    )
    got_ = read(tmp_path, space)
    placed = {(e["line"], e["start_ps"] // 1000, e["dur_ps"] // 1000) for e in got_.events()}
    assert placed == {(line, a, 900_000) for line in ("XLA Modules", "Steps", "Async XLA Ops", "XLA Ops") for a in at}
    assert [(s["step"], s["start_ns"] - START_NS, s["dur_ns"]) for s in got_.rows["steps"]] == [
        (i, a, 900_000) for i, a in enumerate(at)
    ]
    assert {o["total_ns"] for o in got_.rows["ops"] if o["line"] != "Steps"} == {4 * 900_000}


def test_lines_of_one_device_stay_together_however_the_profiler_scatters_them(tmp_path):
    """Program runs and operations tell the device's own times; by the host's they are up to 20 ms off."""
    space, random = XSpace(), np.random.default_rng(3)
    runs = [100_000_000 * i for i in range(12)]  # ns
    ops = [run + 1_000_000 * k for run in runs for k in range(90)]
    late = np.interp(np.arange(1200), np.linspace(0, 1200, 14), random.uniform(0, 2e7, 14))

    def on_host(at):
        return at + float(late[at // 1_000_000])

    device(space).line("XLA Modules", [timed("jit_f(9)", (on_host(a), 9e7), (a, 9e7)) for a in runs]).line(
        "XLA Ops", [timed("fusion", (on_host(a), 9e5), (a, 9e5)) for a in ops]
    )
    events = read(tmp_path, space).events()
    starts = {line: sorted(e["start_ps"] for e in events if e["line"] == line) for line in ("XLA Modules", "XLA Ops")}
    assert starts["XLA Modules"] == starts["XLA Ops"][::90]


def test_stretched_program_runs_shrink_with_their_operations(tmp_path):
    space = XSpace()
    device(space).line(
        "XLA Ops",
        [
            timed("a", (0, 10_000), (0, 10_000)),
            timed("b", (10_000, 50_000_000), (10_000, 20_000)),
            timed("c", (50_010_000, 10_000), (30_000, 10_000)),
            timed("d", (50_020_000, 1_000), (40_000, 1_000)),
            timed("e", (60_000_000, 1_000), (60_000_000, 1_000)),
            timed("f", (70_000_000, 1_000), (70_000_000, 1_000)),
            timed("g", (80_000_000, 1_000), (80_000_000, 1_000)),
        ],
    ).line("XLA Modules", [("jit_f(9)", 0, 50_020_000)])
    read_ = read(tmp_path, space)
    (run,) = read_.ops(line="XLA Modules")
    assert run["total_ns"] == pytest.approx(40_000)
    assert not read_.lost and read_.facts["operation_times"] == "as the devices measured them"


def test_collectives_are_compared_by_the_devices_own_times(tmp_path):
    """Both devices took as long; the profiler gave one of them nothing."""
    name = "%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1}}, to_apply=%add"
    space = XSpace()
    for number in (0, 1):
        device(space, number).line(
            "XLA Ops",
            [
                timed("before", (0, 100), (0, 100)),
                timed(name, (100, 0 if number else 400), (100, 400)),
                timed("after", (500, 100), (500, 100)),
                timed("later", (600, 100), (600, 100)),
            ],
        )
    rows = read(tmp_path, space).rows["collectives"]
    assert [(c["start_ns"] - START_NS, c["end_ns"] - START_NS) for c in rows] == [(100, 500)] * 2


def test_devices_that_begin_at_different_times_stay_together():
    """Clocks that run 15 ppm apart from the host's: offsets hold for one moment, not for each device's own start."""
    random = np.random.default_rng(1)
    lines = []
    for begin in (5e12, 7.5e12):
        own = np.sort(random.uniform(begin, 60e12, 800)).astype(np.int64)
        late = np.where(random.random(800) < 0.45, random.uniform(0, 2e11, 800), 0)
        lines.append(np.stack([own + (15e-6 * own + late).astype(np.int64), own], axis=1))
    first, second = offsets(lines)
    assert abs(first - second) < 2e6  # 2 us
    assert abs(first - 15e-6 * 5e12) < 2e6


def test_values_that_agree_are_found_among_others():
    random = np.random.default_rng(2)
    values = np.append(random.uniform(0, 1e9, 300), random.normal(4e5, 10, 200))
    assert abs(densest(values) - 4e5) < 100
    assert densest(np.array([3.0])) == 3 and densest(np.array([3.0, 5.0])) == 4
    assert offsets([]) == [] and offsets([np.zeros((0, 2), np.int64)]) == [0]


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ([30.0, 0.0, 11.0, 10.0], 10.5),  # of stretches of two, 10 to 11
        ([0.0, 1.0, 10.0, 12.0, 14.0], 11.0),  # of three, 10 to 14; of two of those, the first
        ([0.0, 5.0, 6.0], 5.5),
    ],
)
def test_the_half_sample_mode_by_hand(values, mode):
    assert densest(np.array(values)) == mode


@pytest.mark.parametrize(
    ("count", "step", "late", "offset"),
    [
        (18, 1_000_000, 500, 0),  # nine pairs tell the pace: half a thousandth, and nothing at the first sample
        (16, 1_000_000, 500, 250),  # eight tell none: of the lags, 0 and 500 are the first that lie closest
        (18, 1_000, 500, 250),  # no clock runs half as fast again
    ],
)
def test_a_pace_is_believed_from_nine_pairs_on_and_below_a_thousandth(count, step, late, offset):
    own = np.arange(count, dtype=np.int64) * step
    assert offsets([np.stack([own + np.arange(count) * late, own], axis=1)]) == [offset]


def test_offsets_are_exact_however_far_the_clocks_are_apart_and_whichever_device_tells_nothing():
    at = np.arange(30, dtype=np.int64) * 1_000_003
    host, own = 900_000_000_000_000_010 + at, 700_000_000_000_000_003 + at
    nothing = np.zeros((0, 2), np.int64)
    told = np.stack([host, own], axis=1)
    assert offsets([nothing, told, nothing, told + [[5, 0]]]) == [0, 2 * 10**17 + 7, 0, 2 * 10**17 + 12]


def test_times_that_cannot_be_leave_the_hosts(tmp_path):
    """A device's time an hour away, a negative duration, one of both missing: the operation stays where it was put."""
    space = XSpace()
    plane = device(space)
    good = [timed(f"op{i}", (1000 * i, 100), (1000 * i, 90 if i == 3 else 100)) for i in range(8)]
    plane.line(
        "XLA Ops",
        [
            *good,
            timed("far", (9000, 100), (3.6e12, 90)),
            timed("negative", (9200, 100), (9200, -5)),
            ("half", 9400, 100, {"device_offset_ps": 9_400_000}),
            ("none", 9600, 100),
        ],
    )
    events = {e["op"]: (e["start_ps"] // 1000, e["dur_ps"] // 1000) for e in read(tmp_path, space).events()}
    assert (
        events
        | {"op3": (3000, 90), "far": (9000, 100), "negative": (9200, 100), "half": (9400, 100), "none": (9600, 100)}
        == events
    )


def test_a_trace_without_such_times_is_read_as_before(tmp_path):
    space = XSpace()
    device(space).line("XLA Modules", [("jit_f(9)", 0, 50)]).line("XLA Ops", [("a", 5, 10), ("b", 20, 10)])
    read_ = read(tmp_path, space)
    assert "operation_times" not in read_.facts
    assert [(e["op"], e["start_ps"], e["dur_ps"]) for e in read_.events()] == [
        ("jit_f(9)", 0, 50_000),
        ("a", 5_000, 10_000),
        ("b", 20_000, 10_000),
    ]


def test_points_of_the_lag_stay_bounded(tmp_path, monkeypatch):
    """A mapping that errs differently at every operation: points are thinned, and other lines still follow."""
    monkeypatch.setattr(clock, "_MOST_POINTS", 40)
    monkeypatch.setattr(clock, "KNOT_ROWS", 8)
    monkeypatch.setattr(reader, "_LINES_WINDOW", 128)
    random, space = np.random.default_rng(3), XSpace()
    late = np.where(np.arange(300) % 2, random.integers(2_000, 4_000, 300), 0).tolist()
    device(space).line("XLA Modules", [("jit_f(9)", 100_000 * i + w, 50_000) for i, w in enumerate(late)]).line(
        "XLA Ops", [timed("op", (100_000 * i + w, 50_000), (100_000 * i, 50_000)) for i, w in enumerate(late)]
    )
    events = read(tmp_path, space).events()
    assert [e["start_ps"] for e in events if e["line"] == "XLA Ops"] == [100_000_000 * i for i in range(300)]
    runs = [e["start_ps"] for e in events if e["line"] == "XLA Modules"]
    assert np.abs(np.array(runs) - 100_000_000 * np.arange(300)).max() <= 4_000_000


def test_a_line_cut_off_gives_the_samples_before():
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0").line("XLA Ops", [timed("a", (i, 1), (i, 1)) for i in range(5)])
    raw = plane.plane.lines[0].SerializeToString()
    ids = {e.value.name: e.key for e in plane.plane.stat_metadata}
    out = np.zeros((8, 2), np.int64)
    data, keys = np.frombuffer(raw, np.uint8), (ids[b"device_offset_ps"], ids[b"device_duration_ps"])
    found = [samples(data, 0, stop, len(raw), *keys, out) for stop in range(len(raw) + 1)]
    assert found[-1] == 5 and found == sorted(found)
    assert (out[:5, 0] == out[:5, 1]).all()
    state = DeviceClock()
    state.line(None, 0)
    assert state.own[OWN] == 0 and not state.known
