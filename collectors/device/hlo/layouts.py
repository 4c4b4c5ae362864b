"""What a shape occupies in memory: its layout's order of dimensions and its tiles, padding included."""

from typing import Any

from collectors.device.hlo.products import prod
from collectors.device.hlo.shapes import TUPLE, element_bits

COMBINE = -(1 << 63)  # a tile's dimension that first joins its dimension with the next more minor one
HOST = 5  # memory space of buffers that a program keeps in the host's memory


def padded_bytes(shape: Any) -> int:
    """Bytes of a shape as it lies in memory, all leaves of a tuple added; without tiles, its logical bytes.

    The dimensions are ordered by `minor_to_major`, the last ones rounded up to whole tiles, and what is inside a
    tile to whole tiles of the next level: `bf16[4,7,130]{2,0,1:T(4,128)(2,1)}` lies as 7 x 4 x 256 elements of
    2 bytes, 14,336. An element takes `element_size_in_bits` where the layout gives it.
    """
    if shape.element_type == TUPLE:
        return sum(padded_bytes(s) for s in shape.tuple_shapes)
    count = _elements(shape)
    alignment = shape.layout.tail_padding_alignment_in_elements
    if alignment > 1:
        count = -(-count // alignment) * alignment
    return -(-count * element_bits(shape) // 8)


def _elements(shape: Any) -> int:
    sizes, order, tiles = list(shape.dimensions), list(shape.layout.minor_to_major), shape.layout.tiles
    if not tiles or min(sizes, default=1) <= 0:
        return max(prod(sizes), 0)
    if sorted(order) == list(range(len(sizes))):
        sizes = [sizes[d] for d in reversed(order)]
    for tile in tiles:
        sizes = _tiled(sizes, list(tile.dimensions))
    return prod(sizes)


def _tiled(sizes: list[int], tile: list[int]) -> list[int]:
    """Sizes, the most major first, after one level of tiling: how many tiles, then what is inside one."""
    sizes = [1] * (len(tile) - len(sizes)) + sizes
    split = len(sizes) - len(tile)
    counts, inside, joined = sizes[:split], [], 1
    for size, side in zip(sizes[split:], tile, strict=True):
        if side == COMBINE:
            joined *= size
            continue
        side = max(side, 1)
        counts.append(-(-joined * size // side))
        inside.append(side)
        joined = 1
    return [*counts, *inside] if joined == 1 else [*counts, joined, *inside]


def is_tiled(shape: Any) -> bool:
    """Whether a shape, or a leaf of a tuple, is laid out in tiles, as TPU compilers do."""
    if shape.element_type == TUPLE:
        return any(is_tiled(s) for s in shape.tuple_shapes)
    return bool(shape.layout.tiles)


def at_index(shape: Any, index: Any) -> Any:
    """The leaf or sub-tuple of a shape at a shape index; None where there is none."""
    for i in index:
        if not 0 <= i < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[i]
    return shape
