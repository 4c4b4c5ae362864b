"""Real files of vLLM's benchmarks and engine, where they lie beside the project, against arithmetic of their own."""

import csv
import json
import re
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest

from catalog.models import model
from collectors import COLLECTORS
from collectors.base import Source
from collectors.ingest import ingest
from collectors.serving import vllm_bench, vllm_requests
from errors import InputError
from runs.store import Store
from runs.tables import frame
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "inference"
BLOCKS = sorted((SHARED / "vllm_bench_blocks").glob("*.txt"))
SERVED = sorted((SHARED / "llmservingsim").glob("*__vllm__requests.jsonl"))

needs_blocks = pytest.mark.skipif(not BLOCKS, reason="no printed results of vllm bench beside the project")
needs_served = pytest.mark.skipif(not SERVED, reason="no runs of vLLM beside the project")


def source(path):
    return Source(path, path.name)


@needs_blocks
@pytest.mark.parametrize("path", BLOCKS, ids=lambda p: p.name)
def test_printed_results_are_read_as_printed_and_templates_refused(path):
    printed = dict(re.findall(r"^(\S.*?):\s+(\S+)\s*$", path.read_text(), re.MULTILINE))
    assert vllm_bench.sniff(source(path)) >= 0.5
    if any(set(value) <= {"x", "."} for value in printed.values()):
        with pytest.raises(InputError, match="template"):
            read(vllm_bench, source(path))
        return
    got = read(vllm_bench, source(path))
    [stage] = got.rows["stages"]
    assert got.lost == []
    columns = {
        "Successful requests": "completed",
        "Failed requests": "failed",
        "Maximum request concurrency": "max_concurrency",
        "Benchmark duration (s)": "duration_s",
        "Total input tokens": "input_tokens",
        "Total generated tokens": "output_tokens",
        "Request throughput (req/s)": "request_rate_per_s",
        "Output token throughput (tok/s)": "output_tokens_per_s",
        "Peak concurrent requests": "peak_concurrency",
        "Peak output token throughput (tok/s)": "peak_output_tokens_per_s",
        "Total Token throughput (tok/s)": "total_tokens_per_s",
    }
    for label, column in columns.items():
        assert stage[column] == float(printed.pop(label)), label
    words = {"Mean": "mean", "Median": "p50", "P99": "p99"}
    stats = {(r["metric"], r["statistic"]): r["value"] for r in got.rows["stage_stats"]}
    for label, value in printed.items():
        which, metric, unit = label.split()
        assert unit == "(ms)"
        assert f"{1e3 * stats.pop((metric.lower(), words[which])):.2f}" == value
    assert stats == {}


@needs_served
@pytest.mark.parametrize("path", SERVED, ids=lambda p: p.name.split("__")[1])
def test_requests_keep_the_times_that_vllm_wrote(path):
    raw = [json.loads(line) for line in path.read_text().splitlines()]
    rows = read(vllm_requests, source(path)).rows["requests"]
    assert len(rows) == len(raw) == 300 and {r["status"] for r in rows} == {"completed"}
    shift = min(r["queued_ts"] - r["arrival_time"] for r in raw)
    for row, r in zip(rows, raw, strict=True):
        assert (row["id"], row["prompt_tokens"], row["output_tokens"]) == (
            r["request_id"],
            r["input_toks"],
            r["output_toks"],
        )
        for ours, theirs in (
            ("scheduled_ns", "scheduled_ts"),
            ("first_token_ns", "first_token_ts"),
            ("last_token_ns", "last_token_ts"),
        ):
            assert (row[ours] - row["arrival_ns"]) / 1e9 == pytest.approx(r[theirs] - r["queued_ts"], abs=1e-6)
        # On the calendar of the client, which sent it no later than it reached the engine.
        assert row["arrival_ns"] / 1e9 >= r["arrival_time"] - 1e-6
        assert row["arrival_ns"] / 1e9 == pytest.approx(r["queued_ts"] - shift, abs=1e-6)


@needs_served
@pytest.mark.parametrize("path", SERVED, ids=lambda p: p.name.split("__")[1])
def test_the_published_summary_follows_from_the_rows(path):
    """Its times to a first token begin when the engine queued the request, and so do ours."""
    summary = path.with_name(path.name.replace("__vllm__requests.jsonl", "__validation__summary.txt"))
    said = {
        tuple(line.split()[:2]): float(line.split()[2])
        for line in summary.read_text().splitlines()
        if line.startswith(("TTFT", "TPOT", "Latency"))
    }
    rows = read(vllm_requests, source(path)).rows["requests"]
    ttft, tpot, latency = [], [], []
    for row in rows:
        ttft.append((row["first_token_ns"] - row["arrival_ns"]) / 1e6)
        latency.append((row["last_token_ns"] - row["arrival_ns"]) / 1e6)
        tpot.append((row["last_token_ns"] - row["first_token_ns"]) / 1e6 / (row["output_tokens"] - 1))
    for name, values in (("TTFT", ttft), ("TPOT", tpot), ("Latency", latency)):
        assert fmean(values) == pytest.approx(said[name, "Mean"], abs=0.06)
        assert median(values) == pytest.approx(said[name, "Median"], abs=0.06)
        for p in (90, 95, 99):
            assert np.percentile(values, p) == pytest.approx(said[name, f"P{p}"], abs=0.06)


@needs_served
@pytest.mark.parametrize("path", SERVED, ids=lambda p: p.name.split("__")[1])
def test_a_folders_files_are_one_run(path, tmp_path):
    name = path.name.split("__")[1]
    files = sorted(path.parent.glob(f"RTXPRO6000__{name}__*"))
    store = Store(tmp_path / "store")
    done = ingest(files, store, name=name)
    run = store.get(done.run_id)
    facts = {k: v.value for k, v in run.manifest.facts.items()}
    tensor = {"Llama-3.1-8B": 1, "Qwen3-32B": 2}[name]
    assert (facts["chip"], facts["chips"], facts["tensor_parallel_size"]) == ("RTX PRO 6000 Server", tensor, tensor)
    assert model(facts["model"]).name == name.lower().replace("llama-", "llama")
    assert (facts["max_num_seqs"], facts["max_num_batched_tokens"], facts["engine_version"]) == (128, 2048, "0.19.0")
    assert run.manifest.kind == "serving" and done.tables["requests"] == 300
    [said] = [w for w in done.warnings if "not recognised" in w or "says" in w]
    assert said.startswith(f"RTXPRO6000__{name}__validation__summary.txt: not recognised, passed over. Looks like text")
    with next(f for f in files if f.name.endswith(".csv")).open() as f:
        raw = list(csv.DictReader(f))
    engine = frame(run.tables, "engine").sort_values("order")
    assert engine["running"].tolist() == [int(r["running"]) for r in raw]
    assert engine["ts_ns"].tolist() == [round(float(r["t"]) * 1e9) for r in raw]
    assert engine["output_tokens_per_s"].tolist() == [float(r["gen_throughput"]) for r in raw]
    assert engine["kv_usage"].isna().all() and facts["engine_times"] == "since start"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no inference files beside the project")
def test_no_collector_takes_anothers_file():
    for path in sorted(p for p in SHARED.rglob("*") if p.is_file()):
        sure = [c.NAME for c in COLLECTORS if c.sniff(source(path)) >= 0.5]
        assert len(sure) <= 1, f"{path.name}: {sure}"
