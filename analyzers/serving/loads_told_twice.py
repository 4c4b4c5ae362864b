"""Loads of which two inputs tell under two names: a tool's result, and what it printed of the same load, or a copy of
the result in a file of several.

They are one where they count the same requests and tokens, took as long, and every statistic that both print is the
same, as far as printed digits go; where both hold single requests, these are the same too. Loads of one input are never
one.

Requests of no load are one where two inputs tell of one id that arrived in the same microsecond, as a trace of spans
and its copy from another store do; and they are those of a load where a server tells of what a tool sent.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from errors import format as fmt
from runs.tables import Tables, frame

DIGITS = 2  # of seconds, and of milliseconds, that tools print
ROUNDED = 0.501 * 10**-DIGITS  # what rounding takes away at most
SENT_NS = 2 * 10**9  # that a request takes to its server, and that two clocks that are kept are apart
SAME_SHARE, LEAST = 0.9, 5  # of the requests of a load, of so many at least, that a server tells of too
_COUNTS = ["completed", "input_tokens", "output_tokens"]
_OF_A_REQUEST = ["e2e_ns", "ttft_ns", "prompt_tokens", "output_tokens"]
_MAY_MISS = ["failed", "requested_rate_per_s", "max_concurrency"]  # what one of the two may not tell


def told_twice(tables: Tables) -> dict[str, str]:
    """{name of a load: name of the load that it is}, of those that another input tells with more digits or requests."""
    rows = frame(tables, "stages").dropna(subset=["stage", "source", "duration_s", *_COUNTS])
    rows = rows[(rows["completed"] > 0).to_numpy(dtype=bool)].sort_values(["source", "order"], kind="stable")
    rows = rows.astype({"stage": str, "source": str}).drop_duplicates("stage")
    alike = rows[rows.duplicated(_COUNTS, keep=False)]
    if alike["source"].nunique() < 2:
        return {}
    stats = frame(tables, "stage_stats").astype({"stage": str, "metric": str, "statistic": str})
    kept = set(frame(tables, "requests", ["stage"])["stage"].dropna().astype(str).unique())
    groups = alike.groupby(_COUNTS, sort=False)
    return {other: one for _, mine in groups for other, one in _pairs(mine, stats, kept, tables)}


def without(tables: Tables, rows: pd.DataFrame, telling: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of `requests`, all of them, without those of loads, or single ones, that another input tells too. Column:
    stage. `telling`: columns that are asked about; of a load whose tool does not tell them the server's rows stay."""
    twice = rows["stage"].astype(object).isin(told_twice(tables)).to_numpy(dtype=bool)
    again = requests_told_twice(tables, telling)
    twice = twice | again if len(again) == len(twice) else twice
    return rows[~twice] if twice.any() else rows


def requests_told_twice(tables: Tables, telling: Sequence[str] = ()) -> np.ndarray:
    """Which rows of `requests`, of no load, are of a request of which another input tells; empty where none is.
    `telling`: see `without`."""
    none = np.zeros(0, dtype=bool)
    if len(pc.unique(tables.arrow("requests", ["source"])["source"])) < 2:
        return none
    columns = ["id", "arrival_ns", "output_tokens", "source", "stage"]
    rows = frame(tables, "requests", list(dict.fromkeys((*columns, *telling))))
    rows = rows.astype({"source": str, "stage": object})
    timed = rows["arrival_ns"].notna().to_numpy(dtype=bool)
    alone = timed & rows["stage"].isna().to_numpy(dtype=bool)
    out = np.zeros(len(rows), dtype=bool)
    told = rows[alone & rows["id"].notna().to_numpy(dtype=bool)]
    told = told.assign(us=told["arrival_ns"].astype("int64") // 1000)
    first = told.groupby(["id", "us"], sort=False)["source"].transform("first")
    out[told.index[(first != told["source"]).to_numpy(dtype=bool)]] = True
    for _, load in rows[timed & ~alone].groupby("stage", sort=False):
        if any(load[column].isna().all() for column in telling):
            continue
        out[_served_too(load, rows[alone & ~out])["row_served"]] = True
    return out if out.any() else none


def with_servers_queue(tables: Tables, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `requests`, all of them. Where a server tells how long the requests of a load waited before they were
    scheduled, which no tool sees, those of the load are scheduled as long after their arrival, if that is before their
    first token. Columns: arrival_ns, scheduled_ns, first_token_ns, ttft_ns, output_tokens, source, stage."""
    timed, waits = rows["arrival_ns"].notna(), rows["scheduled_ns"].notna() & rows["arrival_ns"].notna()
    of_load = rows["stage"].notna()
    if not (waits & ~of_load).any() or not (timed & of_load & ~waits).any():
        return rows
    told = rows.astype({"source": str, "stage": object})
    alone, out = told[waits & ~of_load], rows["scheduled_ns"].astype("Int64")
    for _, load in told[timed & of_load].groupby("stage", sort=False):
        pairs = _served_too(load, alone)
        here, there = pairs["row"].to_numpy(), pairs["row_served"].to_numpy()
        waited = pd.Series((rows["scheduled_ns"] - rows["arrival_ns"]).loc[there].to_numpy(), here)
        mine = rows.loc[here]
        first = mine["ttft_ns"].fillna(mine["first_token_ns"] - mine["arrival_ns"])
        fits = first.isna() | (waited <= first).fillna(False)
        out.loc[here] = out.loc[here].fillna((mine["arrival_ns"] + waited).where(fits))
    return rows.assign(scheduled_ns=out)


def _served_too(load: pd.DataFrame, alone: pd.DataFrame) -> pd.DataFrame:
    """Of requests as a server tells them (`alone`), those that a tool sent in a load: row of the load, row_served.
    Nearly each of the load has one that came within SENT_NS with as many tokens of output, the last with the last, as
    servers are warmed up before."""
    none = pd.DataFrame({"row": np.zeros(0, np.int64), "row_served": np.zeros(0, np.int64)})
    begun = load["arrival_ns"].astype("int64")
    near = alone["arrival_ns"].between(begun.min() - SENT_NS, begun.max() + SENT_NS).to_numpy(dtype=bool)
    near &= ~alone["source"].isin(set(load["source"])).to_numpy(dtype=bool)
    if len(load) < LEAST or near.sum() < SAME_SHARE * len(load):
        return none

    def ranked(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows[["arrival_ns", "output_tokens"]].sort_values("arrival_ns", kind="stable")
        tokens = rows["output_tokens"].fillna(0).astype("int64")
        return rows.assign(tokens=tokens, row=rows.index, rank=rows.groupby(tokens).cumcount(ascending=False))

    both = ranked(load).merge(ranked(alone[near]), on=["tokens", "rank"], suffixes=("", "_served"))
    late = (both["arrival_ns_served"] - both["arrival_ns"]).astype("int64").abs() <= SENT_NS
    if late.sum() < SAME_SHARE * len(load):
        return none
    return both.loc[late.to_numpy(dtype=bool), ["row", "row_served"]].astype("int64")


def sentences(tables: Tables) -> list[str]:
    """What must be said of them."""
    said = [f"{other} tells of the load {one} too, which counts once." for other, one in told_twice(tables).items()]
    if count := int(requests_told_twice(tables).sum()):
        one = "request is told by two inputs and counts once"
        many = "requests are told by two inputs and count once"
        said.append(f"{fmt.count(count, one, many)}.")
    return said


def _pairs(rows: pd.DataFrame, stats: pd.DataFrame, kept: set[str], tables: Tables) -> Iterator[tuple[str, str]]:
    """(a load, the same load in another input, which has requests where either has) among loads of equal counts."""
    best = rows.assign(single=rows["stage"].isin(kept), exact=~_is_rounded(rows["duration_s"]))
    best = best.sort_values(["single", "exact"], ascending=False, kind="stable").to_dict("records")
    taken: list[dict] = []
    for load in best:
        alike = (one for one in taken if _one(one, load, stats))
        same = next((one for one in alike if not load["single"] or _same_requests(one, load, tables)), None)
        if same is None:
            taken.append(load)
        else:
            yield str(load["stage"]), str(same["stage"])


def _is_rounded(seconds: pd.Series) -> pd.Series:
    return seconds == seconds.round(DIGITS)


def _one(a: dict, b: dict, stats: pd.DataFrame) -> bool:
    """Whether two loads of equal counts are one."""
    if a["source"] == b["source"] or any(_differ(a[c], b[c]) for c in _MAY_MISS):
        return False
    if abs(a["duration_s"] - b["duration_s"]) > (0 if a["exact"] and b["exact"] else ROUNDED):
        return False
    of_a, of_b = (stats[stats["stage"] == x["stage"]].drop_duplicates(["metric", "statistic"]) for x in (a, b))
    both = of_a.merge(of_b, on=["metric", "statistic"])
    times = both[both["metric"].isin(("ttft", "tpot", "itl", "e2e")).to_numpy(dtype=bool)]
    return bool(len(times)) and bool(((times["value_x"] - times["value_y"]).abs() <= ROUNDED / 1e3).all())


def _same_requests(a: dict, b: dict, tables: Tables) -> bool:
    """Whether two loads that keep single requests keep the same ones, in whatever order."""
    rows = frame(tables, "requests", ["stage", *_OF_A_REQUEST])
    of_a, of_b = (rows[(rows["stage"] == x["stage"]).to_numpy(dtype=bool)][_OF_A_REQUEST] for x in (a, b))
    if len(of_a) != len(of_b) or not of_a["e2e_ns"].notna().any():
        return False
    told = [x.astype("Int64").fillna(-1).to_numpy(dtype=np.int64) for x in (of_a, of_b)]
    return all(np.array_equal(*(x[np.lexsort(x.T)][:, n] for x in told)) for n in range(len(_OF_A_REQUEST)))


def _differ(a: float | None, b: float | None) -> bool:
    return not pd.isna(a) and not pd.isna(b) and not np.isclose(float(a), float(b), atol=ROUNDED)
