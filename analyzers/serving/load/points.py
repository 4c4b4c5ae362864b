"""One row a load: what was asked of the server, what it answered, and at what latency.

    answered per second   requests answered / duration of the load (first request to last answer)
    offered per second    what the tool was told to send; where it was told nothing, the arrivals by their span
    in flight             answered per second x mean end-to-end latency (Little's law)
    keeping up            answered per second / what a server would show that kept up: sent / (sent / offered +
                          latency of the lightest load), since the last answers come after the last request

Latencies are recomputed where a load has single requests, else as its tool printed them.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from analyzers.serving.loads import AGREES, duration_of, loads, not_answered, printed, stage_names
from analyzers.serving.loads_told_twice import sentences
from analyzers.serving.served import Served, has_requests, sampled, served, summary
from errors import QuestionError
from runs.tables import Tables

METRICS = ("ttft", "tpot", "e2e")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
ALONE = "all requests"  # the name of the one load of a run whose requests name none
UNNAMED = "requests of no named load"  # beside others that name theirs: a load of its own
AT_ONCE = 0.01  # arrivals within this share of a load's duration came all at once
ADVICE = (
    "Add the result of a load test (`vllm bench serve --save-result`, inference-perf, guidellm, AIPerf, ...), or "
    "one record for each request; a curve needs several loads."
)
_NUMBERS = (
    "requested_rate_per_s",
    "max_concurrency",
    "completed",
    "failed",
    "duration_s",
    "input_tokens",
    "output_tokens",
    "request_rate_per_s",
    "goodput_per_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "peak_output_tokens_per_s",
    "peak_concurrency",
)


def points(tables: Tables) -> tuple[pd.DataFrame, dict[str, Served], list[str]]:
    """(one row a load, its single requests by load where there are any, sentences).

    Raises QuestionError where the run has neither loads nor served requests.

    Columns: stage, `basis` (requests: recomputed; printed), those of the table `stages` that are numbers, <metric>_
    <statistic>_s of METRICS and STATISTICS, offered_per_s, arrival_rate_per_s, concurrency_printed, acceptance_length,
    to_send, failed_load (nothing answered), in_flight, keeping_up. Numbers are float, NaN where unknown.
    """
    names = stage_names(tables)
    single = served(tables) if has_requests(tables) or not names else None
    if single is None and not len(loads(tables)):
        raise QuestionError("this run has no load test and no served requests", advice=ADVICE)
    if single is not None and names and not (stages := single.rows["stage"]).isna().all() and stages.isna().any():
        named = stages.astype(object).where(stages.notna(), UNNAMED)
        single, names = replace(single, rows=single.rows.assign(stage=named)), (*names, UNNAMED)
    names = names or (ALONE,)
    summed = loads(tables)
    summed = summed.assign(stage=summed["stage"].astype(str)).drop_duplicates("stage").set_index("stage")
    said = printed(tables)
    notes = [*sentences(tables), *(_at_once(single) if single else ()), *(single.notes if single else ())]
    rows, found = [], {}
    for name in names:
        row = {"stage": name, "basis": "printed", **_stated(summed, said, name)}
        mine = _requests(single, name, len(names), notes)
        if mine is not None and (kept := sampled(mine, summed["completed"].get(name))) is not None:
            _fill(row, mine, kept, notes)
        elif mine is not None:
            found[name] = mine
            _recompute(row, mine)
        rows.append(row)
    table = pd.DataFrame(rows)
    _complete(table, notes)
    notes += [not_answered(*row) for row in table.loc[untold(table), ["stage", "to_send", "completed"]].to_numpy()]
    return table, found, notes


def _at_once(single: Served) -> list[str]:
    """What must be said of loads that were sent at the same time, as by several clients of one server."""
    spans = single.rows.groupby(single.rows["stage"].astype(str))["arrival_ns"].agg(["min", "max"]).dropna()
    spans = spans.sort_values("min")
    reached = spans["max"].cummax().shift()
    late = spans.index[(spans["min"] < reached).fillna(False)]
    if not len(late):
        return []
    return [f"Sent while another load was: {', '.join(late[:3])}. What the server bore then is their sum."]


def untold(table: pd.DataFrame) -> np.ndarray:
    """Which loads answered fewer requests than were to be sent, and do not tell how many failed."""
    return ((table["to_send"] > table["completed"]) & table["failed"].isna()).to_numpy(dtype=bool)


def _stated(summed: pd.DataFrame, said: pd.DataFrame, name: str) -> dict[str, float | bool]:
    known: Mapping = summed.loc[name] if name in summed.index else {}

    def number(key: str) -> float:
        value = known.get(key)
        return np.nan if value is None or pd.isna(value) else float(value)

    def statistic(metric: str, which: str) -> float:
        there = name in said.index and (metric, which) in said.columns
        return float(said.loc[name, (metric, which)]) if there else np.nan

    row = {key: number(key) for key in _NUMBERS}
    row |= {f"{m}_{s}_s": statistic(m, s) for m in METRICS for s in STATISTICS}
    row["arrival_rate_per_s"] = np.nan
    row["concurrency_printed"] = statistic("concurrency", "mean")
    row["acceptance_length"] = statistic("acceptance_length", "mean")
    row["to_send"] = statistic("to_send", "total")
    row["failed_load"] = str(known.get("outcome")) == "failed"
    return row


def _requests(single: Served | None, name: str, loads_there: int, notes: list[str]) -> Served | None:
    """The requests of a load: those that name it, or all where it is the only one and none names any."""
    if single is None:
        return None
    stages = single.rows["stage"]
    if stages.isna().all():
        if loads_there == 1:
            return single
        sentence = "Single requests do not say which load they belong to: only what the tool summed up is used."
        if sentence not in notes:
            notes.append(sentence)
        return None
    return single.for_stage(name) if (stages.astype(str) == name).any() else None


def spans(mine: Served) -> pd.DataFrame:
    """Seconds since the first arrival of every request whose times count: start, first (token), end; and tokens. One
    that the end of the load cut off ends there."""
    rows = pd.concat([mine.timed, _cut_off(mine)]) if mine.rows["cut_off"].any() else mine.timed
    rows = rows[rows["arrival_ns"].notna() & rows["e2e_s"].notna()].sort_index()
    start = (rows["arrival_ns"] - mine.origin_ns).to_numpy(dtype=float) / 1e9 if len(rows) else np.zeros(0)
    ttft = rows["ttft_s"].to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "position": rows.index.to_numpy(),
            "start": start,
            "first": start + ttft,
            "end": start + rows["e2e_s"].to_numpy(dtype=float),
            "tokens": rows["output_tokens"].to_numpy(dtype=float, na_value=np.nan),
        }
    )


def _cut_off(mine: Served) -> pd.DataFrame:
    """The rows that the end of a load cut off, with how long they ran; one that tells no tokens has made none."""
    rows = mine.rows[mine.rows["cut_off"]]
    ran, first = ((rows[c] - rows["arrival_ns"]).astype("Float64") / 1e9 for c in ("last_token_ns", "first_token_ns"))
    return rows.assign(e2e_s=ran, ttft_s=first, output_tokens=rows["output_tokens"].fillna(0)).astype(
        {"e2e_s": float, "ttft_s": float}
    )


def _fill(row: dict, mine: Served, kept: int, notes: list[str]) -> None:
    """Latencies that the tool did not print, from the requests that are kept of those that it counts."""
    filled = []
    for metric in METRICS:
        stated = summary(mine.timed[f"{metric}_s"])
        if stated and all(np.isnan(row[f"{metric}_{s}_s"]) for s in STATISTICS):
            row |= {f"{metric}_{s}_s": stated[s] for s in STATISTICS}
            filled.append(metric.upper())
    rest = f"; {', '.join(filled)} are those of the requests kept" if filled else ""
    notes.append(
        f"{row['stage']}: {kept:,} completed requests are kept of {row['completed']:,.0f}: its numbers are "
        f"the tool's own{rest}."
    )


def _recompute(row: dict, mine: Served) -> None:
    timed = mine.timed
    row["basis"] = "requests"
    row["failed_load"] = not mine.rows["completed"].any()
    row["completed"] = float(mine.rows["completed"].sum())
    row["failed"] = float(mine.rows["failed"].sum())
    for metric in METRICS:
        stated = summary(timed[f"{metric}_s"])
        if stated:
            row |= {f"{metric}_{s}_s": stated[s] for s in STATISTICS}
    done = mine.rows[mine.rows["completed"]]
    for column, key in (("prompt_tokens", "input_tokens"), ("output_tokens", "output_tokens")):
        if done[column].notna().all() and len(done):
            row[key] = float(done[column].sum())
    flow = spans(mine)
    if not len(flow):
        return
    said = None if np.isnan(row["duration_s"]) else row["duration_s"]  # its clock also ran before the first request
    row["duration_s"] = duration_of(said, float(flow["end"].max()))
    arrivals = mine.rows["arrival_ns"].dropna().to_numpy(dtype=np.int64)
    span = (arrivals.max() - arrivals.min()) / 1e9
    if len(arrivals) > 1:
        row["arrival_rate_per_s"] = (len(arrivals) - 1) / span if span > AT_ONCE * row["duration_s"] else np.inf


def _complete(table: pd.DataFrame, notes: list[str]) -> None:
    """What follows from the columns that are there."""
    lost = table["failed_load"].to_numpy(dtype=bool)
    latencies = [f"{m}_{s}_s" for m in METRICS for s in STATISTICS]
    table.loc[lost, latencies] = np.nan
    if lost.any():
        names = ", ".join(table.loc[lost, "stage"].head(3))
        notes.append(f"{lost.sum()} of {len(table)} loads answered no request ({names}): they have no latency.")
    duration = table["duration_s"].where(table["duration_s"] > 0)
    for key, amount in (
        ("request_rate_per_s", table["completed"]),
        ("output_tokens_per_s", table["output_tokens"]),
        ("total_tokens_per_s", table["input_tokens"] + table["output_tokens"]),
    ):
        computed = amount / duration
        other = (table["basis"] == "printed") & ((computed - table[key]).abs() > AGREES * table[key].abs())
        table[key] = computed.where(computed.notna() & ~other, table[key])
    table["prompt_tokens_mean"] = table["input_tokens"] / table["completed"].where(table["completed"] > 0)
    table["output_tokens_mean"] = table["output_tokens"] / table["completed"].where(table["completed"] > 0)
    _derive_e2e(table, notes)
    finite = np.isfinite(table["requested_rate_per_s"])
    open_loop = table["max_concurrency"].isna()
    table["offered_per_s"] = table["requested_rate_per_s"].where(
        finite, table["arrival_rate_per_s"].where(open_loop, np.nan)
    )
    table["in_flight"] = table["request_rate_per_s"] * table["e2e_mean_s"]
    sent = table["completed"] + table["failed"].fillna(0)
    lightest = table.loc[table["offered_per_s"].idxmin(), "e2e_mean_s"] if table["offered_per_s"].notna().any() else 0.0
    lightest = 0.0 if np.isnan(lightest) else lightest
    ideal = sent / (sent / table["offered_per_s"] + lightest)
    table["keeping_up"] = (table["request_rate_per_s"] / ideal).where(np.isfinite(table["offered_per_s"]))


def _derive_e2e(table: pd.DataFrame, notes: list[str]) -> None:
    """The mean of e2e where only those of its parts are printed: TTFT + (tokens - 1) x TPOT."""
    missing = table["e2e_mean_s"].isna()
    derived = table["ttft_mean_s"] + (table["output_tokens_mean"] - 1).clip(lower=0) * table["tpot_mean_s"]
    table["e2e_mean_s"] = table["e2e_mean_s"].where(~missing, derived)
    if (missing & derived.notna()).any():
        notes.append(
            "Mean end-to-end latency was not printed: it is mean TTFT + (mean output tokens - 1) x mean TPOT, "
            "exact where all answers are equally long."
        )
