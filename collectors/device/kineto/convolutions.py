"""FLOPs of convolutions, as the matrix products that they are, from the shapes of the calls that launched them.

A convolution of N images with `out` positions each is, for each of G groups, the product of (N out) rows by (C/G K)
by (O/G), with C and O channels in and out and K places of the window. Its two gradients have as many FLOPs each. The
positions follow from stride, padding and dilation where a trace holds the values of arguments; where it does not, from
the gradient of the same convolution, whose result's shape is an argument.
"""

import math
from collections.abc import Iterable
from typing import Any

from collectors.device.kineto.shapes import Product, Work, element, sizes_of

# Of each call: places of stride, padding and dilation among its arguments, and of what says that it is transposed.
_FORWARD: dict[str, tuple[int, int, int, int | None]] = {
    "aten::convolution": (3, 4, 5, 6),
    "aten::_convolution": (3, 4, 5, 6),
    "aten::convolution_overrideable": (3, 4, 5, 6),
    "aten::conv1d": (3, 4, 5, None),
    "aten::conv2d": (3, 4, 5, None),
    "aten::conv3d": (3, 4, 5, None),
    "aten::cudnn_convolution": (3, 2, 4, None),
    "aten::cudnn_convolution_relu": (3, 4, 5, None),
    "aten::cudnn_convolution_add_relu": (5, 6, 7, None),
    "aten::miopen_convolution": (4, 3, 5, None),
    "aten::miopen_convolution_relu": (3, 4, 5, None),
    "aten::miopen_convolution_add_relu": (5, 6, 7, None),
    "aten::miopen_depthwise_convolution": (4, 3, 5, None),
    "aten::mkldnn_convolution": (4, 3, 5, None),
    "aten::_conv_depthwise2d": (4, 5, 6, None),
    "aten::conv_depthwise3d": (4, 5, 6, None),
    "aten::thnn_conv2d": (4, 5, -1, None),
    "aten::_slow_conv2d_forward": (4, 5, -1, None),
}
_TRANSPOSED = frozenset(
    f"aten::{name}" for name in ("cudnn_convolution_transpose", "miopen_convolution_transpose", "conv_transpose1d")
) | {"aten::conv_transpose2d.input", "aten::conv_transpose3d.input", "aten::conv_transpose2d", "aten::conv_transpose3d"}
_BACKWARD = {"aten::convolution_backward": (7, 10), "aten::convolution_backward_overrideable": (6, 9)}
# Before 2021: (input, gradient, weight) and what it calls, of which only one of the three is missing.
_OLD = ("aten::cudnn_convolution_backward", "aten::miopen_convolution_backward")
_OLD_INPUT = tuple(f"{name}_input" for name in _OLD)
_OLD_WEIGHT = tuple(f"{name}_weight" for name in _OLD)
CALLS = frozenset({*_FORWARD, *_TRANSPOSED, *_BACKWARD, *_OLD, *_OLD_INPUT, *_OLD_WEIGHT})
Shape = tuple[int, ...]
_LARGEST = 1 << 62  # what a whole number of a table holds


class Convolutions:
    """What calls of convolutions compute. `told`: all calls of a trace as (name, dims), of which some tell what others
    lack."""

    def __init__(self, told: Iterable[tuple[str, list[Any]]]) -> None:
        self._results: dict[tuple[Shape, Shape], set[Shape]] = {}  # by input and weight
        self._weights: dict[tuple[Shape, Shape], set[Shape]] = {}  # by input and result
        for call, dims in told:
            if call in _BACKWARD or call in _OLD:
                a, b, weight = (_shape(d) for d in (*dims[:3], None, None, None)[:3])
                image, result = (b, a) if call in _BACKWARD else (a, b)
                if image and result and weight:
                    self._results.setdefault((image, weight), set()).add(result)
                    self._weights.setdefault((image, result), set()).add(weight)

    def work(self, call: str, dims: list[Any], types: list[Any], given: list[Any]) -> Work | None:
        """What a call computes; None for other calls, and where nothing tells. `given`: the values of its arguments as
        text."""
        if call not in CALLS or len(dims) < 3:
            return None
        shapes = [_shape(d) for d in dims]
        kind = next((element(str(t)) for t, s in zip(types, shapes, strict=False) if s), None)
        if call in _OLD_INPUT:
            result, weight, image = shapes[1], shapes[2], _shape(_numbers(given, 0))
            return _gradients(image, result, weight, kind, 1)
        if call in _OLD_WEIGHT:
            result, image = shapes[1], shapes[2]
            return _gradients(image, result, _only(self._weights, image, result), kind, 1)
        if call in _OLD:
            return _gradients(shapes[0], shapes[1], shapes[2], kind, 2)
        if call in _BACKWARD:
            return self._both(call, shapes, given, kind)
        return self._forward(call, shapes, given, kind)

    def _forward(self, call: str, shapes: list[Shape | None], given: list[Any], kind: Any) -> Work | None:
        image, weight = shapes[:2]
        if not image or not weight or len(image) != len(weight):
            return None
        if call in _TRANSPOSED or _flag(given, _FORWARD.get(call, (0, 0, 0, None))[3]):
            # each position of the input meets the whole window
            made = _product(image, image[2:], weight[0], math.prod(weight[1:]), 1, kind)
            return _work(made, weight, None, 1, kind)
        result = _result(image, weight, *(_numbers(given, at) for at in _FORWARD[call][:3]))
        result = result or _only(self._results, image, weight)
        if not result or not weight[1] or image[1] % weight[1]:
            return None
        groups = image[1] // weight[1]
        made = _product(image, result[2:], math.prod(weight[1:]), weight[0] // groups, groups, kind)
        return _work(made, weight, (image, weight, result), 1, kind)

    def _both(self, call: str, shapes: list[Shape | None], given: list[Any], kind: Any) -> Work | None:
        transposed, mask = _BACKWARD[call]
        result, image, weight = shapes[:3]
        wanted = given[mask] if mask < len(given) else None
        flags = [w.strip() for w in str(wanted).strip("[]() ").split(",")][:2] if wanted else []
        if len(flags) < 2 or not set(flags) <= {"True", "False"}:
            return None
        if _flag(given, transposed):  # each position of the input met the whole window
            image, result = result, image
        return _gradients(image, result, weight, kind, flags.count("True"))


def _gradients(image: Shape | None, result: Shape | None, weight: Shape | None, kind: Any, count: int) -> Work | None:
    """So many of the two gradients of a convolution: as many FLOPs each as the convolution."""
    if not result or not weight or len(result) != len(weight) or not count:
        return None
    made = _product(result, result[2:], weight[0], math.prod(weight[1:]), 1, kind)
    tensors = (image, weight, result) if image else None
    return _work(made, weight, tensors, count, kind)


def _product(images: Shape, positions: Shape, k: int, n: int, batch: int, kind: Any) -> Product:
    rows = images[0] * math.prod(positions)
    return Product(rows, k, n, batch, kind[0] if kind else None, kind[1] if kind else None)


def _work(product: Product, weight: Shape, tensors: tuple[Shape, ...] | None, count: int, kind: Any) -> Work | None:
    if not product.flops or max(product.m, product.k, product.n) >= _LARGEST:
        return None
    moved = sum(map(math.prod, tensors)) * kind[1] * count if tensors and kind else None
    window = math.prod(weight[2:]) > 1  # else it is a plain product, position by position
    return Work(product.flops * count, float(moved) if moved else None, count, product, window)


def _result(image: Shape, weight: Shape, *how: list[int] | None) -> Shape | None:
    """The result's shape; `how`: stride, padding, dilation, one number for all of space or one each."""
    stride, padding, dilation = how
    space = len(image) - 2
    if not stride or padding is None:
        return None
    every = [x * space if len(x) == 1 else x for x in (stride, padding or [0], dilation or [1])]
    if any(len(x) != space for x in every) or min(every[0]) < 1:
        return None
    sizes = [
        (i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in zip(image[2:], weight[2:], *every, strict=True)
    ]
    return (image[0], weight[0], *sizes) if min(sizes) > 0 else None


def _shape(dims: Any) -> Shape | None:
    sizes = sizes_of(dims) if dims is not None else None
    return tuple(sizes) if sizes and len(sizes) >= 3 else None


def _only(known: dict[tuple[Shape, Shape], set[Shape]], *key: Shape | None) -> Shape | None:
    """What all that are known agree on."""
    a, b = key
    found = known.get((a, b), set()) if a and b else set()
    return next(iter(found)) if len(found) == 1 else None


def _numbers(given: list[Any], at: int) -> list[int] | None:
    """An argument's value such as `[2, 2]`; None where it is not told or no list of numbers."""
    if at < 0:
        return [1]
    words = str(given[at]).strip("[]() ").split(",") if at < len(given) and given[at] != "" else []
    words = [w.strip() for w in words if w.strip()]
    if not words or not all(w.isascii() and w.isdigit() and len(w) < 8 for w in words):
        return None
    return [int(w) for w in words]


def _flag(given: list[Any], at: int | None) -> bool:
    return at is not None and at < len(given) and str(given[at]) in ("True", "1")
