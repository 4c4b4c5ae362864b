"""Objectives (SLO): which requests kept them, at which rate, and what those that did not missed them for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.serving.exposed import Exposed, exposed
from analyzers.serving.latency.summary import Load, all_loads, together
from analyzers.serving.objective_causes import CAUSES, Judged, judge
from analyzers.serving.served import ADVICE, Served, has_requests, served
from errors import QuestionError
from errors.numbers import SECONDS
from errors.options import Option
from runs.tables import Tables

OBJECTIVES: dict[str, str] = {
    "ttft_s": "time to first token, s, at most",
    "tpot_s": "time per output token after the first, s, at most; met by requests of one token",
    "e2e_s": "arrival to last token, s, at most",
    "itl_s": "p99 of a request's own gaps between pieces of output, s, at most; met by requests of one token",
}
LABELS = {
    "ttft_s": "TTFT within",
    "tpot_s": "TPOT within",
    "e2e_s": "E2E within",
    "itl_s": "p99 of gaps within",
}
OPTIONS: tuple[Option, ...] = (
    *(Option(name, SECONDS, None, words, "s", LABELS[name]) for name, words in OBJECTIVES.items()),
    Option("stage", str, None, "a load of the run by its name; default: all together"),
)
POINTS, GRID = 400, 48
BEYOND = 1.15  # the surface goes beyond the greatest latency, to where all that can be kept is kept
ROWS = [
    "id",
    "stage",
    "tenant",
    "cause",
    "ttft_s",
    "queue_s",
    "prefill_s",
    "tpot_s",
    "e2e_s",
    "prompt_tokens",
    "output_tokens",
    "status",
    "error",
]


@dataclass(frozen=True, kw_only=True)
class SloResult:
    """`attainment`: share of all sent requests that completed within all objectives; `attainment_of_completed`: of the
    completed ones; `goodput_per_s`: good requests per second (vLLM's rate), None where the duration
    is unknown. `attainment_high`: what the first would be if all requests whose latency is unknown were good.
    `judged`: how many requests these shares and counts are of: all that were sent and not cut off by the end of the
    load, unless a tool kept a sample of them.
    Then the rates are for all that it counted, taken to have kept the objectives as often as those.

    `each`: {objective: share of sent requests that kept that one alone}, `each_high` at most, where histograms alone
    tell. `misses`: {cause of slo_causes: requests}.
    `curves`: one row a point: objective, threshold_s, attainment, with the other objectives held; exact, reduced.
    `surface`: attainment by TTFT (rows) and TPOT (columns), other objectives held; None where one is unknown.
    `missed`: requests that missed, the latest first. `best_goodput_per_s`: if all sent requests were good.
    """

    load: Load
    judged: int
    objectives: dict[str, float]
    attainment: float
    attainment_high: float
    attainment_of_completed: float | None
    goodput_per_s: float | None
    best_goodput_per_s: float | None
    each: dict[str, float]
    misses: dict[str, int]
    curves: pd.DataFrame
    surface: pd.DataFrame | None
    missed: pd.DataFrame
    tenants: pd.DataFrame
    notes: tuple[str, ...]
    each_high: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "attainment": self.attainment,
            "attainment_high": self.attainment_high,
            "attainment_of_completed": self.attainment_of_completed,
            "goodput_per_s": self.goodput_per_s,
            "misses": dict(self.misses),
            "objectives": dict(self.objectives),
            "attainment_of_each": dict(self.each),
            "attainment_of_each_high": dict(self.each_high or self.each),
            "requests": self.load.requests,
            "requests_judged": self.judged,
            "failed": self.load.failed,
            "duration_s": self.load.duration_s,
            "stage": self.load.stage,
            "tenants": self.tenants.to_dict("records"),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> SloResult:
    """Requests against objectives. Raises QuestionError without single requests, without an objective, for one that is
    not above 0, and for one about a latency that no request tells."""
    objectives = {name: options[name] for name in OBJECTIVES if options.get(name) is not None}
    for name, most in objectives.items():
        if most <= 0:
            raise QuestionError(f"option {name}={most:g}", expected="seconds above 0")
    if options.get("stage") is None and (told := by_histograms(tables)) is not None:
        return _exposed(told, objectives)
    load, parts = _load(tables, options.get("stage"))
    assert load.served is not None
    of = load.served.ended
    if not objectives:
        raise QuestionError(
            "no objective was given",
            expected="at least one of " + ", ".join(OBJECTIVES),
            advice=f"Ask with, for instance, {_example(of)}.",
        )
    if not len(of.rows):
        raise QuestionError("the end of the load cut off every request: none can be judged", advice=ADVICE)
    values = _values(of, objectives)
    judged = judge(of, values, objectives)
    sent, good = len(of.rows), int(judged.good.sum())
    completed = int(of.rows["completed"].sum())
    count = pd.Series(judged.cause[~judged.good]).value_counts()
    unknown = int(count.get("unknown", 0))
    per_s = None if not load.duration_s else 1 / load.duration_s
    all_good, all_sent = _counted(parts, of, judged) if load.kept is not None else (good, sent)
    return SloResult(
        load=load,
        judged=sent,
        objectives=objectives,
        attainment=good / sent,
        attainment_high=(good + unknown) / sent,
        attainment_of_completed=good / completed if completed else None,
        goodput_per_s=None if per_s is None else all_good * per_s,
        best_goodput_per_s=None if per_s is None else all_sent * per_s,
        each={n: float(m.mean()) for n, m in judged.met.items()},
        misses={c: int(count[c]) for c in CAUSES if c in count},
        curves=_curves(values, judged, objectives),
        surface=_surface(of, judged, objectives),
        missed=_missed(of, judged, objectives),
        tenants=_tenants(of, judged),
        notes=tuple([*_notes(load, judged, objectives), *of.notes]),
    )


def by_histograms(tables: Tables) -> Exposed | None:
    """What the server told at /metrics, where the run has no single requests to judge, and latencies there."""
    found = None if has_requests(tables) else exposed(tables)
    return found if found is not None and found.latencies else None


def _counted(parts: list[Load], of: Served, judged: Judged) -> tuple[float, float]:
    """(good requests, sent ones) of all that the tool counted: of each load its completed requests, as often good as
    those of them that are kept."""
    stage, good, sent = of.rows["stage"].astype("string").fillna(""), 0.0, 0.0
    for part in parts:
        one = len(parts) == 1 or (stage == (part.stage or "")).to_numpy(dtype=bool)
        mine = np.broadcast_to(one, len(of.rows))
        kept, completed = int(of.rows["completed"][mine].sum()), (part.requests or 0) - (part.failed or 0)
        good += judged.good[mine].sum() * (completed / kept if kept else 0.0)
        sent += part.requests or 0
    return float(good), float(sent)


def _exposed(told: Exposed, objectives: Mapping[str, float]) -> SloResult:
    """Of a server's own histograms: at least what lies below the bound under each objective, at most what lies below
    the one above. Of several objectives at least what no miss of one could take from another, at most the least."""
    if not objectives:
        raise QuestionError(
            "no objective was given",
            expected="at least one of ttft_s, tpot_s, e2e_s",
            advice="Ask with, for instance, --option ttft_s=0.5.",
        )
    known = set(told.latencies) - {"itl_s"}  # the objective is about each request's own gaps
    sent = told.requests or min((told.latencies[n].observations for n in objectives if n in known), default=0)
    found = {
        n: tuple(float(told.of_all(n, share)) for share in within)
        for n, most in objectives.items()
        if n in known and (within := told.latencies[n].within(most)) is not None
    }
    if lacking := [n.removesuffix("_s").upper() for n in objectives if n not in found]:
        raise QuestionError(f"no histogram of this server tells {' and '.join(lacking)} of a request", advice=ADVICE)
    low = max(0.0, 1 - sum(1 - share for share, _ in found.values()))
    curves = [
        pd.DataFrame({"objective": n, "threshold_s": h.le, "attainment": told.of_all(n, h.count / h.observations)})[
            np.isfinite(h.le)
        ]
        for n, h in ((n, told.latencies[n]) for n in objectives)
    ]
    return SloResult(
        load=Load(stage=None, tool="/metrics", requests=sent),
        judged=sent,
        objectives=dict(objectives),
        attainment=low,
        each_high={n: most for n, (_, most) in found.items()},
        attainment_high=min(share for _, share in found.values()),
        attainment_of_completed=None,
        goodput_per_s=None,
        best_goodput_per_s=None,
        each={n: share for n, (share, _) in found.items()},
        misses={"unknown": round((1 - low) * sent)} if low < 1 else {},
        curves=pd.concat(curves, ignore_index=True),
        surface=None,
        missed=pd.DataFrame(columns=ROWS),
        tenants=pd.DataFrame(),
        notes=(
            *told.notes,
            "Shares are of the requests whose latency the server observed; those that failed before are "
            "not among them, and single requests would tell why one missed.",
        ),
    )


def _load(tables: Tables, stage: str | None) -> tuple[Load, list[Load]]:
    """(the load with its single requests, the loads that it is made of). Raises QuestionError where there are none."""
    if not has_requests(tables):
        if tables.rows("requests"):
            served(tables)  # a trace of traffic: it says so
        raise QuestionError(
            "whether a request kept its objectives needs single requests, and this run has none", advice=ADVICE
        )
    single = [load for load in all_loads(tables, times=False) if load.served is not None]
    if stage is None:
        return (single[0] if len(single) == 1 else _together(single, tables)), single
    for load in single:
        if load.stage == stage:
            return load, [load]
    names = [load.stage for load in single if load.stage is not None]
    raise QuestionError(f"no single requests of a load {stage!r}", expected=f"one of {', '.join(names[:20]) or 'none'}")


def _together(single: list[Load], tables: Tables) -> Load:
    """Loads as one; where a tool kept a sample of one's requests, with the numbers of all that it counted."""
    whole = together(single, tables, times=False)
    if all(load.kept is None for load in single):
        return whole
    kept = sum(int(load.served.rows["completed"].sum()) for load in single)
    return replace(
        whole,
        kept=kept,
        requests=sum(load.requests or 0 for load in single),
        failed=sum(load.failed or 0 for load in single),
        tool=single[0].tool,
    )


def suggested(rows: pd.DataFrame) -> dict[str, float]:
    """Objectives to begin with: the 90th percentile of TTFT and TPOT among `rows`, rounded up to two digits."""
    found: dict[str, float] = {}
    if not len(rows):
        return found
    for name in ("ttft_s", "tpot_s"):
        known = rows[name].to_numpy(dtype=float)
        known = known[~np.isnan(known)]
        if len(known) and (value := float(np.quantile(known, 0.9))) > 0:
            step = 10.0 ** (np.floor(np.log10(value)) - 1)
            found[name] = float(f"{np.ceil(value / step - 1e-9) * step:.2g}")
    return found


def suggested_by(told: Exposed) -> dict[str, float]:
    """The same of a server's histograms: the bounds below which nine of ten lie."""
    found = {n: told.latencies[n].quantile(0.9).high for n in ("ttft_s", "tpot_s") if n in told.latencies}
    return {n: high for n, high in found.items() if high}


def _example(of: Served) -> str:
    return " ".join(f"--option {n}={v:g}" for n, v in (suggested(of.timed) or {"e2e_s": 10.0}).items())


def _values(of: Served, objectives: Mapping[str, float]) -> dict[str, np.ndarray]:
    """The latency of each row that each objective is about. Raises QuestionError where no request tells it."""
    values = {n: of.rows[n].to_numpy(dtype=float) if n != "itl_s" else _own_p99(of) for n in objectives}
    longer = (of.rows["completed"] & (of.rows["output_tokens"] > 1).fillna(True)).any()
    for name, found in values.items():
        if np.isnan(found).all() and of.rows["completed"].any() and (name in ("ttft_s", "e2e_s") or longer):
            raise QuestionError(f"no request of this run tells its {name.removesuffix('_s').upper()}", advice=ADVICE)
    return values


def _own_p99(of: Served) -> np.ndarray:
    """p99 of each request's own gaps, interpolated linearly; NaN where none are recorded."""
    seconds, owner = of.gaps
    found = np.full(len(of.rows), np.nan)
    if not len(seconds):
        return found
    ordered = seconds[np.lexsort((seconds, owner))]
    begin = np.flatnonzero(np.diff(owner, prepend=-1))
    size = np.diff(begin, append=len(owner))
    rank = 0.99 * (size - 1)
    low = np.floor(rank).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    found[owner[begin]] = ordered[begin + low] + (rank - low) * (ordered[begin + high] - ordered[begin + low])
    return found


def _others(judged: Judged, but: tuple[str, ...], done: np.ndarray) -> np.ndarray:
    """Requests that completed within all objectives but those named."""
    return np.logical_and.reduce([done, *(m for n, m in judged.met.items() if n not in but)])


def _curves(values: Mapping[str, np.ndarray], judged: Judged, objectives: Mapping[str, float]) -> pd.DataFrame:
    """Attainment as a function of each threshold alone: it steps up at the latency of each request."""
    done = judged.cause != "failed"
    sent = len(done)
    parts = []
    for name, most in objectives.items():
        held = _others(judged, (name,), done) & judged.known[name]
        needless = int((held & np.isnan(values[name])).sum())  # one token: it keeps any threshold
        steps = np.sort(values[name][held & ~np.isnan(values[name])])
        at = np.unique(np.linspace(0, max(len(steps) - 1, 0), POINTS).astype(np.int64)) if len(steps) else []
        x = np.unique(np.concatenate([steps[at] if len(steps) else [], [most]]))
        y = (np.searchsorted(steps, x, "right") + needless) / sent
        parts.append(pd.DataFrame({"objective": name, "threshold_s": x, "attainment": y}))
    return pd.concat(parts, ignore_index=True)


def _surface(of: Served, judged: Judged, objectives: Mapping[str, float]) -> pd.DataFrame | None:
    """Attainment over a grid of TTFT and TPOT thresholds; the chosen ones are among them."""
    held = _others(judged, ("ttft_s", "tpot_s"), judged.cause != "failed")
    ttft, tpot = (of.rows[n].to_numpy(dtype=float) for n in ("ttft_s", "tpot_s"))
    few = (of.rows["output_tokens"] <= 1).fillna(False).to_numpy(dtype=bool)
    tpot = np.where(np.isnan(tpot) & few, 0.0, tpot)
    some = held & ~np.isnan(ttft) & ~np.isnan(tpot)
    if not (some & (tpot > 0)).any():
        return None
    x, y = (_edges(v[some & (v > 0)], objectives.get(n)) for n, v in (("ttft_s", ttft), ("tpot_s", tpot)))
    i, j = (np.searchsorted(e, v[some], "left") for e, v in ((x, ttft), (y, tpot)))  # first edge that is enough
    counts = np.bincount(i * (len(y) + 1) + j, minlength=(len(x) + 1) * (len(y) + 1))
    sums = counts.reshape(len(x) + 1, len(y) + 1)[:-1, :-1].cumsum(axis=0).cumsum(axis=1)
    return pd.DataFrame(sums / len(of.rows), index=pd.Index(x, name="ttft_s"), columns=pd.Index(y, name="tpot_s"))


def _edges(values: np.ndarray, chosen: float | None) -> np.ndarray:
    """Thresholds to draw: from the least latency to the greatest, evenly on a logarithmic scale, the chosen one too."""
    low, high = values.min(), values.max()
    grid = np.geomspace(low, high * BEYOND, GRID)
    return np.unique(np.append(grid, chosen)) if chosen is not None else grid


def _missed(of: Served, judged: Judged, objectives: Mapping[str, float]) -> pd.DataFrame:
    """Requests that missed, those that took longest first."""
    rows = of.rows.assign(cause=judged.cause)[~judged.good]
    return rows.sort_values("e2e_s", ascending=False, kind="stable", na_position="last")[ROWS].reset_index(drop=True)


def _tenants(of: Served, judged: Judged) -> pd.DataFrame:
    """Attainment by tenant, most requests first; empty where fewer than two are known."""
    tenant = of.rows["tenant"]
    if tenant.nunique() < 2:
        return pd.DataFrame(columns=["tenant", "requests", "attainment"])
    key = tenant.astype(str).where(tenant.notna(), "not told")
    grouped = pd.Series(judged.good).groupby(key.to_numpy())
    table = pd.DataFrame({"requests": grouped.size(), "attainment": grouped.mean()})
    table = table.sort_values("requests", ascending=False, kind="stable").head(200)
    return table.rename_axis("tenant").reset_index()


def _notes(load: Load, judged: Judged, objectives: Mapping[str, float]) -> list[str]:
    notes = [
        "Attainment is over all requests that were sent: one that failed missed, one that the end of the load cut off "
        "is not judged. Goodput is good requests per "
        "second (vLLM's rate); the share of completed requests is SGLang's."
    ]
    if load.kept is not None:
        notes.append(
            f"{load.tool or 'The tool'} counts {load.requests or 0:,} requests and keeps "
            f"{len(judged.good):,}: these are judged. Goodput is for all that it counts, taken to be good as "
            "often."
        )
    unknown = int((judged.cause == "unknown").sum())
    if unknown:
        notes.append(
            f"Of {unknown:,} completed requests a latency that an objective is about is not known: they do "
            "not count as good, so that attainment is at least what is said."
        )
    if "first_token" in judged.cause:
        notes.append(
            "Nothing tells queue from prefill for some late first tokens: per-request records of the engine "
            "(when each was scheduled) would."
        )
    if "decode" in judged.cause and not load.served.tables.rows("iterations"):
        notes.append(
            "No passes of the engine are recorded: late tokens that waited for the prompts of others count as decode."
        )
    if load.duration_s is None:
        notes.append("How long it took is not known: there is no rate.")
    return notes
