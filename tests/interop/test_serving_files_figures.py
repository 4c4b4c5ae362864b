"""Every serving file beside the project gives its own figures, or is refused by name: read here by other code."""

import csv
import json
import re
from pathlib import Path
from statistics import fmean

import pytest
import yaml

from analyzers.serving import latency as serving
from analyzers.serving import load
from analyzers.serving import traffic as workload
from collectors.ingest import ingest
from errors import InputError, QuestionError
from errors.options import parse_options
from runs.store import Store

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FOLDERS = ("inference", "requests", "more/corrections/guidellm", "more/corrections/inferencex")
SCRAPE = "sglang_metrics_doc_llama31_8b.txt"  # its figures are compared in test_scrapes.py
FILES = sorted(p for folder in FOLDERS for p in (DATA / folder).rglob("*") if p.is_file() and p.name != SCRAPE)
LATENCIES = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "e2e_s", "e2e": "e2e_s"}
BESIDE = (
    "_prometheus_metrics.json",
    "summary_lifecycle_metrics.json",
    "__config.json",
    "__meta.json",
    "__timeseries.csv",
)  # tell of no requests by themselves
REFUSED = ("__summary.txt",)

pytestmark = pytest.mark.skipif(not FILES, reason="no serving files beside the project")


def answer(question, run):
    facts = run.manifest.facts
    return question.analyze(run.tables, facts, parse_options(question.OPTIONS, {})).to_dict()


def figures(path):
    """What the file says: keys of the answer `serving`, times as (metric, statistic); None for a template."""
    if path.suffix == ".txt" and path.parent.name == "vllm_bench_blocks":
        return _block(path.read_text())
    if "guidellm" in path.name or path.parent.name == "guidellm":
        return _guidellm(json.loads(path.read_text()))
    if path.parent.name == "inferencex":
        return _inferencex(json.loads(path.read_text()))
    if "lifecycle" in path.name:
        return _inference_perf(yaml.safe_load(path.read_text()))
    if "br_v0_2" in path.name:
        return _llm_d(yaml.safe_load(path.read_text()))
    if path.parent.name == "llmperf-leaderboard":
        return _llmperf(json.loads(path.read_text()))
    return _vllm_requests([json.loads(line) for line in path.read_text().splitlines()])


def _block(text):
    rows = dict(re.findall(r"^(\S.*?):\s+(\S+)\s*$", text, re.MULTILINE))
    if any(set(value) <= {"x", "."} for value in rows.values()):
        return None
    names = {
        "Benchmark duration (s)": "duration_s",
        "Total input tokens": "input_tokens",
        "Total generated tokens": "output_tokens",
        "Request throughput (req/s)": "request_rate_per_s",
        "Output token throughput (tok/s)": "output_tokens_per_s",
        "Successful requests": "requests",
        "Total Token throughput (tok/s)": "total_tokens_per_s",
    }
    said = {names[key]: float(value) for key, value in rows.items() if key in names}
    for key, value in rows.items():
        if found := re.fullmatch(r"(Mean|Median|P99) (\w+) \(ms\)", key):
            which = {"Mean": "mean", "Median": "p50", "P99": "p99"}[found[1]]
            said[LATENCIES[found[2].lower()], which] = float(value) / 1e3
    return said


def _guidellm(report):
    """Of the load with most output tokens per second; totals over its duration."""
    best = max(report["benchmarks"], key=lambda b: b["metrics"]["output_tokens_per_second"]["successful"]["mean"])
    metrics = best["metrics"]
    totals = metrics.get("request_totals") or best["request_totals"]
    made = metrics.get("output_token_count") or metrics["outputs_tokens"]
    tokens = made["successful"].get("total_sum")
    ttft, itl = (metrics[f"{name}_ms"]["successful"] for name in ("time_to_first_token", "inter_token_latency"))
    percentiles = ttft["percentiles"]
    return {
        "requests": totals["successful"] + totals["errored"],
        "failed": totals["errored"],
        "duration_s": best["duration"],
        "request_rate_per_s": totals["successful"] / best["duration"],
        "output_tokens": tokens,
        "output_tokens_per_s": tokens / best["duration"],
        ("ttft_s", "mean"): ttft["mean"] / 1e3,
        ("ttft_s", "p99"): percentiles["p99"] / 1e3,
        ("ttft_s", "p99.9"): percentiles["p999"] / 1e3,
        ("itl_s", "mean"): itl["mean"] / 1e3,
        ("e2e_s", "mean"): metrics["request_latency"]["successful"]["mean"],
    }


def _inferencex(said):
    found = {}
    for key, value in said.items():
        if match := re.fullmatch(r"(mean|median|std|p[\d.]+)_(ttft|tpot|itl|e2el)(_ms)?", key):
            which = {"median": "p50"}.get(match[1], match[1])
            found[LATENCIES[match[2]], which] = value / (1e3 if match[3] else 1)
    if "tput_per_gpu" in said:
        return found | {
            "output_tokens_per_s": said["output_tput_per_gpu"] * said["tp"],
            "total_tokens_per_s": said["tput_per_gpu"] * said["tp"],
        }
    return found | {
        "requests": said["completed"],
        "request_rate_per_s": said["request_throughput"],
        "output_tokens_per_s": said["output_throughput"],
        "duration_s": said["duration"],
        "total_tokens_per_s": said["total_token_throughput"],
    }


def _inference_perf(stage):
    done, names = (
        stage["successes"],
        {
            "time_to_first_token": "ttft_s",
            "time_per_output_token": "tpot_s",
            "inter_token_latency": "itl_s",
            "request_latency": "e2e_s",
        },
    )
    said = {
        "requests": done["count"] + stage["failures"]["count"],
        "failed": stage["failures"]["count"],
        "request_rate_per_s": done["throughput"]["requests_per_sec"],
        "output_tokens_per_s": done["throughput"]["output_tokens_per_sec"],
        "total_tokens_per_s": done["throughput"]["total_tokens_per_sec"],
    }
    which = {"mean": "mean", "median": "p50", "p99": "p99", "p99.9": "p99.9"}
    return said | {(ours, w): done["latency"][theirs][k] for theirs, ours in names.items() for k, w in which.items()}


def _llm_d(report):
    whole = report["results"]["request_performance"]["aggregate"]
    requests, rates = whole["requests"], whole["throughput"]
    return {
        "requests": requests["total"],
        "failed": requests["failures"],
        "request_rate_per_s": rates["request_rate"]["mean"],
        "output_tokens_per_s": rates["output_token_rate"]["mean"],
        ("ttft_s", "mean"): whole["latency"]["time_to_first_token"]["mean"],
        ("ttft_s", "p99.9"): whole["latency"]["time_to_first_token"]["p99p9"],
    }


def _llmperf(entries):
    good = [e for e in entries if e["error_code"] is None]
    return {
        "requests": len(entries),
        "failed": len(entries) - len(good),
        ("ttft_s", "mean"): fmean(e["ttft_s"] for e in good),
        ("e2e_s", "mean"): fmean(e["end_to_end_latency_s"] for e in good),
    }


def _vllm_requests(rows):
    return {
        "requests": len(rows),
        "output_tokens": sum(r["output_toks"] for r in rows),
        ("ttft_s", "mean"): fmean(r["first_token_ts"] - r["queued_ts"] for r in rows),
        ("e2e_s", "mean"): fmean(r["last_token_ts"] - r["queued_ts"] for r in rows),
        "duration_s": max(r["last_token_ts"] for r in rows) - min(r["queued_ts"] for r in rows),
    }


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name[-60:])
def test_a_file_gives_its_own_figures_or_is_refused(path, tmp_path):
    store = Store(tmp_path / "store")
    if path.name.endswith(REFUSED):
        with pytest.raises(InputError, match="no file of a known format"):
            ingest([path], store)
        return
    if path.is_relative_to(DATA / "requests"):
        _as_traffic(path, store)
        return
    if not path.name.endswith(BESIDE) and figures(path) is None:
        with pytest.raises(InputError, match="template"):
            ingest([path], store)
        return
    run = store.get(ingest([path], store).run_id)
    if path.name.endswith(BESIDE):
        with pytest.raises(QuestionError, match="no record of requests"):
            answer(serving, run)
        return
    said, wanted = answer(serving, run), figures(path)
    assert len(wanted) > 3
    block = path.suffix == ".txt"  # two digits are printed behind the point, of the duration too
    least, share = (6e-3, 1e-5) if block else (5e-6, 1e-6)
    for key, value in wanted.items():
        got = said[key[0]].get(key[1]) if isinstance(key, tuple) else said[key]
        assert got == pytest.approx(value, rel=share, abs=5e-6 if isinstance(key, tuple) else least), key
    assert not any("there are no rates" in note for note in said["notes"]) or said["request_rate_per_s"] is None
    drawn = {one["stage"]: one for one in answer(load, run)["loads"]}
    one = drawn[said["stage"]] if said["stage"] in drawn else next(iter(drawn.values()))
    for key in ("request_rate_per_s", "output_tokens_per_s"):
        if wanted.get(key) is not None:
            assert one[key] == pytest.approx(wanted[key], rel=share, abs=least), f"load {key}"


def _as_traffic(path, store):
    """A trace: how many came, and with how many tokens."""
    if path.suffix == ".csv":
        with path.open(newline="") as f:
            rows = [(int(r["ContextTokens"]), int(r["GeneratedTokens"])) for r in csv.DictReader(f)]
    else:
        lines = (json.loads(line) for line in path.read_text().splitlines())
        rows = [(r["input_length"], r["output_length"]) for r in lines]
    run = store.get(ingest([path], store).run_id)
    said = answer(workload, run)
    assert said["requests"] == len(rows)
    for key, column in (("prompt_tokens", 0), ("output_tokens", 1)):
        assert said[key]["mean"] == pytest.approx(fmean(row[column] for row in rows))
