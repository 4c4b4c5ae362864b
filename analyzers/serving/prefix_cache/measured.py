"""What an engine said of its prefix cache: the share of looked-up prompt tokens that it found, also over time.

Counters come first (tokens found by tokens looked up, restarts counted as a fresh start), then the cached tokens that
requests record, then rates that a log prints, each of which covers a stretch of its own (see `printed_hits`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.serving.engine.samples import engine_samples
from analyzers.serving.loads_told_twice import without
from analyzers.serving.printed_hits import overall
from analyzers.serving.servers import samples_of_servers
from runs.tables import Tables, frame

TIME_COLUMNS = ["ts_ns", "hit_rate", "tokens"]
SOURCES = {
    "counters": "the engine's counters of prompt tokens looked up and found",
    "requests": "the cached tokens that each request records",
    "printed": "the rates that the log prints, each of the newest requests: the last one while all of them can be of "
    "all requests so far, else weighted by prompt tokens, which is rough",
}
BINS = 120  # of time, where only requests tell


@dataclass(frozen=True)
class MeasuredPrefix:
    """`hit_rate`: tokens found by prompt tokens looked up, 0 to 1; `source`: a key of SOURCES; None where not told.

    `over_time`: ts_ns (null where no time is known), hit_rate, tokens looked up (null where only a rate is printed).
    """

    hit_rate: float | None
    source: str | None
    tokens: int | None
    over_time: pd.DataFrame


def measured_prefix(tables: Tables) -> MeasuredPrefix:
    """The best of what the run tells; empty where it tells nothing."""
    for found in (_counters(tables), _requests(tables), _printed(tables)):
        if found is not None:
            return found
    return MeasuredPrefix(None, None, None, pd.DataFrame(columns=TIME_COLUMNS))


def _engine(tables: Tables, columns: list[str]) -> pd.DataFrame:
    """What servers tell of these, in order of time."""
    rows, _ = samples_of_servers(tables)
    return rows.dropna(subset=columns).reset_index(drop=True)


def _counters(tables: Tables) -> MeasuredPrefix | None:
    rows = _engine(tables, ["prefix_hits", "prefix_queries"])
    if not len(rows):
        return None
    hits, asked = (rows[f"{c}_grown"].to_numpy(dtype=float) for c in ("prefix_hits", "prefix_queries"))
    good = (asked > 0) & (hits >= 0) & (hits <= asked)  # one counter seen anew before the other would give nonsense
    if good.any():
        table = pd.DataFrame(
            {"ts_ns": rows["ts_ns"][good], "hit_rate": hits[good] / asked[good], "tokens": asked[good]}
        )
        return MeasuredPrefix(
            float(hits[good].sum() / asked[good].sum()),
            "counters",
            int(asked[good].sum()),
            table.sort_values("ts_ns", kind="stable", ignore_index=True),
        )
    last = rows.groupby("replica", sort=False).tail(1)  # one sample each: what they counted since they started
    found, looked = float(last["prefix_hits"].sum()), float(last["prefix_queries"].sum())
    if looked <= 0 or not 0 <= found <= looked:
        return None
    return MeasuredPrefix(found / looked, "counters", int(looked), pd.DataFrame(columns=TIME_COLUMNS))


def _requests(tables: Tables) -> MeasuredPrefix | None:
    told = ["prompt_tokens", "cached_tokens"]
    rows = without(tables, frame(tables, "requests", ["stage", "arrival_ns", *told]), told).dropna(subset=told)
    rows = rows[(rows["prompt_tokens"] > 0) & rows["cached_tokens"].between(0, rows["prompt_tokens"])]
    total = int(rows["prompt_tokens"].sum())
    if not total:
        return None
    return MeasuredPrefix(float(rows["cached_tokens"].sum() / total), "requests", total, _binned(rows))


def _binned(rows: pd.DataFrame) -> pd.DataFrame:
    timed = rows.dropna(subset=["arrival_ns"])
    if len(timed) < 2 or timed["arrival_ns"].nunique() < 2:
        return pd.DataFrame(columns=TIME_COLUMNS)
    at = timed["arrival_ns"].to_numpy(dtype=np.int64)
    start, stop = int(at.min()), int(at.max())
    bins = min(BINS, max(len(timed) // 5, 1))
    which = np.minimum((at - start) * bins // max(stop - start, 1), bins - 1)
    tokens = np.bincount(which, timed["prompt_tokens"].to_numpy(dtype=float), bins)
    found = np.bincount(which, timed["cached_tokens"].to_numpy(dtype=float), bins)
    middle = start + ((np.arange(bins) + 0.5) * (stop - start) / bins).astype(np.int64)
    some = tokens > 0
    return pd.DataFrame({"ts_ns": middle[some], "hit_rate": found[some] / tokens[some], "tokens": tokens[some]})


def _printed(tables: Tables) -> MeasuredPrefix | None:
    if not tables.rows("engine"):
        return None
    found = engine_samples(tables)
    hit_rate = overall(found.rows)
    if hit_rate is None:
        return None
    rows = _engine(tables, ["prefix_hit_rate"])
    rows = rows[rows["prefix_hit_rate"].between(0, 1)]
    table = pd.DataFrame({"ts_ns": rows["ts_ns"], "hit_rate": rows["prefix_hit_rate"].astype(float), "tokens": np.nan})
    return MeasuredPrefix(hit_rate, "printed", None, table.sort_values("ts_ns", kind="stable", ignore_index=True))
