"""Bytes of shapes as they lie in memory."""

import pytest

from collectors.device.hlo.layouts import COMBINE, at_index, is_tiled, padded_bytes
from collectors.device.hlo.shapes import HLO, size_bytes

BF16, F32, S4, S8, TUPLE = 16, 11, 21, 2, 13
PACKED = [[8, 128], [2, 1]]


def shape(kind, dims, order=None, tiles=(), bits=0, tail=0):
    made = HLO["Shape"](element_type=kind, dimensions=dims)
    made.layout.minor_to_major.extend(range(len(dims) - 1, -1, -1) if order is None else order)
    made.layout.element_size_in_bits, made.layout.tail_padding_alignment_in_elements = bits, tail
    for tile in tiles:
        made.layout.tiles.add(dimensions=tile)
    return made


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (shape(BF16, [1000, 1000], tiles=PACKED), 2_048_000),  # as a v5e's compiler gives them
        (shape(F32, [8, 100], tiles=[[8, 128]]), 4096),
        (shape(BF16, [3, 5], tiles=[[4, 128], [2, 1]]), 1024),
        (shape(BF16, [4, 7, 130], order=[2, 0, 1], tiles=[[4, 128], [2, 1]]), 14_336),
        (shape(BF16, [4, 7, 130], tiles=[[4, 128], [2, 1]]), 4 * 8 * 256 * 2),  # unpermuted it would be more
        (shape(BF16, [16, 100], tiles=[[16, 128], [2, 1]]), 16 * 128 * 2),
        (shape(F32, [2, 130], tiles=[[2, 128]]), 2 * 256 * 4),
        (shape(F32, [], tiles=[[128]]), 512),
        (shape(S8, [300], tiles=[[1024], [128], [4, 1]]), 1024),
        (shape(F32, [5, 6, 10], tiles=[[COMBINE, 8]]), 5 * 64 * 4),  # 60 of both, not 6 rows of 16
        (shape(F32, [3, 5], tiles=[[COMBINE, 2], [4, 2]]), 16 * 4),
        (shape(F32, [7, 9]), 7 * 9 * 4),
        (shape(F32, [7, 0], tiles=[[8, 128]]), 0),
        (shape(S4, [10, 20], bits=4), 100),
        (shape(S4, [10, 20]), 200),
        (shape(F32, [100], tail=64), 128 * 4),
        (shape(99, [10]), 0),
    ],
)
def test_bytes_with_padding(made, expected):
    assert padded_bytes(made) == expected
    assert padded_bytes(made) >= size_bytes(made)


def test_tuples_add_up_and_open():
    made = HLO["Shape"](element_type=TUPLE)
    made.tuple_shapes.extend([shape(F32, [8, 100], tiles=[[8, 128]]), shape(F32, [2])])
    assert padded_bytes(made) == 4096 + 8
    assert is_tiled(made) and not is_tiled(made.tuple_shapes[1])
    assert at_index(made, [1]) == made.tuple_shapes[1] and at_index(made, []) == made
    assert at_index(made, [2]) is None and at_index(made, [0, 0]) is None
