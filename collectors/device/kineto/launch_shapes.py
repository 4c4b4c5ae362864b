"""The grid and the block that an operation's kernels were launched with."""

import numpy as np

from collectors.device.kineto.device import Devices
from collectors.device.kineto.gather import Gathered
from collectors.device.kineto.shapes import parsed
from collectors.device.kineto.tokens import NONE


def launch_shapes(gathered: Gathered, devices: Devices) -> list[str | None]:
    """Of each operation the commonest, such as `4096x1x1 blocks of 128x1x1`; None where none is told."""
    out: list[str | None] = [None] * len(devices.ops)
    shapes = gathered.shapes.rows
    if not len(shapes):
        return out
    words = [_words(gathered, *row) for row in shapes.tolist()]
    pairs, count = np.unique(devices.op.astype(np.int64) * len(shapes) + devices.events["shape"], return_counts=True)
    for pair in pairs[np.argsort(count, kind="stable")].tolist():  # the commonest comes last
        op, shape = divmod(pair, len(shapes))
        out[op] = words[shape] or out[op]
    return out


def _words(gathered: Gathered, grid: int, block: int) -> str | None:
    sizes = [_size(gathered, text) for text in (grid, block)]
    return f"{sizes[0]} blocks of {sizes[1]}" if all(sizes) else None


def _size(gathered: Gathered, text: int) -> str:
    sizes = parsed(gathered.texts.raw(text)) if text not in (NONE, -1) and text >= 0 else []
    whole = len(sizes) == 3 and all(type(s) is int and 0 < s < 1 << 32 for s in sizes)
    return "x".join(map(str, sizes)) if whole else ""
