"""MFU of a model alone and of numbers that others print: the field's tables, checked."""

import json

import pytest

from analyzers.flops import flops
from catalog.flops import CONVENTIONS
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.mfu_lines import EXACT, LOOSE, of_model

# Printed numbers, of a model alone ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tflops, chip_name, precision, mfu_pct, emfu_pct",
    [
        # Llama 405B on H100, 989.4 TFLOP/s: printed 43, 41 and 38 % beside 430, 400 and 380, which are rounded to tens
        (430, "H100", "bf16", 43.46, 43.46),
        (400, "H100", "bf16", 40.43, 40.43),
        (380, "H100", "bf16", 38.41, 38.41),
        # MaxText on v5e, 197 TFLOP/s: printed 61.10 and 44.67 beside rounded 120 and 88; int8 52.99 beside 104.4
        (120, "v5e", "bf16", 60.91, 60.91),
        (88, "v5e", "bf16", 44.67, 44.67),
        (104.4, "v5e", "int8", 26.56, 52.99),
        # FP8 on B200, printed 67.96 % of a BF16 peak
        (1520.276, "B200", "fp8", 33.78, 67.57),
    ],
)
def test_the_field_s_tables(tflops, chip_name, precision, mfu_pct, emfu_pct):
    result = of_model(tflops_per_s=str(tflops), chip=chip_name, precision=precision)
    assert round(result.mfu * 100, 2) == mfu_pct
    assert round(result.emfu * 100, 2) == emfu_pct
    assert result.best is None and result.average is None and result.convention == "job"


@pytest.mark.parametrize("gpus, tflops, printed", [(8192, 430, 43), (16384, 400, 41), (16384, 380, 38)])
def test_llama_405b_s_printed_shares_follow_from_its_rounded_rates(gpus, tflops, printed):
    """Rates printed to tens, shares to whole per cents: some rate within the one is some share within the other."""
    low, high = (of_model("llama3.1-405b", tflops_per_s=str(tflops + d), chip="H100 SXM").mfu for d in (-5, 5))
    assert low * 100 < printed + 0.5 and high * 100 >= printed - 0.5


def test_printed_tokens_alone_by_a_convention():
    result = of_model(tokens_per_s="960.248", seq="8192", chip="v6e", convention="noncausal", model="llama3.1-70b")
    assert result.tflops_per_s_per_chip == pytest.approx(462.297, abs=5e-4)
    exact = of_model(tokens_per_s="960.248", seq="8192", chip="v6e", model="llama3.1-70b")
    assert exact.convention == "causal" and exact.mfu == pytest.approx(960.248 * 449.222541312e9 / 918e12, rel=1e-6)


@pytest.mark.parametrize("printed", ["64.05", "0.6405"])
def test_a_printed_share_is_checked(printed):
    result = of_model(tflops_per_s="249", chip="v5p", printed_mfu=printed)
    assert result.mfu == pytest.approx(0.5425, abs=5e-5)
    assert "54.25 %" in result.fingerprint.contradictions[0]


@pytest.mark.parametrize(
    "printed, fits", [("43", True), ("0.43", True), ("43.27", True), ("43.9", False), ("42", False), ("0.4", False)]
)
def test_a_printed_share_is_as_exact_as_its_digits(printed, fits):
    result = of_model(tflops_per_s="428.1", chip="H100", printed_mfu=printed)
    assert result.mfu == pytest.approx(0.4327, abs=5e-5) and (not result.fingerprint.contradictions) == fits


# The question `flops` -------------------------------------------------------------------------------------------------


def test_flops_of_a_model():
    facts = facts_of({"model": "llama3.1-8b"})
    result = flops.analyze(MemoryTables({}), facts, parse_options(flops.OPTIONS, {"seq": "8192"}))
    said = result.to_dict()
    assert list(said["flops_per_token"]) == [c.name for c in CONVENTIONS]
    assert (said["flops_per_token"]["causal"], said["flops_per_token"]["noncausal"]) == (EXACT, LOOSE)
    assert sum(said["parts"]["causal"].values()) == EXACT
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assumed = flops.analyze(MemoryTables({}), facts, parse_options(flops.OPTIONS, {}))
    assert assumed.seq == 8192 and "Nothing says how long a sequence is" in assumed.notes[0]
    with pytest.raises(QuestionError, match="nothing says which model this is"):
        flops.analyze(MemoryTables({}), {}, parse_options(flops.OPTIONS, {}))
