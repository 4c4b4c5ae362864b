"""What a call's arguments tell of its work: shapes as text, matrix products, FLOPs and bytes."""

import json
import math
from dataclasses import dataclass
from typing import Any

_DTYPES = {
    "float": ("f32", 4),
    "c10::float": ("f32", 4),
    "double": ("f64", 8),
    "c10::half": ("f16", 2),
    "half": ("f16", 2),
    "c10::bfloat16": ("bf16", 2),
    "bfloat16": ("bf16", 2),
    "long": ("s64", 8),
    "long int": ("s64", 8),
    "int": ("s32", 4),
    "short": ("s16", 2),
    "short int": ("s16", 2),
    "char": ("s8", 1),
    "signed char": ("s8", 1),
    "byte": ("u8", 1),
    "unsigned char": ("u8", 1),
    "bool": ("pred", 1),
    "c10::float8_e4m3fn": ("f8e4m3fn", 1),
    "float8_e4m3fn": ("f8e4m3fn", 1),
    "c10::float8_e4m3fnuz": ("f8e4m3fnuz", 1),
    "float8_e4m3fnuz": ("f8e4m3fnuz", 1),
    "c10::float8_e5m2": ("f8e5m2", 1),
    "float8_e5m2": ("f8e5m2", 1),
    "c10::float8_e5m2fnuz": ("f8e5m2fnuz", 1),
    "float8_e5m2fnuz": ("f8e5m2fnuz", 1),
    "c10::float8_e8m0fnu": ("f8e8m0fnu", 1),
    "float8_e8m0fnu": ("f8e8m0fnu", 1),
    "c10::float4_e2m1fn_x2": ("f4e2m1fn", 1),  # an element is a byte that holds two numbers
    "float4_e2m1fn_x2": ("f4e2m1fn", 1),
    "c10::complex<float>": ("c64", 8),
    "c10::complex<double>": ("c128", 16),
    "complexfloat": ("c64", 8),
}
_FIRST = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::_scaled_mm": 0}
_FIRST |= {"aten::_addmm_activation": 1, "aten::addmm_": 1, "aten::mm_out": 0, "aten::_int_mm": 0}
_PAIRS = frozenset({"f4e2m1fn"})  # of which each element holds two numbers that follow in the contracted dimension
_MOST_SHOWN = 8
_LARGEST = 1 << 40  # a dimension beyond it is damage


@dataclass(frozen=True)
class Product:
    """A matrix product of `batch` times (m, k) by (k, n). `itemsize`: bytes of a number of its operands."""

    m: int
    k: int
    n: int
    batch: int
    dtype: str | None
    itemsize: float | None

    @property
    def flops(self) -> float:
        """2 m k n for each of the batch: a multiplication and an addition."""
        return 2.0 * self.m * self.k * self.n * self.batch

    @property
    def bytes(self) -> float | None:
        """Bytes of both operands and the result, each once, in the type of the first; None where that is not known."""
        if self.itemsize is None:
            return None
        return float(self.batch * (self.m * self.k + self.k * self.n + self.m * self.n) * self.itemsize)


@dataclass(frozen=True)
class Work:
    """What one call computes: FLOPs, bytes where they are known, how many kernels share it (the gradients of a
    convolution are two), and the matrix product that it is; `window`: one that slides over space."""

    flops: float
    bytes: float | None
    kernels: int = 1
    product: Product | None = None
    window: bool = False


def element(name: str) -> tuple[str, int] | None:
    """(element type, bytes) of a type as PyTorch prints it; None for one that is not known."""
    return _DTYPES.get(name.strip().lower())


def parsed(raw: bytes) -> list[Any]:
    """A list as a trace holds it; empty where it is none."""
    try:
        found = json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def sizes_of(shape: Any) -> list[int] | None:
    """A tensor's sizes as a trace holds them; None for anything else."""
    if not isinstance(shape, list) or not all(type(d) is int and 0 <= d < _LARGEST for d in shape):
        return None
    return shape


def shown(dims: list[Any], types: list[Any]) -> str | None:
    """The tensors among a call's arguments, such as `bf16[16,559], s64[16]`; None where it has none."""
    words = []
    for i, shape in enumerate(dims):
        if (sizes := sizes_of(shape)) is None or not (sizes or (i < len(types) and element(str(types[i])))):
            continue
        kind = element(str(types[i])) if i < len(types) else None
        words.append(f"{kind[0] if kind else ''}[{','.join(map(str, sizes))}]")
    more = [f"and {len(words) - _MOST_SHOWN} more"] if len(words) > _MOST_SHOWN else []
    return ", ".join([*words[:_MOST_SHOWN], *more]) or None


def product(call: str, dims: list[Any], types: list[Any]) -> Product | None:
    """The matrix product that a call makes; None where it makes none, or its shapes do not tell."""
    first = _FIRST.get(call)
    if first is None or len(dims) < first + 2:
        return None
    a, b = sizes_of(dims[first]), sizes_of(dims[first + 1])
    if a is None or b is None or len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2] or a[:-2] != b[:-2]:
        return None
    kind = element(str(types[first])) if len(types) > first else None
    m, k, n, batch = a[-2], a[-1], b[-1], math.prod(a[:-2])
    if not m * k * n * batch:
        return None
    name, size = kind or (None, None)
    if name in _PAIRS and size:
        return Product(m, 2 * k, n, batch, name, size / 2)
    return Product(m, k, n, batch, name, size)
