"""Top operations in words: which takes most, how near it is to its roof, and what kinds of work there are."""

from typing import Any

import pandas as pd

from analyzers.device.operations import OpsResult
from analyzers.device.tensor_cores import Products
from app.questions.roofline.words import briefly, byte_rate, named, place_of
from app.words import Table, Verdict, headline, short
from errors import format as fmt

SHOWN = 24
KINDS_SAID = 3
MOST = 0.9  # of a row's time: so much must have a roof for the row to be held against it
OFF_TENSOR_CORES = 0.05  # of device time: worth a sentence
FAR_ABOVE = 2.0  # times its roof: no share of it is told of what is further beyond
TOO_MANY = "its FLOPs or bytes are counted too high, or the roof is set too low"
ABOVE = " (above it)"  # FLOPs or bytes are counted too high, or the roof is set too low
HEADS = {"op": "operation", "category": "category", "source": "source", "module": "module"}


def label(row: dict[str, Any], by: str) -> str:
    """What a row is called: an operation with its line, a category, a line, a module."""
    if by == "op":
        return named(row)
    name = row[by]
    if not name:
        return {"source": "no source line", "module": "no module"}.get(by, "unknown")
    return place_of(name) if by == "source" else str(name)


def time_of(row: dict[str, Any], result: OpsResult) -> float:
    """Seconds of a row over all devices: what it took, or modelled at its roof where nothing was timed."""
    value = row["self_seconds"] if result.device_seconds is not None else row["roof_seconds"]
    return 0.0 if pd.isna(value) else float(value)


def roof_text(row: dict[str, Any], digits: int = 3) -> str:
    """A row's share of its roof, marked where it is more than the roof allows."""
    return fmt.share(row["roof_share"], digits) + (ABOVE if _above(row) else "")


def _above(row: dict[str, Any]) -> bool:
    return row["ops"] == 1 and row["above_seconds"] > 0


def _of_roof(row: dict[str, Any]) -> str:
    """How near an operation comes to its roof; of one that is beyond it by far what that means."""
    share = float(row["roof_share"])
    if share >= FAR_ABOVE:
        return f", {fmt.number(share)} times as fast as its roof allows: {TOO_MANY}"
    return f" at {fmt.whole_share(share)} of its roof{ABOVE if _above(row) else ''}"


def verdict(result: OpsResult) -> Verdict:
    """The row that takes most time and its roof, and the kinds of work by time."""
    rows = result.rows
    if not len(rows) or pd.isna(rows["share"].iloc[0]):
        if len(rows) and result.device_seconds is None:
            return headline(
                "How long the operations of this program need cannot be told: no roof of its chip is known. Ask "
                "with --option chip=NAME."
            )
        return headline("No operation took any time.")
    top = {str(k): v for k, v in rows.iloc[0].to_dict().items()}
    whole = "device time" if result.device_seconds is not None else "the least time of this program"
    who = briefly(top) if result.by == "op" else short(label(top, result.by))
    text = f"{who} takes {fmt.whole_share(top['share'])} of {whole}"
    if pd.notna(top["roof_share"]) and top["roofed_seconds"] >= MOST * top["self_seconds"]:
        text += _of_roof(top)
    said = _off_tensor_cores(result)
    kinds = result.by_category[result.by_category["share"] > 0].head(KINDS_SAID)
    if result.by == "category" or len(kinds) < 2:
        return headline(f"{text}.", said)
    by_kind = ", ".join(
        f"{short(c or 'unknown')} {fmt.whole_share(s)}" for c, s in zip(kinds["category"], kinds["share"], strict=True)
    )
    return headline(f"{text}.", f"By kind: {by_kind}.", said)


def _off_tensor_cores(result: OpsResult) -> str:
    """What products take elsewhere than on a GPU's tensor cores, where that is much."""
    made = result.products
    if made is None or not result.device_seconds:
        return ""
    elsewhere = made.seconds - made.untold_seconds - made.tensor_core_seconds
    if elsewhere < OFF_TENSOR_CORES * result.device_seconds:
        return ""
    share = fmt.share(elsewhere / result.device_seconds)
    return f"Matrix products that do not run on tensor cores take {share} of device time."


def products_text(made: Products) -> str:
    """How much of the time of products is on tensor cores, and of how much nobody knows."""
    if made.share is None:
        return f"Matrix products take {fmt.duration(made.seconds)}; no kernel's name tells which unit it uses."
    text = (
        f"Matrix products take {fmt.duration(made.seconds)}, {fmt.share(made.share)} of it on tensor cores, as far as "
        "kernel names tell"
    )
    untold = made.untold_seconds / made.seconds
    return f"{text}; of {fmt.share(untold)} they do not tell." if untold > 0 else f"{text}."


def table(result: OpsResult) -> Table:
    """The rows that take most time."""
    return Table(
        (HEADS[result.by], "category", "count", "mean", "time", "share", "FLOP/s", "bytes/s", "of its roof", "wasted"),
        tuple(
            (
                label(r, result.by),
                r["category"] or "several",
                f"{r['count']:,.0f}",
                _seconds(r["mean_execution_seconds"]),
                fmt.duration(time_of(r, result)),
                fmt.share(r["share"]),
                fmt.flops_rate(r["flops_per_s"]),
                byte_rate(r["bytes_per_s"]),
                roof_text(r),
                _seconds(r["wasted_seconds"]),
            )
            for r in result.rows.head(SHOWN).to_dict("records")
        ),
        right=tuple(range(2, 10)),
    )


def _seconds(value: float | None) -> str:
    return fmt.duration(None if pd.isna(value) else value)
