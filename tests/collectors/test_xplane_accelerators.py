"""Traces of TPUs and GPUs: operations, collectives, copies, what they cost, and which device they ran on."""

import pytest

from tests.collectors.traces import START_NS, PlaneBuilder, XSpace, environment, got

# --- TPU --------------------------------------------------------------------------------------------------------------

_ALL_REDUCE = "%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1},{2,3}}, to_apply=%add"
_START = "%all-gather-start.1 = (bf16[4], bf16[16]) all-gather-start(bf16[4]{0} %y), replica_groups=[1,4]<=[4]"
_DONE = "%all-gather-done.1 = bf16[16]{0} all-gather-done((bf16[4], bf16[16]) %all-gather-start.1)"


def tpu(space, core: int = 2, **more) -> PlaneBuilder:
    plane = PlaneBuilder(space, "/device:TPU:0").stats(
        device_type_string="TPU v5",
        peak_teraflops_per_second=459.0,
        peak_hbm_bw_gigabytes_per_second=2765.0,
        core_details=bytes([0x28, core, 0x30, core]),
        **more,
    )
    plane.metadata(
        "%fusion.7 = bf16[8,8]{1,0} fusion(...)",
        hlo_category="convolution fusion",
        flops=1024,
        bytes_accessed=384,
        source="model.py:12",
        shape_with_layout="bf16[8,8]{1,0}",
        program_id=9,
    )
    plane.metadata("%while.1 = (s32[]) while(...)", hlo_category="while", flops=5, bytes_accessed=7, program_id=9)
    return plane


def test_tpu_operations_take_their_cost_from_metadata(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Modules", [("jit_step(9)", 0, 100)]).line(
        "XLA Ops",
        [
            ("%while.1 = (s32[]) while(...)", 0, 90),
            ("%fusion.7 = bf16[8,8]{1,0} fusion(...)", 5, 40),
        ],
    )
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    (fusion,) = read.ops(op="fusion.7")
    assert (
        fusion
        | {
            "device": 0,
            "role": "compute",
            "category": "matmul",
            "flops": 1024,
            "bytes": 384,
            "source": "model.py:12",
            "shape": "bf16[8,8]{1,0}",
            "program": 9,
            "count": 1,
            "total_ns": 40,
        }
        == fusion
    )
    (loop,) = read.ops(op="while.1")
    assert (loop["category"], loop["flops"], loop["bytes"], loop["self_ns"]) == ("control", None, None, 50)
    (run,) = read.ops(line="XLA Modules")
    assert (run["role"], run["module"], run["program"]) == ("module", "jit_step", 9)
    capture = read.rows["captures"][0]
    assert (
        capture | {"devices": 1, "device_type": "TPU v5", "peak_flops_per_s": 459e12, "peak_hbm_bytes_per_s": 2765e9}
        == capture
    )
    assert read.facts | {"chip": "TPU v5", "chips": 1, "peak_flops_per_s": 459e12} == read.facts
    assert not read.lost


def test_tpu_steps_and_collectives(tmp_path):
    space = XSpace()
    tpu(space).line("Steps", [("40", 0, 500), ("41", 500, 400)]).line(
        "XLA Ops",
        [
            (_ALL_REDUCE, 100, 30),
            (_START, 200, 2),
            (_DONE, 250, 10),
            (_ALL_REDUCE, 600, 31),
            (_START, 700, 2),
            (_DONE, 702, 60),
        ],
    )
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [(s["step"], s["start_ns"] - START_NS, s["dur_ns"]) for s in read.rows["steps"]] == [
        (40, 0, 500),
        (41, 500, 400),
    ]
    rows = [
        (
            c["op"],
            c["kind"],
            c["bytes"],
            c["dtype"],
            c["group"],
            c["rank"],
            c["seq"],
            c["step"],
            c["start_ns"] - START_NS,
            c["end_ns"] - START_NS,
        )
        for c in read.rows["collectives"]
    ]
    assert rows == [
        ("all-gather-start.1", "all-gather", 8.0, "bf16", "0,1,2,3", 2, 0, 40, 200, 260),
        ("all-gather-start.1", "all-gather", 8.0, "bf16", "0,1,2,3", 2, 1, 41, 700, 762),
        # Without the program nobody knows on which devices its partitions 2 and 3 run.
        ("all-reduce.3", "all-reduce", 32.0, "f32", "?,?", 2, 0, 40, 100, 130),
        ("all-reduce.3", "all-reduce", 32.0, "f32", "?,?", 2, 1, 41, 600, 631),
    ]


def test_the_line_of_asynchronous_operations_wins_over_start_and_done(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Ops", [(_START, 200, 2), (_DONE, 250, 10)]).line("Async XLA Ops", [(_START, 200, 58)])
    environment(space)
    (row,) = got(tmp_path, space.SerializeToString()).rows["collectives"]
    assert (row["start_ns"] - START_NS, row["end_ns"] - START_NS) == (200, 258)


def test_program_runs_without_operations_are_named(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Modules", [("jit_f(9)", i * 1000, 900) for i in range(10)]).line(
        "XLA Ops", [("fusion", i * 1000 + 10, 800) for i in range(4)]
    )
    environment(space)
    (lost,) = got(tmp_path, space.SerializeToString()).lost
    assert "6 of 10 program runs" in lost.reason


# --- GPU --------------------------------------------------------------------------------------------------------------


def test_gpu_kernels_copies_and_nccl(tmp_path):
    space = XSpace()
    of = {"hlo_op": "all-reduce-start.1", "hlo_module": "jit_f", "program_id": 4}
    plane = PlaneBuilder(space, "/device:GPU:1").stats(
        device_vendor="Nvidia",
        compute_cap_major=9,
        compute_cap_minor=0,
        core_count=132,
        memory_size=85 * 10**9,
        memory_bandwidth=3_352_320_000_000,
    )
    plane.line(
        "Stream #14(Compute)",
        [
            ("gemm_kernel", 0, 50, {"hlo_op": "cublas-gemm.2", "hlo_module": "jit_f", "program_id": 4}),
            ("splitk_reduce", 50, 5, {"hlo_op": "cublas-gemm.2", "hlo_module": "jit_f", "program_id": 4}),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 60, 40, of),
        ],
    ).line("Stream #20(MemcpyD2H)", [("MemcpyD2H", 10, 20)]).line("XLA Ops", [("cublas-gemm.2", 0, 55)])
    PlaneBuilder(space, "/host:CPU").line("python", [("launch", 0, 1, of)])
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [(o["op"], o["line"], o["role"], o["device"], o["module"]) for o in read.rows["ops"]] == [
        ("launch", "python", "host", None, None),
        ("cublas-gemm.2", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("cublas-gemm.2", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("all-reduce-start.1", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("MemcpyD2H", "Stream #20(MemcpyD2H)", "compute", 1, None),
        ("cublas-gemm.2", "XLA Ops", "other", 1, None),
    ]
    assert [o["category"] for o in read.rows["ops"][3:5]] == ["collective", "copy"]
    kernels = {s["text_value"] for s in read.rows["op_stats"] if s["name"] == "kernel"}
    assert {"gemm_kernel", "splitk_reduce"} <= kernels
    (row,) = read.rows["collectives"]
    assert (row["kind"], row["device"], row["end_ns"] - row["start_ns"]) == ("all-reduce", 1, 40)
    assert read.rows["captures"][0]["device_type"] == "H100 SXM or H800 SXM" == read.facts["chip"]


@pytest.mark.parametrize(
    ("kernel", "of", "kind"),
    [
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "all-reduce-start.1", "all-reduce"),
        ("ncclDevKernel_Generic(ncclDevComm*, unsigned long)", None, None),
        ("ncclSymkDevKernel_AllGather_LL(args)", None, "all-gather"),
        ("ncclDevKernel_SendRecv(args)", "all-to-all.3", "all-to-all"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(args)", None, "broadcast"),
        ("void stream_executor::gpu::AllReduceKernelImpl<float, 0>(args)", "all-reduce.2", "all-reduce"),
    ],
)
def test_kernels_that_do_not_name_their_collective_are_one(tmp_path, kernel, of, kind):
    """RCCL has generic kernels alone: what they carry out, the operation tells that they are of."""
    space = XSpace()
    stats = {"hlo_op": of, "hlo_module": "jit_f", "program_id": 4} if of else {}
    PlaneBuilder(space, "/device:GPU:1").line("Stream #14(Compute)", [(kernel, 60, 40, stats)])
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [o["category"] for o in read.rows["ops"]] == ["collective"]
    assert [(row["kind"], row["end_ns"] - row["start_ns"]) for row in read.rows["collectives"]] == [(kind, 40)]


@pytest.mark.parametrize(
    ("parts", "memory", "bandwidth", "name"),
    [
        ((8, 0, 108), 42.5e9, 1555e9, "A100 SXM 40GB or A100 PCIe 40GB"),
        ((8, 0, 108), 84.9e9, 2039e9, "A100 SXM 80GB"),
        ((8, 0, 108), 84.9e9, 1935e9, "A100 PCIe 80GB"),
        ((8, 0, 108), 84.9e9, None, "A100 SXM 80GB or A100 PCIe 80GB"),
        ((9, 0, 132), 85.0e9, 3352e9, "H100 SXM or H800 SXM"),
        ((9, 0, 132), 101.5e9, 4023e9, "Nvidia GPU, compute capability 9.0, 132 cores"),
        ((9, 0, 132), 150.1e9, 4917e9, "H200"),
        ((10, 0, 148), 191.5e9, 8000e9, "B200"),
        ((10, 0, 152), 198.0e9, 8000e9, "GB200"),
    ],
)
def test_a_gpu_is_told_from_its_namesakes_or_is_one_of_two(tmp_path, parts, memory, bandwidth, name):
    space = XSpace()
    major, minor, cores = parts
    told = {} if bandwidth is None else {"memory_bandwidth": int(bandwidth)}
    plane = PlaneBuilder(space, "/device:GPU:0").stats(
        device_vendor="Nvidia",
        compute_cap_major=major,
        compute_cap_minor=minor,
        core_count=cores,
        memory_size=int(memory),
        **told,
    )
    plane.line("Stream #14(Compute)", [("kernel", 0, 50, {"hlo_op": "a.1", "hlo_module": "jit_f", "program_id": 4})])
    environment(space)
    assert got(tmp_path, space.SerializeToString()).facts["chip"] == name


def test_gpu_kernels_that_name_no_hlo_operation_are_pointed_out(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/device:GPU:0").line("Stream #1(Kernel)", [("graph_kernel", 0, 5)])
    environment(space)
    assert "xla_gpu_enable_command_buffer" in got(tmp_path, space.SerializeToString()).lost[-1].reason
