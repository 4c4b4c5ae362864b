"""Steps whose update was left out because their gradients were no finite numbers: they took their time for nothing.

Megatron prints how many iterations since its last line were skipped, DeepSpeed how many in all. A loss scale that is
found as the job goes begins far too high, and is tried again now and then: of what the first steps skip nothing is
said, and of few among the others neither.
"""

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.time.job_past import steps_taken
from errors import format as fmt
from runs.tables import Tables, frame

CAUSE, QUESTION = "skipped_steps", "steps"
SINCE, IN_ALL = "number of skipped iterations", "skipped"  # since the line before, as Megatron counts, and in all
FORMATS = ("megatron", "deepspeed")
SETTLING = 50  # steps in which a loss scale comes down from where it begins: half of it at each that is skipped
LEAST = 20  # skipped steps after those
SPREAD = 0.3  # of what they took: now and then a scale is tried that is too high


def find(seen: Seen) -> Told:
    if not _told(seen.tables):
        return Told()
    rows = steps_taken(seen.tables, seen.facts).rows
    kept = rows.loc[rows["kept"].astype(bool) & rows["dur_ns"].notna(), "step"].dropna().astype("int64")
    productive = seen.ledger.find("productive")
    if productive is None or len(kept) <= SETTLING:
        return Told()
    skipped = _skipped(seen.tables, kept)
    count, part = int(skipped.sum()), float(skipped.sum()) / len(kept)
    if count < LEAST:
        why = f"{fmt.count(count, 'step was', 'steps were')} skipped once the loss scale stood"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    amount = productive.chip_seconds * part
    if amount < seen.least:
        why = f"{fmt.count(count, 'skipped step')} took {fmt.share(amount / seen.whole)} of the chip time"
        return Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))
    leaves = [a for _, a in productive.walk() if not a.children]
    some = skipped.index[skipped > 0]
    return Told(
        (
            Finding(
                cause=CAUSE,
                title=f"{count:,} of {len(kept):,} steps were skipped, as their gradients overflowed: they trained "
                "nothing.",
                gain=Band(amount * (1 - SPREAD), amount, amount),
                draws={a.name: sum(b.chip_seconds for b in leaves if b.name == a.name) * part for a in leaves},
                question=QUESTION,
                confidence=0.9,
                where=Where(steps=Steps(int(some.min()), int(some.max()))),
                evidence=(Evidence("steps skipped", float(count), "", QUESTION),),
            ),
        )
    )


def _told(tables: Tables) -> bool:
    """Whether any log counts skipped steps."""
    if not tables.rows("scalars") or not tables.rows("steps"):
        return False
    names = pc.unique(tables.arrow("scalars", ["name"])["name"]).to_pylist()
    return SINCE in names or IN_ALL in names


def _skipped(tables: Tables, kept: pd.Series) -> pd.Series:
    """How many steps were skipped up to each step of which a line tells, since the one before it, once the loss scale
    stood; by step, in order. Of lines that tell of one step the last counts, and no line tells of more than there lie
    between. A count of all since the job was new, which it goes on with from a save, tells of none before its second
    line."""
    told = frame(tables, "scalars", ["name", "step", "value", "source"], [("name", "in", [SINCE, IN_ALL])])
    counts = frame(tables, "steps", ["source"], [("format", "in", FORMATS)])["source"].unique()
    told = told[told["step"].notna() & told["value"].ge(0) & told["source"].isin(list(counts))]
    name = SINCE if (told["name"] == SINCE).any() else IN_ALL
    by = told[told["name"] == name].groupby(told["step"].astype("int64"))["value"].last()  # the smallest step first
    by = by[by.index <= kept.max()]
    step, value = by.index.to_numpy(), by.to_numpy(dtype=float)
    since = np.diff(step, prepend=min(int(kept.min()) - 1, int(step[0])) if len(step) else 0)
    count = value if name == SINCE else np.diff(value, prepend=0.0)
    standing = step - since >= int(kept.min()) + SETTLING  # all of what a line tells of
    return pd.Series(np.where(standing, np.clip(count, 0, np.maximum(since, 1)), 0.0), index=step)


RULE = Rule(name="skipped", causes=(CAUSE,), find=find)
