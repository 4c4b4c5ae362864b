"""What a compiled step asks of compute, of memory and of the network, each alone. A part is one fraction, shown whole.

All are modelled: they hold for a machine that reaches its peaks. None of them is the least time of a step, in which
operations come one after another: that is `floor.py`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.subject import chip_of, slices_of

NETWORK_COLUMNS = ["kind", "axis", "group_size", "count", "asynchronous", "operand_bytes", "ici_bytes", "dcn_bytes"]
COPIES = ("data", "dp", "replica", "slice", "dcn")  # names of mesh axes along which whole copies of the model lie


@dataclass(frozen=True)
class Part:
    """One bound: `amount` of `what` at `rate` per second takes at least `seconds`; None where one is not known."""

    name: str
    amount: float | None
    rate: float | None
    formula: str

    @property
    def seconds(self) -> float | None:
        return None if self.amount is None or not self.rate else self.amount / self.rate

    def to_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "amount": self.amount, "rate_per_s": self.rate, "formula": self.formula}


@dataclass(frozen=True)
class Bounds:
    """`parts`: compute, memory, network, and dcn where slices talk: what each would take if it were alone."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    @property
    def link_rates(self) -> dict[str, float]:
        """Bytes/s of a chip by the column of `network` that passes there; without networks of unknown speed."""
        columns = {"network": "ici_bytes", "dcn": "dcn_bytes"}
        return {columns[p.name]: p.rate for p in self.parts if p.name in columns and p.rate}


def bounds(
    left: pd.DataFrame, flops: float | None, moved: float | None, peak_flops_per_s: float | None, facts: Facts
) -> Bounds:
    """The bounds of one chip and step.

    `left`: what `network` gave; `flops` and `moved`: FLOPs and memory bytes of a chip; `peak_flops_per_s`: of a chip.
    """
    chip = chip_of(facts)
    memory = chip and chip.value("hbm_bytes_per_s")
    links, link = (chip.value("links_per_chip"), chip.value("link_oneway_bytes_per_s")) if chip else (None, None)
    across = float(left["dcn_bytes"].sum())
    parts = [
        Part("compute", flops, peak_flops_per_s, "FLOPs of a chip / its peak FLOP/s"),
        Part("memory", moved, memory, "operand and result bytes of a chip's operations / its HBM bandwidth"),
        Part(
            "network",
            None if flops is None and moved is None else float(left["ici_bytes"].sum()),
            links * link if links and link else None,
            "least bytes that leave a chip / all its links, one way",
        ),
    ]
    if across:
        parts.append(
            Part(
                "dcn",
                across,
                chip and chip.value("dcn_oneway_bytes_per_s"),
                "least bytes that leave a chip for other slices / its share of the data-centre network",
            )
        )
    return Bounds(tuple(parts), _notes(parts, chip is not None))


def _notes(parts: list[Part], known: bool) -> tuple[str, ...]:
    notes = [
        "The least time is modelled: operations one after another, each at its roof, padding at its least, and "
        "collectives that nothing covers at link speed. Real steps are slower.",
        "Memory bytes are operands and results that the compiler placed in main memory, with what is fetched from "
        "there beside other work; of what is only sliced or updated, the part.",
        "The network bound lets a collective use all links of a chip at once; one laid along a single ring of the "
        "torus has two of them.",
    ]
    lacking = [p.name for p in parts if p.rate is None]
    if lacking:
        why = "the catalogue does not hold the rates of this chip" if known else "the chip is not in the catalogue"
        notes.append(f"No bound by {', '.join(lacking)}: {why}.")
    return tuple(notes)


def network(rows: pd.DataFrame, facts: Facts, per_chip: int) -> pd.DataFrame:
    """What must leave a chip for each collective, in bytes of a step, however it is done.

    A group of chips spans s slices with c of its chips in each; B are the operand bytes of a device, d the devices of
    a chip. Over the links (`ici_bytes`) at least 2 (c-1)/c B must pass for an all-reduce, (c-1)/c B for a
    reduce-scatter, d (c-1)/c B for an all-to-all, d (c-1) B for an all-gather, and B for a permute or broadcast. Over
    the data-centre network (`dcn_bytes`) the same with s for c, shared by the c chips except for all-gather and
    all-to-all, of which each chip has its own part. A group of unknown size counts as its mesh axis, else as two.
    """
    axes = {k: int(v) for k, v in (fact(facts, "parallelism") or {}).items()}
    spans = _spans(axes, slices_of(facts) or 1)
    size = rows["group_size"].astype("Float64")
    names = [str(a).split("+") if a else [] for a in rows["axis"]]
    of_axis = pd.Series(
        [math.prod(axes[n] for n in group) if group and all(n in axes for n in group) else None for group in names],
        index=rows.index,
        dtype="Float64",
    )
    slices = np.array([math.prod(spans.get(n, 1) for n in group) for group in names], dtype=float)
    chips = np.ceil(size.fillna(of_axis).fillna(2.0).to_numpy(dtype=float) / per_chip)
    inside = np.maximum(chips / slices, 1.0)
    operands = rows["operand_bytes"].fillna(0).to_numpy(dtype=float) * rows["count"].fillna(1).to_numpy(dtype=float)
    own = rows["kind"].isin(("all-gather", "all-to-all")).to_numpy()
    across = _leaving(rows["kind"], slices, per_chip) / np.where(own, 1.0, inside)
    return rows.assign(ici_bytes=operands * _leaving(rows["kind"], inside, per_chip), dcn_bytes=operands * across)


def _leaving(kinds: pd.Series, parties: np.ndarray, per_chip: int) -> np.ndarray:
    """Bytes that one of `parties` must send, per operand byte of a device."""
    away = (parties - 1) / np.maximum(parties, 1)
    choices = {
        "all-reduce": 2 * away,
        "reduce-scatter": away,
        "all-to-all": away * per_chip,
        "all-gather": (parties - 1) * per_chip,
    }
    return np.select([kinds == k for k in choices], list(choices.values()), np.where(parties > 1, 1.0, 0.0))


def _spans(axes: dict[str, int], slices: int) -> dict[str, int]:
    """How many slices each mesh axis spans: all on the one axis that talks least, as the compile step lays them.

    Axes of whole copies come first, then fsdp, then the others in mesh order.
    """
    order = sorted(axes, key=lambda name: 0 if name in COPIES else 1 if name == "fsdp" else 2)
    over = next((name for name in order if axes[name] % slices == 0), None)
    return {over: slices} if over and slices > 1 else {}


def utilisation(
    model_flops: float | None, seconds: float | None, chips: int, peak_flops_per_s: float | None
) -> float | None:
    """Model FLOPs of a step over all chips / (chips x peak x seconds)."""
    if not model_flops or not seconds or not peak_flops_per_s:
        return None
    return model_flops / (chips * peak_flops_per_s * seconds)
