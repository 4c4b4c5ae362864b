"""The least time of a compiled step, and of what it is made. One number: the ledger, `compiled` and its page tell it.

least time = operations at their roof, one after another, as `roofline` tells it (each the larger of its FLOPs / peak
             and its bytes / HBM bandwidth; collectives and calls that no compiler looks into are not among them)
           + padding of matrix products / peak, the lower end of what tiles add
           + collectives at the speed of the links; asynchronous ones only beyond all of the above

All of it is modelled: peaks are reached and nothing waits. A real step takes longer.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.op_units import op_units
from analyzers.device.roofs import bound_s, spec_roof
from analyzers.flops.peak import Hardware
from analyzers.flops.program_matmuls import Excess, program_excess
from analyzers.subject import chip_of
from runs.tables import Tables


@dataclass(frozen=True)
class Floor:
    """Seconds of one chip in a step. `compute_s` and `memory_s`: operations by which of the two binds each of them;
    `padding_s`, of which up to `padding_most_s` may be; `network_s`: collectives that no computation covers."""

    compute_s: float
    memory_s: float
    padding_s: float
    padding_most_s: float
    network_s: float

    @property
    def roof_s(self) -> float:
        """All operations at their roof, one after another."""
        return self.compute_s + self.memory_s

    @property
    def seconds(self) -> float:
        return self.roof_s + self.padding_s + self.network_s

    @property
    def bound_by(self) -> str:
        """Where most of it goes: compute (padding is computed too), memory or network."""
        parts = {"compute": self.compute_s + self.padding_s, "memory": self.memory_s, "network": self.network_s}
        return max(parts, key=parts.__getitem__)

    def to_dict(self) -> dict[str, float]:
        return {
            "compute_s": self.compute_s,
            "memory_s": self.memory_s,
            "padding_s": self.padding_s,
            "padding_most_s": self.padding_most_s,
            "network_s": self.network_s,
        }


def floor(
    tables: Tables, facts: Facts, machine: Hardware, flops: float | None, links: pd.DataFrame, rates: dict[str, float]
) -> Floor | None:
    """None where the compiler gave no program, or its FLOPs, the peak or the bandwidth are not known.

    `flops`: of a chip in a step; `links`: what leaves a chip (`bounds.network`), at `rates` in bytes/s of a chip by
    column.
    """
    if flops is None or not machine.peak_flops_per_s:
        return None
    roof, _ = spec_roof(tables, facts, {})
    rows = op_units(tables, facts, {}).rows
    rows = rows[rows["kind"] == "work"]
    each, by_memory = bound_s(rows["flops"].to_numpy(dtype=float), rows["bytes"].to_numpy(dtype=float), roof)
    if not len(each) or np.isnan(each).any():
        return None
    at_roof = float(each.sum())
    memory = float(each[by_memory].sum())
    least, most = _padding(tables, facts, machine, flops)
    apart = _uncovered(links, rates, at_roof + least)
    return Floor(at_roof - memory, memory, least, most, apart)


def matmul_excess(tables: Tables, facts: Facts) -> tuple[int, Excess] | None:
    """(side of the chip's matrix unit, what it adds to the program's products); None where either is not known."""
    chip = chip_of(facts)
    side = chip and chip.value("mxu_side")
    excess = program_excess(tables, int(side)) if side else None
    return (int(side), excess) if side and excess is not None and excess.useful_flops else None


def _padding(tables: Tables, facts: Facts, machine: Hardware, flops: float) -> tuple[float, float]:
    """Seconds of a chip that padding of matrix products costs at peak: at best, and as printed.

    `flops`: all that a chip executes. The products may be those of the whole mesh, before they were sharded; then only
    their tax holds for a chip, on no more FLOPs than it executes.
    """
    found = matmul_excess(tables, facts)
    if found is None or not machine.peak_flops_per_s:
        return 0.0, 0.0
    _, excess = found
    useful = min(excess.useful_flops * machine.devices_per_chip, flops)
    taxes = (p / excess.useful_flops - 1 for p in (excess.padded_flops_optimistic, excess.padded_flops))
    least, most = (useful * tax / machine.peak_flops_per_s for tax in taxes)
    return least, most


def _uncovered(links: pd.DataFrame, rates: dict[str, float], computing: float) -> float:
    """Seconds of a chip in collectives that `computing` seconds cannot cover."""
    seconds = np.zeros(len(links))
    for column, rate in rates.items():
        seconds += links[column].to_numpy(dtype=float) / rate
    hidden = links["asynchronous"].fillna(False).to_numpy(dtype=bool)
    return float(seconds[~hidden].sum()) + max(float(seconds[hidden].sum()) - computing, 0.0)
