"""Formats of weights: bytes with scales, the parts that stay wide, and what multiplies them."""

import pytest

from catalog import chip, model
from catalog.formats import FORMATS, kept, own_format, spelled, stated_format
from catalog.inference import part_params, weights_bytes
from catalog.models import models, parameters
from collectors.serving.vllm_requests import engine_facts
from errors import QuestionError
from simulators.serving.machine import machine


def test_gpt_oss_weighs_what_its_files_do():
    # the checkpoint's files are 65.2 GB (60.8 GiB), and those of the small one 13.8 GB
    assert weights_bytes(model("gpt-oss-120b"), "published") == pytest.approx(65.2e9, rel=0.005)
    assert weights_bytes(model("gpt-oss-20b"), "mxfp4") == pytest.approx(13.8e9, rel=0.005)


def test_deepseek_in_fp8_keeps_tables_and_routers_wide():
    held = kept(model("deepseek-v3"), "fp8")
    assert held.name == "fp8-block" and held.bytes["embedding"] == held.bytes["router"] == 2
    assert weights_bytes(model("deepseek-v3"), "fp8") == pytest.approx(673.1e9, rel=0.001)


def test_scales_count():
    assert {n: round(FORMATS[n].bytes * 8, 2) for n in ("mxfp4", "nvfp4", "awq", "gptq")} == {
        "mxfp4": 4.25,
        "nvfp4": 4.5,
        "awq": 4.16,
        "gptq": 4.16,
    }


@pytest.mark.parametrize("name", models())
def test_parts_are_all_weights(name):
    assert sum(part_params(model(name)).values()) == parameters(model(name)).total


def test_plain_names_are_arithmetic_but_for_models_published_so():
    llama = model("llama3.1-70b")
    assert weights_bytes(llama, "fp4") == parameters(llama).total / 2
    assert own_format(model("gpt-oss-120b"), "fp4") == "mxfp4" and own_format(llama, "fp4") == "fp4"
    assert own_format(model("gpt-oss-120b"), "nvfp4") == "nvfp4"
    with pytest.raises(QuestionError, match="one of"):
        kept(llama, "fp3")


def test_engines_names():
    said = {
        "mxfp4": "mxfp4",
        "modelopt_fp4": "nvfp4",
        "awq_marlin": "awq",
        "gptq_marlin": "gptq",
        "fp8_e4m3": "fp8",
        "torch.bfloat16": "bf16",
        "auto": None,
        "compressed-tensors": None,
    }
    assert {n: spelled(n) for n in said} == said


def test_chips_multiply_in_what_they_have_and_store_the_rest():
    held = kept(model("gpt-oss-120b"), "published")
    blackwell, hopper = (machine(chip(n), held, 1) for n in ("b200", "h100"))
    assert blackwell.computes_in == "fp4" and blackwell.flops_per_s == 9e15 and blackwell.peaks["bf16"] == 2.25e15
    assert hopper.computes_in == "bf16" and any("stored in fp4" in n for n in hopper.notes)
    assert machine(chip("8t"), held, 1).computes_in == "fp4"
    assert machine(chip("b200"), kept(model("llama3.1-70b"), "awq"), 1).computes_in == "bf16"


def test_a_stand_in_is_named():
    told = machine(chip("RTX PRO 6000 Server"), kept(model("gpt-oss-120b"), "published"), 1).stand_ins
    assert len(told) == 1 and "RTX PRO 6000 Workstation" in told[0] and "fp4 2,015.2 TFLOP/s" in told[0]


def test_a_log_that_names_its_quantization_is_believed():
    told = {f.name: f.value for f in engine_facts({"dtype": "torch.bfloat16", "quantization": "mxfp4"})}
    assert told["quantization"] == "mxfp4" and "quantization" not in {
        f.name for f in engine_facts({"quantization": "None"})
    }


@pytest.mark.parametrize(
    ("name", "said", "gigabytes"),  # of the published files, as the pages of the checkpoints round them
    [
        ("gpt-oss-20b", "published", 13.76),
        ("gpt-oss-120b", "published", 65.25),
        ("Kimi-K2-Thinking", "published", 594.2),
        ("kimi-k2-1t", "published", 1029.2),
        ("llama-3.1-8b", "awq", 5.73),
        ("llama-3.1-70b", "awq", 39.77),
        ("llama-3.1-8b", "fp8-linear", 9.08),
        ("qwen3-8b", "awq", 6.10),
    ],
)
def test_bytes_are_those_of_the_published_files(name, said, gigabytes):
    """Kimi K2 Thinking was said to take 1,029 GB: its experts are in 4-bit integers. Weights that an engine keeps in
    fp8 were all counted so, though tables of embeddings are in 16 bits."""
    assert weights_bytes(model(name), said) / 1e9 == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("quantization", "dtype", "name", "expected"),
    [
        ("compressed-tensors", "torch.bfloat16", "RedHatAI/Qwen3-8B-quantized.w4a16", "gptq"),
        ("compressed-tensors", "torch.bfloat16", "RedHatAI/Llama-3.1-8B-Instruct-FP8-dynamic", "fp8-linear"),
        ("compressed-tensors", "torch.bfloat16", "someone/own", None),
        ("fp8", "bfloat16", "llama", "fp8-linear"),
        (None, "fp8", "llama3.1-8b", "fp8"),
        (None, "float16", "Qwen/Qwen3-8B-AWQ", "awq"),
        (None, "bfloat16", "llama", "bf16"),
        ("None", "bfloat16", "llama", "bf16"),
        (None, None, None, None),
        ("awq_marlin", "float16", "x", "awq"),
        ("w8a8_int8", "bfloat16", "x", "int8-linear"),
        ("mxfp4", "bfloat16", "openai/gpt-oss-20b", "mxfp4"),
    ],
)
def test_what_a_run_says_of_its_weights(quantization, dtype, name, expected):
    """`compressed-tensors` with `dtype=bfloat16` was read as weights in bf16, of whichever checkpoint."""
    assert stated_format(quantization, dtype, name) == expected


def test_an_engines_fp8_of_a_model_published_so_is_its_own():
    assert own_format(model("deepseek-v3"), "fp8-linear") == "fp8-block"
    assert own_format(model("llama3.1-8b"), "fp8-linear") == "fp8-linear"
