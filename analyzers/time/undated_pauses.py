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


def undated_pauses_s(tables: Tables, taken: pd.Series) -> dict[str, float]:
    """Seconds by heading of the ledger. `taken`: the numbers of the steps that the job took: an input that tells the
    time of none may tell of pauses among others too, as a state that was saved does of all before the job was resumed.
    Of several inputs that tell of pauses at the same steps the one that tells most: they may tell of the same."""
    if not tables.rows("scalars") or not len(taken):
        return {}
    names = [str(name) for name in pc.unique(tables.arrow("scalars", ["name"])["name"]).to_pylist()]
    heading = {name: head for name in names for head, known in HEADINGS.items() if known.fullmatch(name)}
    if not heading:
        return {}
    rows = frame(tables, "scalars", ["name", "value", "step", "source"], [("name", "in", sorted(heading))])
    rows = rows.assign(
        heading=rows["name"].astype(str).map(heading),
        source=rows["source"].astype("string").fillna(""),
        step=rows["step"].astype("Float64").astype(float),
        value=rows["value"].astype(float),
    )
    steps = frame(tables, "steps", ["source", "dur_ns"])
    timing = steps["source"].astype("string").fillna("")[steps["dur_ns"].notna()]
    beside = rows["source"].isin(timing.unique()) | ~((rows["step"] < taken.min()) | (rows["step"] > taken.max()))
    rows = rows[beside & (rows["value"] > 0) & (rows["value"] < 1e9)]
    told = rows.groupby(["heading", "source"]).agg(s=("value", "sum"), low=("step", "min"), high=("step", "max"))
    return {str(head): _once(mine) for head, mine in told.groupby(level=0)}


def _once(told: pd.DataFrame) -> float:
    """Seconds of inputs, without those that lie among the steps of another that tells more. Columns: s, low, high."""
    counted: list[tuple[float, float, float]] = []
    for s, low, high in told.sort_values("s", ascending=False, kind="stable").itertuples(index=False, name=None):
        if all(low > until or high < since for _, since, until in counted):
            counted.append((s, low, high))
    return float(sum(s for s, _, _ in counted))
