"""What launched a kernel: the call, its shapes, the module and line it stands in, the step, the graph."""

import itertools
import random

import pytest

from collectors.device import kineto
from tests.collectors.kineto_traces import BASE, collective, event, frame, kernel, launch, op, step, trace
from tests.collectors.reading import read, source_of
from tests.conftest import seeds

MM = {"dims": [[128, 64], [64, 32]], "types": ["c10::BFloat16", "c10::BFloat16"]}


@pytest.fixture
def got(tmp_path):
    def reading(*events, name="trace.json", **beside):
        return read(kineto, source_of(tmp_path, trace(list(events), **beside), name))

    return reading


def device_ops(result):
    stats = {}
    for row in result.rows.get("op_stats", []):
        stats.setdefault(row["op_id"], {})[row["name"]] = row["text_value"]
    return {stats.get(o["op_id"], {}).get("kernel", o["op"]): o for o in result.rows["ops"] if o["device"] is not None}


def host_tree(rng, start, end, tid, numbers, depth=0):
    """Calls within calls, some of which launch."""
    at = start
    while end - at > 6 and rng.random() < 0.8:
        begin = at + rng.randint(1, 3)
        at = min(end - 1, begin + rng.randint(3, max(4, (end - start) // 2)))
        if at - begin < 2:
            return
        number = next(numbers)
        if rng.random() < 0.35:
            yield launch(begin, at - begin, number, tid=tid)
            yield kernel(f"k{number}", 5000 + 10 * number, 3, number)
        else:
            yield op(f"op{number}", begin, at - begin, tid=tid)
            yield from host_tree(rng, begin, at, tid, numbers, depth + 1) if depth < 5 else ()


@pytest.mark.parametrize("seed", seeds(40))
def test_each_kernel_is_of_the_narrowest_call_around_its_launch(got, seed):
    rng, numbers = random.Random(seed), itertools.count(1)
    events = [kernel("alone", 9000, 1, 10**6), *(e for tid in (1, 2) for e in host_tree(rng, 0, 400, tid, numbers))]
    calls = [e for e in events if e["cat"] == "cpu_op"]
    wanted = {"alone": "alone"}
    for at in (e for e in events if e["cat"] == "cuda_runtime"):
        end = at["ts"] + at["dur"]
        around = [c for c in calls if c["tid"] == at["tid"] and c["ts"] <= at["ts"] and end <= c["ts"] + c["dur"]]
        name = f"k{at['args']['correlation']}"
        wanted[name] = min(around, key=lambda c: c["dur"])["name"] if around else name
    rng.shuffle(events)
    assert {k: o["op"] for k, o in device_ops(got(*events)).items()} == wanted


def test_a_kernel_is_of_the_call_around_its_launch(got):
    result = got(op("aten::linear", 0, 20), op("aten::mm", 1, 10, **MM), launch(3, 1, 77), kernel("gemm_x", 30, 8, 77))
    (made,) = device_ops(result).values()
    assert (made["op"], made["category"], made["shape"]) == ("aten::mm", "matmul", "bf16[128,64], bf16[64,32]")
    assert made["flops"] == 2 * 128 * 64 * 32 and made["bytes"] == 2 * (128 * 64 + 64 * 32 + 128 * 32)
    assert [s["text_value"] for s in result.rows["op_stats"]] == ["gemm_x"]


def test_other_threads_launch_for_themselves(got):
    result = got(op("aten::mm", 0, 20, **MM), launch(3, 1, 5, tid=2), kernel("k", 30, 8, 5))
    assert device_ops(result)["k"]["op"] == "k"


def test_without_its_launch_the_external_id_tells(got):
    result = got(op("aten::mm", 0, 5, External_id=41, **MM), kernel("gemm", 30, 8, 900, External_id=41))
    assert device_ops(result)["gemm"]["op"] == "aten::mm"
    assert "the launch of 1 of 1 kernels" in result.reasons()


def test_a_correlation_of_zero_links_nothing(got):
    result = got(op("aten::mm", 0, 20, **MM), launch(3, 1, 0), kernel("k", 30, 8, 0))
    assert device_ops(result)["k"]["op"] == "k"


def test_an_external_id_that_only_repeats_the_correlation_tells_nothing(got):
    result = got(op("aten::mm", 0, 5, External_id=41, **MM), kernel("gemm", 30, 8, 41, External_id=41))
    assert device_ops(result)["gemm"]["op"] == "gemm"


def test_of_several_kernels_of_one_call_the_product_carries_its_flops(got):
    first = (op("aten::mm", 0, 10, **MM), launch(1, 1, 1), launch(3, 1, 2), launch(5, 1, 3))
    first += (kernel("gemm", 20, 2, 1), kernel("splitKreduce_kernel", 22, 5, 2), kernel("Memset", 19, 9, 3))
    again = (op("aten::mm", 40, 10, **MM), launch(41, 1, 4), kernel("other_gemm", 60, 1, 4))
    result = got(*first, *again)
    ops = device_ops(result)
    total = sum((o["flops"] or 0) * o["count"] for o in ops.values())
    assert total == 2 * 2 * 128 * 64 * 32  # of two calls, whatever kernels they took
    assert ops["splitKreduce_kernel"]["flops"] is not None and ops["gemm"]["flops"] is None
    assert ops["Memset"]["category"] == "copy" and ops["Memset"]["flops"] is None


def test_kernels_of_a_graph_belong_to_the_graph(got):
    kernels = [kernel(f"k{n}", 20 + n, 1, 7) for n in range(5)]
    result = got(op("aten::add", 0, 10), launch(1, 2, 7, "cudaGraphLaunch"), *kernels)
    ops = device_ops(result)
    assert {o["module"] for o in ops.values()} == {"cudaGraphLaunch"} and set(ops) == {f"k{n}" for n in range(5)}
    assert "the operations of 5 of 5 kernels: they were launched as 1 graphs" in result.reasons()


def test_module_and_line_are_those_around_the_call(got):
    result = got(
        frame("train.py(12): step", 0, 100),
        frame("nn.Module: Linear_3", 1, 50),
        frame("torch/nn/modules/linear.py(114): forward", 2, 40),
        op("aten::mm", 5, 10, **MM),
        launch(6, 1, 1),
        kernel("gemm", 200, 1, 1),
    )
    made = device_ops(result)["gemm"]
    assert (made["module"], made["source"]) == ("Linear_3", "train.py:12")


def test_the_backward_pass_is_of_the_module_that_ran_forward(got):
    result = got(
        frame("train.py(12): step", 0, 100),
        frame("nn.Module: Linear_3", 1, 50),
        op("aten::linear", 5, 10, Sequence_number=4),
        op("autograd::engine::evaluate_function: MmBackward0", 200, 50, tid=9, Sequence_number=4),
        op("aten::mm", 210, 10, tid=9, **MM),
        launch(212, 1, 8, tid=9),
        kernel("gemm", 300, 1, 8),
    )
    made = device_ops(result)["gemm"]
    assert (made["module"], made["source"], made["op"]) == ("Linear_3", "train.py:12", "aten::mm")


def test_early_traces_tell_the_line_in_a_stack(got):
    stack = "torch/nn/functional.py(1): linear;model.py(23): forward;train.py(9): <module>"
    result = got(op("aten::mm", 0, 10, Call_stack=stack, **MM), launch(1, 1, 1), kernel("gemm", 20, 1, 1))
    assert device_ops(result)["gemm"]["source"] == "model.py:23"


def test_own_time_of_the_host_leaves_out_what_lies_within(got):
    result = got(op("a", 0, 100), op("b", 10, 30), op("c", 20, 5), op("across", 90, 20))
    own = {o["op"]: o["self_ns"] for o in result.rows["ops"]}
    assert own == {"a": 60_000, "b": 25_000, "c": 5_000, "across": 20_000}


def test_categories_go_by_what_kernels_do(got):
    named = {
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn": "matmul",
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN": "matmul",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNN": "matmul",
        "void cudnn::ops::nchwToNhwcKernel<float>": "other",
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32": "convolution",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>": "custom-call",
        "triton_poi_fused_add_0": "fusion",
        "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>": "elementwise",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>": "data-movement",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "collective",
        "__amd_rocclr_copyBuffer": "copy",
        "void fbgemm_gpu::split_embedding_codegen_forward_unweighted_kernel<float>": "data-movement",
        "ampere_fp16_sgemm_128x64_nn": "matmul",
    }
    result = got(*(kernel(name, 10 * n, 1, n) for n, name in enumerate(named)))
    found = {s: o["category"] for s, o in device_ops(result).items()}
    assert {**found, "ncclDevKernel": None}.items() >= {k: v for k, v in named.items() if v != "other"}.items()


def test_waits_of_streams_and_annotations_are_no_work(got):
    wait = event("cuda_sync", "Stream Wait Event", 5, 2, 0, 7, stream=7, device=0, correlation=3)
    result = got(kernel("k", 0, 1, 1), wait, event("gpu_user_annotation", "forward", 0, 50, 0, 7))
    roles = {o["op"]: (o["role"], o["category"]) for o in result.rows["ops"]}
    assert roles == {
        "k": ("compute", "other"),
        "Stream Wait Event": ("other", "other"),
        "forward": ("other", "annotation"),
    }


def test_steps_are_those_of_the_host_where_devices_keep_its_pace(got):
    events = []
    for n in range(3):
        events += [step(n, 100 * n, 100), launch(100 * n + 10, 1, n + 1), kernel("k", 100 * n + 30, 60, n + 1)]
    rows = got(*events).rows["steps"]
    assert [(r["step"], r["start_ns"] - BASE, r["dur_ns"]) for r in rows] == [
        (n, 100_000 * n, 100_000) for n in range(3)
    ]


def test_steps_are_those_of_the_devices_where_the_host_runs_ahead(got):
    events = []
    for n in range(3):
        events += [step(n, 10 * n, 10), launch(10 * n + 1, 1, n + 1), kernel("k", 5 + 100 * n, 99, n + 1)]
    rows = got(*events).rows["steps"]
    assert [(r["step"], r["start_ns"] - BASE, r["dur_ns"]) for r in rows] == [
        (0, 5_000, 100_000),
        (1, 105_000, 100_000),
        (2, 205_000, 99_000),
    ]


def test_a_host_that_waits_for_the_devices_every_few_steps_marks_none_as_long_as_it_was(got):
    """Such as a loop that reads its loss in every third step: in 24 steps it is as fast as the devices."""
    events = []
    for n in range(24):
        mark = 300 * (n // 3) + 10 * (n % 3)
        events += [step(n, mark, 280 if n % 3 == 2 else 10), launch(mark + 1, 1, n + 1)]
        events.append(kernel("k", 5 + 100 * n, 95, n + 1))
    rows = got(*events).rows["steps"]
    assert [(r["step"], r["start_ns"] - BASE) for r in rows] == [(n, 5_000 + 100_000 * n) for n in range(24)]
    assert {r["dur_ns"] for r in rows[:-1]} == {100_000}


def test_fetches_of_the_loader_are_waits_for_data(got):
    fetch = event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, 40)
    rows = got(fetch, op("aten::add", 50, 1)).rows["lifecycle"]
    assert [(r["kind"], r["start_ns"] - BASE, r["end_ns"] - BASE) for r in rows] == [("data_loading", 5_000, 45_000)]


def test_a_collective_is_told_by_its_kernel(got):
    events = [step(4, 0, 100), launch(10, 1, 3), collective("_allgather_base", 50, 20, 3)]
    result = got(*events, distributedInfo={"rank": 1, "world_size": 2, "backend": "nccl"})
    (row,) = result.rows["collectives"]
    assert (row["kind"], row["bytes"], row["dtype"], row["group"]) == ("all-gather", 2048, "bf16", "0,1")
    assert (row["rank"], row["step"], row["seq"], row["host"]) == (1, 4, 0, "rank 1")
    assert (
        row["op"]
        == "nccl:all-gather default_pg"
        == device_ops(result)["ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)"]["op"]
    )
    assert (row["start_ns"], row["end_ns"]) == (BASE + 50_000, BASE + 70_000)


def test_the_call_around_a_launch_tells_what_the_kernel_does_not(got):
    said = collective("allreduce", 0, 20, 3)["args"] | {"Seq": 17}
    call = op("record_param_comms", 0, 20)
    call["args"] = {k: v for k, v in said.items() if k not in ("device", "stream", "correlation")}
    result = got(call, launch(5, 1, 3), kernel("ncclDevKernel_Generic(x)", 30, 10, 3))
    (row,) = result.rows["collectives"]
    assert (row["kind"], row["bytes"], row["group"], row["seq"]) == ("all-reduce", 2048, "0,1", 17)


def test_the_annotation_around_a_launch_tells_what_a_point_to_point_kernel_carries_out(got):
    note = event("user_annotation", "nccl:all_to_all", 0, 20)
    note["args"] = {"Input Dims": [[2, 1000]], "Input type": ["float"]}
    result = got(note, launch(5, 1, 3), kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 30, 9, 3))
    (row,) = result.rows["collectives"]
    assert (row["kind"], row["bytes"], row["dtype"]) == ("all-to-all", 8000, "f32")


@pytest.mark.parametrize(
    ("told", "info", "group"),
    [
        ("[0, 1, 2, 3]", {"world_size": 4}, "0,1,2,3"),
        ("[0, 1, ...]", {"world_size": 8}, "?,?,?,?"),
        ("[0, 1, ...]", {"world_size": 4}, "0,1,2,3"),
        ("", {"world_size": 8, "pg_config": [{"pg_name": "0", "ranks": [1, 3, 5, 7]}]}, "1,3,5,7"),
        ("[0, 1]", {}, "?,?,?,?"),  # the size says that they are four
    ],
)
def test_the_ranks_of_a_group_are_known_or_said_not_to_be(got, told, info, group):
    made = collective("allreduce", 1, 1, 1, ranks=told, **{"Group size": 4})
    assert got(made, distributedInfo=info).column("collectives", "group") == [group]


@pytest.mark.parametrize(("info", "group"), [({"world_size": 128}, "?"), ({}, "?"), ({"world_size": 2}, "0,1")])
def test_without_any_word_of_its_group_a_collective_meets_nobody(got, info, group):
    result = got(kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 1, 1, 1), distributedInfo=info)
    assert result.column("collectives", "group") == [group] and result.column("collectives", "kind") == ["all-reduce"]


def test_ranks_of_a_merged_trace_are_those_of_its_events(got):
    result = got(*(collective("allreduce", 1, 1, n, rank=n) for n in range(2)))
    assert sorted(result.column("collectives", "rank")) == [0, 1]
