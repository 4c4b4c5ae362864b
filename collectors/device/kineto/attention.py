"""FLOPs and bytes of fused attention, from the shapes of the call that launched it.

Forward: two products over all pairs of a query and a key, 4 B H Sq Sk D FLOPs with D the mean of the two head sizes;
under a causal mask half of them, as kernels leave the other half out. Backward: five products where forward has two.
What is not told, whether a mask is causal, a window, or sequences packed into one, leaves the FLOPs unknown.
"""

import math
from typing import Any, NamedTuple

from collectors.device.kineto.shapes import Work, element, sizes_of

BACKWARD = 2.5  # five products: scores again, and gradients of values, of probabilities, of queries, of keys
_NO = ("", "-1", "None")  # how an argument that was not given is printed
_TENSOR_4D = 4


class _Signature(NamedTuple):
    """Where a call's arguments stand: the queries (keys and values follow), what says that the mask is causal, what is
    given for packed sequences and for windows alone; whether heads stand before positions."""

    query: int
    causal: int
    heads_first: bool
    packed: tuple[int, ...] = ()
    window: tuple[int, ...] = ()

    @property
    def backward(self) -> bool:
        return self.query == 1


_SDPA = "aten::_scaled_dot_product_"
_SIGNATURES = {
    _SDPA + "flash_attention": _Signature(0, 4, True),
    _SDPA + "flash_attention_for_cpu": _Signature(0, 4, True),
    _SDPA + "efficient_attention": _Signature(0, 6, True),
    _SDPA + "cudnn_attention": _Signature(0, 6, True),
    _SDPA + "fused_attention_overrideable": _Signature(0, 5, True),
    "aten::_flash_attention_forward": _Signature(0, 8, False, (3, 4), (11, 12)),
    "aten::_efficient_attention_forward": _Signature(0, 9, False, (4, 5), (13,)),
    "aten::_cudnn_attention_forward": _Signature(0, 10, True, (4, 5)),
    _SDPA + "flash_attention_backward": _Signature(1, 11, True, (6, 7)),
    _SDPA + "flash_attention_for_cpu_backward": _Signature(1, 7, True),
    _SDPA + "efficient_attention_backward": _Signature(1, 11, True),
    _SDPA + "cudnn_attention_backward": _Signature(1, 14, True, (9, 10)),
    "aten::_flash_attention_backward": _Signature(1, 11, False, (6, 7), (15, 16)),
    "aten::_efficient_attention_backward": _Signature(1, 14, False, (6, 7), (18,)),
    "aten::_cudnn_attention_backward": _Signature(1, 14, True, (9, 10)),
    "flash_attn::_flash_attn_forward": _Signature(0, 5, False, (), (6, 7)),
    "flash_attn::_flash_attn_backward": _Signature(1, 11, False, (), (12, 13)),
}
CALLS = frozenset(_SIGNATURES)


def attention(call: str, dims: list[Any], types: list[Any], given: list[Any]) -> Work | None:
    """What a call of fused attention computes; None for other calls, and where its arguments do not tell.

    `given`: the values of its arguments as text, "" for tensors."""
    where = _SIGNATURES.get(call)
    if where is None or len(dims) < where.query + 3 or len(given) <= where.causal:
        return None
    if any(i < len(dims) and dims[i] for i in where.packed):
        return None
    if any(i < len(given) and str(given[i]) not in _NO for i in where.window):
        return None
    q, k, v = (sizes_of(dims[where.query + i]) for i in range(3))
    if any(x is None or len(x) != _TENSOR_4D for x in (q, k, v)) or not (q and k and v):
        return None
    order = (0, 1, 2, 3) if where.heads_first else (0, 2, 1, 3)
    (b, heads, sq, d), (bk, hk, sk, dk), (bv, hv, sv, dv) = (tuple(x[i] for i in order) for x in (q, k, v))
    if (bk, sk, hk) != (bv, sv, hv) or b != bk or d != dk or not hk or heads % hk:
        return None
    share = _share(str(given[where.causal]), sq, sk)
    if share is None:
        return None
    forward = 2.0 * b * heads * sq * sk * (d + dv) * share
    kind = element(str(types[where.query])) if len(types) > where.query else None
    moved = math.prod(q) + math.prod(k) + math.prod(v) + b * heads * sq * dv  # each tensor once, and the result
    times = 2 if where.backward else 1  # and the gradients of each
    return Work(
        flops=forward * (BACKWARD if where.backward else 1.0),
        bytes=float(moved * times * kind[1]) if kind else None,
        kernels=1,
    )


def _share(causal: str, queries: int, keys: int) -> float | None:
    """Part of all pairs that is computed; None where that is not told, or depends on where the mask is laid."""
    if causal in ("False", "0"):
        return 1.0
    if causal in ("True", "1", "2"):
        return 0.5 if queries == keys else None
    return None
