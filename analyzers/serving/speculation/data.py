"""What a run tells of speculation, from the most exact source that it has.

counters    drafts, draft tokens and accepted ones, so far (an engine's /metrics); restarts are a fresh start
iterations  draft tokens verified and kept in each pass
requests    draft tokens proposed and accepted for each request
printed     what a load test or a log printed: lengths and shares without counts
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.serving.counters import grown
from analyzers.serving.loads import printed
from analyzers.serving.loads_told_twice import without
from analyzers.serving.recorded import recorded
from analyzers.serving.servers import samples_of_servers
from errors import QuestionError
from runs.tables import Tables, frame

SOURCES = {
    "counters": "the engine's counters of drafts",
    "iterations": "the engine's own record of its passes",
    "requests": "what each request records",
    "load test": "what the load test printed, its loads weighted by their drafts where all print how many",
    "log": "what the engine's log printed: the mean of stretches, each counted alike",
    "asked": "the options alone: nothing here was measured",
}
TIME_COLUMNS = ["ts_ns", "acceptance_rate", "drafted"]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts are None where not told. `rate`: accepted by proposed draft tokens. `length`: tokens of a step, the
    model's own included. `draft`: draft tokens of a draft on average. `positions`: share of drafts accepted at each
    position. `over_time`: ts_ns, acceptance_rate, drafted."""

    source: str
    rate: float | None = None
    drafts: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    length: float | None = None
    draft: float | None = None
    positions: tuple[float, ...] = ()
    over_time: pd.DataFrame | None = None


def observed(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    """The best that the run tells; None where it tells nothing. `draft`: the length of a draft, where known."""
    sources = (_load_test,) if stage else (_counters, _iterations, _log, _requests, _load_test)
    for source in sources:
        found = source(tables, draft, stage)
        if found is not None:
            return found
    return None


def accepted_by_engines(tables: Tables) -> float | None:
    """Accepted by proposed draft tokens, as engines count them; None where none counts."""
    told = (source(tables, None, None) for source in (_counters, _iterations))
    return next((found.rate for found in told if found is not None), None)


def _complete(source: str, draft: int | None, **known) -> Observed:
    """The rest of the quantities, where those known give them: k = drafted / drafts, L = 1 + accepted / drafts."""
    drafts, drafted, accepted = (known.get(n) for n in ("drafts", "drafted", "accepted"))
    positions = tuple(known.get("positions") or ())
    mean = known.get("draft") or (drafted / drafts if drafts and drafted is not None else None) or draft
    mean = mean or (float(len(positions)) if positions else None)
    if drafts is None and drafted is not None and mean:
        drafts = drafted / mean
    rate = known.get("rate")
    if rate is None and drafted and accepted is not None:
        rate = accepted / drafted
    length = known.get("length")
    if length is None and drafts and accepted is not None:
        length = 1 + accepted / drafts
    if length is None and positions:
        length = 1 + sum(positions)
    if length is None and rate is not None and mean:
        length = 1 + rate * mean
    if rate is None and length is not None and mean:
        rate = (length - 1) / mean
    return Observed(
        source=source,
        rate=rate,
        drafts=drafts,
        drafted=drafted,
        accepted=accepted,
        length=length,
        draft=mean,
        positions=positions,
        over_time=known.get("over_time"),
    )


def _engine(tables: Tables) -> pd.DataFrame:
    rows, _ = samples_of_servers(tables)
    return rows


def _total(rows: pd.DataFrame, values: pd.Series, grew: np.ndarray | pd.Series, watched: bool) -> float | None:
    """What a counter grew by, nothing too, where drafts came while engines were `watched`; else what it had counted
    since its engine started."""
    known = np.asarray(grew, dtype=float)
    if watched and not np.isnan(known).all():
        return float(np.nansum(known))
    last = values.groupby(rows["replica"], sort=False).last().dropna()
    return float(last.sum()) if len(last) else None


def _counters(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    rows = _engine(tables)
    rows = rows[rows["drafted"].notna() & rows["accepted"].notna()].reset_index(drop=True)
    if not len(rows) or not rows["drafted"].gt(0).any():
        return None
    watched = bool(np.nansum(rows["drafted_grown"]) > 0)
    drafts, drafted, accepted = (
        _total(rows, rows[c], rows[f"{c}_grown"], watched) for c in ("drafts", "drafted", "accepted")
    )
    if not drafted or accepted > drafted:
        return None
    lists = _matrix(rows["accepted_per_position"])
    positions: tuple[float, ...] = ()
    if lists.shape[1] and drafts:
        each = [pd.Series(values, dtype="Float64") for values in lists.T]
        counted = [_total(rows, values, grown(rows, values), watched) for values in each]
        positions = tuple((n or 0.0) / drafts for n in counted)
    elif (printed_ := _matrix(rows["acceptance_per_position"])).shape[1]:
        weights = np.nan_to_num(rows["drafted_grown"])
        positions = _weighted(printed_, weights if weights.sum() else np.ones(len(rows)))
    grew, kept = (rows[f"{c}_grown"].to_numpy(dtype=float) for c in ("drafted", "accepted"))
    good = (grew > 0) & (kept >= 0) & (kept <= grew)
    time = pd.DataFrame(
        {"ts_ns": rows["ts_ns"][good], "acceptance_rate": kept[good] / grew[good], "drafted": grew[good]}
    )
    return _complete(
        "counters",
        draft,
        drafts=drafts,
        drafted=drafted,
        accepted=accepted,
        positions=positions,
        over_time=time.sort_values("ts_ns", kind="stable", ignore_index=True),
    )


def _matrix(lists: pd.Series) -> np.ndarray:
    """One row a sample, one column a position; NaN where a sample has none."""
    values = [v if isinstance(v, list | np.ndarray) else () for v in lists]
    width = max((len(v) for v in values), default=0)
    result = np.full((len(values), width), np.nan)
    for row, value in zip(result, values, strict=True):
        row[: len(value)] = value
    return result


def _weighted(shares: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
    known = ~np.isnan(shares)
    total = (known * weights[:, None]).sum(axis=0)
    sums = (np.nan_to_num(shares) * weights[:, None]).sum(axis=0)
    return tuple(float(s / t) for s, t in zip(sums, total, strict=True) if t > 0)


def _log(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    rows = _engine(tables)
    rows = rows[rows["acceptance_length"].notna()]
    if not len(rows):
        return None
    shares = _matrix(rows["acceptance_per_position"])
    positions = _weighted(shares, np.ones(len(rows))) if shares.shape[1] else ()
    return _complete("log", draft, length=float(rows["acceptance_length"].mean()), positions=positions)


def _iterations(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    rows, _ = recorded(tables, ["start_ns", "decode_requests", "drafted_tokens", "accepted_tokens"])
    rows = rows[rows["drafted_tokens"].gt(0).fillna(False) & rows["accepted_tokens"].notna()]
    rows = rows[rows["accepted_tokens"].between(0, rows["drafted_tokens"]).fillna(False)]
    if not len(rows):
        return None
    drafted, accepted = float(rows["drafted_tokens"].sum()), float(rows["accepted_tokens"].sum())
    drafts = float(rows["decode_requests"].sum()) if rows["decode_requests"].notna().all() else None
    time = pd.DataFrame(
        {
            "ts_ns": rows["start_ns"],
            "drafted": rows["drafted_tokens"].astype(float),
            "acceptance_rate": (rows["accepted_tokens"] / rows["drafted_tokens"]).astype(float),
        }
    )
    return _complete(
        "iterations",
        draft,
        drafts=drafts or None,
        drafted=drafted,
        accepted=accepted,
        over_time=time[TIME_COLUMNS].sort_values("ts_ns", kind="stable", ignore_index=True),
    )


def _requests(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    told = ["accepted", "drafted"]
    rows = without(tables, frame(tables, "requests", ["stage", *told]), told).dropna(subset=told)
    rows = rows[(rows["drafted"] > 0) & rows["accepted"].between(0, rows["drafted"])]
    if not len(rows):
        return None
    return _complete("requests", draft, drafted=float(rows["drafted"].sum()), accepted=float(rows["accepted"].sum()))


def _load_test(tables: Tables, draft: int | None, stage: str | None) -> Observed | None:
    """Counts are summed over the loads that print them all. Rates, lengths and shares by position are means over the
    loads that print them, weighted by their drafts where all of these print how many they had, else each alike."""
    told = printed(tables)
    if stage is not None and stage not in told.index:
        raise QuestionError(
            f"no load {stage!r} with printed statistics", expected=f"one of {', '.join(map(str, told.index)) or 'none'}"
        )
    rows = told if stage is None else told.loc[[stage]]
    names = {"drafts": "drafts", "drafted": "drafted_tokens", "accepted": "accepted_tokens"}
    counts = pd.DataFrame({k: v for k, metric in names.items() if (v := _printed(rows, metric)) is not None}).dropna()
    known: dict[str, Any] = counts.sum().to_dict() if len(counts) else {}
    drafts = _printed(rows, "drafts")
    for key, metric in (("rate", "acceptance_rate"), ("length", "acceptance_length")):
        if not {"drafts", "accepted"} <= set(known) and (values := _printed(rows, metric)) is not None:
            known[key] = _mean(values, drafts)
    positions = {
        int(c[1].removeprefix("per_position_")): c
        for c in rows.columns
        if c[0] == "acceptance_rate" and c[1].removeprefix("per_position_").isdigit()
    }
    shares = tuple(_mean(rows[positions[n]], drafts) for n in sorted(positions) if rows[positions[n]].notna().any())
    if shares and max(shares) <= 1:
        known["positions"] = shares
    if not {"rate", "length", "positions"} & set(known) and not {"drafted", "accepted"} <= set(known):
        return None
    return _complete("load test", draft, **known)


def _printed(rows: pd.DataFrame, metric: str) -> pd.Series | None:
    """What loads print of a metric, their total before their mean before another statistic; None where none does."""
    columns = [c for c in rows.columns if c[0] == metric and not c[1].startswith("per_position")]
    first = sorted(columns, key=lambda c: ("total", "mean").index(c[1]) if c[1] in ("total", "mean") else 2)[:1]
    return rows[first[0]] if first and rows[first[0]].notna().any() else None


def _mean(values: pd.Series, weights: pd.Series | None) -> float:
    """The mean of what is known, weighted where every value has a weight and some weigh anything."""
    values = values.dropna()
    weights = None if weights is None else weights.reindex(values.index)
    weighted = weights is not None and weights.notna().all() and weights.sum() > 0
    return float(np.average(values, weights=weights if weighted else None))
