"""Every row of the book's oracle that the planner's counts can express, by them; what it cannot is named."""

import json
from pathlib import Path

import pytest

from catalog import chip, model, parameters
from tests.simulators import book

FILE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "training" / "scalingbook_oracle.json"
if not FILE.is_file():
    pytest.skip("the oracles are not beside this checkout", allow_module_level=True)
TOLD = json.loads(FILE.read_text())
ROWS = {row["id"]: row for row in TOLD["oracles"]}
V5P = TOLD["constants"]["v5p"]
C, W, N = V5P["C_bf16"], V5P["W_ici_bidir"], 70e9
MILLION = 2**20


def ffw(name: str) -> float:
    of = model(name)
    return sum(b.params(of.d_model)[0] for b in of.feedforward)


def attention(name: str) -> float:
    of = model(name)
    return sum(a.params(of.d_model) for a in of.attention)


def tables(name: str) -> float:
    of = model(name)
    return of.vocab * of.d_model * (1 if of.tied_embeddings else 2)


COMPUTED = {
    "ici_intensity_v5p": lambda: book.alpha(C, W),
    "dp_min_batch_1axis": lambda: book.alpha(4.6e14, W),
    "dp_min_batch_3axes": lambda: book.alpha(C, 3 * W),
    "dp_min_batch_pod": lambda: book.alpha(C, 3 * W) * 8960,
    "dp_max_params_v5p": lambda: V5P["HBM"] / book.state(1.0),
    "dsv2_chips": lambda: 40e6 / book.alpha(C, 3 * W),
    "llama70b_chips": lambda: 16e6 / book.alpha(C, 3 * W),
    "llama70b_days_18823": lambda: book.days(6.3e24, 1, 18_823, C, 0.5),
    "tp_max_llama70b": lambda: book.tensor_ways(C, W, 30_000),
    "tp_required_F_8way": lambda: 8 * 30_000 / book.tensor_ways(C, W, 30_000),
    "tp_max_gemma7b": lambda: book.tensor_ways(C, W, 50_000),
    "int8_invariance": lambda: book.alpha(V5P["C_int8"], W),
    "xopt_64": lambda: book.best_fsdp(48_000, 64, 32_768, (2, 1)),
    "mixed_min_batch": lambda: book.mixed_tokens(C, W, 32_768, (2, 1)),
    "mixed_16x16x16": lambda: book.mixed_tokens(C, W, 32_768, (2, 1)) * 4096,
    "mixed_llama70b": lambda: book.mixed_tokens(C, W, 30_000, (2, 1)),
    "dcn_pod_min_batch": lambda: book.alpha(8000 * 4.5e14, 5e13),
    "q1_llama2_13b_params": lambda: parameters(model("llama2-13b")).total,
    "q2_mem_opt": lambda: book.state(13e9),
    "q3_min_batch": lambda: book.alpha(C, 3 * W) * 4096,
    "q3_mixed": lambda: book.mixed_tokens(C, W, 13_824, (2, 1)),
    "l70_ffw": lambda: ffw("llama3.1-70b"),
    "l70_vocab": lambda: tables("llama3.1-70b"),
    "l70_attn": lambda: attention("llama3.1-70b"),
    "l70_total": lambda: parameters(model("llama3.1-70b")).total,
    "one_tpu_years": lambda: book.days(6 * N, 15e12, 1, C, 1.0) / 365,
    "pod_days": lambda: book.days(6 * N, 15e12, 8960, C, 0.4),
    "mixed_bound_70b": lambda: book.mixed_tokens(C, W, 28_672, (2, 1)),
    "xopt_70b": lambda: book.best_fsdp(4 * MILLION, 8960, 28_672, (2, 1)),
}
NOT_OURS = {
    "q2_mem_act": "keeps D + 2 F of a token and layer, a choice of checkpoints that the planner does not offer",
    "q3_act_3M": "the same",
    "act_21TB": "the same, by a formula that the row calls wrong",
    "act_21TB_with4": "four checkpoints of D a layer: the same",
    "min_tpus": "of these checkpoints",
    "days_min": "of these chips",
    "per_chip_mem": "of these checkpoints",
    "slice_hbm": "a product of two inputs",
    "flops_tok": "a product of two inputs",
    "tok_ms": "a quotient of two inputs",
    "total_flops": "a product of two inputs",
    "fsdp_tokens_per_chip": "a quotient of two inputs",
}


def test_every_row_is_computed_or_named():
    assert set(COMPUTED) | set(NOT_OURS) == set(ROWS) and not set(COMPUTED) & set(NOT_OURS)


@pytest.mark.parametrize("name", COMPUTED)
def test_row(name):
    row, ours = ROWS[name], COMPUTED[name]()
    assert ours == pytest.approx(row["recomputed"], rel=1e-3 if name == "xopt_70b" else 1e-6)
    if "TYPO" not in row["note"] and name not in ("dp_max_params_v5p",):
        assert ours == pytest.approx(row["book_answer"], rel=row["tolerance_rel"])


def test_bytes_of_a_layer_forward_and_backward_are_the_books():
    """12 D F for fsdp and, forward, 4 B D for tensor parallelism (the book's 8 B D are of both passes)."""
    d, f = 4096, 16_384
    assert 3 * book.forward_bytes("fsdp", d, f, fsdp=1024) == pytest.approx(12 * d * f)
    assert 2 * book.forward_bytes("tensor", d, f, tokens=8192, tensor=4) == pytest.approx(8 * 8192 * d)


def test_the_books_chips_are_those_of_the_catalogue():
    assert chip("v5p").value("bf16_flops_per_s") == C
