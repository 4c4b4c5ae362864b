"""Which load of a run a simulation is held to: a load test holds several, and each is a test of its own.

Between loads a server is at rest, and a sweep's loads are unlike one another: read together they would be one queue
that nobody had. A load of which a tool kept a sample of the requests cannot be served again: those that are not kept
took room and time too.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyzers.serving.latency.summary import Load, all_loads
from analyzers.serving.loads_told_twice import told_twice
from analyzers.serving.served import has_requests
from errors import QuestionError
from runs.tables import RowsOf, Tables
from simulators.serving.calibrate import FEWEST

if TYPE_CHECKING:
    from runs.run import Run


@dataclass(frozen=True)
class LoadOf:
    """`tables`: with the requests of one load alone. `name`: of the run and, where it has several, its load. `stage`:
    the load's name. `notes`: what must be said of the choice."""

    tables: Tables
    name: str
    stage: str | None = None
    notes: tuple[str, ...] = ()


def load_of(run: "Run", stage: str | None = None) -> LoadOf:
    """The load `stage`; without a name the only one, else the busiest with requests enough to calibrate on.

    Raises QuestionError where there is no such load, where its tool kept only a sample of its requests, and, saying how
    to record them, where the run has no single requests.
    """
    if not run.tables.rows("requests"):
        raise QuestionError(
            f"{run.manifest.name} has no single requests, only what others summed up of them",
            expected="the time, lengths and latencies of each request, to calibrate on",
            advice="Record them: vllm bench serve --save-result --save-detailed, SGLang's bench_serving --output-file "
            "--output-details, profile_export.jsonl of AIPerf, guidellm's JSON, or a CSV of your own with "
            "timestamp, input_tokens, output_tokens, cached_tokens, ttft_s and e2e_s.",
        )
    return load_in(run.tables, run.manifest.name, stage)


def load_in(tables: Tables, name: str, stage: str | None = None) -> LoadOf:
    """The same of the tables of a file."""
    if not has_requests(tables):  # a trace of traffic, or nothing at all: who reads it says so
        if stage is not None:
            raise QuestionError(f"{name} has no load {stage!r}", expected="a run of a load test, with single requests")
        return LoadOf(tables, name)
    loads = [load for load in all_loads(tables, times=False) if load.served is not None]
    chosen = _chosen(loads, name, stage)
    if (counted := _counted(chosen)) is not None:
        of = f"load {chosen.stage} of {name}" if len(loads) > 1 else name
        raise QuestionError(
            f"{of} holds {chosen.kept:,} of the {counted:,} requests that its tool counted: a queue cannot be served "
            "again from a sample of it",
            advice="Run the load test again so that it keeps every request, or name another run.",
        )
    if len(loads) == 1 and not told_twice(tables):
        return LoadOf(tables, name, chosen.stage)
    assert chosen.served is not None
    mine = RowsOf(tables, "requests", np.sort(chosen.served.order))
    if len(loads) == 1:
        return LoadOf(mine, name, chosen.stage)
    label = f"{name}, load {chosen.stage or 'without a name'}"
    why = "as asked" if stage is not None else "the busiest that is kept whole; --stage names another"
    said = f"{name} holds {len(loads)} loads: {chosen.stage or 'the one without a name'} counts, {why}."
    return LoadOf(mine, label, chosen.stage, (said,))


def _chosen(loads: list[Load], name: str, stage: str | None) -> Load:
    if stage is not None:
        for load in loads:
            if load.stage == stage:
                return load
        names = [load.stage for load in loads if load.stage is not None]
        raise QuestionError(
            f"{name} has no load {stage!r} with single requests", expected=f"one of {', '.join(names[:20]) or 'none'}"
        )
    whole = [load for load in loads if _counted(load) is None] or loads
    enough = [load for load in whole if _timed(load) >= 2 * FEWEST]
    return max(enough, key=_busy) if enough else max(whole, key=_timed)


def _counted(load: Load) -> int | None:
    """The completed requests that the tool counted, where fewer of them are kept; else None."""
    counted = (load.requests or 0) - (load.failed or 0)
    return counted if load.kept is not None and load.kept < counted else None


def _timed(load: Load) -> int:
    """Requests with both times, which are what a fit sees."""
    rows = load.served.timed
    return int((rows["ttft_s"].notna() & rows["tpot_s"].notna()).sum())


def _busy(load: Load) -> tuple[float, int]:
    return load.output_tokens_per_s or load.request_rate_per_s or 0.0, _timed(load)
