"""What convolutions and fused attention compute: counted one by one, against figures of PyTorch's own counter, and as
rows of a trace."""

import itertools
import random

import pytest

from collectors.device import kineto
from collectors.device.kineto.attention import attention
from collectors.device.kineto.convolutions import Convolutions
from tests.collectors.kineto_traces import kernel, launch, op, trace
from tests.collectors.reading import read, source_of
from tests.conftest import seeds

HALF = "c10::BFloat16"
TENSOR = [""]


def counted(n, c, o, groups, image, window, stride, padding, dilation):
    """Multiplications and additions of a convolution, position by position; its result's size."""
    starts = [
        range(-p, i + p - d * (k - 1), s)
        for i, k, s, p, d in zip(image, window, stride, padding, dilation, strict=True)
    ]
    positions = list(itertools.product(*starts))
    taps = sum(1 for _ in itertools.product(range(c // groups), *(range(k) for k in window)))
    return 2 * n * len(positions) * o * taps, [len(s) for s in starts]


def told(call, stride, padding, dilation, groups, mask="[True, True, False]"):
    """The arguments of a call as a trace prints them."""
    if call == "aten::cudnn_convolution":
        return [*TENSOR * 2, str(padding), str(stride), str(dilation), str(groups), "False", "False", "True"]
    if call == "aten::convolution_backward":
        rest = [str(stride), str(padding), str(dilation), "False", "[0]", str(groups), mask]
        return [*TENSOR * 3, "[8]", *rest]
    return [*TENSOR * 3, str(stride), str(padding), str(dilation), "False", "[0, 0]", str(groups)]


@pytest.mark.parametrize("seed", seeds(60))
def test_a_convolution_is_counted_position_by_position(seed):
    rng = random.Random(seed)
    space, groups, n = rng.randint(1, 3), rng.choice([1, 1, 2, 3]), rng.randint(1, 3)
    c, o = groups * rng.randint(1, 4), groups * rng.randint(1, 4)
    window, stride = [rng.randint(1, 3) for _ in range(space)], [rng.randint(1, 3) for _ in range(space)]
    padding, dilation = [rng.randint(0, 2) for _ in range(space)], [rng.randint(1, 2) for _ in range(space)]
    image = [rng.randint(6, 9) for _ in range(space)]
    flops, result = counted(n, c, o, groups, image, window, stride, padding, dilation)
    shapes = [n, c, *image], [o, c // groups, *window], [n, o, *result]
    how = (stride, padding, dilation, groups)
    for call in ("aten::convolution", "aten::cudnn_convolution"):
        dims = [shapes[0], shapes[1], *[[]] * 7]
        work = Convolutions([]).work(call, dims, ["float", "float"], told(call, *how))
        assert work and work.flops == flops and work.product and work.product.flops == flops
        assert work.bytes == 4 * sum(map(_size, shapes))
    back = "aten::convolution_backward"
    dims = [shapes[2], shapes[0], shapes[1], *[[]] * 8]
    for mask, count in (("[True, True, True]", 2), ("[False, True, False]", 1), ("[True, False, False]", 1)):
        work = Convolutions([]).work(back, dims, ["float"] * 3, told(back, *how, mask=mask))
        assert work and work.flops == count * flops and work.kernels == count
    # where a trace holds no values, the gradient's shapes tell what the convolution lacks
    known = Convolutions([(back, dims)])
    work = known.work("aten::cudnn_convolution", [shapes[0], shapes[1], []], ["float"] * 2, [])
    assert work and work.flops == flops


def _size(shape):
    size = 1
    for s in shape:
        size *= s
    return size


# (call, dims, values of arguments, FLOPs by torch.utils.flop_counter of PyTorch 2.13)
BY_PYTORCH = [
    (
        "aten::conv3d",
        [[2, 4, 12, 12, 12], [1, 4, 3, 3, 3], [1], [], [], [], []],
        ["", "", "", "[2, 2, 2]", "[1, 1, 1]", "[2, 2, 2]", "1"],
        54_000,
    ),
    ("aten::conv1d", [[1, 2, 14], [1, 2, 5], [1], [], [], [], []], ["", "", "", "[2]", "[1]", "[1]", "1"], 120),
    ("aten::conv2d", [[3, 5, 18, 18], [5, 5, 5, 5], [5]], ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"], 240_000),
    (
        "aten::convolution",  # transposed: each position of the input meets the whole window
        [[2, 8, 16, 16], [8, 5, 5, 5], [10]],
        ["", "", "", "[1, 1]", "[0, 0]", "[2, 2]", "True", "[0, 0]", "2"],
        1_024_000,
    ),
]


@pytest.mark.parametrize(("call", "dims", "given", "flops"), BY_PYTORCH)
def test_flops_are_those_of_pytorch(call, dims, given, flops):
    work = Convolutions([]).work(call, dims, ["float"] * len(dims), given)
    assert work and work.flops == flops


def test_what_no_shape_tells_is_not_known():
    dims = [[8, 4, 9, 9], [4, 4, 3, 3], []]
    assert Convolutions([]).work("aten::cudnn_convolution", dims, [], []) is None
    back = "aten::convolution_backward"
    two = [(back, [[8, 4, s, s], [8, 4, 9, 9], [4, 4, 3, 3]]) for s in (9, 5)]  # with stride 1 and with stride 2
    assert Convolutions(two).work("aten::cudnn_convolution", dims, [], []) is None
    assert Convolutions(two[:1]).work("aten::cudnn_convolution", dims, [], []) is not None
    assert Convolutions(two).work("aten::add", dims, [], []) is None


@pytest.mark.parametrize(
    "given",
    [
        ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "False", "[0]", "1"],  # no stride at all
        ["", "", "", "[1, 1, 1]", "[1, 1]", "[1, 1]", "False", "[0]", "1"],
        ["", "", "", "[99999999999]", "[1, 1]", "[1, 1]", "False", "[0]", "1"],
        ["", "", "", "[-1, x]", "same", "[1, 1]", "False", "[0]", "1"],
        [],
        [None, {}, 3, {"a": 4}, [5], 6, 7],
    ],
)
def test_values_that_cannot_be_are_passed_over(given):
    assert Convolutions([]).work("aten::convolution", [[1, 4, 9, 9], [4, 4, 3, 3], []], [], given) is None


def test_sizes_that_no_table_holds_are_damage():
    most = (1 << 40) - 1
    given = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0]", "1"]
    assert Convolutions([]).work("aten::convolution", [[most] * 4, [most, most, 1, 1], []], [], given) is None


def pairs(queries, keys, causal):
    return sum(not causal or k <= q for q in range(queries) for k in range(keys))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads_first", [False, True])
def test_attention_is_two_products_over_all_pairs(causal, heads_first):
    b, h, s, d = 2, 6, 64, 16
    shape = [b, h, s, d] if heads_first else [b, s, h, d]
    few = [b, 2, s, d] if heads_first else [b, s, 2, d]  # keys and values of fewer heads
    given = ["", "", "", "0.", str(causal), "False"] if heads_first else [""] * 5 + ["64", "64", "0.", str(causal)]
    call = "aten::_scaled_dot_product_flash_attention" if heads_first else "aten::_flash_attention_forward"
    work = attention(call, [shape, few, few, [], []], [HALF] * 3, given)
    whole = 4 * b * h * d * pairs(s, s, causal)
    # half of all pairs, as kernels are counted: the diagonal is a part in 2 S
    assert work and work.flops == pytest.approx(whole, rel=1 / (2 * s) * 2 if causal else 0)
    assert work.flops == 4 * b * h * s * s * d / (2 if causal else 1)
    assert work.bytes == 2 * (2 * b * h * s * d + 2 * b * 2 * s * d)


def test_the_gradient_of_attention_is_five_products_where_it_is_two():
    q = [2, 4, 32, 8]
    forward = attention("aten::_scaled_dot_product_flash_attention", [q] * 3, [HALF] * 3, ["", "", "", "0.", "False"])
    given = [""] * 8 + ["32", "32", "0.", "False"]
    back = attention("aten::_scaled_dot_product_flash_attention_backward", [q] * 6 + [[]] * 6, [HALF] * 6, given)
    assert forward and back and back.flops == 2.5 * forward.flops


@pytest.mark.parametrize(
    ("dims", "given"),
    [
        ([[4, 8, 16, 4]] * 3, []),  # whether the mask is causal is not told
        ([[4, 8, 16, 4], [4, 8, 32, 4], [4, 8, 32, 4]], ["", "", "", "0.", "True"]),  # nor where it is laid
        ([[128, 8, 4]] * 3, ["", "", "", "0.", "False"]),  # sequences packed into one
        ([[4, 8, 16, 4], [4, 3, 16, 4], [4, 3, 16, 4]], ["", "", "", "0.", "False"]),  # heads that share nothing
        ([[], [], []], ["", "", "", "0.", "False"]),
        ([None, "x", [1, 2, 3, "4"]], ["", "", "", "0.", "False"]),
    ],
)
def test_attention_that_is_not_told_whole_is_not_known(dims, given):
    assert attention("aten::_scaled_dot_product_flash_attention", dims, [], given) is None


def test_packed_sequences_and_windows_are_not_known():
    q = [4, 64, 8, 16]
    plain = [""] * 5 + ["64", "64", "0.", "False", "False", "0.1", "", ""]
    call = "aten::_flash_attention_forward"
    assert attention(call, [q] * 3 + [[], []], [HALF] * 3, plain) is not None
    assert attention(call, [q] * 3 + [[33], [33]], [HALF] * 3, plain) is None
    assert attention(call, [q] * 3 + [[], []], [HALF] * 3, [*plain[:11], "128", "0"]) is None


def test_gradients_are_shared_by_the_kernels_that_make_them(tmp_path):
    image, weight, result = [4, 8, 10, 10], [16, 8, 3, 3], [4, 16, 8, 8]
    given = told("aten::convolution_backward", [1, 1], [0, 0], [1, 1], 1)
    called = op("aten::convolution_backward", 0, 20, [result, image, weight], [HALF] * 3)
    called["args"]["Concrete Inputs"] = given
    events = [called, *(launch(2 * n, 1, n) for n in (1, 2, 3))]
    events += [kernel("dgrad_engine", 30, 5, 1), kernel("wgrad_engine", 40, 9, 2), kernel("sum_of_bias", 50, 20, 3)]
    rows = read(kineto, source_of(tmp_path, trace(events))).rows
    flops = 2 * 4 * 64 * 16 * 8 * 9
    made = {o["count"] and o["total_ns"]: o["flops"] for o in rows["ops"] if o["device"] is not None}
    assert made == {5000: flops, 9000: flops, 20000: None}
    (module,) = rows["modules"]
    assert module["flops"] == 2 * flops
    (product,) = rows["matmuls"]
    assert product["convolution"] and product["count"] == 2
    assert 2 * product["m"] * product["k"] * product["n"] * product["batch"] == flops


@pytest.mark.parametrize("node", ["CheckpointFunctionBackward", "MmBackward0"])
def test_what_a_checkpoint_computes_again_is_told_apart(tmp_path, node):
    """Of four products one is computed again, where a checkpoint's node is around it; else nothing tells of any."""
    engine, shapes = "autograd::engine::evaluate_function: ", ([[64, 64]] * 2, [HALF] * 2)
    events = [op("aten::mm", 0, 20, *shapes), launch(2, 1, 1), kernel("nvjet_x", 300, 5, 1)]
    events += [
        op(f"{engine}{node}", 100, 100, tid=2),
        op("aten::mm", 105, 20, *shapes, tid=2),
        launch(110, 1, 2, tid=2),
    ]
    events += [kernel("nvjet_x", 310, 5, 2), op(f"{engine}MmBackward0", 130, 60, tid=2)]
    for n, at in ((3, 135), (4, 160)):
        events += [
            op("aten::mm", at, 20, *shapes, tid=2),
            launch(at + 5, 1, n, tid=2),
            kernel("nvjet_x", 300 + 10 * n, 5, n),
        ]
    rows = read(kineto, source_of(tmp_path, trace(events))).rows
    (module,), each = rows["modules"], 2 * 64**3
    told = node.startswith("Checkpoint")
    assert module["flops"] == 4 * each and module["remat_flops"] == (each if told else None)
    assert sorted((p["count"], p["remat"]) for p in rows["matmuls"]) == (
        [(1, True), (3, None)] if told else [(4, None)]
    )


def test_attention_has_flops_and_is_no_product(tmp_path):
    called = op("aten::_scaled_dot_product_flash_attention", 0, 20, [[2, 4, 32, 8]] * 3, [HALF] * 3)
    called["args"]["Concrete Inputs"] = ["", "", "", "0.", "True", "False", "0.125"]
    events = [called, launch(2, 1, 1), kernel("flash_fwd_kernel", 30, 5, 1)]
    rows = read(kineto, source_of(tmp_path, trace(events))).rows
    (made,) = (o for o in rows["ops"] if o["device"] is not None)
    assert made["flops"] == rows["modules"][0]["flops"] == 4 * 2 * 4 * 32 * 32 * 8 / 2 and "matmuls" not in rows


@pytest.mark.parametrize(
    ("type_", "dtype", "packed", "width"),
    [("c10::Float4_e2m1fn_x2", "f4e2m1fn", 2, 0.5), ("c10::Float8_e5m2fnuz", "f8e5m2fnuz", 1, 1)],
)
def test_products_of_numbers_that_share_a_byte_are_whole(tmp_path, type_, dtype, packed, width):
    """PyTorch holds two numbers of FP4 as one element, and tells its shapes so."""
    m, k, n = 64, 512, 32
    called = op("aten::_scaled_mm", 0, 20, [[m, k // packed], [k // packed, n]], [type_] * 2)
    rows = read(kineto, source_of(tmp_path, trace([called, launch(2, 1, 1), kernel("nvjet_x", 30, 5, 1)]))).rows
    (made,) = (o for o in rows["ops"] if o["device"] is not None)
    (product,) = rows["matmuls"]
    assert made["flops"] == 2 * m * k * n and made["bytes"] == (m * k + k * n + m * n) * width
    assert (product["m"], product["k"], product["n"], product["dtype"]) == (m, k, n, dtype)
    assert made["shape"] == f"{dtype}[{m},{k // packed}], {dtype}[{k // packed},{n}]"
