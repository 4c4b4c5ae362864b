"""Which single change of a dimension would pay most: every candidate is computed, the best few are told."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.flops.matmul_table import Unit, model_rows, taxes, with_padding
from analyzers.flops.model_changes import changed, main_block
from catalog.matmuls import matmuls, valid_tp
from catalog.models import Model
from errors import QuestionError

PAYS = 0.005  # a gain below this is not worth a sentence
TOLD = 3
TPS = (128, 64, 32, 16, 8, 4, 2, 1)
WORTH_MORE = 0.01  # how much more a still smaller tp has to save: it costs memory
STRETCH = 1.34  # a width that would have to grow by more is another model


@dataclass(frozen=True)
class Advice:
    """One change: the dimension, its value now and then, the gain by A and by B, and the sentence.

    gain = 1 - (padded per useful FLOP after) / (the same before): matmul time saved for the same useful maths.
    `share`: part of the useful FLOPs that the change concerns.
    """

    dim: str
    now: int
    then: int
    gain: float
    gain_optimistic: float
    share: float
    text: str

    def to_dict(self) -> dict:
        return {
            "dim": self.dim,
            "now": self.now,
            "then": self.then,
            "gain": self.gain,
            "gain_optimistic": self.gain_optimistic,
            "share": self.share,
            "text": self.text,
        }


def model_advice(model: Model, seq: int, tp: int, batch: int, unit: Unit) -> tuple[Advice, ...]:
    """The best change of each dimension of a model that pays, best first."""
    table = with_padding(model_rows(matmuls(model, seq, tp, batch)), unit)
    before = taxes(table)
    best: dict[str, Advice] = {}
    for dim, now, then, to, to_tp in _candidates(model, tp, unit):
        try:
            after = taxes(with_padding(model_rows(matmuls(to, seq, to_tp, batch)), unit))
        except QuestionError:
            continue
        gain, gain_b = (1 - (1 + a) / (1 + b) for a, b in zip(after, before, strict=True))
        enough = best[dim].gain + (WORTH_MORE if dim == "tp" else 1e-9) if dim in best else 0.0
        if gain > max(PAYS, enough):
            share = _share(table, dim)
            text = _sentence(dim, now, then, share, gain, gain_b, model, to, tp, unit)
            best[dim] = Advice(dim, now, then, gain, gain_b, share, text)
    return tuple(sorted(best.values(), key=lambda a: -a.gain)[:TOLD])


def program_advice(table: pd.DataFrame, unit: Unit) -> tuple[Advice, ...]:
    """Widths of a program's products that would pay most: heads merged, other widths filled up.

    Of a batched product the dimension that occurs once is taken for the width of a head, the other two for tokens:
    wider heads in fewer batches do the same useful FLOPs. A width of any other product is filled up to the next
    multiple: the padded FLOPs stay, and more of them are useful.
    """
    dims = {d: table[d].to_numpy(dtype=float) for d in "mkn"}
    heads = (table["batch"] > 1).to_numpy()
    once = {
        "k": (dims["k"] != dims["m"]) & (dims["k"] != dims["n"]),
        "n": (dims["n"] != dims["m"]) & (dims["n"] != dims["k"]),
    }
    found = []
    for merge in (True, False):
        free = {d: (heads & once[d]) if merge else ~heads for d in "kn"}
        for width in {int(v) for d in "kn" for v in np.unique(dims[d][free[d]]) if v % unit.multiple}:
            wide = -(-width // unit.multiple) * unit.multiple
            touched = {d: free[d] & (dims[d] == width) for d in "kn"}
            if advice := _widened(table, width, wide, touched, merge, unit):
                found.append(advice)
    return tuple(sorted(found, key=lambda a: -a.gain)[:TOLD])


def _widened(
    table: pd.DataFrame, width: int, wide: int, touched: dict[str, np.ndarray], merge: bool, unit: Unit
) -> Advice | None:
    """What it gains to have `wide` for `width` in the products touched; None where it cannot be or does not pay."""
    times, rest = divmod(wide, width)
    rows = table[["name", "m", "k", "n", "batch", "count", "fraction"]].copy()
    either = touched["k"] | touched["n"]
    if merge:
        if rest or (rows["batch"][either] % times).any():
            return None
        rows["batch"] = np.where(either, rows["batch"] / times, rows["batch"])
    elif wide > width * STRETCH:
        return None
    for d, here in touched.items():
        rows[d] = np.where(here, wide, rows[d])
    after = with_padding(rows, unit)
    gains = [1 - (1 + a) / (1 + b) for a, b in zip(taxes(after), taxes(table), strict=True)]
    if gains[0] < PAYS:
        return None
    share = float(table["share"].to_numpy()[either].sum())
    what, how = ("heads", f"{wide:,}, 1/{times} as many,") if merge else ("a width", f"{wide:,}")
    text = f"{_percent(share)} of matmul FLOPs have {what} of {width:,} on a {unit.label}; {what} of {how} "
    return Advice("head_dim" if merge else "width", width, wide, *gains, share, f"{text}{_would(*gains, merge, unit)}.")


def _candidates(model: Model, tp: int, unit: Unit) -> Iterator[tuple[str, int, int, Model, int]]:
    """(dimension, now, then, model, tp) of every change worth computing."""
    widths = sorted({128, unit.multiple})
    heads = min(a.head_dim for a in model.attention)
    wanted = {
        "head_dim": (heads, [-(-heads // w) * w for w in widths]),
        "d_ff": (main_block(model).d_ff, [-(-main_block(model).d_ff // (w * tp)) * w * tp for w in widths]),
        "d_model": (model.d_model, [-(-model.d_model // w) * w for w in widths]),
        "vocab": (model.vocab, [-(-model.vocab // (w * tp)) * w * tp for w in widths]),
    }
    for dim, (now, values) in wanted.items():
        most = now * STRETCH if dim != "head_dim" else values[-1]
        for then in dict.fromkeys(v for v in values if now < v <= most):
            try:
                yield dim, now, then, changed(model, {dim: then}), tp
            except QuestionError:
                continue
    for other in TPS:
        if other < tp and valid_tp(model, other):
            yield "tp", tp, other, model, other


_CONCERNS = {
    "head_dim": r"(?:qk|pv)_",
    "d_ff": r"(?:mlp|moe|shared)_",
    "vocab": "lm_head",
    "tp": "",
    "d_model": r"q$|q_a|k$|v$|kv_a|o$|(?:mlp|moe|shared)_|router|lm_head",
}


def _share(table: pd.DataFrame, dim: str) -> float:
    return float(table.loc[table["name"].str.match(_CONCERNS[dim]), "share"].sum())


def _sentence(
    dim: str,
    now: int,
    then: int,
    share: float,
    gain: float,
    gain_b: float,
    model: Model,
    to: Model,
    tp: int,
    unit: Unit,
) -> str:
    part = f" ({now // tp:,} on each of {tp} devices)" if tp > 1 and dim in ("d_ff", "vocab") else ""
    what = f"{_percent(share)} of matmul FLOPs run at {dim} {now:,}{part} on a {unit.label}"
    same = dim in ("head_dim", "tp")
    new = f"{dim} {then:,}"
    if dim == "tp":
        what = f"Tensor parallelism over {now} devices leaves narrow pieces on a {unit.label}"
    if dim == "head_dim":
        old_heads, heads = (min(m.attention, key=lambda a: a.head_dim).heads for m in (model, to))
        same = heads != old_heads
        new += f" (heads {old_heads} -> {heads})" if same else " (as many heads)"
    return f"{what}; {new} {_would(gain, gain_b, same, unit)}."


def _would(gain: float, gain_b: float, same: bool, unit: Unit) -> str:
    """What it is worth: time for the same maths, or maths in the same time; with B where the two differ."""

    def worth(g: float) -> str:
        return _percent(g if same else g / (1 - g))

    told = (
        f"would save {worth(gain)} of padded matmul time"
        if same
        else (f"would do {worth(gain)} more useful maths in the same padded matmul time")
    )
    if worth(max(gain_b, 0.0)) != worth(gain):
        told += f" ({worth(max(gain_b, 0.0))} {unit.kindly})"
    return told


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"
