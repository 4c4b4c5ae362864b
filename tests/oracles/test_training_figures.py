"""FLOPs, memory, padding and utilisation of training, by figures that follow from dimensions or were published."""

import math

import pytest

from analyzers.flops import padding
from analyzers.flops.published import reviewed
from app.questions.asking import ModelSubject
from catalog import chip, model, parameters
from catalog.flops import flops_per_token
from catalog.training_memory import Sharding, interleave_factor, layer_activation_bytes, state_bytes
from errors.options import parse_options
from runs.tables import MemoryTables

GIB = 2**30
FLOPS = (  # model, tokens, parameters, of them in products of a token, causal and non-causal GFLOPs per token
    # 6 per weight of a product, and 6 heads (d_k + d_v) for each pair of tokens: T/2 causal, T W - W^2/2 in a window
    ("llama3.1-8b", 8192, 8029995008, 7504658432, 51.470402, 57.912852),
    ("llama3.1-405b", 131072, 405849243648, 403747897344, 4045.985022, 5669.482660),
    ("gpt3-175b", 8192, 174564311040, 174564311040, 1105.367925, 1163.349983),
    ("mixtral-8x7b", 8192, 46702526464, 12748587008, 82.933973, 89.376424),
    ("gpt-oss-20b", 131072, 20907786240, 3607142400, 60.373021, 176.261677),
    ("gemma2-27b", 8192, 27226865664, 27226865664, 171.464589, 181.883240),
    ("gemma3-27b", 131072, 27007647744, 27007647744, 196.865163, 561.477845),
    ("qwen3-235b-a22b", 8192, 235092836352, 21567635456, 167.255212, 205.104611),
    ("deepseek3-671b", 8192, 671025397760, 36624596992, 281.152193, 342.556803),
    ("kimi-k2-1t", 131072, 1026407202816, 31686066176, 681.353282, 1172.590166),
    ("llama4-17b-16e", 131072, 107769364480, 16137912320, 154.205553, 483.374531),
)
MEMORY = (  # arXiv 2205.05198, Table 3: heads, width, layers, pipeline, interleaving, batch; GiB of activations printed
    # without anything saved, and with both sequence parallelism and selective recomputation, tensor parallel 8
    ("22B", 64, 6144, 48, 1, 1, 4, 59.25, 9.5625),
    ("175B", 96, 12288, 96, 8, 3, 1, 66.84375, 12.3515625),
    ("530B", 128, 20480, 105, 35, 3, 1, 114.0234375, 23.076171875),
    ("1T", 160, 25600, 128, 64, 1, 1, 131.25, 26.5625),
)
PADDING = (  # model, tensor parallel, tokens, side of the unit; efficiency and tax with ceil8(m) ceilS(k) ceilS(n), and
    # efficiency when operands may change places
    ("llama3.1-8b", 8, 8192, 256, 0.86443, 0.15683, 0.94110),
    ("qwen3-0.6b", 1, 8192, 256, 0.69401, 0.44091, 0.81941),
    ("gemma4-26b", 8, 8192, 128, 0.83372, 0.19945, 0.93766),
    ("deepseek3-671b", 1, 8192, 128, 0.95760, 0.04428, 0.95815),
    ("deepseek3-671b", 8, 8192, 256, 0.88792, 0.12623, 0.96352),
    ("mixtral-8x7b", 8, 8192, 256, 0.89599, 0.11608, 0.96263),
    ("gpt3-175b", 8, 2048, 256, 0.98647, 0.01371, 0.99322),
)
PUBLISHED = {  # row of the catalogue: TFLOP/s per chip as published, and per cent of the chip's dense BF16 peak
    "r0021": (108, 54.82),  # v5e: 197
    "r0101": (417.397, 45.47),  # v6e: 918
    "r0194": (166, 53.21),  # A100: 312
    "r0146": (394, 39.84),  # H100: 989
    "r0336": (706, 28.24),  # GB200: 2,500
    "r0522": (614, 27.29),  # B200: 2,250
}
CHIPS = {  # as the makers publish them: BF16 TFLOP/s dense, GB/s of HBM, links, GB/s one way of a link, chips that meet
    "TPU v3": (123, 900, 4, 82, 1024),
    "TPU v4": (275, 1200, 6, 50, 4096),
    "TPU v5e": (197, 819, 4, 50, 256),
    "TPU v5p": (459, 2765, 6, 100, 8960),
    "TPU v6e": (918, 1638, 4, 100, 256),
    "TPU7x Ironwood": (2307, 7380, 6, 100, 9216),
    "A100 SXM 80GB": (312, 2039, 12, 25, 8),
    "H100 SXM": (989.4, 3350, 18, 25, 8),
    "GB200 NVL72 (per GPU)": (2500, 8000, 18, 50, 72),
    "MI300X": (1307.4, 5300, 7, 64, 8),
}


@pytest.mark.parametrize("row", FLOPS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_flops_per_token(row):
    name, tokens, total, active, causal, noncausal = row
    counted = parameters(model(name))
    assert (counted.total, counted.active_matmul) == (total, active)
    assert flops_per_token(model(name), tokens).total / 1e9 == pytest.approx(causal, abs=0.6e-6)
    assert flops_per_token(model(name), tokens, "noncausal").total / 1e9 == pytest.approx(noncausal, abs=0.6e-6)
    assert flops_per_token(model(name), tokens, "6n").total == 6 * active


@pytest.mark.parametrize("row", MEMORY, ids=lambda row: row[0])
def test_activations_and_state_of_the_paper(row):
    _, heads, width, layers, pipeline, interleave, batch, none, selective = row
    factor = layers * interleave_factor(pipeline, interleave) / GIB
    shape = {"s": 2048, "b": batch, "h": width, "a": heads, "t": 8}
    for remat, sequence_parallel, printed in (("none", False, none), ("selective", True, selective)):
        one = layer_activation_bytes(**shape, remat=remat, sequence_parallel=sequence_parallel)
        assert one * factor == pytest.approx(printed, rel=1e-12)
    weights = 12 * layers * width**2
    state = state_bytes(weights, Sharding(tensor=8, pipeline=pipeline, interleave=interleave))
    assert sum(state.values()) == pytest.approx(18 * weights / (8 * pipeline))  # 2 + 4 and three times 4 bytes


@pytest.mark.parametrize("row", PADDING, ids=lambda row: f"{row[0]}-{row[1]}-{row[3]}")
def test_padding_taxes(row):
    name, tensor, tokens, side, efficiency, tax, swapped = row
    asked = parse_options(padding.OPTIONS, {"seq": str(tokens), "tp": str(tensor), "mxu": str(side)})
    found = padding.analyze(MemoryTables({}), ModelSubject(name, name).facts, asked).to_dict()
    assert found["efficiency"] == pytest.approx(efficiency, abs=0.51e-5)
    assert found["tax"] == pytest.approx(tax, abs=0.51e-5)
    assert found["efficiency_optimistic"] == pytest.approx(swapped, abs=0.51e-5)
    for m in found["matmuls"]:  # each product by its definition
        padded = 8 * math.ceil(m["m"] / 8) * side**2 * math.ceil(m["k"] / side) * math.ceil(m["n"] / side)
        useful = m["m"] * m["k"] * m["n"]
        assert m["padded_flops"] / m["useful_flops"] == pytest.approx(padded / useful), m["name"]


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_runs_as_shares_of_the_peak(row):
    tflops, percent = PUBLISHED[row]
    [found] = [r for r in reviewed() if r.run.id == row]
    assert float(found.run.printed["tflops_per_s"]) == tflops
    assert found.bf16_utilisation * 100 == pytest.approx(percent, rel=0.001)


@pytest.mark.parametrize("name", CHIPS)
def test_chips_have_the_published_figures(name):
    tflops, memory, links, one_way, domain = CHIPS[name]
    found = chip(name)
    assert found.value("bf16_flops_per_s") == pytest.approx(tflops * 1e12, rel=1e-4)
    assert found.value("hbm_bytes_per_s") == pytest.approx(memory * 1e9, rel=1e-4)
    assert found.value("link_oneway_bytes_per_s") == pytest.approx(one_way * 1e9, rel=1e-4)
    assert (found.value("links_per_chip"), found.value("scaleup_domain_chips")) == (links, domain)
