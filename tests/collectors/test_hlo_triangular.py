"""Triangular solves and Cholesky factors: which side and triangle, as XLA prints it, and FLOPs as XLA counts them."""

import os
import re

import pytest

from analyzers.program.text import Text
from collectors.device.hlo.module import analyse
from collectors.device.hlo.program import program_of
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

SOLVES = {
    "left_side=true, lower=true, transpose_a=NO_TRANSPOSE": ((16, 16), (16, 3)),
    "left_side=true, unit_diagonal=true, transpose_a=ADJOINT": ((5, 16, 16), (5, 16, 64)),
    "transpose_a=NO_TRANSPOSE": ((16, 16), (3, 16)),
    "lower=true, unit_diagonal=true, transpose_a=TRANSPOSE": ((5, 16, 16), (5, 64, 16)),
}


def shape(dims):
    return f"f32[{','.join(map(str, dims))}]"


def solve(options, a, b):
    return (
        f"ENTRY %e (a: {shape(a)}, b: {shape(b)}) -> {shape(b)} {{\n"
        f"  %a = {shape(a)} parameter(0)\n  %b = {shape(b)} parameter(1)\n"
        f"  ROOT %t = {shape(b)} triangular-solve(%a, %b), {options}\n}}"
    )


def factor(options, a):
    return (
        f"ENTRY %e (a: {shape(a)}) -> {shape(a)} {{\n  %a = {shape(a)} parameter(0)\n"
        f"  ROOT %t = {shape(a)} cholesky(%a){options}\n}}"
    )


@pytest.mark.parametrize(
    "text, options, flops",
    [
        *((solve(o, a, b), o, 2 * 16 * (5 * 16 * 64 if len(a) == 3 else 16 * 3)) for o, (a, b) in SOLVES.items()),
        (factor(", lower=true", (7, 16, 16)), "lower=true", 7 * 16**3 // 3),
        (factor("", (16, 16)), "", 16**3 // 3),
    ],
)
def test_side_and_triangle_are_printed_and_flops_are_those_of_xla(text, options, flops):
    from jaxlib import _jax
    from jaxlib._hlo import hlo_module_from_text

    module = hlo_module_from_text(f"HloModule m\n{text}")
    data = hlo_proto(module.as_serialized_hlo_module_proto())
    (line,) = (line for line in Text(program_of(data)).whole() if line.startswith("  ROOT %t = "))
    assert re.sub(r"\{[\d,]*\}", "", line).partition("), ")[2] == options
    theirs = _jax.hlo_module_cost_analysis(jax.devices()[0].client, module)["flops"]
    assert analyse(data).flops == theirs == flops
