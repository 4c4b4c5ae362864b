"""FLOPs and bytes of one HLO instruction, and the matrix product it may be, by the rules of XLA's cost analysis."""

import json
import re
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

from collectors.device.hlo.products import prod
from collectors.device.hlo.shapes import elements, valid_positions

_TRANSCENDENTAL = {
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cbrt",
    "cosh",
    "cosine",
    "erf",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "power",
    "rsqrt",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
}
_ELEMENTWISE = {
    "abs",
    "add",
    "and",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "convert",
    "count-leading-zeros",
    "divide",
    "floor",
    "imag",
    "is-finite",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "real",
    "reduce-precision",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "stochastic-convert",
    "subtract",
    "xor",
}
FREE = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "after-all",
    "partition-id",
    "replica-id",
    "opt-barrier",
    "add-dependency",
    "domain",
    "while",
    "conditional",
    "call",
    "async-update",
    "async-done",
}
_BYTES = (2, 6)  # element types s8 and u8
CALLERS = {"fusion", "call", "async-start"}  # what they call runs once, as part of them
_NAMES_OF_MEMORY = (b"AllocateBuffer", b"ConcatBitcast")  # as a TPU compiler writes them
_MATMUL_TARGET = re.compile(r"gemm|matmul|dot", re.IGNORECASE)
_CYCLES = re.compile(rb'"estimated_cycles":\s*"?(\d{1,18})\b')
_ESTIMATED = re.compile(rb'"cost_estimate":\s*\{\s*"flops":\s*"?(\d{1,18})"?\s*[,}]')
_CONV_TARGET = re.compile(r"__cudnn\$conv|onednn\$convolution", re.IGNORECASE)
_BLOCK_SCALED = re.compile(r"block_?scaled_?dot", re.IGNORECASE)
_CONV_BACKWARD = re.compile(r"__cudnn\$convBackward(Input|Filter)", re.IGNORECASE)


@dataclass(frozen=True)
class Product:
    """m x k times k x n, `batch` times, in an instruction; `flops` = 2 m k n batch but for holes and padding."""

    m: int
    k: int
    n: int
    batch: int
    flops: int
    kind: str  # matmul, or convolution where a window slides over space


def moves_nothing(instruction: Any) -> bool:
    """Whether a call is the compiler's own name for memory: room that something fills later, or pieces that lie side by
    side as one value. It neither computes nor touches what lies there."""
    return instruction.opcode == b"custom-call" and instruction.custom_call_target in _NAMES_OF_MEMORY


def config_of(instruction: Any) -> dict:
    """An instruction's backend configuration, empty where it is none or not JSON."""
    try:
        config = json.loads(instruction.backend_config)
    except (ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def cycles_of(instruction: Any) -> float | None:
    """Clock cycles of one execution as a TPU's compiler estimates them; None where it does not.

    It writes them beside the window by which an instruction walks its operands. A number here is the compiler's own
    weighing of schedules: no measurement, and silent on waiting for memory and for other chips.
    """
    found = _CYCLES.search(instruction.backend_config)
    return (float(found[1]) or None) if found else None


def estimated_flops(instruction: Any) -> float:
    """FLOPs of a call of a kernel that no compiler looks into, where its author states them (the `cost_estimate` of a
    Pallas kernel); else 0."""
    found = _ESTIMATED.search(instruction.backend_config)
    return float(found[1]) if found else 0.0


def flops_of(instruction: Any, operands: list[Any], applied: list[float]) -> float:
    """FLOPs of an instruction itself, without what it calls as a whole.

    `applied`: FLOPs of the computations that it applies to elements (the sum of a reduction).
    """
    opcode = instruction.opcode.decode("utf-8", "replace")
    if opcode in _ELEMENTWISE:
        return float(elements(instruction.shape))
    if product := product_of(instruction, operands):
        return float(product.flops)
    if opcode == "custom-call":
        return estimated_flops(instruction)
    if opcode in FREE or opcode in _TRANSCENDENTAL or opcode in CALLERS:
        return 0.0
    first = elements(operands[0].shape) if operands else 0
    last = elements(operands[-1].shape) if operands else 0
    out = instruction.shape.tuple_shapes[0] if instruction.shape.tuple_shapes else instruction.shape
    # A window that reaches from every element over all others is a TPU's reduction that spreads its result.
    window = prod(d.size for d in instruction.window.dimensions)
    spread = [
        n
        for d, n in zip(instruction.window.dimensions, out.dimensions, strict=False)
        if n > 1 and d.size == 2 * n - 1 == window and d.padding_low == d.padding_high == n - 1
    ]
    if opcode == "reduce":
        return sum(applied) * max(0, first - elements(out))
    if opcode == "reduce-window" and spread:
        return sum(applied) * elements(out) * (spread[0] - 1) / spread[0]
    if opcode == "reduce-window":
        return sum(applied) * max(0, window - 1) * elements(out)
    if opcode == "map":
        return sum(applied) * elements(instruction.shape)
    if opcode == "scatter":
        return sum(applied) * last
    if opcode == "select-and-scatter" and len(operands) > 1:
        select, scatter = (*applied, 0.0, 0.0)[:2]
        source = elements(operands[1].shape)
        return select * source * max(0, window - 1) + scatter * source
    if opcode in ("all-reduce", "all-reduce-start"):
        return float(sum(elements(o.shape) for o in operands))
    if opcode == "sort":
        return float(first * ceil(log2(first))) if first > 1 else 0.0
    if opcode == "fft":
        return 8.0 * prod(max(n.bit_length() - 1, 0) for n in instruction.fft_length) * first
    if opcode == "triangular-solve" and len(operands) > 1:
        return 2.0 * elements(operands[1].shape) * ([*operands[0].shape.dimensions] or [1])[-1]
    if opcode == "cholesky":
        return float(first * ([*instruction.shape.dimensions] or [1])[-1] // 3)
    return 0.0


def product_of(instruction: Any, operands: list[Any]) -> Product | None:
    """The matrix product an instruction is, whether printed as dot, convolution or a library call."""
    opcode = instruction.opcode
    if len(operands) < 2 or opcode not in (b"dot", b"ragged-dot", b"scaled-dot", b"convolution", b"custom-call"):
        return None
    out = instruction.shape.tuple_shapes[0] if instruction.shape.tuple_shapes else instruction.shape
    left, right = operands[0].shape, operands[1].shape
    target = instruction.custom_call_target.decode("utf-8", "replace")
    if target == "tpu_custom_call":
        return _ragged_call(instruction, operands, out)
    if opcode == b"custom-call" and (backward := _CONV_BACKWARD.search(target)):
        return _gradient(instruction, backward[1].lower(), left, right, out)
    if opcode == b"convolution" or (opcode == b"custom-call" and _CONV_TARGET.search(target)):
        return _convolution(instruction, left, right, out)
    dims, groups = instruction.dot_dimension_numbers, 1
    if opcode == b"ragged-dot":
        dims = instruction.ragged_dot_dimension_numbers.dot_dimension_numbers
        if {*instruction.ragged_dot_dimension_numbers.lhs_ragged} & {*dims.lhs_contracting} and len(operands) > 2:
            groups = max(prod(operands[2].shape.dimensions[-1:]), 1)
    contracting, batch = list(dims.lhs_contracting), list(dims.lhs_batch)
    if opcode == b"custom-call" and _BLOCK_SCALED.search(target):  # it has no numbers: always the last with the last
        rank = len(left.dimensions)
        contracting, batch = [rank - 1], list(range(rank - 2))
    elif opcode == b"custom-call":
        if not _MATMUL_TARGET.search(target):
            return None
        config = config_of(instruction)
        numbers = (config.get("gemm_backend_config") or config).get("dot_dimension_numbers")
        if not isinstance(numbers, dict):
            return None
        contracting, batch = (_ints(numbers.get(f"lhs_{w}_dimensions")) for w in ("contracting", "batch"))
    sizes = left.dimensions
    if any(not 0 <= d < len(sizes) for d in (*contracting, *batch)):
        return None
    k = prod(sizes[d] for d in contracting)
    b = prod(sizes[d] for d in batch)
    m = prod(s for d, s in enumerate(sizes) if d not in contracting and d not in batch)
    total = elements(out) // groups  # what is summed over is shared out among the groups, each of which has a result
    n = total // (m * b) if m * b else 0
    return Product(m, k // groups, n, b * groups, 2 * total * k, "matmul")


def _ragged_call(instruction: Any, operands: list[Any], out: Any) -> Product | None:
    """The kernel that a TPU's compiler makes of a ragged dot: rows in groups, each by a matrix of its own. Its last two
    operands are the rows and the matrices; those before them say where groups begin. It states no cost."""
    if not instruction.name.startswith(b"ragged-dot"):
        return None
    rows, matrices, result = (list(shape.dimensions) for shape in (operands[-2].shape, operands[-1].shape, out))
    if len(rows) != 2 or len(matrices) != 3 or len(result) != 2 or rows[0] != result[0]:
        return None
    m, k, n = rows[0], rows[1], result[1]
    return Product(m, k, n, 1, 2 * m * k * n, "matmul") if sorted(matrices[1:]) == sorted((k, n)) else None


def _ints(values: Any) -> list[int]:
    try:
        return [int(v) for v in values or ()]
    except (TypeError, ValueError):
        return []


def _gradient(instruction: Any, of: str, left: Any, right: Any, out: Any) -> Product | None:
    """A library's gradient of a convolution by its input or its filter.

    Window and dimension numbers are those of the convolution whose gradient it is: the gradient by the input is where
    that one's input stands, made of its output's gradient and its filter. Each product of an input element and a filter
    element of that one is taken once in either gradient, so the FLOPs are its own. As a product, what was summed over
    is a side of the result, and the other way round.
    """
    if of == "input":
        found = _convolution(instruction, out, right, left)
        return found and replace(found, k=found.n, n=found.k)
    found = _convolution(instruction, left, out, right)
    return found and replace(found, m=found.k, k=found.m)


def scratch_shape(instruction: Any) -> Any:
    """The scratch space that a call of XLA's own into a library hands out beside its results; None where it has none.

    XLA's calls (cuBLAS, cuDNN, CUB and the like) are named `__library$what`; scratch is the last of their results, a
    row of bytes.
    """
    shapes = instruction.shape.tuple_shapes
    if len(shapes) < 2 or not instruction.custom_call_target.startswith(b"__"):
        return None
    last = shapes[-1]
    return last if last.element_type in _BYTES and len(last.dimensions) == 1 else None


def _convolution(instruction: Any, left: Any, right: Any, out: Any) -> Product | None:
    """A convolution as a matrix product; spatial dimensions that only carry a batch, a contraction or a side are such.

    A TPU compiler prints matrix products as convolutions: with no window they are plain; a batch dimension becomes a
    spatial one in which every output meets just one input; a dimension that only the right side has becomes one in
    which the left side has one element, and every output meets another element of the window.
    """
    dims, window = instruction.convolution_dimension_numbers, list(instruction.window.dimensions)
    ranks = (len(left.dimensions), len(right.dimensions))
    lefts = [dims.input_batch, dims.input_feature, *dims.input_spatial]
    rights = [dims.kernel_input, dims.kernel_output, *dims.kernel_spatial]
    outs = [dims.output_batch, dims.output_feature, *dims.output_spatial]
    numbers = ((lefts, ranks[0]), (rights, ranks[1]), (outs, len(out.dimensions)))
    if any(not 0 <= d < rank for dims_of, rank in numbers for d in dims_of):
        return None
    if not len(window) == len(dims.input_spatial) == len(dims.output_spatial) == len(dims.kernel_spatial):
        return None
    features = max(instruction.feature_group_count, 1)
    batches = max(instruction.batch_group_count, 1)
    groups = features * batches
    m = left.dimensions[dims.input_batch] // batches
    k = left.dimensions[dims.input_feature] // features
    n = right.dimensions[dims.kernel_output] // groups
    flops = 2 * m * k * right.dimensions[dims.kernel_output]
    batch, kind = groups, "matmul"
    for d, w in enumerate(window):
        size, result = left.dimensions[dims.input_spatial[d]], out.dimensions[dims.output_spatial[d]]
        valid = valid_positions(w, size, result)
        if valid is None:
            return None
        flops *= valid
        if w.size == 1:
            m *= result
        elif result == 1:
            k *= valid
        elif size == 1 and valid == result == w.size:
            n *= result
        elif valid == result == size == w.size:
            batch *= result
        else:
            m, kind = m * result, "convolution"
            k *= max(1, round(valid / result)) if result else 1
    return Product(m, k, n, batch, flops, kind)
