"""What Triton tells at /metrics of any model that it serves: counters of requests and of the time that they took.

    nv_inference_request_success, _failure     requests answered, and not
    nv_inference_count, _exec_count            inferences, and executions of the model: their ratio is the mean batch
    nv_inference_request_duration_us           from arrival to the answer, all requests answered together
    nv_inference_queue_duration_us             of that in the queue; _compute_input_, _infer_ and _output_ in the model
    nv_inference_pending_request_count         requests in the queue at the moment of a scrape
    nv_gpu_utilization                         share of the time that a GPU was busy, by Triton's own sampling
(Triton Inference Server, user guide, metrics.) Counters give means and no quantiles; tokens are not counted. An
ensemble counts each request again at every model that it is made of: the time of its own requests holds that of theirs.
"""

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analyzers.serving.counters import increase
from runs.tables import Tables, frame

PREFIX = "nv_inference_"
BUSY = "nv_gpu_utilization"
NOTE = (
    "From Triton's counters: means are exact, quantiles, first tokens and counts of tokens are not told. Requests "
    "that failed are in no time."
)
SEVERAL = (
    "Triton counts a request at each model that it passes through, an ensemble's steps too: the numbers are "
    "those of {name}, whose requests took the most time in all."
)
_LABEL = re.compile(r'\bmodel="([^"]*)"')


@dataclass(frozen=True)
class TritonModel:
    """`requests`: answered; `failed`; means of those answered in seconds, `compute_s` of input, model and output
    together; None where not told. `batch`: inferences of one execution. `waiting`: mean of the scrapes."""

    name: str
    requests: int
    failed: int | None
    e2e_s: float | None
    queue_s: float | None
    compute_s: float | None
    infer_s: float | None
    batch: float | None
    waiting: float | None


@dataclass(frozen=True)
class Triton:
    """`models`: that whose requests took most time first. `span_s`: from the first scrape to the last, None where there
    is one: counts are then since the server began. `gpu_busy`: mean share over GPUs and scrapes."""

    models: tuple[TritonModel, ...]
    span_s: float | None
    gpu_busy: float | None

    @property
    def notes(self) -> tuple[str, ...]:
        return (NOTE, SEVERAL.format(name=self.models[0].name)) if len(self.models) > 1 else (NOTE,)

    def to_dict(self) -> dict[str, Any]:
        return {"models": [dict(vars(m)) for m in self.models], "span_s": self.span_s, "gpu_busy": self.gpu_busy}


def triton(tables: Tables) -> Triton | None:
    """None where no scrape tells Triton's counters of requests."""
    rows = frame(tables, "scalars", ["ts_ns", "name", "value", "source"])
    name = rows["name"].astype(str)
    rows = rows[(name.str.startswith(PREFIX) | name.str.startswith(BUSY)).to_numpy(dtype=bool)].dropna(subset=["value"])
    if not len(rows):
        return None
    name = rows["name"].astype(str)
    rows = rows.assign(
        series=name,
        metric=name.str.partition("{")[0].str.removesuffix("_total"),
        model=name.str.extract(_LABEL, expand=False).fillna("a model without a name"),
    )
    counted = rows[rows["metric"] == f"{PREFIX}request_success"]
    if not len(counted):
        return None
    models = sorted(
        (_model(str(n), mine) for n, mine in rows[rows["metric"] != BUSY].groupby("model", sort=False)),
        key=lambda m: -(m.e2e_s or 0.0) * m.requests,
    )
    times = counted["ts_ns"].dropna()
    span = (int(times.max()) - int(times.min())) / 1e9 if len(times) else 0.0
    busy = rows.loc[rows["metric"] == BUSY, "value"].astype(float)
    return Triton(tuple(models), span or None, float(busy.mean()) if len(busy) else None)


def _model(name: str, rows: pd.DataFrame) -> TritonModel:
    grew = {str(m).removeprefix(PREFIX): _grew(mine) for m, mine in rows.groupby("metric", sort=False)}
    requests = grew.get("request_success") or 0.0

    def mean(*parts: str) -> float | None:
        told = [grew[p] for p in parts if p in grew]
        return sum(told) / 1e6 / requests if len(told) == len(parts) and requests else None

    executed, failed = grew.get("exec_count"), grew.get("request_failure")
    pending = rows.loc[rows["metric"] == f"{PREFIX}pending_request_count"]
    return TritonModel(
        name,
        round(requests),
        None if failed is None else round(failed),
        mean("request_duration_us"),
        mean("queue_duration_us"),
        mean("compute_input_duration_us", "compute_infer_duration_us", "compute_output_duration_us"),
        mean("compute_infer_duration_us"),
        grew["count"] / executed if executed and "count" in grew else None,
        float(pending.groupby("series")["value"].mean().sum()) if len(pending) else None,
    )


def _grew(rows: pd.DataFrame) -> float:
    """What a counter grew by, all its series (versions, reasons, servers) together; one sample: since the start."""
    total = 0.0
    for _, mine in rows.sort_values("ts_ns", kind="stable").groupby(["series", "source"], sort=False, observed=True):
        values = mine["value"].astype(float).to_numpy()
        total += float(values[0]) if len(values) == 1 else increase(values) or 0.0
    return total
