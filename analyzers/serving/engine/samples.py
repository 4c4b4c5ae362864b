"""What an engine said of itself, brought to one form: samples of each server, each with the time it stands for.

A sample of a log or of /metrics stands for the time since the sample before it (the first: for a usual gap); after a
gap of more than five usual ones for one usual gap, the rest is not known. A rate that only some lines of a log print
holds since the line before that prints it. A line of a log after a silence that began
with an idle engine stands for one usual gap, and the silence is idle (see `_silent`). An iteration stands for the time
until the next one begins; if that is over 50 ms after its end, the pause is a sample of its own: nothing to do, or a
standstill.
Counters grow; a sample's tokens are what they grew by, with restarts counted from zero (see `counters`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.serving.own_clocks import CALENDAR_NS
from analyzers.serving.read_tokens import read_tokens, whole_prompts
from analyzers.serving.recorded import recorded
from analyzers.serving.sampling import LONG_GAP, gaps_of
from analyzers.serving.server_start import refuse_of_a_server
from analyzers.serving.servers import samples_of_servers
from analyzers.serving.triton import triton
from errors import QuestionError
from runs.tables import Tables, frame

LEVELS = ("running", "waiting", "kv_usage")
AMOUNTS = (
    "prompt",
    "output",
    "preempted",
    "hits",
    "queries",
    "drafts",
    "drafted",
    "accepted",
    "padded",
    "recomputed",
)
SAMPLES = ["t_s", "dt_s", "told_s", "replica", "pause", *LEVELS, *AMOUNTS, "hit_rate", "acceptance_length"]
IDLE_S = 0.05
COUNTED = {
    "output": "output_tokens",
    "preempted": "preemptions",
    "hits": "prefix_hits",
    "queries": "prefix_queries",
    "drafts": "drafts",
    "drafted": "drafted",
    "accepted": "accepted",
}  # amounts, and the counters of `engine` that tell them
PASSED = {
    "prompt": "prefill_tokens",
    "output": "decode_tokens",
    "preempted": "preempted",
    "drafted": "drafted_tokens",
    "accepted": "accepted_tokens",
    "padded": "padded_tokens",
    "recomputed": "recomputed_tokens",
}  # amounts, and the columns of `iterations` that tell them
ITERATED = [*LEVELS, *PASSED.values(), "prefill_requests", "decode_requests"]
OF_TRITON = (
    "Ask serving for what it counts; the gauges of its TensorRT-LLM backend (nv_trt_llm_*), or another engine's "
    "/metrics, would tell."
)
ADVICE = "Add an engine's log or scrapes of its /metrics, or the table `iterations` as Parquet."


@dataclass(frozen=True)
class Samples:
    """`rows`: columns SAMPLES, by replica in order of time; float, NaN where unknown.

    t_s: the end of the time a sample stands for, since the first began (in samples, where `timed` is False); dt_s:
    that time; told_s: the time up to t_s that its amounts (tokens, preemptions, drafts) are of; pause: no iteration
    ran, or a log was silent. `replica`: see `servers`. `origin_ns`: time of day of t_s = 0, None where no input gives
    one. `source`: engine or iterations.
    """

    rows: pd.DataFrame
    source: str
    timed: bool
    origin_ns: int | None
    notes: tuple[str, ...]


def samples(tables: Tables, facts: Facts) -> tuple[Samples, Samples | None]:
    """(the finest samples there are, the coarser of `engine` beside them if any). Raises QuestionError without any."""
    held = [name for name in ("iterations", "engine") if tables.rows(name)]
    if not held:
        if triton(tables) is not None:
            raise QuestionError(
                "Triton counts requests and their time, and tells nothing of what ran at a time",
                advice=OF_TRITON,
            )
        refuse_of_a_server(tables, facts, "its engine tells nothing of requests")
        raise QuestionError("this run has no samples of a serving engine", advice=ADVICE)
    coarse = engine_samples(tables, facts) if "engine" in held else None
    if "iterations" not in held:
        assert coarse is not None
        return coarse, None
    return _iterations(tables, coarse), coarse


def _floats(rows: pd.DataFrame, column: str) -> np.ndarray:
    return rows[column].to_numpy(dtype=float, na_value=np.nan)


def engine_samples(tables: Tables, facts: Facts | None = None) -> Samples:
    """Of the table `engine` alone, which has rows."""
    rows, notes = samples_of_servers(tables)
    timed = bool(rows["ts_ns"].notna().all())
    rows = rows.sort_values(["replica", "ts_ns", "order"] if timed else ["replica", "order"], kind="stable")
    rows = rows.reset_index(drop=True)
    at = rows["ts_ns"].to_numpy(dtype=np.int64) if timed else rows.groupby("replica").cumcount().to_numpy(np.int64)
    origin = int(at.min())
    if not timed:
        notes.append("The samples carry no times: each counts alike, and they are drawn in the order of the log.")
    rows["t_s"] = (at - origin) / (1e9 if timed else 1.0)
    each = [mine.reset_index(drop=True) for _, mine in rows.groupby("replica", sort=False)]
    parts = [_of_server(mine, notes) for mine in each]
    notes += dict.fromkeys(said for mine in each if (said := whole_prompts(mine, facts)) is not None)
    found = pd.concat(parts, ignore_index=True)
    _known_cache(found, notes)
    since_start = facts is not None and fact(facts, "engine_times") == "since start"
    if since_start and timed and origin >= CALENDAR_NS:  # unless the year was found
        since_start = not (frame(tables, "engine", ["ts_ns"])["ts_ns"] < CALENDAR_NS).any()
    return _samples(found, "engine", timed, None if since_start or not timed else origin, notes)


def _of_server(rows: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """The samples of one server, in order of time: columns SAMPLES."""
    t = rows["t_s"].to_numpy()
    sampled = gaps_of(rows, t)
    gap, silent, far, usual = sampled.gap, sampled.silent, sampled.far, sampled.usual or 1.0
    if far.any():
        notes.append(
            f"{far.sum():,} {'gap' if far.sum() == 1 else 'gaps'} between samples of more than {LONG_GAP:g} "
            f"usual ones ({usual:.3g} s): what happened then is not known."
        )
    dt = sampled.lasts
    found = pd.DataFrame({"t_s": t, "dt_s": dt, "replica": rows["replica"].to_numpy()})
    for level in LEVELS:
        found[level] = _floats(rows, level)
    for name, column in COUNTED.items():
        found[name] = _floats(rows, f"{column}_grown")
    found["prompt"] = read_tokens(rows)
    # counters of tokens tell what they grew by in a long gap too; a rate printed after it is of no such time
    counted = far & found[["prompt", "output"]].notna().any(axis=1).to_numpy()
    found["told_s"] = np.where(counted, gap, dt)
    for name, column in (("prompt", "prompt_tokens_per_s"), ("output", "output_tokens_per_s")):
        rate = np.where(counted, np.nan, _printed(rows, column, far | silent))
        found[name] = found[name].where(found[name].notna(), rate * dt)
    found["padded"] = found["recomputed"] = np.nan
    found["hit_rate"] = _floats(rows, "prefix_hit_rate")
    found["acceptance_length"] = _floats(rows, "acceptance_length")
    return _with_silences(found, silent, gap - dt) if silent.any() else found


def _printed(rows: pd.DataFrame, column: str, after_gap: np.ndarray) -> np.ndarray:
    """A rate that a log prints, for the lines before it too that print none: it is of the time since it was last
    printed, with whatever lines lie between (SGLang's batches of prompts), but for what lies before a gap."""
    rate = pd.Series(_floats(rows, column))
    log = rows["log"].to_numpy(dtype=bool)
    return rate.fillna(rate[log].groupby(np.cumsum(after_gap)[log]).bfill()).to_numpy()


def _with_silences(found: pd.DataFrame, silent: np.ndarray, silence: np.ndarray) -> pd.DataFrame:
    """With a sample for each silence: nothing ran, and the cache was as the line before left it."""
    rest = found[silent].copy()
    before = found.shift()[silent]
    rest["t_s"] = found["t_s"][silent] - found["dt_s"][silent]
    rest["dt_s"] = rest["told_s"] = silence[silent]
    rest[[c for c in AMOUNTS if found[c].notna().any()]] = 0.0
    rest["running"] = rest["waiting"] = 0.0
    rest["kv_usage"] = before["kv_usage"]
    rest["hit_rate"] = rest["acceptance_length"] = np.nan
    both = pd.concat([found.assign(pause=False), rest.assign(pause=True)], ignore_index=True)
    return both.sort_values("t_s", kind="stable", ignore_index=True)


def _known_cache(found: pd.DataFrame, notes: list[str]) -> None:
    """A column of zeros while requests run is no measurement of the cache."""
    usage = found["kv_usage"]
    if usage.notna().any() and not (usage > 0).any() and (found["running"] > 0).any():
        found["kv_usage"] = np.nan
        notes.append("KV cache usage is 0 throughout, though requests ran: it was not measured.")


def _iterations(tables: Tables, coarse: Samples | None) -> Samples:
    rows, notes = recorded(tables, ITERATED)
    timed = bool(rows["start_ns"].notna().all() and rows["dur_ns"].notna().all())
    rows = rows.sort_values(["replica", "start_ns", "order"] if timed else ["replica", "order"], kind="stable")
    rows = rows.reset_index(drop=True)
    names = rows["replica"].to_numpy()
    dur = _floats(rows, "dur_ns") / 1e9
    if timed:
        origin = int(rows["start_ns"].min())
        start = (rows["start_ns"].to_numpy(dtype=np.int64) - origin) / 1e9
    else:
        origin = None
        dur = np.where(np.isnan(dur), np.nanmedian(dur) if (~np.isnan(dur)).any() else 1.0, dur)
        start = rows.assign(d=dur).groupby("replica")["d"].cumsum().to_numpy() - dur
        notes.append("Iterations carry no times of day: they are put one after the other, and pauses are not known.")
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = names[1:] != names[:-1]
    following = np.where(last, start + dur, np.roll(start, -1))
    pause = following - start - dur
    idle = (pause > IDLE_S) & ~last
    dt = np.where(idle | last, dur, np.maximum(following - start, 0))
    found = pd.DataFrame({"t_s": start + dt, "dt_s": dt, "replica": names})
    for level in LEVELS:
        found[level] = _floats(rows, level)
    # the requests of a pass are those that run
    passed = rows[["prefill_requests", "decode_requests"]].astype("Float64").sum(axis=1, min_count=1)
    found["running"] = found["running"].fillna(pd.Series(passed.to_numpy(dtype=float, na_value=np.nan)))
    if coarse is not None and timed and not found["waiting"].notna().any():
        found["waiting"] = _waiting_then(found, origin, coarse)
    _known_cache(found, notes)
    for name, column in PASSED.items():
        found[name] = _floats(rows, column)
    for name in ("hits", "queries", "drafts", "hit_rate", "acceptance_length"):
        found[name] = np.nan
    if idle.any():
        found = _with_pauses(found, idle, start + dur, pause)
        notes.append(
            f"Between iterations more than {IDLE_S * 1e3:g} ms apart the engine had no requests, unless some "
            "were left waiting: then it stood still, and the cause is not known."
        )
    return _samples(found, "iterations", timed, origin, notes)


def _waiting_then(found: pd.DataFrame, origin_ns: int | None, coarse: Samples) -> np.ndarray:
    """How many requests waited by the coarser sample of the same server in whose time an iteration ended."""
    waiting = np.full(len(found), np.nan)
    if origin_ns is None or coarse.origin_ns is None:
        return waiting
    shift = (coarse.origin_ns - origin_ns) / 1e9
    for name, mine in coarse.rows.groupby("replica", sort=False):
        at = np.flatnonzero(found["replica"].to_numpy() == name)
        ends = mine["t_s"].to_numpy() + shift
        t = found["t_s"].to_numpy()[at]
        place = np.searchsorted(ends, t)
        within = place < len(ends)
        at, t, place = at[within], t[within], place[within]
        within = t > ends[place] - mine["dt_s"].to_numpy()[place]
        waiting[at[within]] = mine["waiting"].to_numpy()[place[within]]
    return waiting


def _samples(found: pd.DataFrame, source: str, timed: bool, origin_ns: int | None, notes: list[str]) -> Samples:
    """Times counted from the start of the time that the first sample stands for."""
    begin = float((found["t_s"] - found["dt_s"]).min())
    found["t_s"] -= begin
    if "told_s" not in found:
        found["told_s"] = found["dt_s"]
    found["pause"] = found["pause"].fillna(False).astype(bool) if "pause" in found else False
    origin_ns = None if origin_ns is None else origin_ns + round(begin * 1e9)
    return Samples(found[SAMPLES], source, timed, origin_ns, tuple(notes))


def _with_pauses(found: pd.DataFrame, idle: np.ndarray, end: np.ndarray, pause: np.ndarray) -> pd.DataFrame:
    rest = found[idle].copy()
    rest["t_s"], rest["dt_s"] = (end + pause)[idle], pause[idle]
    rest[[c for c in AMOUNTS if found[c].notna().any()]] = 0.0
    held = rest["waiting"] > 0  # they still wait: the engine stood still, and nothing says why
    rest["running"] = np.where(held, np.nan, 0.0)
    rest["waiting"] = np.where(held | rest["waiting"].isna(), rest["waiting"], 0.0)
    rest["kv_usage"] = np.nan
    both = pd.concat([found.assign(pause=False), rest.assign(pause=True)], ignore_index=True)
    return both.sort_values(["replica", "t_s"], kind="stable", ignore_index=True)
