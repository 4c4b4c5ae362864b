"""What the program itself does too much of: matrix units that compute zeros, numbers wider than the chip needs, and
activations computed again beyond what freeing their memory takes."""

from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from errors import format as fmt
from runs.tables import frame

LEAST = 0.02
ONCE = 0.45  # of the useful FLOPs: to compute the forward pass again is a third of them
WIDE = {"f64": ("float64", "float32"), "c128": ("complex128", "complex64")}
"""Element types that no accelerator computes at its rate for narrower ones, and what would do."""


def padded(seen: Seen) -> Told:
    amount = seen.amount("padding")
    if amount < LEAST * seen.whole:
        return Told(ruled_out=(RuledOut("padding", "matrix products hardly fill up tiles", "padding"),))
    return Told(
        (
            Finding(
                cause="padding",
                title=f"Matrix units spend {fmt.whole_share(amount / seen.whole)} of the chip time on zeros that fill up "
                "their tiles.",
                gain=Band(amount * 0.5, amount, amount * 1.1),
                draws={"padding": amount},
                question="padding",
                confidence=0.8,
                evidence=(Evidence("matrix units on padding", amount, "chip-seconds", "padding"),),
            ),
        )
    )


def recomputed(seen: Seen) -> Told:
    amount, useful = seen.amount("recomputation"), seen.amount("useful_maths")
    if amount < LEAST * seen.whole or not useful:
        return Told(ruled_out=(RuledOut("recomputation", "little or nothing is computed again", "mfu"),))
    if amount <= ONCE * useful:
        why = f"computed again for {fmt.share(amount / useful)} of the useful maths, no more than one forward pass"
        return Told(ruled_out=(RuledOut("recomputation", why, "mfu"),))
    return Told(
        (
            Finding(
                cause="recomputation",
                title=f"Activations are computed again for {fmt.whole_share(amount / useful)} of the useful maths: one "
                "more forward pass is a third.",
                gain=Band(amount * 0.3, amount, amount * 1.5),
                draws={"recomputation": amount},
                question="mfu",
                confidence=0.7,
                evidence=(Evidence("recomputation", amount, "chip-seconds", "mfu"),),
            ),
        )
    )


def wide(seen: Seen) -> Told:
    """Matrix products in numbers wider than any accelerator is built for."""
    rows = frame(seen.tables, "matmuls", ["dtype", "m", "k", "n", "batch", "count"])
    if not len(rows):
        return Told(not_told=(NotTold(("precision",), "no program tells the formats of its numbers", "a profile"),))
    work = rows[["m", "k", "n", "batch", "count"]].astype(float).fillna(1.0).prod(axis=1)
    dtype = rows["dtype"].astype(str)
    name = next((n for n in WIDE if work[dtype == n].sum() > 0.5 * work.sum()), None)
    if name is None:
        return Told(ruled_out=(RuledOut("precision", f"matrix products are in {dtype.mode().iloc[0]}", "mfu"),))
    busy = seen.amount("useful_maths", "below_roofline")
    now, then = WIDE[name]
    likely = busy * 0.5
    return Told(
        (
            Finding(
                cause="precision",
                title=f"Matrix products are computed in {now}, where {then} would move half the bytes at twice the rate.",
                gain=Band(busy * 0.3, likely, busy * 0.6),
                draws={"below_roofline": min(likely, seen.amount("below_roofline")), "": 0.0},
                question="roofline",
                confidence=0.8,
                basis="modelled",
                evidence=(Evidence("computing", busy, "chip-seconds", "roofline"),),
            ),
        )
    )


RULES = (
    Rule(name="padded", causes=("padding",), reads=("ledger",), find=padded),
    Rule(name="recomputed", causes=("recomputation",), reads=("ledger",), find=recomputed),
    Rule(name="wide", causes=("precision",), reads=("ledger",), find=wide),
)
