"""The matrix products of a traced function, as written: global shapes before sharding, fusion and padding.

Imported by the worker only.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from jax.extend import core

Product = tuple[str, int, int, int, int]  # name, m, k, n, batch
_TRANSFORMS = re.compile(r"\w+\((.*)\)$")


def matmuls(traced: core.ClosedJaxpr) -> list[dict[str, Any]]:
    """Every `dot_general`: m, k, n of one product, `batch` products at once, `count` times in one execution.

    Counts multiply with the lengths of scans. The body of a `while` of unknown length and each branch of a `cond` count
    once. Convolutions and hand-written kernels are left out.
    """
    counts: Counter[Product] = Counter()
    for product, times in _walk(traced.jaxpr, (), 1):
        counts[product] += times
    keys = ("name", "m", "k", "n", "batch")
    return [{**dict(zip(keys, product, strict=True)), "count": times} for product, times in counts.items()]


def _walk(jaxpr: Any, scopes: tuple[str, ...], times: int) -> Iterator[tuple[Product, int]]:
    for eqn in jaxpr.eqns:
        here = (*scopes, *str(eqn.source_info.name_stack).split("/"))
        if eqn.primitive.name == "dot_general":
            yield (_name(here), *_sizes(eqn)), times
            continue
        if eqn.primitive.name == "pallas_call":
            continue
        inner = times * _repeats(eqn)
        for parameter in eqn.params.values():
            for part in parameter if isinstance(parameter, tuple | list) else (parameter,):
                body = getattr(part, "jaxpr", part)
                if hasattr(body, "eqns"):
                    yield from _walk(body, here, inner)


def _repeats(eqn: Any) -> int:
    if eqn.primitive.name == "scan":
        return eqn.params["length"]
    if eqn.primitive.name == "shard_map":  # shapes inside are those of one device
        return eqn.params["mesh"].size
    return 1


def _sizes(eqn: Any) -> tuple[int, int, int, int]:
    (contract_l, contract_r), (batch_l, batch_r) = eqn.params["dimension_numbers"]
    left, right = (v.aval.shape for v in eqn.invars)
    m = prod(n for i, n in enumerate(left) if i not in (*contract_l, *batch_l))
    n = prod(n for i, n in enumerate(right) if i not in (*contract_r, *batch_r))
    return m, prod(left[i] for i in contract_l), n, prod(left[i] for i in batch_l)


def _name(scopes: tuple[str, ...]) -> str:
    """The scopes without the names of transformations, and which pass it belongs to."""
    backward, again, plain = False, False, []
    for scope in scopes:
        backward |= scope.startswith("transpose(")
        again |= scope == "rematted_computation"
        while match := _TRANSFORMS.match(scope):
            scope = match[1]
        if scope and scope not in ("rematted_computation", "checkpoint", "closed_call", "while", "body"):
            plain.append(scope)
    unique = [s for i, s in enumerate(plain) if s not in plain[:i]]
    suffix = " (forward again)" if again else " (backward)" if backward else ""
    return "/".join(unique) + suffix
