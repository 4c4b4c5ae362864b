"""Load: how much a server bears, at what latency and what cost; one point a load, in the order of the load.

The knee is defined in `load_knee`, the steady window in `load_steady`, price and roofline in `load_value`, and how a
point is computed in `load_points`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact, with_options
from analyzers.held import held
from analyzers.serving.engine.samples import engine_samples
from analyzers.serving.load.knee import AXES, Knee, axis_of, find, judge, placed
from analyzers.serving.load.points import METRICS, STATISTICS, points, untold
from analyzers.serving.load.steady import Flow, Steady, flow, peak_per_s, steady
from analyzers.serving.load.value import add_roofline, add_value, little, price_of
from analyzers.serving.loads import invalid_by
from analyzers.serving.served import Served
from analyzers.subject import CHIP, MODEL
from errors import QuestionError
from errors.numbers import COUNT, SECONDS, USD
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option(
        "ttft_s", SECONDS, None, "objective: time to first token of at most so many seconds", "s", "p99 TTFT within"
    ),
    Option(
        "tpot_s", SECONDS, None, "objective: time per output token of at most so many seconds", "s", "p99 TPOT within"
    ),
    Option(
        "e2e_s", SECONDS, None, "objective: end-to-end latency of at most so many seconds", "s", "p99 end to end within"
    ),
    Option("statistic", STATISTICS, "p99", "which statistic of a load must keep the objectives"),
    Option(
        "latency",
        tuple(f"{m}_{s}" for m in ("e2e", "ttft", "tpot") for s in ("mean", "p50", "p99")),
        "e2e_mean",
        "the latency whose growth tells the knee",
    ),
    Option("stage", str, None, "the load in which a steady window is looked for; default: the heaviest below the knee"),
    Option(
        "usd_per_chip_hour", USD, None, "price of a chip-hour in dollars; without it nothing has a price", unit="USD"
    ),
    Option("chips", COUNT, None, "chips that served; default: what the run says"),
    MODEL,
    CHIP,
)
MAY_FAIL = {"mean": 1.0, "p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01}  # a request that failed is late for ever
UNLEVEL = "Requests in flight rise or fall until the last arrival: they find no level."
FULL = "Requests in flight find no level: counted are those running, between being scheduled and their end."
_COUNTS = ("completed", "failed", "max_concurrency")
_KEYS = (
    "stage",
    "basis",
    "load",
    "requested_rate_per_s",
    "max_concurrency",
    "request_rate_per_s",
    "keeping_up",
    "completed",
    "failed",
    "duration_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "peak_output_tokens_per_s",
    "peak_output_tokens_computed_per_s",
    "in_flight",
    "in_flight_measured",
    "little_from",
    "little_difference",
    "tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "usd_per_m_output_tokens",
    "usd_per_m_tokens",
    "step_roof_s",
    "roofline_share",
    "falls_behind",
    "out_of_proportion",
    "keeps_objectives",
    "pareto",
    "pareto_cost",
)


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """`rows`: one row a load, in order of `axis` (see AXES), columns of `load_points`, `load_knee.judge`,
    `load_value` and: load (its place on the axis), peak_output_tokens_computed_per_s, keeps_objectives (nullable).

    `knee`, `steady`, `best`: None where not told; `knee_words`, `steady_words` say why. `best`: the load that answers
    most within the objectives; without objectives the heaviest below the knee. `objectives`: metric to seconds.
    `along`: the load in which the steady window was looked for: t_s, in_flight, generating, output_tokens_per_s.
    """

    rows: pd.DataFrame
    axis: str
    knee: Knee | None
    knee_words: str
    best: str | None
    best_words: str
    objectives: dict[str, float]
    statistic: str
    latency: str
    steady: Steady | None
    steady_words: str
    along: pd.DataFrame
    chips: float | None
    usd_per_chip_hour: float | None
    notes: tuple[str, ...]

    def row(self, stage: str) -> pd.Series:
        """One load. Raises KeyError for one that is not there."""
        return self.rows.set_index("stage", drop=False).loc[stage]

    def to_dict(self) -> dict[str, Any]:
        best = None
        if self.best is not None:
            keys = ("stage", "load", "request_rate_per_s", "output_tokens_per_s")
            best = {"why": self.best_words, **{k: _json(self.row(self.best)[k]) for k in keys}}
        return {
            "axis": self.axis,
            "unit": AXES[self.axis],
            "loads": [_load(row) for _, row in self.rows.iterrows()],
            "knee": None if self.knee is None else {**self.knee.to_dict(), "latency": self.latency},
            "knee_words": self.knee_words,
            "best": best,
            "objectives": {f"{m}_s": s for m, s in self.objectives.items()},
            "steady": None if self.steady is None else _json(self.steady.to_dict()),
            "steady_words": self.steady_words,
            "chips": self.chips,
            "usd_per_chip_hour": self.usd_per_chip_hour,
            "notes": list(self.notes),
        }


def _json(value: Any) -> Any:
    """The value without NaN, infinities and NumPy's own types."""
    if isinstance(value, dict):
        return {k: _json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_json(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return value


def _load(row: pd.Series) -> dict[str, Any]:
    said = {key: _json(row[key]) for key in _KEYS}
    said |= {key: None if said[key] is None else int(said[key]) for key in _COUNTS}
    said["requested_all_at_once"] = bool(row["requested_rate_per_s"] == np.inf)
    for metric in METRICS:
        said[f"{metric}_s"] = {s: _json(row[f"{metric}_{s}_s"]) for s in STATISTICS}
    return said


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> LoadResult:
    """The load curve of a run. Raises QuestionError where the run has neither loads nor served requests."""
    objectives = {m: options[f"{m}_s"] for m in METRICS if options[f"{m}_s"] is not None}
    if any(limit <= 0 for limit in objectives.values()):
        raise QuestionError("an objective of no time", expected="seconds above 0")
    facts = with_options(facts, options, ("model", "chip", "chips"))
    price = price_of(facts, options["usd_per_chip_hour"])
    chips = _chips(tables, facts)
    rows, single, notes = points(tables)
    axis = axis_of(rows)
    rows["load"] = placed(rows, axis)
    rows = rows.sort_values(["load", f"{options['latency']}_s"], kind="stable", ignore_index=True)  # of equals the best
    judge(rows, f"{options['latency']}_s")
    knee, knee_words = find(rows, axis)
    add_value(rows, chips, price)
    notes = [*([invalid] if (invalid := invalid_by(facts)) else []), *notes]
    notes += _means(rows, axis, chips, price)
    add_roofline(rows, facts, chips, notes)
    flows = _flows(rows, single)
    peaks = {stage: peak_per_s(f)[0] for stage, f in flows.items() if f.exact}
    rows["peak_output_tokens_computed_per_s"] = rows["stage"].map(peaks).astype(float)
    notes += little(rows, _engine_level(tables))
    best, best_words = _best(rows, objectives, options["statistic"], knee)
    found, steady_words, along = _steady(rows, single, flows, knee, options["stage"])
    if found is not None and (common := flows[found.stage].pace) is not None:
        own, even = f"{common.unevenness:.1%}", f"{common.even:.1%}"
        notes.append(
            f"Gaps between tokens are not recorded: in {found.stage}, tokens are placed in time by the pace "
            f"that all requests generating together have. Requests differ from it by {own} (standard "
            f"deviation), from even spreading by {even}."
        )
    return LoadResult(
        rows=rows,
        axis=axis,
        knee=knee,
        knee_words=knee_words,
        best=best,
        best_words=best_words,
        objectives=objectives,
        statistic=options["statistic"],
        latency=options["latency"],
        steady=found,
        steady_words=steady_words,
        along=along,
        chips=chips,
        usd_per_chip_hour=price,
        notes=tuple(notes),
    )


def _chips(tables: Tables, facts: Facts) -> float | None:
    said = fact(facts, "chips")
    if said is not None and not said >= 1:
        raise QuestionError(f"chips={said}", expected="a whole number from 1")
    chips = held(tables, facts).chips
    return None if chips is None else float(chips)


def _means(rows: pd.DataFrame, axis: str, chips: float | None, price: float | None) -> list[str]:
    """What the points rest on, and what is missing."""
    recomputed = int((rows["basis"] == "requests").sum())
    notes = [
        f"{recomputed} of {len(rows)} loads are computed from single requests, the others are as printed."
        if 0 < recomputed < len(rows)
        else "Loads are computed from single requests."
        if recomputed
        else "Loads are as their tool printed them."
    ]
    notes.append(f"Loads are put in order of {AXES[axis]}.")
    if chips is None:
        notes.append("Chips unknown: per chip cannot be told. Ask with --option chips=N, or ingest with --chips.")
    elif price is None:
        notes.append("No price of a chip-hour is known: dollars cannot be told.")
    over = rows["peak_concurrency"] > rows["max_concurrency"]
    if over.any():
        notes.append(
            "Peak concurrency above the concurrency allowed is no contradiction: vLLM's tool counts every "
            "request that touches the same second."
        )
    return notes


def _flows(rows: pd.DataFrame, single: dict[str, Served]) -> dict[str, Flow]:
    found = {stage: flow(single[stage]) for stage in rows["stage"] if stage in single}
    return {stage: f for stage, f in found.items() if f is not None}


def _engine_level(tables: Tables) -> float | None:
    """Mean of running + waiting over the time of the engine's samples, its idle ones before and after left out."""
    if not tables.rows("engine"):
        return None
    found = engine_samples(tables).rows
    if found["replica"].nunique() > 1:
        return None
    found = found.assign(level=found["running"] + found["waiting"]).dropna(subset=["level"])
    level, lasts = (found[c].to_numpy(dtype=float) for c in ("level", "dt_s"))
    busy = np.flatnonzero(level)
    if not len(busy):
        return None
    level, lasts = (x[busy[0] : busy[-1] + 1] for x in (level, lasts))
    return float(np.average(level, weights=lasts if lasts.sum() > 0 else None))


def _best(
    rows: pd.DataFrame, objectives: dict[str, float], statistic: str, knee: Knee | None
) -> tuple[str | None, str]:
    """(the load that answers most within the objectives, how it was chosen). Adds `keeps_objectives` to the rows."""
    if not objectives:
        rows["keeps_objectives"] = pd.array([None] * len(rows), dtype="boolean")
        if knee is not None:
            return knee.low, "the heaviest load below the knee"
        good = rows[~rows["failed_load"] & rows["request_rate_per_s"].notna()]
        if len(rows) < 2 or not len(good):
            return None, ""
        return str(good.loc[good["request_rate_per_s"].idxmax(), "stage"]), "the load that answers most"
    kept = pd.array([True] * len(rows), dtype="boolean")
    for metric, limit in objectives.items():
        value = rows[f"{metric}_{statistic}_s"].astype("Float64")
        kept &= (value <= limit).mask(value.isna(), pd.NA).array
    sent = rows["completed"] + rows["failed"].fillna(0)
    kept &= (rows["failed"].fillna(0) <= MAY_FAIL[statistic] * sent).to_numpy() & ~rows["failed_load"].to_numpy()
    may_have_failed = (rows["to_send"] - rows["completed"] > MAY_FAIL[statistic] * rows["to_send"]).to_numpy()
    kept[kept.fillna(False).to_numpy(dtype=bool) & untold(rows) & may_have_failed] = pd.NA
    rows["keeps_objectives"] = kept
    good = rows[rows["keeps_objectives"].fillna(False).to_numpy(dtype=bool)]
    wanted = " and ".join(f"{statistic} {m.upper()} within {limit:g} s" for m, limit in objectives.items())
    if not len(good):
        return None, f"no load {'is known to have' if rows['keeps_objectives'].isna().any() else 'has'} {wanted}"
    return str(good.loc[good["request_rate_per_s"].fillna(0).idxmax(), "stage"]), f"answers most with {wanted}"


def _steady(
    rows: pd.DataFrame, single: dict[str, Served], flows: dict[str, Flow], knee: Knee | None, asked: str | None
) -> tuple[Steady | None, str, pd.DataFrame]:
    """(the steady window of one load, why there is none, that load along time)."""
    if asked is not None and asked not in set(rows["stage"]):
        raise QuestionError(f"no load {asked!r}", expected=f"one of {', '.join(rows['stage'])}")
    if not flows:
        needs = "A steady window needs single requests with times of arrival (vLLM: `--save-detailed`)."
        return None, needs, pd.DataFrame()
    default = knee.low if knee is not None and knee.low in flows else list(flows)[-1]
    stage = asked or default
    if stage not in flows:
        return None, f"The load {stage} has no single requests with times of arrival.", pd.DataFrame()
    duration = float(rows.set_index("stage").loc[stage, "duration_s"])
    found, why = steady(stage, single[stage], flows[stage], duration)
    if found is None or not found.is_steady:
        full = flows[stage].by_running(single[stage])
        level = steady(stage, single[stage], full, duration)[0] if full else None
        if level is not None and level.is_steady:
            return level, why or FULL, full.sampled()
    return found, why or (UNLEVEL if found and not found.is_steady else ""), flows[stage].sampled()
