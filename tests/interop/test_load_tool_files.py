"""Real reports of load tools, where they lie beside the project: every number they state is read, and nothing twice."""

import json
import os
from pathlib import Path

import pytest
import yaml

from analyzers.serving.loads import loads, printed
from analyzers.serving.served import served
from collectors import COLLECTORS
from collectors.base import Source
from collectors.ingest import ingest
from collectors.serving import guidellm, inference_perf, llm_d, llmperf
from runs.store import Store
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
INFERENCE = SHARED / "data" / "inference"
STAGES = sorted((INFERENCE / "inference-perf").glob("*__stage_*_lifecycle_metrics.json"))
SERVER = sorted((INFERENCE / "inference-perf").glob("*__stage_*_prometheus_metrics.json"))
LLMPERF = sorted((INFERENCE / "llmperf-leaderboard").glob("*.json"))
REPORT = INFERENCE / "llm-d-benchmark" / "llmdbenchmark__analysis__benchmark_report__br_v0_2_1_example.yaml"
SWEEP = INFERENCE / "llm-d-benchmark" / "tests__fixtures__guidellm_report_v2.json"
LIFECYCLE = INFERENCE / "llm-d-benchmark" / "tests__fixtures__inference_perf_lifecycle.yaml"
MINE = {"inference-perf": inference_perf, "llmperf": llmperf, "llm-d": llm_d, "guidellm": guidellm}
LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2e",
    "normalized_time_per_output_token": "normalized_tpot",
}
LENGTHS = {"input_length": "prompt_tokens", "output_length": "output_tokens"}

pytestmark = pytest.mark.skipif(not STAGES, reason="no reports of load tools beside the project")


def found_in(collector, path):
    return read(collector, Source(path, path.name))


def stats(found):
    return {(r["stage"], r["metric"], r["statistic"]): r["value"] for r in found.rows.get("stage_stats", [])}


def as_ours(statistic):
    return {"median": "p50"}.get(statistic, statistic)


def test_each_file_goes_to_its_collector_and_no_other_is_taken():
    for folder, _, files in os.walk(SHARED / "data"):
        for name in files:
            source = Source(Path(folder) / name, name)
            scores = {c.NAME: score for c in COLLECTORS if (score := c.sniff(source)) > 0}
            wanted = {"inference-perf": "inference-perf", "llmperf-leaderboard": "llmperf", "guidellm": "guidellm"}.get(
                Path(folder).name
            )
            wanted = {REPORT: "llm-d", SWEEP: "guidellm", LIFECYCLE: "inference-perf"}.get(source.path, wanted)
            if wanted:
                assert max(scores, key=scores.get) == wanted, name
            assert not (scores.keys() & MINE.keys()) - {wanted}, name


@pytest.mark.parametrize("path", [*STAGES, LIFECYCLE], ids=lambda path: path.name[-60:])
def test_a_stage_of_inference_perf(path):
    report = yaml.safe_load(path.read_text())  # JSON is YAML
    found = found_in(inference_perf, path)
    (load,), good = found.rows["stages"], report["successes"]
    rates = good["throughput"]
    assert (load["completed"], load["failed"]) == (good["count"], report["failures"]["count"])
    assert load["requested_rate_per_s"] == report["load_summary"]["requested_rate"]
    assert load["request_rate_per_s"] == rates["requests_per_sec"]
    assert load["output_tokens_per_s"] == rates["output_tokens_per_sec"]
    assert load["total_tokens_per_s"] == rates["total_tokens_per_sec"]
    # Tokens and duration are told apart in old reports: the rates tie them together.
    assert load["input_tokens"] / load["duration_s"] == pytest.approx(rates["input_tokens_per_sec"], rel=1e-9)
    assert load["output_tokens"] / load["duration_s"] == pytest.approx(rates["output_tokens_per_sec"], rel=1e-9)
    wanted = {
        (ours, as_ours(name)): value
        for theirs, ours in LATENCIES.items()
        for name, value in good["latency"][theirs].items()
    }
    others = {
        "schedule_delay": report["load_summary"]["schedule_delay"],
        "prompt_tokens": good.get("prompt_len"),
        "output_tokens": good["output_len"],
    }
    for metric, distribution in others.items():
        wanted |= {(metric, as_ours(name)): value for name, value in (distribution or {}).items()}
    said = {key[1:]: value for key, value in stats(found).items()}
    assert wanted.items() <= said.items() and len(wanted) > 80
    assert not found.lost


def test_what_the_server_of_a_stage_said():
    for path in SERVER:
        report, found = json.loads(path.read_text())["successes"], found_in(inference_perf, path)
        stage = inference_perf.stage_name(path.name)
        assert "stages" not in found.rows and report["kv_cache_usage_percentage"]["p99"] == 0
        assert stats(found) == {(stage, "queue_length", "mean"): report["queue_len"]["mean"]}
        assert "KV cache usage" in found.reasons()


@pytest.mark.parametrize("variant", ["vllm", "vllm+eagle", "vllm+batch_size"])
def test_a_variant_is_one_run_of_seven_loads_with_a_knee(tmp_path, variant):
    folder = tmp_path / variant / "results"
    folder.mkdir(parents=True)
    for path in (INFERENCE / "inference-perf").glob(f"*__{variant}__results__*"):
        (folder / path.name.split("__")[-1]).write_bytes(path.read_bytes())
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / variant], store).run_id)
    rows = loads(run.tables)
    summary = json.loads((folder / "summary_lifecycle_metrics.json").read_text())
    assert len(rows) == 7 and rows["stage"].is_unique
    assert rows["completed"].sum() == summary["successes"]["count"]  # the summary is no eighth load
    said = [fact.value for fact in run.manifest.facts.values()]
    assert {"completed": summary["successes"]["count"], "failed": 0} in said
    rows = rows.sort_values("requested_rate_per_s")
    reached = (rows["request_rate_per_s"] / rows["requested_rate_per_s"]).to_numpy()
    assert (reached[:3] > 0.95).all() and (reached[-1] < 0.7).all()
    table = printed(run.tables)
    ttft = table[("ttft", "p99")].loc[rows["stage"].astype(str)].to_numpy()
    assert ttft[-1] > 10 * ttft[0] and table[("queue_length", "mean")].notna().sum() == 7


@pytest.mark.parametrize("path", LLMPERF, ids=lambda path: path.stem)
def test_llmperf_requests(path):
    entries, found = json.loads(path.read_text()), found_in(llmperf, path)
    rows = found.rows["requests"]
    assert len(rows) == len(entries) == 150
    for row, entry in zip(rows, entries, strict=True):
        assert row["prompt_tokens"] == entry["number_input_tokens"]
        assert row["output_tokens"] == entry["number_output_tokens"]
        assert row["arrival_ns"] is None
        if entry["error_code"] is None:
            assert row["status"] == "completed" and row["error"] is None
            assert row["ttft_ns"] / 1e9 == pytest.approx(entry["ttft_s"], abs=1e-9)
            assert row["e2e_ns"] / 1e9 == pytest.approx(entry["end_to_end_latency_s"], abs=1e-9)
        else:
            assert row["status"] == "failed" and entry["error_msg"] in row["error"] and row["e2e_ns"] is None
    texts = [entry["GEN_TEXT"] for entry in entries if entry.get("GEN_TEXT")]
    assert not any(text[:40] in str(rows) for text in texts)


def test_llmperf_latencies_as_analyzers_see_them(tmp_path):
    path = INFERENCE / "llmperf-leaderboard" / "individual__bedrock_70b.json"
    store = Store(tmp_path)
    run = store.get(ingest([path], store).run_id)
    good = [e for e in json.loads(path.read_text()) if e["error_code"] is None]
    timed = served(run.tables).timed
    assert len(timed) == len(good) == 101
    tpot = [(e["end_to_end_latency_s"] - e["ttft_s"]) / (e["number_output_tokens"] - 1) for e in good]
    assert timed["tpot_s"].mean() == pytest.approx(sum(tpot) / len(tpot), rel=1e-6)
    assert timed["ttft_s"].mean() == pytest.approx(sum(e["ttft_s"] for e in good) / len(good), rel=1e-6)


def test_the_llm_d_example():
    report, found = yaml.safe_load(REPORT.read_text()), found_in(llm_d, REPORT)
    whole = report["results"]["request_performance"]["aggregate"]
    (load,) = found.rows["stages"]
    assert load["stage"].endswith("stage 3") and load["duration_s"] == 49.97206788184121
    assert (load["completed"], load["failed"], load["requested_rate_per_s"]) == (500, 0, 10.0)
    assert load["max_concurrency"] is None  # it says .inf
    assert load["start_ns"] == 1_762_365_642 * 10**9  # 2025-11-05T18:00:42Z
    assert load["request_rate_per_s"] == whole["throughput"]["request_rate"]["mean"]
    said = {key[1:]: value for key, value in stats(found).items()}
    rename = {"p0p1": "p0.1", "p99p9": "p99.9"}
    distributions = {ours: whole["latency"][theirs] for theirs, ours in LATENCIES.items()}
    distributions |= {ours: whole["requests"][theirs] for theirs, ours in LENGTHS.items()}
    distributions["request_rate_per_s"] = whole["throughput"]["request_rate"]
    for metric, distribution in distributions.items():
        numbers = {rename.get(k, k): v for k, v in distribution.items() if k != "units"}
        assert {which: value for (of, which), value in said.items() if of == metric} == numbers
    assert said["kv_usage", "mean"] == 0.403 and said["kv_usage", "p99"] == 0.821  # over all engines, as shares
    assert said["queue_length", "mean"] == 3.2
    assert found.facts["model"] == "Qwen/Qwen3-0.6B" and "replicas" in found.reasons()


def test_the_guidellm_sweep():
    report, found = json.loads(SWEEP.read_text()), found_in(guidellm, SWEEP)
    assert len(found.rows["stages"]) == 2
    for load, benchmark in zip(found.rows["stages"], report["benchmarks"], strict=True):
        metrics = {name: by["successful"] for name, by in benchmark["metrics"].items()}
        assert load["requested_rate_per_s"] == benchmark["config"]["strategy"]["rate"]
        assert load["completed"] == metrics["request_totals"] == 2 and load["failed"] == 0
        assert load["start_ns"] / 1e9 == pytest.approx(benchmark["start_time"], abs=1e-6)
        assert load["duration_s"] == benchmark["duration"]
        assert load["output_tokens"] == metrics["output_token_count"]["total_sum"]
        assert load["request_rate_per_s"] == metrics["requests_per_second"]["mean"]
        assert load["output_tokens_per_s"] == metrics["output_tokens_per_second"]["mean"]
        said = {key[1:]: value for key, value in stats(found).items() if key[0] == load["stage"]}
        for theirs, ours, scale in (
            ("time_to_first_token_ms", "ttft", 1e-3),
            ("inter_token_latency_ms", "itl", 1e-3),
            ("time_per_output_token_ms", "normalized_tpot", 1e-3),
            ("request_latency", "e2e", 1.0),
            ("prompt_token_count", "prompt_tokens", 1.0),
            ("request_concurrency", "concurrency", 1.0),
        ):
            for which, name in (("mean", "mean"), ("std_dev", "std"), ("min", "min"), ("max", "max")):
                assert said[ours, name] == pytest.approx(metrics[theirs][which] * scale, rel=1e-12)
            for which, name in (("p001", "p0.1"), ("p05", "p5"), ("p50", "p50"), ("p99", "p99"), ("p999", "p99.9")):
                assert said[ours, name] == pytest.approx(metrics[theirs]["percentiles"][which] * scale, rel=1e-12)
