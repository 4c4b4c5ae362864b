"""What a GPU's matrix product pads: whole output tiles, whole waves of them, whole aligned words."""

from dataclasses import dataclass

import numpy as np

from analyzers.flops.mxu import Padded, up

TILES: tuple[tuple[int, int], ...] = ((128, 128), (128, 256), (256, 128))  # output tiles that libraries mostly choose
ALIGNED_BYTES, BEST_BYTES = 16, 128  # a row of an operand: what vector loads need, and a full memory transaction


@dataclass(frozen=True)
class TileWaste:
    """FLOP-weighted efficiency of one output tile size, 0 to 1: dimensions rounded up to tiles, and tiles to waves.

    `tile_efficiency` = useful / padded FLOPs; `wave_efficiency` = the part of the last wave's multiprocessors that
    work, weighted by padded FLOPs; None where the chip's count of multiprocessors is not known.
    """

    tile_m: int
    tile_n: int
    tile_efficiency: float
    wave_efficiency: float | None


def tile_efficiency(m: np.ndarray | float, n: np.ndarray | float, tile: tuple[int, int]) -> np.ndarray:
    """m n / (ceil(m / tm) ceil(n / tn) tm tn): the part of the output tiles that is asked for."""
    return np.asarray(m, dtype=float) * n / (up(m, tile[0]) * up(n, tile[1]))


def wave_efficiency(tiles: np.ndarray | float, multiprocessors: int) -> np.ndarray:
    """tiles / (ceil(tiles / SMs) SMs): one tile an SM at a time, all of one length."""
    return np.asarray(tiles, dtype=float) / up(tiles, multiprocessors)


def padded_flops(m: np.ndarray | float, k: np.ndarray | float, n: np.ndarray | float) -> Padded:
    """FLOPs of one product with its output rounded up to whole tiles: by the worst and by the best of TILES.

    The contracted dimension does not pad: kernels go through it in steps of 16 to 64.
    """
    padded = [2.0 * up(m, tm) * up(n, tn) * np.asarray(k, dtype=float) for tm, tn in TILES]
    return Padded(np.maximum.reduce(padded), np.minimum.reduce(padded))


def tile_table(m: np.ndarray, n: np.ndarray, useful: np.ndarray, batch: np.ndarray, sms: int | None) -> list[TileWaste]:
    """One entry per tile size, over products with `useful` FLOPs in all; `batch`: of them launched together."""
    found = []
    whole = float(np.sum(useful))
    for tile in TILES:
        padded = useful / tile_efficiency(m, n, tile)
        waves = None
        if sms and whole:
            tiles = up(m, tile[0]) / tile[0] * up(n, tile[1]) / tile[1] * batch
            waves = float(padded.sum() / (padded / wave_efficiency(tiles, sms)).sum())
        found.append(TileWaste(*tile, whole / float(padded.sum()) if whole else 1.0, waves))
    return found


def alignment(width: int, element_bytes: float) -> tuple[int, int | None]:
    """(bytes to which a row of `width` elements is aligned, up to 128; the next width that is aligned to 128 or None).

    Tensor cores read 16 bytes at a time, memory gives 128: 50,257 elements of 2 bytes are aligned to 2 bytes only.
    """
    size = int(width * element_bytes)
    best = next(b for b in (128, 64, 32, 16, 8, 4, 2, 1) if size % b == 0)
    elements = int(BEST_BYTES / element_bytes)
    return best, None if best == BEST_BYTES else -(-width // elements) * elements
