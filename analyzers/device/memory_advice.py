"""What would give device memory back, and how much of it, from what is alive at the peak."""

from dataclasses import dataclass

import pandas as pd

WORTH = 0.01  # of the peak; advice that gives back less is no advice
_GIVES = 0.05  # a guess must be worth more
UNTOLD = "; which inputs are donated already, this run does not tell: files that are read again do"


@dataclass(frozen=True)
class Advice:
    """One thing to do. `bytes`: what one device would hold less, at most where `at_most`."""

    what: str
    text: str
    bytes: int
    at_most: bool = False


def advise(parts: pd.DataFrame, peak: float) -> tuple[Advice, ...]:
    """Advice for a program whose `parts` (PART_COLUMNS) add up to `peak` bytes, the most worthwhile first."""
    if not len(parts) or not peak > 0:
        return ()
    held = parts["padded_bytes"].astype("Float64").fillna(0).astype(float)
    logical = parts["bytes"].astype("Float64").astype(float)
    found = [
        _sharding(parts, held),
        _remat(parts, held),
        _padding(parts, held, logical),
        _donation(parts, held),
        _fragmentation(parts, held),
    ]
    worth = [a for a in found if a is not None and a.bytes >= (_GIVES if a.at_most else WORTH) * peak]
    return tuple(sorted(worth, key=lambda a: -a.bytes))


def _sharding(parts: pd.DataFrame, held: pd.Series) -> Advice | None:
    copies = parts["copies"].astype("Float64").fillna(1).astype(float)
    alike = (parts["category"] == "argument") & (copies > 1)
    if not alike.any():
        return None
    back = held[alike] * (1 - 1 / copies[alike])
    most, largest = int(copies[alike].max()), parts["name"][back.idxmax()]
    return Advice(
        "shard",
        f"Up to {most:,} devices hold the same copy of {_counted(alike, 'input')}, the largest {largest}: sharded over "
        "those devices (FSDP, or ZeRO for optimiser state) each would keep its own part.",
        int(back.sum()),
    )


def _counted(which: pd.Series, noun: str) -> str:
    n = int(which.sum())
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def saved_activations(parts: pd.DataFrame) -> pd.Series:
    """Which temporaries come from the forward pass and wait for the backward one: JAX names them `jvp(`, without
    `transpose(`. What nothing of the backward pass needs, as a trace of the buffers tells, is gone before it."""
    names = parts["name"].fillna("").astype(str)
    forward = names.str.contains("jvp(", regex=False) & ~names.str.contains("transpose(", regex=False)
    awaited = parts["awaits_backward"].astype("boolean").fillna(True).astype(bool)
    return (parts["category"] == "temporary") & forward & awaited


def told_apart(parts: pd.DataFrame) -> pd.DataFrame:
    """The parts, with temporaries that recomputation could do without as a category of their own, `saved`."""
    return parts.assign(category=parts["category"].astype(object).mask(saved_activations(parts), "saved"))


def _remat(parts: pd.DataFrame, held: pd.Series) -> Advice | None:
    saved = saved_activations(parts)
    if not saved.any():
        return None
    largest = parts["name"][held[saved].idxmax()]
    return Advice(
        "remat",
        f"{_counted(saved, 'value')} of the forward pass wait for the backward one, the largest {largest}: "
        "jax.checkpoint around a layer computes them again instead, for up to a third more FLOPs.",
        int(held[saved].sum()),
        at_most=True,
    )


def _padding(parts: pd.DataFrame, held: pd.Series, logical: pd.Series) -> Advice | None:
    lost = (held - logical).where(parts["category"] != "fragmentation").fillna(0).clip(lower=0)
    if not lost.sum() > 0:
        return None
    worst = lost.idxmax()
    shape = parts["shape"][worst]
    return Advice(
        "padding",
        f"Layouts pad to whole tiles; most in {parts['name'][worst]}"
        + (f", {shape}" if isinstance(shape, str) else "")
        + ": dimensions that are multiples of the tile's (usually 8 by 128), or merged with a neighbour, pad nothing.",
        int(lost.sum()),
    )


def _donation(parts: pd.DataFrame, held: pd.Series) -> Advice | None:
    """Results as large and laid out as inputs, which could have taken their place. An input whose place a result takes
    already has none to give."""
    sizes = {}
    free = ~parts["reused"].astype("boolean").fillna(False).astype(bool)
    for category in ("argument", "output"):
        mine = (parts["category"] == category) & free
        sizes[category] = held[mine & parts["shape"].notna()].groupby(parts["shape"][mine]).agg(["size", "max"])
    both = sizes["output"].add_suffix("_out").join(sizes["argument"].add_suffix("_in"), how="inner")
    back = (both[["size_out", "size_in"]].min(axis=1) * both["max_out"]).sum()
    if not back > 0:
        return None
    told = parts["reused"][parts["category"] == "argument"].notna().any()
    return Advice(
        "donate",
        "Results are shaped like inputs but do not take their place: donate_argnums of jax.jit would let them, for "
        f"inputs that nothing reads afterwards{'' if told else UNTOLD}.",
        int(back),
        at_most=True,
    )


def _fragmentation(parts: pd.DataFrame, held: pd.Series) -> Advice | None:
    unused = held[parts["category"] == "fragmentation"].sum()
    if not unused > 0:
        return None
    return Advice(
        "fragmentation",
        "The compiler's packing leaves room between temporaries unused at the peak; fewer or evener buffers pack "
        "tighter.",
        int(unused),
        at_most=True,
    )
