"""Which unit a kernel uses, by its name, and the products of a run by type and shape."""

import json

import pytest

from analyzers.device import operations as ops
from analyzers.device.tensor_cores import OTHER, TENSOR, UNTOLD, unit_of_kernel
from app.questions.operations import words
from tests.analyzers.op_tables import ask_with
from tests.analyzers.test_op_details import stats, timed

H100 = {"chip": "H100", "chips": 1}


@pytest.mark.parametrize(
    ("kernel", "unit"),
    [
        ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", TENSOR),
        ("volta_h884gemm_128x64_ldg8_nn", TENSOR),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", TENSOR),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>(...)", TENSOR),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(...)", OTHER),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4", OTHER),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x64_stage3_warpsize2x2x1_tensor16x8x16", TENSOR),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment", TENSOR),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNN", TENSOR),
        ("volta_sgemm_128x32_nt", OTHER),
        ("ampere_dgemm_64x64_nn", OTHER),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, Params>", OTHER),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x32x512_MI16x16x1_SN_LDSB1", TENSOR),
        ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt256x64x8", TENSOR),
        ("void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false, true, true>(int)", OTHER),
        ("triton_mm_4", UNTOLD),
        ("void splitKreduce_kernel<float, float, float, float, true, false, false>()", UNTOLD),
        ("", UNTOLD),
    ],
)
def test_the_unit_of_a_kernel(kernel, unit):
    assert unit_of_kernel(kernel) == unit


def test_products_by_type_and_shape():
    bf16, f32 = "bf16[8,4], bf16[4,2]", "f32[8,4], f32[4,2]"
    rows = [
        timed("aten::mm", 6, category="matmul", shape=bf16, count=3),
        timed("aten::mm", 1, category="matmul", shape=bf16),
        timed("aten::mm", 2, category="matmul", shape=f32),
        timed("triton_mm_4", 1, category="matmul"),
        timed("aten::add", 5, category="elementwise", shape=f32),
    ]
    named = [(0, "kernel", "s16816gemm_bf16"), (1, "kernel", "splitKreduce_kernel"), (2, "kernel", "volta_sgemm_nn")]
    result = ask_with(ops, rows, H100, stats(named))
    said = result.to_dict()["matrix_products"]
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["seconds"] == pytest.approx(0.010)
    assert said["tensor_core_seconds"] == pytest.approx(0.006) and said["untold_seconds"] == pytest.approx(0.002)
    assert said["tensor_core_share"] == pytest.approx(0.75)
    assert {r["dtype"]: r["tensor_core_seconds"] for r in said["by_dtype"]} == pytest.approx(
        {"bf16": 0.006, "f32": 0.0, None: 0.0}
    )
    first = said["by_shape"][0]
    assert (first["op"], first["shape"], first["kernel"], first["count"]) == ("aten::mm", bf16, "s16816gemm_bf16", 4)
    assert sum(r["seconds"] for r in said["by_shape"]) == pytest.approx(0.010)
    assert "Matrix products that do not run on tensor cores take 13.3 % of device time." in words.verdict(result)


def test_a_run_without_kernels_names_tells_no_unit():
    rows = [timed("dot.1", 6, category="matmul")]
    assert ask_with(ops, rows, {"chip": "TPU v5p"}).to_dict()["matrix_products"] is None
    some = [timed("x", 6, category="fusion")]
    assert ask_with(ops, some, H100, stats([(0, "kernel", "k")])).products is None
