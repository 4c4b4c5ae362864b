"""What a server told of its requests at /metrics: histograms of latencies, tokens in all, and why requests waited.

Quantiles are ranges, the bounds of the bucket that they lie in; means and counts are exact. They are the server's own:
the way to the client is not in them. Between the first and the last scrape, or with one scrape since the process began.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from analyzers.serving.histograms import Histogram, Quantile, observed
from analyzers.serving.loads import loads
from analyzers.serving.read_tokens import read_in_all
from analyzers.serving.served import has_requests
from analyzers.serving.servers import samples_of_servers
from analyzers.serving.triton import Triton, triton
from analyzers.serving.untimed import SINCE_START
from runs.tables import Tables, frame

NAMES: dict[str, tuple[str, ...]] = {  # of the answer: metrics of vLLM, SGLang and TensorRT-LLM, newest first
    "ttft_s": (
        "vllm:time_to_first_token_seconds",
        "sglang:time_to_first_token_seconds",
        "trtllm_time_to_first_token_seconds",
    ),
    "tpot_s": (
        "vllm:request_time_per_output_token_seconds",
        "sglang:time_per_output_token_seconds",
        "trtllm_time_per_output_token_seconds",
    ),
    "itl_s": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
    ),
    "e2e_s": (
        "vllm:e2e_request_latency_seconds",
        "sglang:e2e_request_latency_seconds",
        "trtllm_e2e_request_latency_seconds",
    ),
    "queue_s": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds", "trtllm_request_queue_time_seconds"),
    "prefill_s": ("vllm:request_prefill_time_seconds",),
}
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
REASONS = "vllm:num_requests_waiting_by_reason{"
NOTE = (
    "From the server's own histograms: a quantile lies between the bounds of its bucket, and means are exact. The "
    "way to the client is not in them."
)


@dataclass(frozen=True)
class Exposed:
    """`latencies`: histograms by name of NAMES. `prompt_tokens`, `output_tokens`: in all, None where not told; of the
    prompts `read_tokens` were computed, and not found in a cache.
    `waiting`: requests waiting by reason, mean and max of the scrapes. `triton`: what Triton counts of any model."""

    latencies: dict[str, Histogram]
    prompt_tokens: int | None
    output_tokens: int | None
    waiting: dict[str, dict[str, float]]
    triton: Triton | None = None
    read_tokens: int | None = None

    @property
    def requests(self) -> int | None:
        """Requests answered: those whose whole latency was observed."""
        whole = self.latencies.get("e2e_s") or self.latencies.get("ttft_s")
        return None if whole is None else whole.observations

    @cached_property
    def notes(self) -> tuple[str, ...]:
        found = [NOTE] if self.latencies else []
        found += self.triton.notes if self.triton else ()
        if any(h.since_start for h in self.latencies.values()) or (self.triton and self.triton.since_start):
            found.append(SINCE_START)
        return tuple(dict.fromkeys([*found, *(n for h in self.latencies.values() for n in h.notes)]))

    def quantile(self, name: str, which: str) -> Quantile | None:
        return self.latencies[name].quantile(QUANTILES[which]) if name in self.latencies else None

    def of_all(self, name: str, share: Any) -> Any:
        """Of shares (0 to 1) of what a latency's histogram observed those of all requests: one of a single token, of
        which it tells no TPOT, keeps any objective of it."""
        observed = self.latencies[name].observations
        needless = max((self.requests or 0) - observed, 0) if name == "tpot_s" else 0
        return (share * observed + needless) / (observed + needless)

    def to_dict(self) -> dict[str, Any]:
        return {
            "completed_requests": self.requests,
            "prefilled_tokens": self.read_tokens,
            "generated_tokens": self.output_tokens,
            "waiting_by_reason": self.waiting,
            "latency": {n: _told(h) for n, h in self.latencies.items()},
            "triton": self.triton and self.triton.to_dict(),
        }


def _told(of: Histogram) -> dict[str, Any]:
    ranges = {w: {"low": x.low, "high": x.high} for w, q in QUANTILES.items() for x in [of.quantile(q)]}
    return {"metric": of.name, "observations": of.observations, "mean": of.mean, **ranges}


def exposed(tables: Tables) -> Exposed | None:
    """None where no scrape of the run tells any of it."""
    if not tables.rows("histograms") and not tables.rows("scalars"):
        return None
    found = {n: h for n, names in NAMES.items() if (h := observed(tables, *names)) is not None and h.observations}
    waiting, counted = _waiting(tables), triton(tables)
    if not found and not waiting and counted is None:
        return None
    rows = samples_of_servers(tables)[0] if tables.rows("engine") else None
    prompt, output = (None if rows is None else _tokens(rows, c) for c in ("prompt_tokens", "output_tokens"))
    return Exposed(found, prompt, output, waiting, counted, None if rows is None else read_in_all(rows))


def alone(tables: Tables) -> Exposed | None:
    """What was exposed, where the run has neither single requests nor the result of a load test, but latencies."""
    if has_requests(tables) or len(loads(tables)):
        return None
    found = exposed(tables)
    return found if found is not None and (found.latencies or found.triton) else None


def _tokens(rows: pd.DataFrame, column: str) -> int | None:
    """What a counter grew by on all servers; where each was sampled once, what they had counted."""
    rows = rows[rows[column].notna()]
    if not len(rows):
        return None
    grew = rows[f"{column}_grown"]
    return int(grew.sum() if grew.notna().any() else rows[column].sum())


def _waiting(tables: Tables) -> dict[str, dict[str, float]]:
    rows = frame(tables, "scalars", ["ts_ns", "name", "value", "source"])
    rows = rows[rows["name"].astype(str).str.startswith(REASONS).to_numpy(dtype=bool)].dropna(subset=["value"])
    if not len(rows):
        return {}
    rows = rows.assign(reason=rows["name"].astype(str).str.extract(r'reason="([^"]*)"', expand=False))
    # engines of one scrape wait at once; servers scraped apart, or in one file, are added as if they did
    server = rows["name"].astype(str).str.extract(r'\{server="([^"]*)"', expand=False).fillna("")
    whose = rows["source"].astype(str) + "\n" + server
    nth = rows.groupby([rows["name"].astype(str), rows["source"].astype(str)]).cumcount().astype("Int64")
    each = rows.groupby(["reason", whose, rows["ts_ns"].fillna(nth)])["value"].sum()
    sources = each.groupby(level=[0, 1])
    sums = pd.DataFrame({"mean": sources.mean(), "max": sources.max()}).groupby(level=0).sum()
    return {str(r): {"mean": float(x["mean"]), "max": float(x["max"])} for r, x in sums.iterrows()}
