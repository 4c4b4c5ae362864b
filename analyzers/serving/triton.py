"""What Triton tells at /metrics of any model that it serves: counters of requests and of the time that they took.

    nv_inference_request_success, _failure     requests answered, and not
    nv_inference_count, _exec_count            inferences, and executions of the model: their ratio is the mean batch
    nv_inference_request_duration_us           from arrival to the answer, all requests answered together
    nv_inference_queue_duration_us             of that in the queue; _compute_input_, _infer_ and _output_ in the model
    nv_inference_pending_request_count         requests in the queue at the moment of a scrape
    nv_gpu_utilization                         share of the time that a GPU was busy, by Triton's own sampling
(Triton Inference Server, user guide, metrics.) Counters give means and no quantiles; tokens are not counted. An
ensemble counts each request again at every model that it is made of: the time of its own requests holds that of theirs.

Triton does not say when its process was started. Inputs are of one server where one goes on after the other has ended,
or, without times, where both name the same GPUs and no counter falls from one to the other; never where the GPUs that
they name differ. Where a counter falls the process began anew, and with it all counters of that server.
"""

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from runs.tables import Tables, frame

PREFIX = "nv_inference_"
BUSY = "nv_gpu_utilization"
PENDING = f"{PREFIX}pending_request_count"
QUANTILE = 'quantile="'  # a label of summaries (--metrics-config summary_latencies=true), next to their counters
NOTE = (
    "From Triton's counters: means are exact, quantiles, first tokens and counts of tokens are not told. Requests "
    "that failed are in no time."
)
SEVERAL = (
    "Triton counts a request at each model that it passes through, an ensemble's steps too: the numbers are "
    "those of {name}, whose requests took the most time in all."
)
ONCE = "Scraped once, and so left out of what Triton counts, are {names}: what they tell is since their process began."
AGAIN = "Triton's counters began anew {often}: its process was started again."
_LABEL = re.compile(r'\bmodel="([^"]*)"')
_GPU = re.compile(r'\bgpu_uuid="([^"]*)"')


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
    """`models`: that whose requests took most time first. `span_s`: from the first scrape to the last, None where that
    is not known. `gpu_busy`: mean share over GPUs and scrapes. `since_start`: no server was scraped twice, and counts
    are since each began."""

    models: tuple[TritonModel, ...]
    span_s: float | None
    gpu_busy: float | None
    since_start: bool
    said: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        several = (SEVERAL.format(name=self.models[0].name),) if len(self.models) > 1 else ()
        return (NOTE, *several, *self.said)

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
        series=name.astype(str),
        metric=name.str.partition("{")[0].str.removesuffix("_total"),
        model=name.str.extract(_LABEL, expand=False).fillna("a model without a name"),
    )
    counted = rows[rows["metric"] == f"{PREFIX}request_success"]
    if not len(counted):
        return None
    rows = rows.assign(**_servers(rows))
    told = _counters(rows)
    scrapes = told.groupby("server")["at"].nunique()
    once = sorted(scrapes.index[scrapes == 1]) if (scrapes > 1).any() else []
    grew, restarts = _grown(told[~told["server"].isin(once)])
    models = sorted(
        (_model(str(n), mine, grew.get(str(n), {})) for n, mine in rows.groupby("model", sort=False) if n in grew),
        key=lambda m: -(m.e2e_s or 0.0) * m.requests,
    )
    times = counted.loc[~rows.loc[counted.index, "server"].isin(once), "ts_ns"].dropna()
    span = (int(times.max()) - int(times.min())) / 1e9 if len(times) else 0.0
    busy = rows.loc[rows["metric"] == BUSY, "value"].astype(float)
    said = [ONCE.format(names=", ".join(once[:5]))] * bool(once)
    said += [AGAIN.format(often="once" if restarts == 1 else f"{restarts} times")] * bool(restarts)
    return Triton(
        tuple(models), span or None, float(busy.mean()) if len(busy) else None, not (scrapes > 1).any(), tuple(said)
    )


def _model(name: str, rows: pd.DataFrame, grew: dict[str, float]) -> TritonModel:
    requests = grew.get("request_success") or 0.0

    def mean(*parts: str) -> float | None:
        told = [grew[p] for p in parts if p in grew]
        return sum(told) / 1e6 / requests if len(told) == len(parts) and requests else None

    executed, failed = grew.get("exec_count"), grew.get("request_failure")
    pending = rows.loc[rows["metric"] == PENDING]
    return TritonModel(
        name,
        round(requests),
        None if failed is None else round(failed),
        mean("request_duration_us"),
        mean("queue_duration_us"),
        mean("compute_input_duration_us", "compute_infer_duration_us", "compute_output_duration_us"),
        mean("compute_infer_duration_us"),
        grew["count"] / executed if executed and "count" in grew else None,
        float(pending.groupby(["series", "server"])["value"].mean().sum()) if len(pending) else None,
    )


def _grown(rows: pd.DataFrame) -> tuple[dict[str, dict[str, float]], int]:
    """(what each counter of each model grew by, all its series (versions, reasons) and servers together, how often a
    process began anew). Of a server that was scraped once: since its start."""
    grew: dict[str, dict[str, float]] = {}
    restarts = 0
    of = {str(s): (str(m), str(k)) for s, m, k in rows[["series", "model", "metric"]].drop_duplicates().to_numpy()}
    for _, mine in rows.groupby("server", sort=False):
        table = mine.pivot_table(index="at", columns="series", values="value", aggfunc="first").astype(float)
        anew = (table < table.ffill().shift()).any(axis=1)  # one counter that fell means that all began anew
        restarts += int(anew.sum())
        reached = table.groupby(anew.cumsum()).last().sum()
        grown = reached if len(table) == 1 else reached - table.iloc[0].fillna(0.0)
        for series, amount in grown.items():
            model, metric = of[str(series)]
            told, name = grew.setdefault(model, {}), metric.removeprefix(PREFIX)
            told[name] = told.get(name, 0.0) + float(amount)
    return grew, restarts


def _servers(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """`server`: its first input, `at`: the place of the scrape among those of the server."""
    source = rows["source"].astype("string").fillna("")
    at = rows["ts_ns"].astype("Int64").fillna(rows.groupby([source, "series"]).cumcount().astype("Int64"))
    chains: list[list[str]] = []
    inputs = {str(name): mine for name, mine in rows.groupby(source)}
    for name in sorted(inputs, key=lambda n: _begin(inputs[n])):
        chain = next((c for c in chains if _goes_on(inputs[c[-1]], inputs[name])), None)
        chains.append([name]) if chain is None else chain.append(name)
    place = {name: (chain[0], n) for chain in chains for n, name in enumerate(chain)}
    # inputs without times come one after the other
    later = source.map({name: n for name, (_, n) in place.items()}).astype("Int64").where(rows["ts_ns"].isna(), 0)
    return {"server": source.map({name: first for name, (first, _) in place.items()}), "at": at + later * len(rows)}


def _begin(rows: pd.DataFrame) -> tuple[float, float]:
    """By what the inputs of one server are put in order: their time, else what they counted."""
    counts = rows.loc[rows["metric"] == f"{PREFIX}request_success", "value"].astype(float)
    return float(rows["ts_ns"].min()) if rows["ts_ns"].notna().any() else -1.0, float(counts.sum())


def _goes_on(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """Whether a later input may tell of the server of an earlier one."""
    one, other = (set(rows["series"].str.extract(_GPU, expand=False).dropna()) for rows in (before, after))
    if one and other and one != other:
        return False
    timed = [rows["ts_ns"].notna().all() for rows in (before, after)]
    if all(timed):
        return bool(before["ts_ns"].max() < after["ts_ns"].min())
    if any(timed) or not one or not other:
        return False
    last, first = (_counters(rows).groupby("series")["value"] for rows in (before, after))
    step = first.first() - last.last()
    return bool((step > 0).any() and not (step < 0).any())


def _counters(rows: pd.DataFrame) -> pd.DataFrame:
    """Without what may fall while a process goes on: requests that wait, and quantiles of summaries."""
    level = (rows["metric"] == PENDING) | rows["series"].str.contains(QUANTILE, regex=False)
    return rows[rows["metric"].str.startswith(PREFIX) & ~level]
