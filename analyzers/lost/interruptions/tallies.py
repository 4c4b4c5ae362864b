"""Interruptions counted by cause, by family and by host: how often, how long between two, what they cost."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyzers.lost.mttf import Lemons, lemons, mttf
from catalog.causes import CAUSES, FAMILIES

PLANNED = ("maintenance", "scheduler", "user")
"""Families of what somebody decided; whatever else, unknown included, counts as unplanned."""

MACHINE = ("hardware", "network", "storage", "hang")
"""Families that can be one machine's fault. A software error names the host that raised it, which is none of its."""

COSTS = ("lost_s", "chip_hours", "usd")


def by_cause(rows: pd.DataFrame, held_s: float | None) -> pd.DataFrame:
    """One row per cause, most frequent first: cause, title, family, planned, count, share, mttf_s, mttf_low_s,
    mttf_high_s, lost_s, chip_hours, usd, certain (of `count`, how many are certain), cure."""
    table = _tally(rows, "cause", held_s)
    known = [CAUSES.get(c, CAUSES["unknown"]) for c in table["cause"]]
    table.insert(1, "title", [k.title for k in known])
    table.insert(2, "family", [k.family for k in known])
    table.insert(3, "planned", [k.family in PLANNED for k in known])
    sure = rows["cause"][rows["confidence"] == "certain"].value_counts()
    table["certain"] = table["cause"].map(sure).fillna(0).astype("int64")
    table["cure"] = [k.cure for k in known]
    return table


def by_family(rows: pd.DataFrame, held_s: float | None) -> pd.DataFrame:
    """One row per family, most frequent first: family, meaning, planned, and counts and costs as in `by_cause`."""
    table = _tally(rows, "family", held_s)
    table.insert(1, "meaning", [FAMILIES[f] for f in table["family"]])
    table.insert(2, "planned", [f in PLANNED for f in table["family"]])
    return table


def by_host(rows: pd.DataFrame, held_s: float | None, hosts: int | None) -> tuple[pd.DataFrame, Lemons | None]:
    """One row per host that a cause names, and what was tested.

    Columns: host, count, share, mttf_s..., failures (those that can be a machine's fault, see MACHINE), causes (in
    words, most frequent first), expected (failures, were all hosts alike), p, p_holm, lemon. The test is left out
    (null) where the number of hosts is not known.
    """
    named = rows[rows["host"].notna()]
    table = _tally(named, "host", held_s)
    at_fault = named[named["family"].isin(MACHINE)]
    table["failures"] = table["host"].map(at_fault["host"].value_counts()).fillna(0).astype("int64")
    words = {host: _words(causes) for host, causes in named.groupby("host")["cause"]}
    table["causes"] = table["host"].map(words).astype(object)
    if not hosts:
        return table.assign(expected=np.nan, p=np.nan, p_holm=np.nan, lemon=False), None
    tested = lemons(table["failures"].to_numpy(), max(hosts, len(table)))
    table = table.assign(expected=tested.expected, p=tested.p, p_holm=tested.p_holm, lemon=tested.lemon)
    return table.sort_values(["failures", "count"], ascending=False, kind="stable", ignore_index=True), tested


def _words(causes: pd.Series) -> str:
    counted = causes.value_counts()
    parts = [CAUSES[c].title + (f" ({n})" if n > 1 else "") for c, n in counted.items()]
    return ", ".join(parts[:4]) + (" …" if len(parts) > 4 else "")


def _tally(rows: pd.DataFrame, key: str, held_s: float | None) -> pd.DataFrame:
    """Count, share, mean time with its interval, and costs of the rows by `key`, most frequent first."""
    groups = rows.groupby(key, sort=False)
    table = groups[list(COSTS)].sum(min_count=1)
    table.insert(0, "count", groups.size())
    table.insert(1, "share", table["count"] / max(len(rows), 1))
    for name, values in _times(table["count"].tolist(), held_s).items():
        table[name] = values
    table = table[["count", "share", "mttf_s", "mttf_low_s", "mttf_high_s", *COSTS]]
    return table.rename_axis(key).reset_index().sort_values("count", ascending=False, kind="stable", ignore_index=True)


def _times(counts: Sequence[int], held_s: float | None) -> dict[str, list[float | None]]:
    known = {n: mttf(int(n), held_s) for n in set(counts)}
    return {
        "mttf_s": [known[n].mean_s for n in counts],
        "mttf_low_s": [known[n].low_s for n in counts],
        "mttf_high_s": [known[n].high_s for n in counts],
    }
