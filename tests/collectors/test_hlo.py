"""HLO analysis against XLA's own cost analysis, unrolled loops and hand-made modules."""

import os
from math import prod

import pytest

from collectors.device.hlo.module import analyse
from collectors.device.hlo.shapes import HLO
from errors import InputError
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


def compiled(function, *args, optimised=True):
    """(XLA's cost analysis, ours) of a function."""
    from jaxlib import _jax, xla_client

    lowered = jax.jit(function).lower(*args)
    if optimised:
        module = lowered.compile().runtime_executable().hlo_modules()[0]
    else:
        raw = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
        module = xla_client.XlaComputation(raw).get_hlo_module()
    theirs = _jax.hlo_module_cost_analysis(jax.devices()[0].client, module)
    return theirs, analyse(hlo_proto(module.as_serialized_hlo_module_proto()))


def ones(*shape, dtype="float32"):
    return jnp.ones(shape, dtype)


def conv(stride=(1, 1), padding="SAME", **more):
    return lambda a, b: lax.conv_general_dilated(
        a, b, stride, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **more
    )


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


IMAGE, KERNEL = (2, 16, 16, 8), (3, 3, 8, 4)
CASES = {
    "matmul": (lambda x, w: x @ w, ones(64, 128), ones(128, 256)),
    "elementwise": (lambda x: jnp.tanh(x) * 2 + x, ones(64, 128)),
    "softmax": (jax.nn.softmax, ones(64, 128)),
    "conv": (conv(), ones(*IMAGE), ones(*KERNEL)),
    "conv strided": (conv((2, 2), "VALID"), ones(*IMAGE), ones(*KERNEL)),
    "conv dilated": (
        conv((1, 1), [(2, 1), (3, 2)], lhs_dilation=(2, 3), rhs_dilation=(2, 1)),
        ones(*IMAGE),
        ones(*KERNEL),
    ),
    "conv features": (conv(feature_group_count=2), ones(*IMAGE), ones(3, 3, 4, 6)),
    "conv batches": (conv(batch_group_count=2), ones(*IMAGE), ones(3, 3, 8, 6)),
    "pooling": (pool, ones(*IMAGE)),
    "pooling gradient": (jax.grad(lambda x: pool(x).sum()), ones(*IMAGE)),
    "attention scores": (lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), ones(2, 4, 32, 16), ones(2, 4, 24, 16)),
    "sort": (lambda x: jnp.sort(x, axis=-1), ones(64, 128)),
    "cumulative sum": (lambda x: jnp.cumsum(x, axis=1), ones(64, 128)),
    "scatter": (lambda x, i: x.at[i].add(1.0), ones(64, 128), jnp.arange(5)),
    "gather": (lambda x, i: x[i], ones(64, 128), jnp.arange(5)),
    "fft": (lambda x: jnp.fft.fft(x).real, ones(64, 128)),
    "gradient": (jax.grad(lambda w, x: (jnp.tanh(x @ w) ** 2).mean()), ones(128, 256), ones(64, 128)),
    "branches": (lambda p, x: lax.cond(p, lambda x: x @ x.T @ x, lambda x: x + 1, x), True, ones(64, 128)),
    "int8": (
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
        ones(8, 16, dtype="int8"),
        ones(16, 8, dtype="int8"),
    ),
    "argmax": (lambda x: jnp.argmax(x, axis=1), ones(64, 128)),
}


@pytest.mark.parametrize("optimised", [False, True], ids=["traced", "optimised"])
@pytest.mark.parametrize("case", CASES)
def test_flops_equal_xla(case, optimised):
    theirs, ours = compiled(*CASES[case], optimised=optimised)
    assert ours.flops == pytest.approx(theirs.get("flops", 0.0), rel=1e-9)
    assert ours.instructions > 0 and not ours.unknown_loops


@pytest.mark.parametrize(
    "case", ["matmul", "elementwise", "softmax", "conv", "pooling", "sort", "int8", "argmax", "fft"]
)
def test_bytes_equal_xla_where_nothing_is_sliced(case):
    theirs, ours = compiled(*CASES[case])
    assert ours.bytes == pytest.approx(theirs["bytes accessed"], rel=1e-9)


def test_bytes_count_the_slice_not_the_whole():
    _, ours = compiled(lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 128)) * 2, ones(4096, 128), 3)
    assert ours.bytes < 4096 * 128 * 4 / 100


@pytest.mark.parametrize("optimised", [False, True], ids=["traced", "optimised"])
def test_a_loop_counts_as_often_as_it_runs(optimised):
    def layer(x, w):
        return jnp.tanh(x @ w), None

    def unrolled(x, ws):
        for i in range(7):
            x, _ = layer(x, ws[i])
        return x

    x, ws = ones(32, 64), ones(7, 64, 64)
    once, rolled = compiled(lambda x, ws: lax.scan(layer, x, ws)[0], x, ws, optimised=optimised)
    _, flat = compiled(unrolled, x, ws, optimised=optimised)
    products = 7 * 2 * 32 * 64 * 64
    assert sum(m.product.flops * m.count for m in rolled.matmuls) == products
    assert sum(m.product.flops * m.count for m in flat.matmuls) == products
    assert rolled.flops == pytest.approx(flat.flops, rel=0.001)
    assert rolled.flops > 6 * once["flops"]  # XLA counts the body once
    assert not rolled.unknown_loops


def test_loops_within_loops_multiply():
    def inner(x):
        return lax.fori_loop(0, 3, lambda _, y: y @ y, x)

    _, ours = compiled(lambda x: lax.fori_loop(0, 5, lambda _, y: inner(y), x), ones(16, 16))
    assert sum(m.count for m in ours.matmuls) == 15


def test_a_loop_without_a_known_end_has_no_sum_and_says_so():
    def until(x, n):
        return lax.while_loop(lambda s: s[1].sum() < n, lambda s: (s[0] + 1, s[1] @ s[1]), (0, x))[1]

    _, ours = compiled(until, ones(16, 16), 5.0)
    assert len(ours.unknown_loops) == 1
    assert [m.count for m in ours.matmuls] == [None]
    assert (ours.flops, ours.bytes) == (None, None)


def test_recomputation_is_told_apart():
    def loss(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(x, w)
        return (x**2).mean()

    _, kept = compiled(jax.grad(loss), [ones(64, 64)] * 3, ones(32, 64), optimised=False)
    one = 2 * 32 * 64 * 64
    again = [m for m in kept.matmuls if m.remat]
    assert len(again) == 3 and all(m.product.flops == one for m in again)
    assert 3 * one <= kept.remat_flops < 3.3 * one
    _, plain = compiled(jax.grad(lambda ws, x: sum((x @ w).sum() for w in ws)), [ones(64, 64)] * 3, ones(32, 64))
    assert plain.remat_flops == 0


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (lambda x, w: x @ w, [(64, 128), (128, 256)], (64, 128, 256, 1)),
        (lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), [(2, 4, 32, 16), (2, 4, 24, 16)], (32, 16, 24, 8)),
        (lambda a, b: jnp.einsum("bsd,df->bsf", a, b), [(2, 32, 16), (16, 48)], (64, 16, 48, 1)),
        (conv(), [(2, 8, 8, 16), (1, 1, 16, 32)], (128, 16, 32, 1)),
        (conv(padding="VALID"), [(4, 8, 8, 16), (8, 8, 16, 32)], (4, 1024, 32, 1)),
    ],
)
def test_shapes_of_matrix_products(function, shapes, expected):
    _, ours = compiled(function, *(ones(*s) for s in shapes), optimised=False)
    (found,) = ours.matmuls
    assert (found.product.m, found.product.k, found.product.n, found.product.batch) == expected
    assert found.product.flops == 2 * prod(expected) and found.product.kind == "matmul"
    assert found.dtype == "f32" and " x " in found.layout and found.source.startswith(__file__)


def test_a_tpu_prints_batched_products_as_dilated_convolutions():
    """`window={size=4 stride=3 lhs_dilate=4}`: a spatial dimension in which each output meets one input is a batch."""
    module = HLO["HloProto"]()
    comp = module.hlo_module.computations.add(id=1)
    module.hlo_module.entry_computation_id = 1

    def shaped(dims):
        return {"element_type": 16, "dimensions": dims}

    comp.instructions.add(id=1, name=b"q", opcode=b"parameter", shape=shaped([4, 512, 125]))
    comp.instructions.add(id=2, name=b"k", opcode=b"parameter", shape=shaped([4, 256, 125]))
    product = comp.instructions.add(
        id=3,
        name=b"conv",
        opcode=b"convolution",
        shape=shaped([4, 512, 256]),
        operand_ids=[1, 2],
        window={"dimensions": [{"size": 4, "stride": 3, "base_dilation": 4, "window_dilation": 1}]},
    )
    dims = product.convolution_dimension_numbers
    dims.input_spatial.append(0)
    dims.kernel_spatial.append(0)
    dims.output_spatial.append(0)
    dims.input_batch, dims.input_feature, dims.kernel_output, dims.kernel_input = 1, 2, 1, 2
    dims.output_batch, dims.output_feature = 1, 2
    (found,) = analyse(module.SerializeToString()).matmuls
    assert (found.product.m, found.product.k, found.product.n, found.product.batch) == (512, 125, 256, 4)
    assert found.product.kind == "matmul" and found.dtype == "bf16"


def test_a_module_that_calls_itself_or_nobody_ends():
    module = HLO["HloProto"]()
    comp = module.hlo_module.computations.add(id=1)
    module.hlo_module.entry_computation_id = 1
    comp.instructions.add(id=1, name=b"again", opcode=b"call", called_computation_ids=[1, 2, 3])
    comp.instructions.add(id=1, name=b"loop", opcode=b"while", called_computation_ids=[1, 1], operand_ids=[9])
    comp.instructions.add(
        id=2, name=b"dot", opcode=b"dot", operand_ids=[1, 1], dot_dimension_numbers={"lhs_contracting": [7]}
    )
    result = analyse(module.SerializeToString())
    assert result.flops == 0 and not result.matmuls


def test_what_is_no_module_is_refused():
    with pytest.raises(InputError, match="HloProto"):
        analyse(b"\x0a\xff\xff")


def test_a_program_that_only_its_number_and_the_order_of_its_schedule_tell_apart_is_analysed_once():
    def profiled(number: bytes, *keys: int):
        del program.schedule.sequences[:]
        program.schedule.sequences.extend(HLO["Sequence"](key=key) for key in keys)
        return analyse(hlo_proto(program.SerializeToString() + b"\x28" + number))  # field 5: what it is numbered

    program = HLO["Module"](name=b"jit_step", entry_computation_id=1)
    parameter = program.computations.add(id=1).instructions.add(id=1, name=b"p", opcode=b"parameter")
    found = profiled(b"\x03", 1, 2)
    assert profiled(b"\x18", 2, 1) is found and found.operations["p"].opcode == "parameter"
    parameter.opcode = b"constant"
    assert profiled(b"\x03", 1, 2).operations["p"].opcode == "constant"
