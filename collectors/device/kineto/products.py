"""Rows of `matmuls`: the products that ran, by the shapes of their calls, as the products of one program.

PyTorch has no program; what a trace saw stands in for one that ran once, so that its FLOPs are those of all calls.
"""

from collections.abc import Iterator

import numpy as np

from collectors.base import Rows
from collectors.device.kineto.shapes import Product
from collectors.device.xplane.arrays import batch

PROGRAM, NAME = 0, "calls of PyTorch"


class Products:
    """Products by shape, with how many calls made each."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, Product, str | None], float] = {}

    def add(self, op: str, product: Product, source: str | None, calls: float) -> None:
        """Enters calls of one operation."""
        key = op, product, source
        self._calls[key] = self._calls.get(key, 0.0) + calls

    def rows(self, capture: int) -> Iterator[Rows]:
        """Rows of `modules` and `matmuls`."""
        if not self._calls:
            return
        n = len(self._calls)
        flops = float(np.sum([product.flops * calls for (_, product, _), calls in self._calls.items()]))
        module = {"capture": [capture], "program": [PROGRAM], "name": [NAME], "flops": [flops]}
        yield Rows("modules", batch("modules", module))
        columns: dict[str, list] = {
            "capture": [capture] * n,
            "program": [PROGRAM] * n,
            "module": [NAME] * n,
            "op": [op for op, _, _ in self._calls],
            "source": [source for *_, source in self._calls],
            "count": [round(calls) for calls in self._calls.values()],
            "convolution": [False] * n,
        }
        for name in ("m", "k", "n", "batch", "dtype"):
            columns[name] = [getattr(product, name) for _, product, _ in self._calls]
        yield Rows("matmuls", batch("matmuls", columns))
