"""Training whose loss is no number any more: from there on its steps change nothing for the better.

Told where the last losses that the job printed, ten and more of them, are all no numbers (nan or inf): of single ones
that are skipped, as scaled FP16 has them, training goes on. Where the job went back and took the steps again, its stops
tell.
"""

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.time.job_past import steps_taken
from errors import format as fmt
from runs.tables import Tables

CAUSE, QUESTION = "nan_rollback", "steps"
LEAST = 10  # losses at the end that are no numbers
SPREAD = 0.05  # of what these steps took: by when somebody would have noticed


def find(seen: Seen) -> Told:
    if not any_lost(seen.tables):
        return Told()  # whether it became none and the job went back, the stops tell
    rows = steps_taken(seen.tables, seen.facts).rows
    kept = rows[rows["kept"].astype(bool) & rows["dur_ns"].notna()]
    first = lost_from(seen.tables, kept["step"])
    if first is None:
        return Told()
    step, printed = first
    lost = kept[kept["step"] >= step]
    productive = seen.ledger.find("productive")
    whole_ns = float(kept["dur_ns"].sum())
    if productive is None or not len(lost) or not whole_ns:
        return Told()
    part = float(lost["dur_ns"].sum()) / whole_ns
    amount = productive.chip_seconds * part
    if amount < seen.least:
        why = f"the steps whose loss is no number took {fmt.share(amount / seen.whole)} of the chip time"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    leaves = [a for _, a in productive.walk() if not a.children]
    return Told(
        (
            Finding(
                cause=CAUSE,
                title=f"The loss is no number from step {step:,} to the end: "
                f"{fmt.count(int(lost['step'].nunique()), 'step')} that trained nothing.",
                gain=Band(amount * (1 - SPREAD), amount, amount),
                draws={a.name: sum(b.chip_seconds for b in leaves if b.name == a.name) * part for a in leaves},
                question=QUESTION,
                confidence=0.95,
                where=Where(steps=Steps(step, int(lost["step"].max()))),
                evidence=(Evidence("losses that are no numbers", float(printed), "", QUESTION),),
            ),
        )
    )


def any_lost(tables: Tables) -> bool:
    """Whether any loss is no number."""
    if not tables.rows("steps"):
        return False
    loss = pc.drop_null(tables.arrow("steps", ["loss"])["loss"]).to_numpy()
    return not bool(np.isfinite(loss).all())


def lost_from(tables: Tables, kept: pd.Series) -> tuple[int, int] | None:
    """(the step from which on, of how many) the loss of these steps is no number to the end; None where it is one at
    the end."""
    told = tables.arrow("steps", ["step", "loss"])
    told = told.filter(pc.and_(pc.is_valid(told["step"]), pc.is_valid(told["loss"])))
    bad = ~np.isfinite(told["loss"].to_numpy())
    last = pd.Series(bad, index=told["step"].to_numpy()).groupby(level=0).last()  # by step, the smallest first
    last = last[last.index.isin(kept.astype("int64"))]
    steps, lost = last.index.to_numpy(), last.to_numpy()
    at = len(lost)
    while at and lost[at - 1]:
        at -= 1
    return (int(steps[at]), len(lost) - at) if len(lost) - at >= LEAST else None


RULE = Rule(name="loss", causes=(CAUSE,), find=find)
