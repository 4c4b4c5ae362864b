"""FLOPs per token in words: what a token costs, and how far the conventions lie apart."""

from analyzers.flops.flops import FlopsResult
from app.words import Table, Verdict, headline, model_name, short
from catalog.flops import CONVENTIONS
from errors import format as fmt


def verdict(result: FlopsResult) -> Verdict:
    """The exact count, and what counting attention as if it were not causal makes of it."""
    counts = {c.convention: c.total for c in result.counts}
    exact, loose = counts["causal"], counts["noncausal"]
    return headline(
        f"A token of {short(model_name(result.model))} costs {gflops(exact)} in sequences of {result.seq:,} tokens, "
        "forward and backward.",
        f"Counted as if attention were not causal it is {gflops(loose)}: an MFU printed that way is "
        f"{fmt.share(loose / exact - 1)} higher for the same speed.",
    )


def table(result: FlopsResult) -> Table:
    """One row for each convention."""
    counts = {c.convention: c for c in result.counts}
    exact = counts["causal"].total
    return Table(
        ("convention", "GFLOPs per token", "of exact", "of it attention", "used by"),
        tuple(
            (
                c.name,
                fmt.number(counts[c.name].total / 1e9, 4),
                fmt.share(counts[c.name].total / exact),
                fmt.share(counts[c.name].attention / counts[c.name].total),
                c.used_by,
            )
            for c in CONVENTIONS
        ),
        right=(1, 2, 3),
    )


def gflops(value: float) -> str:
    """`51.5 GFLOPs`; `10.2 MFLOPs` of a small model."""
    factor, unit = next(((f, u) for f, u in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if value >= f), (1e3, "k"))
    return f"{fmt.number(value / factor)} {unit}FLOPs"
