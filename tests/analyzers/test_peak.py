"""Which peak the useful maths of a run is measured against."""

import pytest

from analyzers.flops.peak import peak
from analyzers.flops.precision import peaks
from runs.run import FactValue, facts_of
from runs.tables import MemoryTables


@pytest.mark.parametrize(
    ("told", "flops", "said"),
    [
        ({"chip": "Tesla V100-SXM2-32GB"}, 125e12, "V100 SXM2 32GB, fp16 dense"),  # it has no BF16
        ({"chip": "Tesla V100-SXM2-32GB", "precision": "bf16"}, 125e12, "fp16 dense"),
        ({"chip": "NVIDIA A100-SXM4-40GB"}, 312e12, "bf16 dense"),
        ({"chip": "NVIDIA A100-SXM4-40GB", "precision": "fp16"}, 312e12, "bf16 dense"),  # they are one rate
        ({"chip": "some card"}, None, ""),
        ({}, None, ""),
    ],
)
def test_the_peak_of_a_chip(told, flops, said):
    value, source = peak(MemoryTables({}), facts_of(told))
    assert value == flops and said in source


def test_what_a_trace_states_and_what_people_declare_come_first():
    tables = MemoryTables({"captures": {"capture": [0], "peak_flops_per_s": [1e14]}})
    facts = facts_of({"chip": "Tesla V100-SXM2-32GB"})
    assert peak(tables, facts) == (1e14, "peak that the trace states, 100 TFLOP/s")
    declared = facts_of({"chip": "Tesla V100-SXM2-32GB", "peak_flops_per_s": 2e13})
    assert peak(tables, declared)[0] == 2e13


def test_devices_of_several_kinds_have_the_mean_of_their_peaks():
    """6 devices of 918 and 2 of 198 TFLOP/s; a process that was profiled twice counts once."""
    captures = {"capture": [0, 1, 2], "host": ["a", "a", "b"], "process": [0, 0, 1], "devices": [6, 6, 2]}
    tables = MemoryTables({"captures": {**captures, "peak_flops_per_s": [918e12, 918e12, 198e12]}})
    value, source = peak(tables, facts_of({}))
    assert value == (6 * 918e12 + 2 * 198e12) / 8 and "198 and 918 TFLOP/s" in source
    alike = MemoryTables({"captures": {**captures, "peak_flops_per_s": [918e12] * 3}})
    assert peak(alike, facts_of({})) == (918e12, "peak that the trace states, 918 TFLOP/s")


def _products(*dtypes, ran=True, **told):
    """A profile of three steps whose program makes a product of 2 TFLOP in each of these types; other work is 4."""
    n = len(dtypes)
    ops = {"capture": [0] * n, "op_id": range(n), "device": [0] * n, "role": ["compute"] * n, "program": [7] * n}
    ops |= {"category": ["matmul"] * n, "count": [3] * n, "flops": [(2 * n + 4) * 1e12 / n] * n}
    matmuls = {"capture": [0] * n, "program": [7] * n, "dtype": dtypes, "count": [1] * n, "batch": [1] * n}
    matmuls |= {"m": [10**4] * n, "k": [10**4] * n, "n": [10**4] * n}
    modules = {"capture": [0], "program": [7], "flops": [(2 * n + 4) * 1e12]}
    ops["total_ns"] = [1e9 if ran else None] * n
    return MemoryTables({"ops": ops, "matmuls": matmuls, "modules": modules, **told})


@pytest.mark.parametrize(
    ("chip", "dtypes", "flops", "said"),
    [
        ("H100 SXM", ("f8e4m3fn", "f8e5m2"), 1e12 / (0.5 / 1978.9 + 0.5 / 989.4), "50 % BF16 + 50 % FP8 dense"),
        ("H100 SXM", ("bf16", "s8"), 1e12 / (0.75 / 989.4 + 0.25 / 1978.9), "75 % BF16 + 25 % INT8 dense"),
        ("H100 SXM", ("bf16", "f32", "f16", None), 989.4e12, "bf16 dense"),
        ("A100 SXM 80GB", ("f8e4m3fn",), 312e12, "bf16 dense"),  # it has no FP8: computed in BF16
        ("V100 SXM2 16GB", ("f16",), 125e12, "fp16 dense"),
    ],
)
def test_products_tell_in_which_formats_the_maths_ran(chip, dtypes, flops, said):
    """FLOPs besides them, as of fused attention, are of the usual format."""
    tables, facts = _products(*dtypes), facts_of({"chip": chip})
    value, source = peak(tables, facts)
    assert value == pytest.approx(flops) and said in source
    of = peaks(tables, facts, {})
    assert of.native == pytest.approx(flops) and said.lower() in of.source.lower()
    assert of.most >= 989.4e12 or "H100" not in chip  # of a step that ran otherwise nothing is said to be impossible


def test_the_peak_that_a_trace_states_is_that_of_bf16_whatever_ran():
    """MFU was held against it and said to be of INT8, where the ledger took the peak of both formats."""
    facts = facts_of({"chip": "TPU v5e"}) | {"peak_flops_per_s": FactValue(197e12, "measured", "t.xplane.pb")}
    tables = _products("s8", "s8", captures={"capture": [0], "host": ["a"], "peak_flops_per_s": [197e12]})
    of = peaks(tables, facts, {})
    assert of.native == peak(tables, facts)[0] == pytest.approx(1e12 / (0.5 / 197 + 0.5 / 393), rel=1e-3)
    assert of.precision == "bf16=0.5,int8=0.5" and "50 % INT8" in of.source
    plain = peaks(_products("bf16"), facts, {})
    assert (plain.native, plain.precision) == (197e12, None)


def test_what_is_said_of_formats_counts_before_what_a_profile_shows():
    tables = _products("f8e4m3fn")
    for told, flops in (
        ({"precision": "bf16"}, 989.4e12),
        ({"quantization": "int8"}, 1978.9e12),
        ({"peak_flops_per_s": 5e14}, 5e14),
    ):
        facts = facts_of({"chip": "H100 SXM", **told})
        assert peak(tables, facts)[0] == peaks(tables, facts, {}).native == flops
    asked = peaks(tables, facts_of({"chip": "A100 SXM 80GB"}), {"chip": "H100 SXM"})
    assert asked.native == pytest.approx(1e12 / (2 / 6 / 1978.9 + 4 / 6 / 989.4))
    assert peaks(tables, facts_of({"chip": "H100 SXM"}), {"precision": "bf16"}).native == 989.4e12
    assert peak(_products("f8e4m3fn", ran=False), facts_of({"chip": "H100 SXM"}))[0] == 989.4e12  # compiled alone
