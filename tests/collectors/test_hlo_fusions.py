"""Products in fusions: a profile shows the fusion, its program what is in it."""

import os
from types import SimpleNamespace

import pytest

from collectors.device.hlo.fusions import holders
from collectors.device.hlo.module import analyse
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")

TEXT = """HloModule m

%inner (a: f8e4m3fn[8,8], b: f8e4m3fn[8,8]) -> bf16[8,8] {
  %a = f8e4m3fn[8,8] parameter(0)
  %b = f8e4m3fn[8,8] parameter(1)
  ROOT %dot.1 = bf16[8,8] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%outer (c: f8e4m3fn[8,8], d: f8e4m3fn[8,8]) -> bf16[8,8] {
  %c = f8e4m3fn[8,8] parameter(0)
  %d = f8e4m3fn[8,8] parameter(1)
  %nested = bf16[8,8] fusion(%c, %d), kind=kOutput, calls=%inner
  ROOT %n = bf16[8,8] negate(%nested)
}

ENTRY %e (p: f8e4m3fn[8,8], x: bf16[8,8]) -> bf16[8,8] {
  %p = f8e4m3fn[8,8] parameter(0)
  %x = bf16[8,8] parameter(1)
  %fusion.7 = bf16[8,8] fusion(%p, %p), kind=kOutput, calls=%outer
  ROOT %dot.9 = bf16[8,8] dot(%fusion.7, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_a_product_is_told_within_the_outermost_fusion_and_one_outside_within_itself():
    from jaxlib._hlo import hlo_module_from_text

    found = analyse(hlo_proto(hlo_module_from_text(TEXT).as_serialized_hlo_module_proto())).matmuls
    assert {(m.op, m.within, m.dtype) for m in found} == {
        ("dot.1", "fusion.7", "f8e4m3fn"),
        ("dot.9", "dot.9", "bf16"),
    }


def fusion(name: bytes, *calls: int) -> SimpleNamespace:
    return SimpleNamespace(opcode=b"fusion", name=name, called_computation_ids=calls)


def test_a_computation_that_several_fusions_hold_is_within_none_of_them():
    chain = {n: [fusion(b"f%d" % n, n + 1)] for n in range(10, 2_010)} | {2_010: []}
    within = {1: [fusion(b"one", 2), fusion(b"two", 3), fusion(b"gone", 99)], 2: [], 3: [fusion(b"in", 4)], 4: []}
    within |= {5: [fusion(b"other %d" % n, 10) for n in range(2_000)]} | chain
    found = holders(within, {2, 3, 4, *chain})
    assert found == {2: "one", 3: "two", 4: "two", **dict.fromkeys(chain)}
