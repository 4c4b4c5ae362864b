"""What an engine said of itself, brought to one form: samples of each replica, each with the time it stands for.

A sample of a log or of /metrics stands for the time since the sample before it (the first: for a usual gap); after a
gap of more than five usual ones for one usual gap, the rest is not known. An iteration stands for the time until the
next one begins; if that is over 50 ms after its end, the pause is a sample of its own: nothing to do, or a standstill.
Counters grow; a sample's tokens are what they grew by, with restarts counted from zero (see `counters`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.counters import increments
from errors import QuestionError
from runs.tables import Tables, frame

LEVELS = ("running", "waiting", "kv_usage")
AMOUNTS = (
    "prompt", "output", "preempted", "hits", "queries", "drafts", "drafted", "accepted", "padded", "recomputed",
)  # fmt: skip
SAMPLES = ["t_s", "dt_s", "replica", "pause", *LEVELS, *AMOUNTS, "hit_rate", "acceptance_length"]
LONG_GAP = 5.0  # usual gaps
IDLE_S = 0.05
ONE = "engine"  # a replica without a name
ADVICE = "Add an engine's log or scrapes of its /metrics, or the table `iterations` as Parquet."


@dataclass(frozen=True)
class Samples:
    """`rows`: columns SAMPLES, by replica in order of time; float, NaN where unknown.

    t_s: the end of the time a sample stands for, since the first began (in samples, where `timed` is False); dt_s:
    that time; pause: no iteration ran. Amounts are of that time: tokens,
    preemptions, drafts. `origin_ns`: time of day of t_s = 0, None where no input gives one. `source`: engine or
    iterations.
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
        raise QuestionError("this run has no samples of a serving engine", advice=ADVICE)
    found = [_iterations(tables) if name == "iterations" else _engine(tables, facts) for name in held]
    return found[0], found[1] if len(found) > 1 else None


def _names(rows: pd.DataFrame) -> np.ndarray:
    return rows["replica"].astype("string").fillna(ONE).to_numpy(dtype=object)


def _floats(rows: pd.DataFrame, column: str) -> np.ndarray:
    return rows[column].to_numpy(dtype=float, na_value=np.nan)


def _engine(tables: Tables, facts: Facts) -> Samples:
    rows = frame(tables, "engine")
    rows = rows.assign(replica=_names(rows))
    timed = bool(rows["ts_ns"].notna().all())
    rows = rows.sort_values(["replica", "ts_ns", "order"] if timed else ["replica", "order"], kind="stable")
    rows = rows.reset_index(drop=True)
    notes = []
    at = rows["ts_ns"].to_numpy(dtype=np.int64) if timed else rows.groupby("replica").cumcount().to_numpy(np.int64)
    origin = int(at.min())
    t = (at - origin) / (1e9 if timed else 1.0)
    new = np.ones(len(rows), dtype=bool)
    new[1:] = rows["replica"].to_numpy()[1:] != rows["replica"].to_numpy()[:-1]
    gap = np.diff(t, prepend=np.nan)
    gap[new] = np.nan
    if not timed:
        notes.append("The samples carry no times: each counts alike, and they are drawn in the order of the log.")
    usual = float(np.nanmedian(gap[gap > 0])) if (gap > 0).any() else 1.0
    far = gap > LONG_GAP * usual
    if far.any():
        notes.append(f"{far.sum():,} gaps between samples are longer than {LONG_GAP:g} usual ones "
                     f"({usual:.3g} s): what happened in them is not known.")  # fmt: skip
    dt = np.where(new | far, usual, gap)
    found = pd.DataFrame({"t_s": t, "dt_s": dt, "replica": rows["replica"].to_numpy()})
    for level in LEVELS:
        found[level] = _floats(rows, level)
    _known_cache(found, notes)
    counted = {
        "prompt": "prompt_tokens", "output": "output_tokens", "preempted": "preemptions", "hits": "prefix_hits",
        "queries": "prefix_queries", "drafts": "drafts", "drafted": "drafted", "accepted": "accepted",
    }  # fmt: skip
    for name, column in counted.items():
        values = _floats(rows, column)
        parts = [increments(values[mine]) for mine in np.split(np.arange(len(rows)), np.flatnonzero(new)[1:])]
        found[name] = np.concatenate(parts)
    for name, column in (("prompt", "prompt_tokens_per_s"), ("output", "output_tokens_per_s")):
        found[name] = found[name].where(found[name].notna(), _floats(rows, column) * dt)
    found["padded"] = found["recomputed"] = np.nan
    found["hit_rate"] = _floats(rows, "prefix_hit_rate")
    found["acceptance_length"] = _floats(rows, "acceptance_length")
    since_start = fact(facts, "engine_times") == "since start"
    return _samples(found, "engine", timed, None if since_start or not timed else origin, notes)


def _known_cache(found: pd.DataFrame, notes: list[str]) -> None:
    """A column of zeros while requests run is no measurement of the cache."""
    usage = found["kv_usage"]
    if usage.notna().any() and not (usage > 0).any() and (found["running"] > 0).any():
        found["kv_usage"] = np.nan
        notes.append("KV cache usage is 0 throughout, though requests ran: it was not measured.")


def _iterations(tables: Tables) -> Samples:
    rows = frame(tables, "iterations")
    rows = rows.assign(replica=_names(rows))
    timed = bool(rows["start_ns"].notna().all() and rows["dur_ns"].notna().all())
    rows = rows.sort_values(["replica", "start_ns", "order"] if timed else ["replica", "order"], kind="stable")
    rows = rows.reset_index(drop=True)
    names = rows["replica"].to_numpy()
    notes: list[str] = []
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
    _known_cache(found, notes)
    for name, column in (
        ("prompt", "prefill_tokens"), ("output", "decode_tokens"), ("preempted", "preempted"),
        ("drafted", "drafted_tokens"), ("accepted", "accepted_tokens"), ("padded", "padded_tokens"),
        ("recomputed", "recomputed_tokens"),
    ):  # fmt: skip
        found[name] = _floats(rows, column)
    for name in ("hits", "queries", "drafts", "hit_rate", "acceptance_length"):
        found[name] = np.nan
    if idle.any():
        found = _with_pauses(found, idle, start + dur, pause)
        notes.append(f"Between iterations more than {IDLE_S * 1e3:g} ms apart the engine had no requests, unless some "
                     "were left waiting: then it stood still, and the cause is not known.")  # fmt: skip
    return _samples(found, "iterations", timed, origin, notes)


def _samples(found: pd.DataFrame, source: str, timed: bool, origin_ns: int | None, notes: list[str]) -> Samples:
    """Times counted from the start of the time that the first sample stands for."""
    begin = float((found["t_s"] - found["dt_s"]).min())
    found["t_s"] -= begin
    found["pause"] = found["pause"].astype(bool) if "pause" in found else False
    origin_ns = None if origin_ns is None else origin_ns + round(begin * 1e9)
    return Samples(found[SAMPLES], source, timed, origin_ns, tuple(notes))


def _with_pauses(found: pd.DataFrame, idle: np.ndarray, end: np.ndarray, pause: np.ndarray) -> pd.DataFrame:
    rest = found[idle].copy()
    rest["t_s"], rest["dt_s"] = (end + pause)[idle], pause[idle]
    rest[[c for c in AMOUNTS if found[c].notna().any()]] = 0.0
    held = rest["waiting"] > 0  # they still wait: the engine stood still, and nothing says why
    rest["running"] = np.where(held, np.nan, 0.0)
    rest["waiting"] = np.where(held, rest["waiting"], 0.0)
    rest["kv_usage"] = np.nan
    both = pd.concat([found.assign(pause=False), rest.assign(pause=True)], ignore_index=True)
    return both.sort_values(["replica", "t_s"], kind="stable", ignore_index=True)
