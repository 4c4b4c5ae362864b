"""Planes of GPUs, built here: copies by what they say of themselves, steps of devices captured apart, chips by name."""

import pytest

from collectors.device.xplane.lines import is_gpu_copy
from collectors.device.xplane.ops import Op, OpRows
from collectors.device.xplane.planes import EventName
from collectors.device.xplane.state import new_ops
from tests.collectors.traces import START_NS, PlaneBuilder, XSpace, environment, got

COPY = {"memcpy_details": "kind:Unknown size:655360 dest:2 async:1"}
V100 = {"compute_cap_major": 7, "compute_cap_minor": 0, "core_count": 80, "memory_size": 16_945_512_448}


def read(tmp_path, *planes):
    """What the reader makes of planes: (name, {line: events}[, stats])."""
    space = XSpace()
    for name, lines, *stats in planes:
        plane = PlaneBuilder(space, name).stats(**(stats[0] if stats else {}))
        for line, events in lines.items():
            plane.line(line, events)
    environment(space)
    return got(tmp_path, space.SerializeToString(), "h.xplane.pb")


def test_an_event_with_details_of_a_copy_is_one_whatever_its_name(tmp_path):
    fill = {"hlo_op": "attention.1", "hlo_module": "jit_f", "program_id": 4}
    found = read(
        tmp_path,
        (
            "/device:GPU:0",
            {
                "Stream #7(MemcpyOther)": [
                    ("moved", 0, 10, COPY),
                    ("moved", 20, 10, COPY),
                    ("zeroed", 40, 5, {"memset_details": "size:8 async:1"}),
                ],
                "Stream #1(Kernel)": [
                    ("moved", 0, 7),
                    ("attention_kernel", 10, 30, fill),
                    ("setter", 50, 2, fill | COPY),
                ],
            },
        ),
    )
    assert [(o["op"], o["category"], o["role"], o["count"]) for o in found.rows["ops"]] == [
        ("moved", "copy", "compute", 2),
        ("zeroed", "copy", "compute", 1),
        ("moved", "other", "compute", 1),  # a kernel of that name that says nothing of copying
        ("attention.1", "elementwise", "compute", 1),
        ("attention.1", "copy", "compute", 1),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "MemcpyD2D",
        "Memset",
        "CopyDeviceToDevice",
        "CopyHostToDevice",
        "CopyDeviceToHost",
        "FillBuffer",
        "MEMORY_COPY_DEVICE_TO_DEVICE",
        "hipMemcpyDtoDAsync",
        "__amd_rocclr_copyBuffer.kd",
        "__amd_rocclr_fillBufferAligned",
    ],
)
def test_copies_and_fills_are_known_by_name(name):
    assert is_gpu_copy(name)


@pytest.mark.parametrize("name", ["input_copy_fusion", "Cijk_Ailk", "loop_transpose_fusion", "Im3d2Col", "copy_kernel"])
def test_kernels_are_no_copies(name):
    assert not is_gpu_copy(name)


def steps_of(tmp_path, *devices):
    """(step, device, start, duration) from the steps of each device as (number, start, duration)."""
    found = read(
        tmp_path,
        *(
            (f"/device:GPU:{d}", {"Steps": [(str(n), start, dur) for n, start, dur in steps]})
            for d, steps in enumerate(devices)
        ),
    )
    return [(s["step"], s["device"], s["start_ns"] - START_NS, s["dur_ns"]) for s in found.rows["steps"]]


def test_devices_that_take_a_step_at_one_time_share_it(tmp_path):
    assert steps_of(tmp_path, [(0, 0, 100), (1, 100, 90)], [(0, 5, 90), (1, 105, 95)]) == [
        (0, None, 0, 100),
        (1, None, 100, 100),
    ]


def test_devices_captured_at_different_times_have_steps_of_their_own(tmp_path):
    assert steps_of(tmp_path, [(0, 0, 100), (1, 100, 90)], [(0, 5000, 80), (1, 5080, 95)]) == [
        (0, 0, 0, 100),
        (1, 0, 100, 90),
        (0, 1, 5000, 80),
        (1, 1, 5080, 95),
    ]


def test_a_step_that_a_device_takes_again_is_no_long_one(tmp_path):
    assert steps_of(tmp_path, [(7, 0, 100), (7, 9000, 80)], [(7, 10, 80), (7, 9010, 90)]) == [
        (7, None, 0, 100),
        (7, None, 9000, 100),
    ]


@pytest.mark.parametrize("vendor", [{}, {"device_vendor": "Nvidia"}])
def test_a_trace_that_names_no_vendor_is_known_by_capability_and_cores(tmp_path, vendor):
    found = read(tmp_path, ("/device:GPU:0", {"Stream #1(Kernel)": [("kernel", 0, 5)]}, V100 | vendor))
    assert found.facts["chip"] == "V100 16GB"


@pytest.mark.parametrize("cores, said", [(80, 0), (82, 1)])
def test_devices_of_two_kinds_in_one_file_are_told(tmp_path, cores, said):
    line = {"Stream #1(Kernel)": [("kernel", 0, 5)]}
    kinds = (V100, V100 | {"core_count": cores})
    found = read(tmp_path, *((f"/device:GPU:{n}", line, kind) for n, kind in enumerate(kinds)))
    told = [loss for loss in found.lost if "several kinds" in loss.reason]
    assert len(told) == said and all("82 cores" in loss.what for loss in told)


def test_an_unknown_gpu_without_a_vendor_is_no_none(tmp_path):
    odd = V100 | {"core_count": 3}
    found = read(tmp_path, ("/device:GPU:0", {"Stream #1(Kernel)": [("kernel", 0, 5)]}, odd))
    assert found.facts["chip"] == "GPU, compute capability 7.0, 3 cores"


@pytest.mark.parametrize("order", [1, -1])
def test_a_kernel_that_fills_memory_carries_no_cost(order):
    rows, sums = OpRows(0), new_ops(3)
    kernels = [("fill", "copy", 90.0), ("gemm", "matmul", 30.0), ("reduce", "matmul", 10.0)][::order]
    for number, (kernel, category, total) in enumerate(kernels):
        op = Op("dot.1", 0, "compute", category, "jit_f", 1, flops=5.0, bytes=7.0, kernel=kernel)
        rows.enter("Stream #1", op, EventName(kernel, "", ()))
        sums.count[number], sums.total[number], sums.own[number] = 1, total, total
    (batch, *_) = rows.rows("h", sums)
    costs = dict(zip([k for k, *_ in kernels], batch.batch["flops"].to_pylist(), strict=True))
    assert costs == {"fill": None, "gemm": 5.0, "reduce": None}


def marked(tmp_path, took, work, *planes):
    """Four marks of the host, 100 ns apart, of so many ns each; what a device's kernels did (start, duration)."""
    marks = [("train", n * 100, took, {"_r": 1, "step_num": n}) for n in range(4)]
    kernels = {"Stream #7(Compute)": [("k", *span, {"hlo_op": "k.1", "hlo_module": "jit_f"}) for span in work]}
    return read(tmp_path, ("/host:CPU", {"python": marks}), ("/device:GPU:0", kernels), *planes)


def test_marks_of_a_host_that_runs_ahead_tell_no_steps(tmp_path):
    found = marked(tmp_path, 90, [(10 + n * 1000, 900) for n in range(4)])
    assert "steps" not in found.rows
    (told,) = [x for x in found.lost if x.what == "4 steps"]
    assert "hold 10 % of what devices did since the first" in told.reason


@pytest.mark.parametrize(
    ("took", "work"),
    [
        (90, [(10 + n * 100, 70) for n in range(4)]),
        (90, [(60 + n * 100, 70) for n in range(4)]),  # the host is ahead by part of a step
        (100, [(-5000, 4000), (10, 380)]),  # what ran before the first mark is none of theirs
        (90, []),
    ],
    ids=["within", "late", "before", "idle"],
)
def test_marks_that_hold_what_devices_did_are_the_steps(tmp_path, took, work):
    found = marked(tmp_path, took, work)
    assert [(s["start_ns"] - START_NS, s["dur_ns"]) for s in found.rows["steps"]] == [(n * 100, took) for n in range(4)]
    assert not [x for x in found.lost if "steps" in x.what]


def test_steps_that_devices_tell_stand_however_far_the_host_is_ahead(tmp_path):
    own = ("/device:GPU:1", {"Steps": [(str(n), n * 1000, 950) for n in range(4)]})
    found = marked(tmp_path, 90, [(10 + n * 1000, 900) for n in range(4)], own)
    assert [s["dur_ns"] for s in found.rows["steps"]] == [950] * 4
    assert not [x for x in found.lost if "steps" in x.what]
