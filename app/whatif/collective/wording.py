"""The answer about a collective in words: what the panel's head and a terminal say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from app.whatif.base import Words
from app.words import Table, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.collective.answers import CollectiveAnswer
    from simulators.collectives import Collective

TITLES: dict[str, str] = {
    "all_gather": "All-gather",
    "reduce_scatter": "Reduce-scatter",
    "all_reduce": "All-reduce",
    "all_to_all": "All-to-all",
    "permute": "Permute",
}
SIZES = tuple(m * 10.0**n for n in range(3, 11) for m in (1, 4))[1:-1]  # 4 kB to 10 GB


def verdict(result: "Collective") -> str:
    """How long, over what, what bounds it, and where that changes."""
    where = fmt.count(result.chips, "chip")
    if result.axes:
        where = f"groups of {result.chips:,} chips along {' and '.join(result.axes)}"
    text = (
        f"{TITLES[result.kind]} of {fmt.size(result.bytes)} over {where} takes {fmt.duration(result.seconds)}"
        f"{spread(result)}, bound by {result.bound}"
    )
    crossover = result.crossover_bytes
    if crossover is None:
        return f"{text}: nothing crosses a link."
    if not result.cost.latency_s:
        return f"{text}: hops take no time here."
    limit = fmt.size(crossover)
    if result.bound == "bandwidth":
        return f"{text}; below {limit} the hops take longer."
    return f"{text}; above {limit} its bytes take longer than its hops."


def spread(result: "Collective") -> str:
    """The band where it is one: ` (1.76 to 1.99 ms)`."""
    if result.high_s <= 1.005 * result.low_s:
        return ""
    return f" ({fmt.duration(result.low_s)} to {fmt.duration(result.high_s)})"


def against(results: Sequence["Collective"]) -> str:
    """The first system against each other one, at this size."""
    first, *others = results
    parts = []
    for other in others:
        ratio = other.seconds / first.seconds if first.seconds else float("inf")
        more, less = (other, first) if ratio >= 1 else (first, other)
        if not np.isfinite(ratio) or not ratio:
            continue
        told = f"{max(ratio, 1 / ratio):.2f} times as {'long' if ratio >= 1 else 'fast'}"
        if f"{ratio:.2f}" == "1.00":
            told = "as long"
        bands = "" if more.low_s > less.high_s else "; the bands overlap"
        parts.append(f"{other.spec} takes {fmt.duration(other.seconds)}, {told}{bands}")
    return f"{'. '.join(parts)}." if parts else ""


def words(answer: "CollectiveAnswer") -> Words:
    """The verdict, then the time of other sizes."""
    result = answer.result
    sizes = sorted({*SIZES, result.bytes})
    moved = np.array(sizes) / result.shards
    low, value, high = (c.seconds(moved) for c in (result.low, result.cost, result.high))
    rows = tuple(
        (
            fmt.size(s) + (" (asked)" if s == result.bytes else ""),
            fmt.duration(v),
            fmt.duration(a),
            fmt.duration(b),
            result.cost.bound(s / result.shards),
            f"{fmt.size(s / v)}/s" if v else fmt.NO_VALUE,
        )
        for s, a, v, b in zip(sizes, low, value, high, strict=True)
    )
    hides = ""
    if answer.critical_tokens is not None:
        hides = (
            f"Gradients that move so hide behind the backward pass from {answer.critical_tokens:,.0f} tokens a chip."
        )
    text = headline(verdict(result), hides)
    head = ("array", "time", "low", "high", "bound by", "array by time")
    return Words(text, Table(head, rows, right=(0, 1, 2, 3, 5)), (f"Modelled: {result.cost.algorithm}.", *answer.notes))
