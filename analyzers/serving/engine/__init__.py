"""The engine over time: what ran and waited, how full its cache was, and what held requests back.

Shares are of time, summed over replicas. Which bound counts when is defined in `engine_bounds`, which time a sample
stands for in `engine_samples`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.serving.engine import windows as engine_windows
from analyzers.serving.engine.bounds import (
    BY_INPUT,
    bounds,
    engines_together,
    seats_of,
    seats_of_each,
    shares,
    stretches,
)
from analyzers.serving.engine.each import each_replica
from analyzers.serving.engine.iterations import IterationFit, iterations
from analyzers.serving.engine.samples import Samples, samples
from analyzers.serving.exposed import Exposed, exposed
from analyzers.serving.printed_hits import overall
from analyzers.serving.recorded import recorded
from analyzers.serving.servers import inputs_of_servers
from analyzers.serving.speculation.data import accepted_by_engines
from errors import QuestionError
from errors.numbers import COUNT
from errors.options import Option
from runs.tables import Tables

ALL = "all"
OPTIONS: tuple[Option, ...] = (
    Option("replica", str, ALL, "one engine or replica by name; default: all of them together"),
    Option("max_running", COUNT, None, "most requests that one replica may run; default: what the run says or shows"),
)
MOST_BARS = 64
MOST_BURSTS = 20
HEAVY = 0.5  # more prompt than generated tokens


@dataclass(frozen=True, kw_only=True)
class EngineResult:
    """`windows`: one row a stretch of time: t_s (its end), dt_s, replicas, running and waiting (summed over replicas),
    kv_usage (mean of replicas), preemptions, prompt_tokens_per_s, output_tokens_per_s, prompt_share, prefix_hit_rate,
    acceptance_rate, acceptance_length, padded_share, and share_<bound> of BOUNDS (of the replicas' time in it).

    `batch`: running and to (first and last of its bar), share of the time. `bursts`: start_s, end_s, amount of
    preemptions, the largest first, MOST_BURSTS of all `burst_count`. `seats_kv`: most of a server's cache in use while
    requests waited for a seat of it. `drawn`: iterations for a scatter, `fit` the line
    through them. `each`: what is said of each replica (see `each_replica`). Unknown figures are None.
    """

    windows: pd.DataFrame
    batch: pd.DataFrame
    bursts: pd.DataFrame
    drawn: pd.DataFrame
    each: pd.DataFrame
    fit: IterationFit | None
    replicas: tuple[str, ...]
    replica: str
    samples: int
    source: str
    timed: bool
    origin_ns: int | None
    span_s: float | None
    seats: float | None
    burst_count: int
    figures: dict[str, Any]
    bound: dict[str, float]
    notes: tuple[str, ...]
    exposed: Exposed | None = None
    seats_kv: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "source": self.source,
            "span_s": self.span_s,
            "replicas": list(self.replicas),
            "replica": self.replica,
            "max_running": self.seats,
            "kv_usage_at_seats_max": self.seats_kv,
            **self.figures,
            "bound": self.bound,
            "preemption_bursts": self.bursts.to_dict("records"),
            "iteration": None if self.fit is None else self.fit.to_dict(),
            "metrics": None if self.exposed is None else self.exposed.to_dict(),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> EngineResult:
    """The engine over time. Raises QuestionError where the run has neither samples nor iterations of an engine."""
    fine, coarse = samples(tables, facts)
    replicas = tuple(sorted(fine.rows["replica"].unique()))
    wanted = options["replica"]
    if wanted != ALL and wanted not in replicas:
        raise QuestionError(f"no replica {wanted!r}", expected=f"one of {', '.join((ALL, *replicas))}")
    if options["max_running"] is not None and options["max_running"] < 1:
        raise QuestionError(f"max_running={options['max_running']}", expected="a whole number from 1")
    fine, coarse = _chosen(fine, wanted), coarse and _chosen(coarse, wanted)
    rows = fine.rows
    seats, how = seats_of(rows, facts, options["max_running"])
    each = None
    if options["max_running"] is None and fact(facts, BY_INPUT):
        each = seats_of_each(rows, facts, _inputs(tables))
    if each is not None:
        one = np.unique(each[0])
        seats, how = float(one[0]) if len(one) == 1 and one[0] == one[0] else None, each[1]
    words = bounds(rows, seats if each is None else each[0], engines_together(rows, facts))
    windows = engine_windows.windows(rows, words)
    notes = [*fine.notes, how]
    if coarse is not None:
        notes += [
            "Counts come from iterations; what they lack (prefix hits, acceptance) from the engine's samples.",
            *coarse.notes,
        ]
        _fill(windows, fine, coarse)
    notes += _lacking(rows)
    weight = rows["dt_s"].to_numpy()
    timely = rows.sort_values("t_s", kind="stable")
    spent = stretches(
        *(timely[c].to_numpy() for c in ("t_s", "dt_s")),
        (timely["preempted"] > 0).to_numpy(),
        timely["preempted"].to_numpy(),
    )
    drawn, fit = iterations(tables, None if wanted == ALL else wanted)
    told = exposed(tables) if wanted == ALL else None
    then = rows["kv_usage"][words == "seats"].max()
    notes += told.notes if told is not None else ()
    return EngineResult(
        windows=windows,
        batch=_batch(rows),
        drawn=drawn,
        each=each_replica(rows, words),
        fit=fit,
        replicas=replicas,
        replica=wanted,
        bursts=spent.nlargest(MOST_BURSTS, "amount").reset_index(drop=True),
        burst_count=len(spent),
        samples=int((~rows["pause"]).sum()),
        source=fine.source,
        timed=fine.timed,
        origin_ns=fine.origin_ns,
        span_s=_span(fine),
        seats=seats,
        figures=_figures(fine, coarse, windows, accepted_by_engines(tables) if wanted == ALL else None),
        bound=shares(words, weight),
        notes=tuple(notes),
        exposed=told,
        seats_kv=float(then) if then == then else None,
    )


def _inputs(tables: Tables) -> dict[str, set[str]]:
    """The inputs that tell of each replica."""
    found = inputs_of_servers(tables) if tables.rows("engine") else {}
    if tables.rows("iterations"):
        rows = recorded(tables, ())[0][["replica", "source"]].astype("string").dropna().drop_duplicates()
        for replica, mine in rows.groupby("replica"):
            found.setdefault(str(replica), set()).update(mine["source"])
    return found


def _chosen(found: Samples, replica: str) -> Samples:
    if replica == ALL or replica not in set(found.rows["replica"]):
        return found
    rows = found.rows[found.rows["replica"] == replica].reset_index(drop=True)
    return Samples(rows, found.source, found.timed, found.origin_ns, found.notes)


def _fill(windows: pd.DataFrame, fine: Samples, coarse: Samples) -> None:
    """Prefix hits and acceptance of the coarser samples, in the windows of the finer."""
    if fine.origin_ns is None or coarse.origin_ns is None:
        return
    rows = coarse.rows.assign(t_s=coarse.rows["t_s"] + (coarse.origin_ns - fine.origin_ns) / 1e9)
    told = engine_windows.ratios(rows, (windows["t_s"] - windows["dt_s"]).to_numpy(), windows["t_s"].to_numpy())
    for column, values in told.items():
        windows[column] = windows[column].where(windows[column].notna(), values)


def _batch(rows: pd.DataFrame) -> pd.DataFrame:
    """Share of the time at each number of running requests of a replica, in at most MOST_BARS bars of equal width."""
    known = rows[rows["running"].notna() & (rows["dt_s"] > 0)]
    if not len(known):
        return pd.DataFrame({"running": [], "to": [], "share": []}, dtype=float)
    width = int(np.ceil((known["running"].max() + 1) / MOST_BARS))
    bar = (known["running"].to_numpy() // width).astype(np.int64)
    share = np.bincount(bar, known["dt_s"]) / known["dt_s"].sum()
    low = np.arange(len(share)) * width
    return pd.DataFrame({"running": low, "to": low + width - 1, "share": share})


def _figures(
    fine: Samples, coarse: Samples | None, windows: pd.DataFrame, accepted_rate: float | None
) -> dict[str, Any]:
    """`accepted_rate`: of all servers together, as `speculation` tells it; None: from the samples."""
    time = windows["dt_s"].to_numpy()
    hits, queries, drafted, accepted, prompt, output, padded, preempted = (
        _total(fine, coarse, n)
        for n in ("hits", "queries", "drafted", "accepted", "prompt", "output", "padded", "preempted")
    )
    heavy = windows["prompt_share"].notna().to_numpy()
    said = _printed_hits(fine, coarse)
    waits = fine.rows["waiting"]
    return {
        "running": _level(fine, windows, "running"),
        "waiting": _level(fine, windows, "waiting"),
        "kv_usage": _level(fine, windows, "kv_usage"),
        "preemptions": preempted,
        "prefix_hit_rate": _share(hits, queries) if queries else said,
        "acceptance_rate": _share(accepted, drafted) if accepted_rate is None else accepted_rate,
        "prefilled_tokens_per_s": _rate(fine, coarse, "prompt"),
        "generated_tokens_per_s": _rate(fine, coarse, "output"),
        "prefilled_share": _share(prompt, (prompt or 0) + (output or 0)) if output is not None else None,
        "prefill_heavy_share": _share(float(time[windows["prompt_share"] > HEAVY].sum()), float(time[heavy].sum())),
        "padded_share": _share(padded, (padded or 0) + (prompt or 0) + (output or 0)),
        "waiting_share": _share(*(float(fine.rows["dt_s"][w].sum()) for w in (waits > 0, waits.notna()))),
    }


def _span(found: Samples) -> float | None:
    """From the start of the first sample's time to the last sample, s."""
    rows = found.rows
    return float(rows["t_s"].max() - (rows["t_s"] - rows["dt_s"]).min()) if found.timed else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _level(fine: Samples, windows: pd.DataFrame, name: str) -> dict[str, float | None]:
    """Mean over the time in which any replica tells it, summed over replicas (cache: the mean over the time of all);
    the most of single samples, of a sum by window."""
    known = fine.rows[fine.rows[name].notna() & (fine.rows["dt_s"] > 0)]
    if not len(known):
        return {"mean": None, "max": None}
    single = name == "kv_usage" or known["replica"].nunique() == 1
    held = known[name] * known["dt_s"]
    mean = float(held.sum() / known["dt_s"].sum()) if single else engine_windows.over_time(known, held, name)
    return {"mean": mean, "max": float(known[name].max() if single else windows[name].max())}


def _rate(fine: Samples, coarse: Samples | None, name: str) -> float | None:
    """An amount per second of the time of which any replica tells it, from the finest input that knows it."""
    for found in (fine, coarse):
        if found is not None and found.timed and found.rows[name].notna().any():
            return engine_windows.over_time(found.rows, found.rows[name], name, "told_s")
    return None


def _total(fine: Samples, coarse: Samples | None, name: str) -> float | None:
    """Sum of an amount over all samples, from the finest input that knows it."""
    for found in (fine, coarse):
        if found is not None and found.rows[name].notna().any():
            return float(found.rows[name].sum())
    return None


def _printed_hits(fine: Samples, coarse: Samples | None) -> float | None:
    """What the hit rates that a log prints say of all its requests."""
    return next((r for f in (fine, coarse) if f is not None and (r := overall(f.rows)) is not None), None)


def _lacking(rows: pd.DataFrame) -> list[str]:
    notes = []
    if not rows["kv_usage"].notna().any():
        notes.append("KV cache usage is not known: whether requests waited for memory cannot be told from it.")
    if not rows["waiting"].notna().any():
        notes.append("How many requests waited is not known.")
    if rows["replica"].nunique() > 1:
        notes.append("Running and waiting are summed over replicas, KV cache usage is their mean.")
    return notes
