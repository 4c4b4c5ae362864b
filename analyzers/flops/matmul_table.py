"""Matrix products as rows with what padding takes from each: the table that the padding question rests on."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.flops import gpu_tiles, mxu
from analyzers.flops.mxu import Padded
from catalog.chips import Chip
from catalog.matmuls import Matmul

TILED = ("NVIDIA", "AMD")  # whose chips compute a product tile by tile


@dataclass(frozen=True)
class Unit:
    """What multiplies: a square matrix unit of `side`, or a GPU (`side` None) with so many multiprocessors."""

    side: int | None
    multiprocessors: int | None = None

    @property
    def label(self) -> str:
        return f"{self.side}-wide MXU" if self.side else "GPU with output tiles of 128 to 256"

    @property
    def kindly(self) -> str:
        """What has to hold for the optimistic figure (B)."""
        return "if operands may be swapped" if self.side else "with the best tile for each product"

    @property
    def multiple(self) -> int:
        """A width of which every multiple fills the unit."""
        return self.side or 128

    def padded(self, rows: pd.DataFrame) -> Padded:
        """FLOPs of one product of each row with its padding. A fused attention kernel on a GPU tiles tokens only."""
        m, k, n = (rows[c].to_numpy(dtype=float) for c in "mkn")
        if self.side:
            return mxu.padded_flops(m, k, n, self.side)
        heads = rows["name"].str.startswith("pv_").to_numpy()
        padded = gpu_tiles.padded_flops(m, k, np.where(heads, 256.0, n))
        return Padded(*(p * np.where(heads, n / 256.0, 1.0) for p in padded))

    def dims(self, rows: pd.DataFrame) -> dict[str, np.ndarray]:
        """What each dimension alone leaves of the unit, 0 to 1; for a GPU by tiles of 128."""
        m_unit, k_unit = (mxu.SUBLANES, self.side) if self.side else (128, 1)
        units = {"m": m_unit, "k": k_unit, "n": self.multiple}
        found = {d: mxu.dim_efficiency(rows[d].to_numpy(dtype=float), u) for d, u in units.items()}
        if not self.side:
            found["n"] = np.where(rows["name"].str.startswith("pv_"), 1.0, found["n"])
        return found


def unit_of(chip: Chip | None, side: int | None, launched: bool = False) -> tuple[Unit, tuple[str, ...]]:
    """The matrix unit to reckon with: the side asked for, else the chip's, else a GPU's tiles, else one of 256, with a
    note that this is assumed. `launched`: its kernels were launched on a device, so that a chip of no known name is a
    GPU."""
    if side:
        return Unit(side), ()
    if chip and chip.value("mxu_side"):
        return Unit(int(chip.value("mxu_side"))), ()
    if chip and chip.vendor in TILED:
        sms = chip.value("streaming_multiprocessors")
        return Unit(None, int(sms) if sms else None), ()
    if chip is None and launched:
        return Unit(None), ()
    known = f"How {chip.name} multiplies is not known here" if chip else "No chip with a known matrix unit is named"
    return Unit(256), (
        f"{known}: figured for an MXU of 256 x 256, as TPU v6e and 7x have it. Ask with mxu=128 for TPU v2 to v5p.",
    )


def model_rows(products: Iterable[Matmul]) -> pd.DataFrame:
    """Products of a model's pass as rows: name, m, k, n, batch (1), count, fraction (pairs_fraction)."""
    return pd.DataFrame(
        [
            {"name": p.name, "m": p.m, "k": p.k, "n": p.n, "batch": 1, "count": p.count, "fraction": p.pairs_fraction}
            for p in products
        ]
    )


def with_padding(rows: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    """The rows with columns useful_flops, padded_flops (A), padded_flops_optimistic (B), efficiency,
    efficiency_optimistic (useful / padded), share (of useful FLOPs), padded_share (of padded FLOPs),
    efficiency_m, efficiency_k, efficiency_n (what each dimension alone leaves).
    """
    times = (rows["count"] * rows["batch"] * rows["fraction"]).to_numpy(dtype=float)
    useful = 2.0 * (rows["m"] * rows["k"] * rows["n"]).to_numpy(dtype=float) * times
    headline, optimistic = (p * times for p in unit.padded(rows))
    return rows.assign(
        useful_flops=useful,
        padded_flops=headline,
        padded_flops_optimistic=optimistic,
        efficiency=useful / headline,
        efficiency_optimistic=useful / optimistic,
        share=useful / useful.sum(),
        padded_share=headline / headline.sum(),
        **{f"efficiency_{d}": e for d, e in unit.dims(rows).items()},
    )


def taxes(table: pd.DataFrame) -> tuple[float, float]:
    """(A, B): padded / useful - 1 over all rows, never below zero."""
    useful = float(table["useful_flops"].sum())
    if not useful:
        return 0.0, 0.0
    a, b = (max(float(table[c].sum()) / useful - 1, 0.0) for c in ("padded_flops", "padded_flops_optimistic"))
    return a, b
