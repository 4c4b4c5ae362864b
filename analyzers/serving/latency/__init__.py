"""Serving: how fast requests were answered, and where their time went."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analyzers.base import Facts
from analyzers.serving.exposed import Exposed, alone, exposed
from analyzers.serving.latency.anatomy import cumulative, failures, split, tenants, tokens_lost, windows
from analyzers.serving.latency.gaps import Gaps, gaps
from analyzers.serving.latency.log_lines import log_lines, said
from analyzers.serving.latency.passes import engine
from analyzers.serving.latency.summary import METRICS, Load, all_loads, since, together
from analyzers.serving.loads import invalid_by, not_answered
from analyzers.serving.loads_told_twice import sentences
from analyzers.serving.served import Served
from analyzers.serving.triton import Triton
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables

STAGE = Option(
    "stage",
    str,
    None,
    "a load of the run by its name; default: all, or the one with most output tokens/s",
    label="Load",
)
OPTIONS: tuple[Option, ...] = (STAGE,)
NONE_FAILED_TOLD = "those that were answered, as how many failed is not told"
ROWS = [
    "id",
    "stage",
    "tenant",
    "replica",
    "arrival_s",
    "queue_s",
    "prefill_s",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "preemptions",
    "status",
    "error",
    "out_of",
]


@dataclass(frozen=True, kw_only=True)
class ServingResult:
    """`load`: the numbers asked for; `loads`: every load of the run.

    Of single requests, where they are there (else empty or None): `rows` one a request in order of arrival (columns
    ROWS, arrival_s since the first); `split` (anatomy.split), `windows` (anatomy.windows), `tenants`, `failures`,
    `gaps`, `distributions` {metric: value, share}; `lost_tokens` of requests that did not complete, and their share.
    `exposed`: what the server itself told at /metrics, in ranges; the only answer where nothing else tells.
    `log_lines` (log_lines.COLUMNS): what logs tell of failures. `invalid`: why the tool calls its own result invalid.
    `queue_share`: part of all TTFT spent in the queue, over requests that tell it.
    """

    load: Load
    loads: tuple[Load, ...]
    rows: pd.DataFrame
    split: pd.DataFrame
    windows: pd.DataFrame
    tenants: pd.DataFrame
    failures: pd.DataFrame
    gaps: Gaps | None
    distributions: dict[str, pd.DataFrame]
    queue_share: float | None
    lost_tokens: int | None
    lost_token_share: float | None
    notes: tuple[str, ...]
    exposed: Exposed | None = None
    log_lines: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["text"]))
    invalid: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.load.to_dict(),
            "queue_share_of_ttft": self.queue_share,
            "tokens_lost": self.lost_tokens,
            "tokens_lost_share": self.lost_token_share,
            "failures": self.failures[["status", "error", "requests"]].to_dict("records") if len(self.failures) else [],
            "gaps": self.gaps.to_dict() if self.gaps else None,
            "invalid": self.invalid,
            "log_lines": _records(self.log_lines),
            "tenants": _records(self.tenants),
            "stages": [load.to_dict() for load in self.loads],
            "metrics": None if self.exposed is None else self.exposed.to_dict(),
            "notes": list(self.notes),
        }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{k: None if pd.isna(v) else v for k, v in r.items()} for r in table.to_dict("records")]


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> ServingResult:
    """Latencies and rates. Raises QuestionError where the run tells of no request and for a load that it has not."""
    told = exposed(tables)
    if (only := alone(tables)) is not None and options.get("stage") is None:
        return _exposed(only)
    lines = log_lines(tables)
    try:
        every = all_loads(tables)
    except QuestionError as e:
        if not len(lines) or tables.rows("requests"):
            raise
        raise QuestionError(f"{e.what}; {said(lines).rstrip('.')}", expected=e.expected, advice=e.advice) from e
    invalid = invalid_by(facts)
    load, notes = chosen_load(every, options.get("stage"), tables)
    notes = [*notes, *sentences(tables), *([invalid] if invalid else []), *_notes(load)]
    of = load.served
    if of is None:
        none = pd.DataFrame()
        return ServingResult(
            load=load,
            loads=tuple(every),
            rows=none,
            split=none,
            windows=none,
            tenants=none,
            failures=none,
            gaps=None,
            distributions={},
            queue_share=None,
            lost_tokens=None,
            lost_token_share=None,
            notes=tuple(notes),
            exposed=told,
            log_lines=lines,
            invalid=invalid,
        )
    found = gaps(of, engine(tables, of.origin_ns))
    lost, share = tokens_lost(of.rows)
    timed = of.timed
    distributions = {n: cumulative(timed[n].to_numpy(dtype=float)) for n in METRICS if n in timed}
    return ServingResult(
        load=load,
        loads=tuple(every),
        rows=_rows(of),
        split=split(timed),
        windows=windows(of),
        tenants=tenants(of),
        failures=failures(of.rows),
        gaps=found,
        distributions={n: d for n, d in distributions.items() if len(d)},
        queue_share=_queue_share(timed),
        lost_tokens=lost,
        lost_token_share=share,
        notes=tuple([*notes, *of.notes, *_gap_notes(found)]),
        exposed=told,
        log_lines=lines,
        invalid=invalid,
    )


def _exposed(told: Exposed) -> ServingResult:
    """Of a server's own histograms alone: means are known, quantiles lie in ranges that `exposed` tells."""
    means = {n: {"mean": h.mean} for n, h in told.latencies.items() if h.mean is not None}
    queue, first = (told.latencies.get(n) for n in ("queue_s", "ttft_s"))
    share = None
    if queue and first and queue.mean is not None and first.mean and queue.observations == first.observations:
        share = min(queue.mean / first.mean, 1.0)
    load = Load(
        stage=None,
        tool="/metrics",
        requests=told.requests,
        latency=means,
        basis=dict.fromkeys(means, "measured"),
        input_tokens=told.prompt_tokens,
        output_tokens=told.output_tokens,
    )
    if not told.latencies and told.triton is not None:
        load, share = _by_triton(told.triton)
    none = pd.DataFrame()
    return ServingResult(
        load=load,
        loads=(load,),
        rows=none,
        split=none,
        windows=none,
        tenants=none,
        failures=none,
        gaps=None,
        distributions={},
        queue_share=share,
        lost_tokens=None,
        lost_token_share=None,
        notes=told.notes,
        exposed=told,
    )


def _by_triton(told: Triton) -> tuple[Load, float | None]:
    """(the load of the model that counts, None: nothing tells a first token)."""
    one = told.models[0]
    means = {n: {"mean": v} for n, v in (("e2e_s", one.e2e_s), ("queue_s", one.queue_s)) if v is not None}
    rate = one.requests / told.span_s if told.span_s else None
    basis = dict.fromkeys([*means, *(["request_rate_per_s"] if rate is not None else [])], "measured")
    return Load(
        stage=None,
        tool="/metrics",
        requests=one.requests + (one.failed or 0),
        failed=one.failed,
        duration_s=told.span_s,
        request_rate_per_s=rate,
        latency=means,
        basis=basis,
    ), None


def chosen_load(every: list[Load], wanted: str | None, tables: Tables) -> tuple[Load, list[str]]:
    """The load asked for, and what must be said of the choice. Raises QuestionError where there is no such load."""
    if wanted is not None:
        for load in every:
            if load.stage == wanted:
                return load, []
        raise QuestionError(f"no load {wanted!r} in this run", expected=f"one of {_names(every)}")
    if not every:
        raise QuestionError("no load of this run answered a request", advice="Its latencies mean nothing.")
    if len(every) == 1:
        return every[0], []
    if all(load.served is not None and load.kept is None for load in every):
        return together(every, tables), [
            f"{len(every)} loads are taken together, request by request; one of them can be asked for {STAGE.chosen}."
        ]
    best = max(every, key=lambda load: load.output_tokens_per_s or load.request_rate_per_s or 0.0)
    return best, [
        f"This run holds {len(every)} loads, and percentiles printed for each cannot be merged into one: the "
        f"numbers are those of {best.stage or 'one without a name'}, the load with most output tokens per "
        f"second. Another can be asked for {STAGE.chosen}."
    ]


def _names(every: list[Load]) -> str:
    names = [load.stage for load in every if load.stage is not None]
    return ", ".join(names[:20]) + (" ..." if len(names) > 20 else "") or "none"


def _notes(load: Load) -> list[str]:
    told = "all that were sent, those that failed included" if load.failed is not None else NONE_FAILED_TOLD
    notes = [f"Requests are {told}; rates count completed requests, as vLLM's."]
    if load.to_send is not None and load.failed is None:
        notes.append(not_answered(load.stage or "The load", load.to_send, load.requests or 0))
    if load.served is None:
        notes.append(f"There are no single requests: all numbers are as {load.tool or 'the tool'} printed them.")
    elif load.kept is not None:
        notes.append(
            f"{load.kept:,} of {_completed(load)} completed requests are kept: counts, rates and latencies "
            f"are as {load.tool or 'the tool'} printed them{_of_kept(load)}. Shares, distributions and single "
            "requests are of those kept."
        )
    else:
        notes.append("Recomputed from single requests; percentiles are interpolated linearly, as NumPy and vLLM do.")
        printed = [m.removesuffix("_s") for m in METRICS if load.basis.get(m) == "measured"]
        if printed:
            notes.append(
                f"As {load.tool or 'the tool'} printed it, for single requests do not tell: {', '.join(printed)}."
            )
    if load.requests and load.failed == load.requests:
        notes.append("No request was answered: there is no latency.")
    if load.duration_s is None:
        rates = (load.request_rate_per_s, load.output_tokens_per_s, load.total_tokens_per_s)
        notes.append(
            "How long it took is not known: "
            + (
                "there are no rates."
                if rates == (None,) * 3
                else f"rates are as {load.tool or 'the tool'} printed them."
            )
        )
    elif load.span_s and load.duration_s > 1.02 * load.span_s:
        notes.append(
            f"The tool's own duration, {load.duration_s:.6g} s, counts for rates; first arrival to last token "
            f"took {load.span_s:.6g} s."
        )
    return notes


def _completed(load: Load) -> str:
    return f"{load.requests - (load.failed or 0):,}" if load.requests is not None else "those"


def _of_kept(load: Load) -> str:
    own = [m.removesuffix("_s") for m in METRICS if load.basis.get(m) == "derived"]
    return f"; {', '.join(own)} are of the requests kept" if own else ""


def _gap_notes(found: Gaps | None) -> list[str]:
    if found is None:
        return ["No gaps between pieces of output are recorded: nothing can be said of single stalls."]
    if found.p99_prefill_share is None:
        return ["No passes of the engine are recorded: what caused a stall is not told."]
    return []


def _queue_share(timed: pd.DataFrame) -> float | None:
    known = timed[timed["queue_s"].notna() & timed["ttft_s"].notna()]
    whole = float(known["ttft_s"].sum())
    return float(known["queue_s"].sum()) / whole if whole else None


def _rows(of: Served) -> pd.DataFrame:
    arrival = float("nan") if of.origin_ns is None else since(of.rows["arrival_ns"], of.origin_ns)
    return of.rows.assign(arrival_s=arrival)[ROWS]
