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
