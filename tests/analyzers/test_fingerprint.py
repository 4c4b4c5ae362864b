"""Fingerprints: printed numbers of the field, the convention and peak behind them, and contradictions in them.

The figures are published facts: rates per chip as MaxText, Google Cloud, NVIDIA and Meta print them.
"""

import pytest

from analyzers.flops.fingerprint import fingerprint, known_peaks
from catalog import chip, model

# MaxText default models on v5e: printed TFLOP/s and EMFU in per cent of 197 TFLOP/s (the last: int8).
V5E = [
    (120, 61.10),
    (111, 56.56),
    (132, 66.86),
    (123, 62.26),
    (118, 59.90),
    (105, 53.29),
    (110, 56.06),
    (100, 50.86),
    (88, 44.67),
    (104.4, 52.99),
]
OTHERS = [
    ("v5p", 328, 71.47, "459"),
    ("v5p", 304, 66.23, "459"),
    ("v4", 149, 54.3, "275"),
    ("B200", 1520.276, 67.57, "2,250"),
    ("H100", 508.371, 51.40, "989.4"),
    ("A100 80GB", 185, 59.48, "312"),
]


@pytest.mark.parametrize("tflops, printed", V5E)
def test_v5e_utilisation_divides_by_197(tflops, printed):
    found = fingerprint(
        chip=chip("v5e"), precision="bf16", peak_flops_per_s=197e12, tflops_per_s=tflops, printed_mfu=printed / 100
    )
    assert found.verdict == "These numbers used a peak of 197 TFLOP/s (TPU v5e, BF16 dense)."
    assert not found.contradictions
    assert abs(tflops / 197 * 100 - printed) < 0.5 / 197 * 100, "the printed digits, TFLOP/s rounded to whole ones"


def test_no_other_peak_of_v5e_gives_its_int8_figure():
    """104.4 of 197 is 52.99 %; of 196.6, which some print, 53.10."""
    assert round(104.4 / 197 * 100, 2) == 52.99
    assert round(104.4 / 196.6 * 100, 2) == 53.10


@pytest.mark.parametrize("name, tflops, printed, peak", OTHERS)
def test_the_peak_behind_other_prints(name, tflops, printed, peak):
    found = fingerprint(chip=chip(name), tflops_per_s=tflops, printed_mfu=printed / 100)
    assert f"peak of {peak} TFLOP/s ({chip(name).name}, BF16 dense)" in found.verdict


def test_a_peak_is_found_without_knowing_the_chip():
    found = fingerprint(tflops_per_s=149, printed_mfu=0.543)
    assert {p.chip for p in found.peaks} >= {"TPU v4"}


def test_a_sparse_peak_is_named():
    """H100: 791.5 TFLOP/s of FP8 are 40 % of 1,978.9 dense, but someone divided by 3,957.8."""
    found = fingerprint(
        chip=chip("H100"), precision="fp8", peak_flops_per_s=1978.9e12, tflops_per_s=791.56, printed_mfu=0.20
    )
    assert found.peaks[0].sparse and found.peaks[0].precision == "fp8"
    assert "FP8 2:4 sparse" in found.contradictions[0] and "it is 40 %" in found.contradictions[0]


@pytest.mark.parametrize(
    "name, ran, tflops, printed, used",
    [
        ("H100 SXM", "fp8", 800, 0.4043, ("fp8", False)),
        ("B200", "fp8", 1530, 0.34, ("fp8", False)),
        ("MI300X", "fp8", 900, 0.3442, ("fp8", False)),
        ("H100 SXM", "int8", 800, 0.4043, ("int8", False)),
        ("H100 SXM", None, 800, 0.4043, ("fp8", False)),
        ("H100 SXM", "bf16", 400, 0.2021, ("bf16", True)),  # as its data sheet prints it
        ("B200", "fp8", 1520.276, 0.6796, ("bf16", False)),  # 2,237: no other peak is that number
    ],
)
def test_of_equal_peaks_that_of_the_precision_that_ran(name, ran, tflops, printed, used):
    """Twice the BF16 rate, which sparse matrices are said to reach, is the dense FP8 rate but for the last digit."""
    found = fingerprint(chip=chip(name), precision=ran, tflops_per_s=tflops, printed_mfu=printed).peaks
    assert (found[0].precision, found[0].sparse) == used


def test_no_tpu_and_no_gaudi_has_a_sparse_peak():
    assert not any(sparse for _, _, sparse, _ in known_peaks([chip("v6e"), chip("v5p"), chip("7x"), chip("Gaudi 3")]))
    for name in ("A100 SXM 80GB", "MI300X"):
        assert any(sparse for _, _, sparse, _ in known_peaks([chip(name)]))


def test_a_print_over_twice_the_peak_of_a_gaudi_is_of_no_peak_of_its_own():
    found = fingerprint(chip=chip("Gaudi 3"), precision="bf16", tflops_per_s=700, printed_mfu=700 / 3670).peaks
    assert not any(p.chip == "Gaudi 3" for p in found)


@pytest.mark.parametrize(
    "name, seq, tflops, tokens, convention",
    [
        ("llama3.1-8b", 8192, 419.485, 7243.378, "noncausal"),
        ("llama3.1-70b", 8192, 462.297, 960.248, "noncausal"),
        ("gemma3-12b", 32768, 349.442, 4477.768, "windows_halved"),
        ("gpt-oss-120b", 8192, 330.25, 9581.66, "windows_halved"),
        ("deepseek3-671b", 4096, 607.53, 2425.75, "causal"),
        ("deepseek3-671b", 4096, 1635, 6288, "megatron"),
        ("qwen3-30b-a3b", 4096, 925.2, 40206, "megatron"),
        ("llama3.1-70b", 4096, 2072, 7447, "lora"),
    ],
)
def test_the_convention_behind_published_rates(name, seq, tflops, tokens, convention):
    found = fingerprint(model=model(name), seq=seq, tflops_per_s=tflops, tokens_per_s=tokens)
    assert found.matching[0].name == convention
    assert found.printed_flops_per_token == tflops * 1e12 / tokens
    assert not found.contradictions


def test_conventions_that_count_alike_are_named_together():
    found = fingerprint(model=model("llama3.1-8b"), seq=8192, tflops_per_s=51.4704, tokens_per_s=1000)
    assert found.matching[0].same == ("windows_halved", "megatron")
    assert "exact causal convention (for this model the same as windows-halved, Megatron)" in found.verdict


def test_a_share_that_its_own_tflops_contradict():
    """v5p: 249 TFLOP/s printed as 64.05 %; of 459 they are 54.25 %."""
    found = fingerprint(
        chip=chip("v5p"), precision="bf16", peak_flops_per_s=459e12, tflops_per_s=249, printed_mfu=0.6405
    )
    assert not found.peaks
    said = "64.05 % contradicts the printed 249 TFLOP/s, which are 54.25 % of the peak of 459 TFLOP/s"
    assert said in found.contradictions[0]


def test_a_share_that_its_own_tokens_contradict():
    """v6e, Llama 405B, T 8192: 123 tokens/s printed as 38.55 %; non-causal they are 35.2 %, exact causal 33.8 %."""
    found = fingerprint(
        model=model("llama3.1-405b"),
        seq=8192,
        chip=chip("v6e"),
        precision="bf16",
        peak_flops_per_s=918e12,
        tokens_per_s=123,
        printed_mfu=0.3855,
    )
    assert "35.18 % (non-causal)" in found.contradictions[0] and "33.82 % (exact causal)" in found.contradictions[0]


def test_tokens_and_share_that_agree():
    """v6e, Llama 70B: 960 tokens/s are 50.33 % by the non-causal count."""
    found = fingerprint(
        model=model("llama3.1-70b"),
        seq=8192,
        chip=chip("v6e"),
        peak_flops_per_s=918e12,
        tokens_per_s=960,
        printed_mfu=0.5033,
    )
    assert found.matching[0].name == "noncausal" and not found.contradictions


def test_an_fp8_run_divided_by_the_bf16_peak():
    """B200, Llama 405B in FP8: 1520 TFLOP/s printed as 67.96 % of 2,237; of the FP8 peak they are 34.0 %."""
    found = fingerprint(
        model=model("llama3.1-405b"),
        seq=8192,
        chip=chip("B200"),
        precision="fp8",
        peak_flops_per_s=4500e12,
        tflops_per_s=1520.276,
        tokens_per_s=579.059,
        printed_mfu=0.6796,
    )
    assert found.matching[0].name == "noncausal"
    assert found.contradictions == (
        "67.96 % divides by 2,237 TFLOP/s (B200, BF16 dense); by the peak of the precision that ran, FP8, it is "
        "33.98 %.",
    )


def test_rates_that_no_convention_joins():
    """GPT-OSS 120B printed at 27.17 GFLOPs a token: two feed-forward matrices instead of three."""
    found = fingerprint(model=model("gpt-oss-120b"), seq=4096, tflops_per_s=523, tokens_per_s=523e3 / 27.17)
    assert not found.matching and found.verdict == ""
    assert "27.17 GFLOPs per token, which no convention gives" in found.contradictions[0]


def test_the_tolerance_is_the_border():
    exact = fingerprint(model=model("llama3.1-8b"), seq=8192, tflops_per_s=51.470401536, tokens_per_s=1000)
    assert exact.conventions[0].distance == pytest.approx(0, abs=1e-12)
    for off, matches in ((1.0049, True), (0.9951, True), (1.0051, False), (0.9949, False)):
        found = fingerprint(model=model("llama3.1-8b"), seq=8192, tflops_per_s=51.470401536 * off, tokens_per_s=1000)
        assert bool(found.matching) == matches


def test_nothing_known_says_nothing():
    found = fingerprint()
    assert found.verdict == "" and found.to_dict()["contradictions"] == []


@pytest.mark.parametrize(
    "printed, unit, fits",
    [(0.43, 0.01, True), (0.43, 0.0001, False), (0.432, 0.001, True), (0.42, 0.01, False), (0.44, 0.01, False)],
)
def test_a_print_stands_for_all_that_rounds_to_it(printed, unit, fits):
    """428.1 of 989.4 TFLOP/s are 43.27 %: a print of 43 % says so, one of 43.00 % does not."""
    found = fingerprint(
        chip=chip("H100"),
        precision="bf16",
        peak_flops_per_s=989.4e12,
        tflops_per_s=428.1,
        printed_mfu=printed,
        mfu_unit=unit,
    )
    assert (not found.contradictions) == fits
    assert not fits or "989.4 TFLOP/s (H100 SXM, BF16 dense)" in found.verdict
