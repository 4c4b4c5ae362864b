"""Which peak the useful maths of a run is measured against."""

import pytest

from analyzers.flops.peak import peak
from runs.run import facts_of
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
