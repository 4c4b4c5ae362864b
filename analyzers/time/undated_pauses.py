"""Evaluations and saves of a job whose log dates nothing, of which numbers tell how long they took.

Its steps have no time of day, so these have no place among them; but readers take them off the steps that they stand
beside, and they held the chips as long as is told: `eval_runtime` of Hugging Face's Trainer (and of nanoGPT's
evaluations, as its reader works them out), `timing_s/testing` and `timing_s/save_checkpoint` of verl, seconds.
"""

import re

import pandas as pd
import pyarrow.compute as pc

from runs.tables import Tables, frame

HEADINGS = {
    "eval": re.compile(r"eval_(?:.{1,70}_)?runtime|timing(?:_s)?/testing"),
    "checkpoint_save": re.compile(r"timing(?:_s)?/save_checkpoint"),
}
NOTE = "Evaluations and saves are entered for as long as the log says they took; it dates none of them."


def undated_pauses_s(tables: Tables) -> dict[str, float]:
    """Seconds by heading of the ledger. Of several inputs the one that tells most of a heading: they may tell of the
    same."""
    if not tables.rows("scalars"):
        return {}
    names = [str(name) for name in pc.unique(tables.arrow("scalars", ["name"])["name"]).to_pylist()]
    heading = {name: head for name in names for head, known in HEADINGS.items() if known.fullmatch(name)}
    if not heading:
        return {}
    rows = frame(tables, "scalars", ["name", "value", "source"], [("name", "in", sorted(heading))])
    value = rows["value"].astype("float64")
    rows = rows.assign(heading=rows["name"].astype(str).map(heading), value=value.where((value > 0) & (value < 1e9), 0))
    by = [rows["heading"], rows["source"].astype("string").fillna("")]
    told: pd.Series = rows["value"].groupby(by).sum().groupby(level=0).max()
    return {str(head): float(seconds) for head, seconds in told.items() if seconds > 0}
