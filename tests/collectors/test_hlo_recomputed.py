"""What XLA itself computes again where memory is short: copies called `name.remat`, of fusions whose parts it calls
otherwise."""

import os

import pytest

from collectors.device.hlo.module import analyse
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")

M, K, N = 64, 128, 256


def analysed(copy, op_name="jit(f)/dot_general"):
    """A program of two fusions around the same product, the second called `copy`."""
    from jaxlib._hlo import hlo_module_from_text

    def fused(name, dot):
        return (
            f"%{name} (a: f32[{M},{K}], b: f32[{K},{N}]) -> f32[{M},{N}] {{\n"
            f"  %a = f32[{M},{K}] parameter(0)\n  %b = f32[{K},{N}] parameter(1)\n"
            f"  ROOT %{dot} = f32[{M},{N}] dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
        )

    def fusion(name, calls):
        told = f'kind=kOutput, calls=%{calls}, metadata={{op_name="{op_name}"}}'
        return f"  %{name} = f32[{M},{N}] fusion(%x, %y), {told}\n"

    text = (
        f"HloModule m\n{fused('one', 'dot.1')}{fused('one.clone', 'dot.1.clone')}"
        f"ENTRY %e (x: f32[{M},{K}], y: f32[{K},{N}]) -> f32[{M},{N}] {{\n"
        f"  %x = f32[{M},{K}] parameter(0)\n  %y = f32[{K},{N}] parameter(1)\n"
        f"{fusion('fusion.1', 'one')}{fusion(copy, 'one.clone')}"
        f"  ROOT %add = f32[{M},{N}] add(%fusion.1, %{copy})\n}}"
    )
    return analyse(hlo_proto(hlo_module_from_text(text).as_serialized_hlo_module_proto()))


@pytest.mark.parametrize("name", ["fusion.1.remat", "fusion.1.remat2"])
def test_a_fusion_that_the_compiler_repeats_is_computed_again_with_all_that_it_holds(name):
    found = analysed(name)
    assert found.flops == 2 * 2 * M * K * N + M * N
    assert found.remat_flops == 2 * M * K * N
    assert {m.op: m.remat for m in found.matmuls} == {"dot.1": False, "dot.1.clone": True}


def test_a_fusion_whose_name_in_the_program_tells_of_recomputation_is_so_by_what_each_part_of_it_says():
    found = analysed("fusion.2", "jit(f)/rematted_computation/add")
    assert found.remat_flops == 0 and not any(m.remat for m in found.matmuls)
