"""Matrix products as a TPU's compiler prints them: a dimension of either side, or of both, as a window over space."""

import os

import pytest

from collectors.device.hlo.module import analyse
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")


def product(left, right, out, window, labels):
    """The one product of a program that convolves `left` with `right`."""
    from jaxlib._hlo import hlo_module_from_text

    shapes = [f"bf16[{','.join(map(str, dims))}]" for dims in (left, right, out)]
    text = (
        f"HloModule m\nENTRY %e (a: {shapes[0]}, b: {shapes[1]}) -> {shapes[2]} {{\n"
        f"  %a = {shapes[0]} parameter(0)\n  %b = {shapes[1]} parameter(1)\n"
        f"  ROOT %c = {shapes[2]} convolution(%a, %b), window={{{window}}}, dim_labels={labels}\n}}"
    )
    module = analyse(hlo_proto(hlo_module_from_text(text).as_serialized_hlo_module_proto()))
    (found,) = module.matmuls
    return found.product


# what jnp.einsum becomes for v5e; (m, k, n, batch) by its letters
PRINTED = {
    "btd,dhk->bthk": (
        ((12, 5, 24, 1), (24, 128, 300, 1), (12, 5, 128, 300)),
        "size=1x300 pad=0_0x299_299 rhs_reversal=0x1",
        "b0f1_io10->b0f1",
        (60, 24, 128 * 300, 1),
    ),
    "btd,bthk->dhk": (
        ((40, 12, 40, 1), (40, 12, 130, 3), (40, 130, 3, 1)),
        "size=3x12 pad=2_2x0_0 rhs_reversal=1x0",
        "f1b0_i1o0->bf01",
        (40, 480, 130 * 3, 1),
    ),
}


@pytest.mark.parametrize("einsum", PRINTED)
def test_a_window_over_one_element_is_a_side_of_the_product(einsum):
    shapes, window, labels, (m, k, n, batch) = PRINTED[einsum]
    found = product(*shapes, window, labels)
    assert (found.m, found.k, found.n, found.batch) == (m, k, n, batch)
    assert found.kind == "matmul" and found.flops == 2 * m * k * n * batch


def test_it_is_so_beside_batches():
    """`bgqd,bgkd->bgqk` with the keys as a window beside two batches, which are windows too."""
    shapes = (3, 4, 1, 16, 130), (3, 4, 64, 130, 1), (3, 4, 64, 16, 1)
    window = "size=3x4x64 stride=2x3x1 pad=0_0x0_0x63_63 lhs_dilate=3x4x1 rhs_reversal=0x0x1"
    found = product(*shapes, window, "012bf_012io->012bf")
    assert (found.m, found.k, found.n, found.batch, found.kind) == (16, 130, 64, 12, "matmul")
    assert found.flops == 2 * 16 * 130 * 64 * 12


@pytest.mark.parametrize(
    ("size", "window", "out"),
    [
        (1, "size=3 pad=2_1", 2),  # the last element of the window meets nothing
        (2, "size=3 pad=2_2", 4),  # a transposed convolution, whose outputs overlap
    ],
)
def test_a_window_that_slides_stays_a_convolution(size, window, out):
    found = product((8, size, 16), (3, 16, 32), (8, out, 32), window, "b0f_0io->b0f")
    assert found.kind == "convolution"


def test_a_window_dilated_beyond_the_image_is_no_batch():
    """Only its middle meets anything, and that is one matrix for all places: they are rows, and no batch."""
    found = product((2, 16, 64), (3, 64, 32), (2, 16, 32), "size=3 pad=18_18 rhs_dilate=18", "b0f_0io->b0f")
    assert (found.m, found.k, found.n, found.batch) == (32, 64, 32, 1)
    assert found.flops == 2 * 32 * 64 * 32
