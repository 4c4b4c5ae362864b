"""However a trace is written: members and events in any order, times that are not known, devices of other makers."""

import json
import random

import pytest

from collectors.device import kineto
from tests.collectors.kineto_traces import event, frame, kernel, launch, op, step, trace
from tests.collectors.reading import read, source_of

DAY_US = 86_400e6
H100 = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]


@pytest.fixture
def got(tmp_path):
    def reading(data, name="trace.pt.trace.json"):
        return read(kineto, source_of(tmp_path, data, name))

    return reading


def executed(result):
    """(operation, kernel's start and duration in ns) of what devices executed."""
    ops = {row["op_id"]: row for row in result.rows["ops"]}
    rows = [e for e in result.rows["op_events"] if e["device"] is not None]
    return sorted((ops[e["op_id"]]["op"], e["start_ps"] // 1000, e["dur_ps"] // 1000) for e in rows)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "stray", [kernel("gemm", 0, 0, 100), event("Trace", "XPU (0)", 0.0, 0.0, pid="Spans", tid="XPU")]
)
def test_a_time_of_0_is_no_beginning(got, stray, late):
    at = 3 * DAY_US
    events = [
        x for n in range(5) for x in (launch(at + 1000 * n, 2, n + 1), kernel("gemm", at + 1000 * n + 9, 900, n + 1))
    ]
    result = got(trace(events + [stray] if late else [stray, *events], deviceProperties=H100))
    (capture,) = result.rows["captures"]
    assert capture["stop_ns"] - capture["start_ns"] == 4_909_000
    assert len(executed(result)) == 5 and "their time is far from all others" in result.reasons()


def test_a_trace_that_begins_at_0_keeps_what_does(got):
    result = got(trace([launch(0, 2, 1), kernel("gemm", 0, 900, 1), kernel("gemm", 2000, 900, 2)]))
    assert len(executed(result)) == 2 and "far from all others" not in result.reasons()


def test_members_in_another_order_tell_the_same(got):
    events = [op("aten::mm", 0, 20, [[8, 4], [4, 2]], ["float"] * 2), launch(5, 3, 1), kernel("gemm", 10, 5, 1)]
    events.append(event("cpu_op", "waits", 30, 5, wait_on_stream=7, wait_on_cuda_event_record_corr_id=3))
    events.append(
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "mark", "ts": 1, "pid": 1, "tid": 1, "args": {"x": 1}}
    )
    document = json.loads(trace(events))
    plain, turned = got(json.dumps(document)), got(json.dumps(document, sort_keys=True))
    assert json.dumps(document, sort_keys=True).index('"args"') < json.dumps(document, sort_keys=True).index('"ph"')
    told = [{t: sorted(map(str, rows)) for t, rows in result.rows.items()} for result in (plain, turned)]
    assert plain.rows["event_stats"] and told[0] == told[1] and turned.lost == plain.lost


def test_the_order_of_events_tells_nothing_of_which_lies_within_which(got):
    events = [step(0, 0, 100), frame("train.py(7): step", 10, 50)]
    for n, name in enumerate(("aten::linear", "aten::addmm", "aten::mul")):
        events.append(op(name, 10, 50, [[8, 4], [4, 2]], ["float"] * 2) | {"args": {"External id": n + 1}})
    events += [launch(10, 50, 1), kernel("gemm", 70, 9, 1)]
    told = []
    for seed in range(6):
        mixed = list(events)
        random.Random(seed).shuffle(mixed)
        result = got(trace(mixed))
        told.append((executed(result), sorted((o["op"], o["self_ns"]) for o in result.rows["ops"])))
    assert all(one == told[0] for one in told) and told[0][0][0][0] == "aten::mul"


KERNELS = {
    "void vllm::cross_device_reduce_1stage<half>(x)": "all-reduce",
    "void aiter::cross_device_reduce_2stage<float>(x)": "all-reduce",
    "void one_shot_all_reduce_kernel<c10::BFloat16>(x)": "all-reduce",
    "void two_shot_all_reduce_kernel<float>(x)": "all-reduce",
    "multimem_all_reduce_kernel": "all-reduce",
    "void quickreduce::allreduce_prototype_twoshot<x>(y)": "all-reduce",
    "void deep_ep::internode::dispatch<x>(y)": "all-to-all",
    "void deep_ep::intranode::combine<x>(y)": "all-to-all",
    "ncclDevKernel_Reduce_Sum_f32(x)": "broadcast",
    "ncclSymkDevKernel_ReduceScatter_LD_sum_bf16(x)": "reduce-scatter",
    "void deep_ep::intranode::notify_dispatch<8>(x)": "all-to-all",
    "void deep_ep::internode::cached_notify_combine<8>(x)": "all-to-all",
    "void deep_ep::intranode::barrier<8>(x)": "all-reduce",
    "void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(x)": "all-reduce",
    "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8>(x)": "all-reduce",
    "void flashinfer::moe_alltoall::moeA2ADispatchKernel<1>(x)": "all-to-all",
    "void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel(x)": "all-to-all",
    "void allreduce_LL_1node<__nv_bfloat16>(x)": "all-reduce",
    "void turbomind::comm::AllreduceKernel_LL<__half, 8>(x)": "all-reduce",
    "void turbomind::comm::AllreduceResidualBiasRMSnormKernel_LL<x>(y)": "all-reduce",
    "void c10d::(anonymous namespace)::barrier_kernel(x)": "all-reduce",
    "void c10d::(anonymous namespace)::wait_signal_kernel(x)": "permute",
    "all_to_all_vdev_2d_kernel": "all-to-all",
    "void userbuffers_fp16_sum_inplace_gpu_mc<8>(x)": None,
    "kuserbuffers_pushsendrecv(x)": "permute",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_communicate_are_collectives(got, name):
    result = got(trace([launch(0, 2, 1), kernel(name, 5, 10, 1)], deviceProperties=H100))
    assert [row["kind"] for row in result.rows["collectives"]] == [KERNELS[name]]


@pytest.mark.parametrize(
    "name",
    [
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8, 1>(x)",
        "void flashinfer::moe_alltoall::moeA2APrepareDispatchKernel(x)",
        "void at::native::reduce_kernel<512, 1>(x)",
    ],
)
def test_kernels_beside_an_exchange_are_none(got, name):
    assert "collectives" not in got(trace([launch(0, 2, 1), kernel(name, 5, 10, 1)], deviceProperties=H100)).rows


@pytest.mark.parametrize("name", ["triton_poi_fused_convolution_relu_1", "triton_red_fused__scaled_mm_abs_0"])
def test_what_inductor_fuses_behind_a_product_is_none(got, name):
    result = got(trace([launch(0, 2, 1), kernel(name, 5, 10, 1)], deviceProperties=H100))
    assert [o["category"] for o in result.rows["ops"] if o["device"] == 0] == ["fusion"]


PRODUCTS = """triton_tem_fused_mm_3|triton_tem_fused_addmm_5|triton_tem_fused__to_copy_addmm_relu_7
|triton_tem_fused_bmm_3|triton_tem_fused_0|triton_mm|_w8a8_triton_block_scaled_mm|fused_moe_kernel|fused_moe_kernel_gptq_awq
|bmm_E4m3_E4m3E4m3_Fp32_t128x8x512u2_s6_et64x8_sm100f|void marlin::Marlin<__half, 32l, 128, 16>(x)|Marlin
|void marlin_moe_wna16::Marlin<__half, 1l>(x)|aiter::fmoe_stage1_bf16_pertokenFp8_g1u1|mul_mat_q4_K<float, true>(x)
|void ck_tile::kentry<1, ck_tile::FlatmmKernel<x>>(y)""".replace("\n", "").split("|")
OTHERS = {
    "triton_tem_fused_convolution_4": "convolution",
    "triton_tem_fused_flex_attention_backward_2": "custom-call",
    "triton_poi_fused_addmm_relu_1": "fusion",
    "void marlin::gptq_marlin_repack_kernel<256, 4>(x)": "other",
    "void vllm::moe::moe_align_block_size_kernel<int>(x)": "other",
    "void moe_comm::prepare(x)": "other",
    "void flashinfer::norm::RMSNormKernel<8>(x)": "elementwise",
    "void flashinfer::activation::act_and_mul_kernel<x>(y)": "elementwise",
    "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<x>(y)": "other",
    "void flashinfer::BatchPrefillWithRaggedKVCacheKernel<x>(y)": "custom-call",
    "BatchDecodeWithPagedKVCacheKernel": "custom-call",
    "void flash_fwd_splitkv_kernel<x>(y)": "custom-call",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0": "custom-call",
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1_kernel0_0": "custom-call",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc": "convolution",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)": "data-movement",
}


@pytest.mark.parametrize("name", [*PRODUCTS, *OTHERS])
def test_kernels_of_compilers_and_engines_that_multiply_are_products(got, name):
    result = got(trace([launch(0, 2, 1), kernel(name, 5, 10, 1)], deviceProperties=H100))
    assert [o["category"] for o in result.rows["ops"] if o["device"] == 0] == [OTHERS.get(name, "matmul")]


def test_a_machine_whose_runtime_was_called_has_a_device(got):
    events = [
        x
        for n in range(5)
        for x in (
            op("aten::mm", 100 * n, 20, [[64, 64], [64, 64]], ["c10::BFloat16"] * 2),
            event("xpu_runtime", "urEnqueueKernelLaunch", 100 * n + 5, 3, correlation=n + 1),
        )
    ]
    told = {"backend": "xccl", "rank": 0, "world_size": 8}
    assert not executed(got(trace(events, deviceProperties=[], distributedInfo=told)))
    assert len(executed(got(trace(events[::2], deviceProperties=[], distributedInfo={"backend": "gloo"})))) == 5


@pytest.mark.parametrize("count", [70, 70_000])
def test_devices_may_be_told_behind_the_events(got, count):
    events = [op("aten::mm", 10 * n, 5, [[100, 64], [64, 32]], ["float"] * 2) for n in range(count)]
    before = got(json.dumps({"deviceProperties": [], "traceEvents": events}))
    behind = got(json.dumps({"traceEvents": events, "deviceProperties": []}))
    assert len(executed(behind)) == len(executed(before)) == count


@pytest.mark.parametrize(
    ("name", "process"),
    [
        ("rank_8_local_rank_0.json", 8),
        ("global_rank_9_local_rank_1.pt.trace.json", 9),
        ("dp0_pp0_tp1_dcp0_ep0_rank12.1757000000000.pt.trace.json", 12),
    ],
)
def test_a_local_rank_is_not_the_rank(got, name, process):
    (capture,) = got(trace([kernel("k", 1, 1, 1)]), name).rows["captures"]
    assert capture["process"] == process


def test_a_number_of_ranks_is_no_rank(got):
    (capture,) = got(trace([kernel("k", 1, 1, 1)]), "trace_ranks8.json").rows["captures"]
    assert capture["process"] != 8


@pytest.mark.parametrize("category", ["musa_runtime", "gcu_driver", "npu_runtime", "driver"])
def test_calls_of_other_makers_launch_too(got, category):
    events = [op("aten::mm", 0, 20, [[8, 8], [8, 8]], ["float"] * 2), event(category, "launch", 5, 3, correlation=1)]
    result = got(trace([*events, kernel("gemm", 10, 5, 1)], deviceProperties=[{"id": 0}]))
    assert len(result.rows["launches"]) == 1 and [name for name, *_ in executed(result)] == ["aten::mm"]
