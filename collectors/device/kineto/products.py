"""Rows of `matmuls`: the products that ran, by the shapes of their calls, as the products of one program.

PyTorch has no program; what a trace saw stands in for one that ran once, so that its FLOPs are those of all calls
whose work is known: matrix products, convolutions, fused attention. Where a trace shows what is computed again for the
backward pass (a checkpoint's node, or modules within that pass), its FLOPs are told apart. One that shows none may be
of a job that does so all the same.
"""

from collections.abc import Iterator

from collectors.base import Rows
from collectors.device.kineto.shapes import Product, Work
from collectors.device.xplane.arrays import batch

PROGRAM, NAME = 0, "calls of PyTorch"


class Products:
    """What calls computed: products by shape, with how many calls made each, and the FLOPs of all."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, Product, bool, str | None, bool], float] = {}
        self._flops = self._again = 0.0

    def add(self, op: str, work: Work, source: str | None, calls: float, again: bool) -> None:
        """Enters calls of one operation; `again`: they compute anew what the forward pass did. Fused attention is no
        product of its own: its FLOPs alone count."""
        self._flops += work.flops * calls
        self._again += work.flops * calls if again else 0.0
        if work.product:
            key = op, work.product, work.window, source, again
            self._calls[key] = self._calls.get(key, 0.0) + calls * work.kernels

    def rows(self, capture: int) -> Iterator[Rows]:
        """Rows of `modules` and `matmuls`."""
        if not self._flops:
            return
        module = {"capture": [capture], "program": [PROGRAM], "name": [NAME], "flops": [self._flops]}
        module["remat_flops"] = [self._again or None]
        yield Rows("modules", batch("modules", module))
        n = len(self._calls)
        if not n:
            return
        columns: dict[str, list] = {
            "capture": [capture] * n,
            "program": [PROGRAM] * n,
            "module": [NAME] * n,
            "op": [op for op, *_ in self._calls],
            "source": [source for *_, source, _ in self._calls],
            "count": [round(calls) for calls in self._calls.values()],
            "convolution": [window for _, _, window, *_ in self._calls],
            "remat": [again or None for *_, again in self._calls],
        }
        for name in ("m", "k", "n", "batch", "dtype"):
            columns[name] = [getattr(product, name) for _, product, *_ in self._calls]
        yield Rows("matmuls", batch("matmuls", columns))
