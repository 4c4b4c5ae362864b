"""llm-d benchmark reports: v0.2 and v0.1, units, engines, and names that join them with the stage they came from."""

import json
import math

import pytest

from collectors.serving import llm_d
from errors import InputError
from tests.collectors.reading import read, source_of

NEWER = """
results:
  observability:
    components:
    - component_label: engine-0
      aggregate:
        kv_cache_usage: {mean: 42.5, p50: 41.0, units: percent}
        waiting_requests: {mean: 3.5, units: count}
    - component_label: router-0
      aggregate:
        waiting_requests: {mean: 99.0, units: count}
  request_performance:
    aggregate:
      latency:
        time_to_first_token: {mean: 250.0, p50: 200.0, p99p9: 900.0, units: ms}
        time_per_output_token: {mean: 0.03, units: s/token}
        inter_token_latency: {mean: 31.0, units: furlongs}
        request_latency: {mean: 8.5, stddev: 1.5, units: s}
      requests:
        total: 100
        failures: 3
        incomplete: 2
        input_length: {mean: 1000, units: count}
        output_length: {mean: 250, p0p1: 10, units: count}
      throughput:
        request_rate: {mean: 9.5, units: queries/s}
        output_token_rate: {mean: 2375.0, units: tokens/s}
        total_token_rate: {mean: 11875.0, units: tokens/s}
run:
  time: {duration: PT1M40.5S, end: '2025-11-05T18:02:22Z', start: '2025-11-05T18:00:42Z'}
scenario:
  load:
    standardized: {concurrency: .inf, rate_qps: 10.0, stage: 3, tool: inference-perf}
  stack:
  - metadata: {label: engine-0}
    standardized:
      accelerator: {count: 8, model: TPU v6e, parallelism: {tp: 4, pp: 1, dp: 1}}
      kind: inference_engine
      model: {name: a/model}
      replicas: 2
  - standardized: {kind: generic}
version: '0.2.1'
"""


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


def read_text(tmp_path, text, name="benchmark_report_v0.2,_stage_3_lifecycle_metrics.json.yaml"):
    source = source_of(tmp_path, text, name)
    assert llm_d.sniff(source) > 0.5
    return read(llm_d, source)


def test_a_newer_report(tmp_path):
    found = read_text(tmp_path, NEWER)
    (load,) = found.rows["stages"]
    assert load["stage"] == "stage 3" and load["tool"] == "llm-d" and load["outcome"] == "measured"
    assert load["start_ns"] == 1_762_365_642_000_000_000 and load["duration_s"] == 100.5
    assert (load["completed"], load["failed"]) == (95, 3)
    assert load["requested_rate_per_s"] == 10.0 and load["max_concurrency"] is None
    assert (load["request_rate_per_s"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (9.5, 2375, 11875)
    said = stats(found)
    assert said["ttft", "mean"] == 0.25 and said["ttft", "p99.9"] == 0.9
    assert said["tpot", "mean"] == 0.03 and said["e2e", "std"] == 1.5
    assert said["output_tokens", "p0.1"] == 10 and said["request_rate_per_s", "mean"] == 9.5
    assert said["kv_usage", "mean"] == 0.425 and said["queue_length", "mean"] == 3.5  # the engine's, not the router's
    assert not any(metric == "itl" for metric, _ in said)
    assert "furlongs" in found.reasons() and "cut off" in found.reasons()
    assert found.facts == {
        "model": "a/model",
        "chip": "TPU v6e",
        "chips": 8,
        "load_tool": "inference-perf",
        "tensor_parallel_size": 4,
    }


def test_chips_that_contradict_the_replicas_are_not_known(tmp_path):
    found = read_text(tmp_path, NEWER.replace("tp: 4", "tp: 8"))
    assert "chips" not in found.facts and "replicas" in found.reasons()


def test_gauges_summed_over_all_engines_come_first(tmp_path):
    over_all = """
    vllm_kv_cache_usage_perc:
      aggregated: {mean: 40.0, units: percent}
      components: [{statistics: {mean: 42.0, units: percent}}]
    vllm_num_requests_waiting:
      components: [{statistics: {mean: 5.0, units: count}}, {statistics: {mean: 7.0, units: count}}]
  request_performance:"""
    said = stats(read_text(tmp_path, NEWER.replace("\n  request_performance:", over_all)))
    assert said["kv_usage", "mean"] == 0.4 and said["kv_usage", "p50"] == 0.41
    assert said["queue_length", "mean"] == 3.5  # two engines, not summed up: that of the component


OLDER = {
    "version": "0.1",
    "scenario": {
        "model": {"name": "a/model"},
        "load": {"name": "guidellm", "metadata": {"stage": 0}},
        "host": {
            "accelerator": [
                {"model": "H100", "count": 4, "parallelism": {"tp": 4, "pp": 1}},
                {"model": "H100", "count": 2, "parallelism": {"tp": 2, "pp": 1}},
            ],
            "type": ["prefill", "decode"],
        },
    },
    "metrics": {
        "time": {"duration": 16.5, "start": 1_749_570_583.5, "stop": 1_749_570_600.0},
        "requests": {
            "total": 32,
            "failures": 0,
            "input_length": {"mean": 628.5, "units": "count"},
            "output_length": {"mean": 32.25, "units": "count"},
        },
        "latency": {
            "time_to_first_token": {"mean": 1707.5, "p99": 2607.5, "units": "ms"},
            "inter_token_latency": {"mean": 33.75, "units": "ms/token"},
        },
        "throughput": {"output_tokens_per_sec": 62.5, "total_tokens_per_sec": 1280.5, "requests_per_sec": 1.9375},
    },
}


def test_an_older_report(tmp_path):
    found = read_text(tmp_path, json.dumps(OLDER, indent=1), "benchmark_report,_run.json.yaml")
    (load,) = found.rows["stages"]
    assert load["duration_s"] == 16.5 and load["start_ns"] == 1_749_570_583_500_000_000
    assert (load["completed"], load["failed"], load["request_rate_per_s"]) == (32, 0, 1.9375)
    assert (load["output_tokens_per_s"], load["total_tokens_per_s"]) == (62.5, 1280.5)
    said = stats(found)
    assert said["ttft", "mean"] == 1.7075 and said["ttft", "p99"] == 2.6075 and said["itl", "mean"] == 0.03375
    assert said["prompt_tokens", "mean"] == 628.5 and said["output_tokens", "mean"] == 32.25
    assert found.facts == {
        "model": "a/model",
        "chip": "H100",
        "chips": 6,
        "load_tool": "guidellm",
        "prefill_workers": 1,
        "prefill_tensor_parallel_size": 4,
        "decode_workers": 1,
        "decode_tensor_parallel_size": 2,
        "tensor_parallel_size": 2,
    }  # a token's cache lies where it is generated


def test_nothing_answered(tmp_path):
    text = NEWER.replace("failures: 3", "failures: 98")
    found = read_text(tmp_path, text)
    (load,) = found.rows["stages"]
    assert load["outcome"] == "failed" and load["completed"] == 0 and "stage_stats" not in found.rows


@pytest.mark.parametrize(
    "name, stage",
    [
        ("benchmark_report_v0.2,_stage_3_lifecycle_metrics.json.yaml", "stage 3"),
        ("vllm/benchmark_report,_stage_3_lifecycle_metrics.json.yaml", "vllm stage 3"),
        ("vllm/inference-perf.partial.stage_7.yaml", "vllm stage 7"),
        ("br.yaml", "br stage 3"),
    ],
)
def test_the_name_joins_it_with_the_stage_that_it_was_made_from(tmp_path, name, stage):
    assert read_text(tmp_path, NEWER, name).column("stages", "stage") == [stage]


def test_what_is_no_report(tmp_path):
    for text in ('{"version": "0.2", "scenario": {}}', '{"version": "2", "scenario": {}, "metrics": {}}', "a: b", "[]"):
        with pytest.raises(InputError, match="report"):
            read(llm_d, source_of(tmp_path, text))
    with pytest.raises(InputError):
        read(llm_d, source_of(tmp_path, NEWER[: len(NEWER) // 3]))


def test_durations():
    assert llm_d._seconds("PT49.97S") == 49.97 and llm_d._seconds("P1DT2H3M4S") == 93_784
    assert llm_d._seconds(12) == 12 and llm_d._seconds(math.inf) is None
    for wrong in ("", "P", "49 s", None, 0, -1):
        assert llm_d._seconds(wrong) is None
