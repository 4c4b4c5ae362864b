"""Calls into libraries, as XLA prints them for GPUs: what convolutions and their gradients cost, and scratch space."""

import os
from itertools import product as every
from math import prod

import pytest

from collectors.device.hlo.module import analyse
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")


def analysed(text):
    from jaxlib._hlo import hlo_module_from_text

    module = hlo_module_from_text(f"HloModule m\n{text}")
    return analyse(hlo_proto(module.as_serialized_hlo_module_proto()))


class Convolution:
    """A small convolution (batch, height x width, features) whose multiply-adds are counted one by one."""

    def __init__(
        self,
        size=(7, 9),
        window=(3, 2),
        stride=(1, 1),
        pad=((0, 0), (0, 0)),
        dilate=(1, 1),
        groups=1,
        batch=2,
        features=(4, 6),
    ):
        self.size, self.window, self.stride, self.pad, self.dilate = size, window, stride, pad, dilate
        self.groups, self.batch, self.features = groups, batch, features
        self.out = tuple(
            (s + sum(p) - d * (w - 1) - 1) // t + 1
            for s, p, d, w, t in zip(size, pad, dilate, window, stride, strict=True)
        )

    @property
    def multiply_adds(self):
        """Every output position, window position and pair of features in one group that meets an input element."""
        meets = 0
        for at, place in every(every(*map(range, self.out)), every(*map(range, self.window))):
            where = [
                o * t + w * d - p[0]
                for o, w, t, d, p in zip(at, place, self.stride, self.dilate, self.pad, strict=True)
            ]
            meets += all(0 <= x < s for x, s in zip(where, self.size, strict=True))
        ins, outs = self.features
        return meets * self.batch * (ins // self.groups) * outs

    def shapes(self):
        """(input, filter, output), features last but of the filter: `b01f_01io->b01f`."""
        ins, outs = self.features
        return ((self.batch, *self.size, ins), (*self.window, ins // self.groups, outs), (self.batch, *self.out, outs))

    def call(self, target):
        """The module with the library call; its scratch is the second result."""
        given, kernel, out = (f"f32[{','.join(map(str, s))}]{{3,2,1,0}}" for s in self.shapes())
        first, second, made = {"BackwardInput": (out, kernel, given), "BackwardFilter": (given, out, kernel)}.get(
            target, (given, kernel, out)
        )
        bias = f"f32[{self.features[1]}]{{0}}"
        more = ", c" if target == "BiasActivationForward" else ""
        window = f"size={'x'.join(map(str, self.window))} stride={'x'.join(map(str, self.stride))} "
        window += f"pad={'x'.join(f'{a}_{b}' for a, b in self.pad)} rhs_dilate={'x'.join(map(str, self.dilate))}"
        return analysed(f"""
ENTRY e {{
  a = {first} parameter(0)
  b = {second} parameter(1)
  c = {bias} parameter(2)
  ROOT r = ({made}, u8[1000]{{0}}) custom-call(a, b{more}), window={{{window}}}, dim_labels=b01f_01io->b01f,
    feature_group_count={self.groups}, custom_call_target="__cudnn$conv{target}"
}}""")


CONVOLUTIONS = {
    "plain": Convolution(),
    "strided": Convolution(stride=(2, 2)),
    "strided by 3": Convolution(stride=(3, 2)),
    "padded": Convolution(pad=((1, 1), (2, 0))),
    "dilated": Convolution(dilate=(2, 3), pad=((1, 0), (0, 1))),
    "strided and padded": Convolution((8, 8), (3, 3), (2, 2), ((1, 1), (1, 1))),
    "grouped": Convolution(groups=2, stride=(2, 1)),
    "one by one": Convolution(window=(1, 1)),
    "downsampling": Convolution((8, 8), (1, 1), (2, 2)),
    "whole": Convolution((4, 4), (4, 4)),
    "many features": Convolution(batch=1, features=(3, 32), stride=(2, 2), window=(5, 5), pad=((2, 2), (2, 2))),
}
TARGETS = ("Forward", "ForwardGraph", "BiasActivationForward", "BackwardInput", "BackwardFilter")


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_flops_are_two_for_each_multiply_add(name, target):
    convolution = CONVOLUTIONS[name]
    assert convolution.call(target).operations["r"].flops == 2 * convolution.multiply_adds


@pytest.mark.parametrize(
    ("target", "m", "k", "n"),
    [
        ("Forward", 2 * 63, 4, 6),
        ("BackwardInput", 2 * 63, 6, 4),
        ("BackwardFilter", 4, 2 * 63, 6),
    ],
)
def test_a_gradient_sums_over_a_side_of_the_product(target, m, k, n):
    (found,) = CONVOLUTIONS["one by one"].call(target).matmuls
    assert (found.product.m, found.product.k, found.product.n, found.product.kind) == (m, k, n, "matmul")


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_of_a_convolution_are_operands_and_result(target):
    convolution = CONVOLUTIONS["strided"]
    more = 4 * convolution.features[1] if target == "BiasActivationForward" else 0
    assert convolution.call(target).operations["r"].bytes == 4 * sum(map(prod, convolution.shapes())) + more


def product(target, result, scratch="s8[33554432]{0}"):
    """A product of [64, 32] and [32, 128] in bf16 by a library."""
    (found,) = (
        o
        for o in analysed(f"""
ENTRY e {{
  a = bf16[64,32]{{1,0}} parameter(0)
  b = bf16[32,128]{{1,0}} parameter(1)
  ROOT r = ({result}, {scratch}) custom-call(a, b), custom_call_target="{target}", backend_config={{
    "gemm_backend_config":{{"dot_dimension_numbers":{{"lhs_contracting_dimensions":["1"],
    "rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}}}}
}}""").operations.values()
        if o.name == "r"
    )
    return found


OPERANDS, RESULT = 2 * (64 * 32 + 32 * 128), 2 * 64 * 128


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul"])
def test_scratch_space_of_a_product_is_no_traffic(target):
    found = product(target, "bf16[64,128]{1,0}")
    assert found.bytes == OPERANDS + RESULT and found.flops == 2 * 64 * 32 * 128


@pytest.mark.parametrize(
    ("target", "scratch", "bytes_of"),
    [
        ("__cublas$lt$matmul$f8", "f32[]", 4),  # the largest element, which is a result
        ("__cublas$gemm", "s8[64,128]{1,0}", 64 * 128),  # a matrix of bytes is a result too
        ("a_kernel_of_the_users_own", "u8[1000]{0}", 1000),  # of which nobody knows what its results are
    ],
)
def test_other_results_are_traffic(target, scratch, bytes_of):
    assert product(target, "bf16[64,128]{1,0}", scratch).bytes == OPERANDS + RESULT + bytes_of


def kernel(config):
    """A call of a kernel of the user's own, alone in its program."""
    return analysed(f"""
ENTRY e {{
  a = bf16[64,32]{{1,0}} parameter(0)
  ROOT r = bf16[64,32]{{1,0}} custom-call(a), custom_call_target="tpu_custom_call", backend_config={{{config}}}
}}""")


@pytest.mark.parametrize("flops", ['"268435456"', "268435456"])  # as XLA writes it, and as JAX does
def test_a_kernel_counts_with_the_flops_that_its_author_states(flops):
    estimate = f'"cost_estimate":{{"flops":{flops},"transcendentals":"0","bytes_accessed":"8192"}}'
    found = kernel(f'"custom_call_config":{{"body":"bW9kdWxl",{estimate},"needs_layout_passes":true}}')
    assert (found.flops, found.operations["r"].flops) == (268435456, 268435456)
    assert found.operations["r"].category == "custom-call" and not found.matmuls
    assert found.bytes == 2 * 2 * 64 * 32


@pytest.mark.parametrize(
    "estimate",
    [
        "",
        '"cost_estimate":{"transcendentals":"7"}',
        '"cost_estimate":{"flops":"-1"}',
        f'"cost_estimate":{{"flops":"{"9" * 30}"}}',
    ],
)
def test_of_a_kernel_of_which_nothing_is_stated_no_flops_are_counted(estimate):
    assert kernel(f'"custom_call_config":{{{estimate}}}').flops == 0


SCALED = {  # products of 8-bit numbers with a scale for each block of them: as XLA has them, and as it calls cuDNN
    "scaled-dot": """
  a = f8e4m3fn[64,256]{1,0} parameter(0)
  b = f8e4m3fn[256,32]{1,0} parameter(1)
  s = f8e8m0fnu[64,8]{1,0} parameter(2)
  t = f8e8m0fnu[8,32]{1,0} parameter(3)
  ROOT r = bf16[64,32]{1,0} scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
""",
    "library": """
  a = f8e4m3fn[3,64,256]{2,1,0} parameter(0)
  b = f8e4m3fn[3,32,256]{2,1,0} parameter(1)
  s = f8e8m0fnu[3,64,8]{2,1,0} parameter(2)
  t = f8e8m0fnu[3,32,8]{2,1,0} parameter(3)
  ROOT r = (bf16[3,64,32]{2,1,0}, u8[512]{0}) custom-call(a, b, s, t), custom_call_target="__cudnn$blockScaledDot"
""",
}


@pytest.mark.parametrize(("how", "batch"), [("scaled-dot", 1), ("library", 3)])
def test_a_product_of_numbers_with_scales_is_one(how, batch):
    found = analysed(f"ENTRY e {{{SCALED[how]}}}")
    (product,) = found.matmuls
    assert (product.product.m, product.product.k, product.product.n, product.product.batch) == (64, 256, 32, batch)
    assert found.flops == 2 * 64 * 256 * 32 * batch and product.dtype == "f8e4m3fn"
    assert found.operations["r"].category == "matmul"
    assert found.operations["r"].bytes == batch * (64 * 256 + 256 * 32 + 64 * 8 + 8 * 32 + 64 * 32 * 2)


RAGGED = """
  a = bf16[64,32]{1,0} parameter(0)
  b = bf16[4,32,16]{2,1,0} parameter(1)
  g = s32[4]{0} parameter(2)
"""


def test_a_ragged_dot_takes_each_row_once():
    """Rows in groups by a matrix for each; and the gradient of the matrices, in which a row is of one of them."""
    numbers = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    (rows,) = analysed(f"ENTRY e {{{RAGGED} ROOT r = bf16[64,16]{{1,0}} ragged-dot(a, b, g), {numbers}}}").matmuls
    assert (rows.product.m, rows.product.k, rows.product.n, rows.product.batch) == (64, 32, 16, 1)
    assert rows.product.flops == 2 * 64 * 32 * 16
    numbers = "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"
    text = (
        f"{RAGGED} c = bf16[64,16]{{1,0}} parameter(3) ROOT r = bf16[4,32,16]{{2,1,0}} ragged-dot(a, c, g), {numbers}"
    )
    (gradient,) = analysed(f"ENTRY e {{{text}}}").matmuls
    assert (gradient.product.m, gradient.product.k, gradient.product.n, gradient.product.batch) == (32, 16, 16, 4)
    assert gradient.product.flops == 2 * 64 * 32 * 16


@pytest.mark.parametrize(
    ("name", "matrices", "flops"),
    [("ragged-dot-none.1", (4, 32, 16), 2 * 64 * 32 * 16), ("gmm", (4, 32, 16), 0), ("ragged-dot-none", (4, 8, 16), 0)],
)
def test_the_kernel_that_a_tpu_has_for_a_ragged_dot_is_that_product(name, matrices, flops):
    """It states no cost; other kernels may do anything with operands of these shapes."""
    sides = ",".join(map(str, matrices))
    found = analysed(
        f"""ENTRY e {{
  s = s32[1]{{0}} parameter(0)
  g = s32[5]{{0}} parameter(1)
  a = bf16[64,32]{{1,0}} parameter(2)
  b = bf16[{sides}]{{2,1,0}} parameter(3)
  ROOT {name} = bf16[64,16]{{1,0}} custom-call(s, g, s, a, b), custom_call_target="tpu_custom_call"
}}"""
    )
    assert found.flops == flops and [m.product.flops for m in found.matmuls] == [flops] * bool(flops)
