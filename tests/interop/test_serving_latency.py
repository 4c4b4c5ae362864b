"""Latency against the summaries that came with two recorded vLLM runs, and against llmperf's own records.

The summaries count from when a request reached the engine, and so does the collector.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from analyzers.serving import latency as serving
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from runs.tables import MemoryTables

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "inference"
RUNS = DATA / "llmservingsim"
MODELS = ("Llama-3.1-8B", "Qwen3-32B")
METRICS = {"TTFT": "ttft_s", "TPOT": "tpot_s", "Latency": "e2e_s"}
WHICH = {"Mean": "mean", "Median": "p50", "P90": "p90", "P95": "p95", "P99": "p99"}

pytestmark = pytest.mark.skipif(not RUNS.exists(), reason="no recorded vLLM runs beside the project")


def ask(tables):
    return serving.analyze(tables, {}, parse_options(serving.OPTIONS, {}))


def stated(model: str) -> dict[tuple[str, str], float]:
    """{(metric, statistic): seconds} of the vLLM column of a summary."""
    text = (RUNS / f"RTXPRO6000__{model}__validation__summary.txt").read_text()
    rows = re.findall(r"^(TTFT|TPOT|Latency) (\w+)\s+([\d.]+)", text, re.MULTILINE)
    return {(METRICS[m], WHICH[w]): float(v) / 1e3 for m, w, v in rows}


@pytest.mark.parametrize("model", MODELS)
def test_every_stated_number_is_recomputed_within_its_rounding(model):
    lines = (RUNS / f"RTXPRO6000__{model}__vllm__requests.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    names = {
        "arrival_ns": "queued_ts",
        "scheduled_ns": "scheduled_ts",
        "first_token_ns": "first_token_ts",
        "last_token_ns": "last_token_ts",
    }
    columns = {ours: [round(r[theirs] * 1e9) for r in rows] for ours, theirs in names.items()}
    columns |= {
        "id": [r["request_id"] for r in rows],
        "prompt_tokens": [r["input_toks"] for r in rows],
        "output_tokens": [r["output_toks"] for r in rows],
        "status": ["completed"] * len(rows),
    }
    load = ask(MemoryTables({"requests": columns})).load
    said = stated(model)
    assert len(said) == 15 and load.requests == 300
    for (metric, which), value in said.items():
        assert load.statistic(metric, which) == pytest.approx(value, abs=0.0501e-3), (metric, which)


@pytest.mark.parametrize("model", MODELS)
def test_the_ingested_run_says_the_same(model, tmp_path):
    store = Store(tmp_path)
    done = ingest(sorted(RUNS.glob(f"RTXPRO6000__{model}__vllm__*")), store)
    load = ask(store.get(done.run_id).tables).load
    assert (load.requests, load.failed) == (300, 0)
    for (metric, which), value in stated(model).items():
        assert load.statistic(metric, which) == pytest.approx(value, abs=0.0501e-3), (metric, which)
    assert load.latency["queue_s"]["mean"] / load.latency["ttft_s"]["mean"] > 0.97


def test_llmperf_records(tmp_path):
    path = DATA / "llmperf-leaderboard" / "individual__anyscale_7b.json"
    records = [r for r in json.loads(path.read_text()) if r["error_code"] is None]
    store = Store(tmp_path)
    load = ask(store.get(ingest([path], store).run_id).tables).load
    first, whole = (np.array([r[k] for r in records]) for k in ("ttft_s", "end_to_end_latency_s"))
    tokens = np.array([r["number_output_tokens"] for r in records])
    for metric, values in (("ttft_s", first), ("e2e_s", whole), ("tpot_s", (whole - first) / (tokens - 1))):
        want = (values.mean(), *np.percentile(values, [50, 99]))
        assert [load.statistic(metric, s) for s in ("mean", "p50", "p99")] == pytest.approx(want, rel=1e-6), metric
    assert load.duration_s is None and load.output_tokens_per_s is None
