"""inference-perf reports: stages, what the server said, single requests, and the sums that are no load."""

import json
import math

import pytest

from collectors.serving import inference_perf
from errors import InputError
from tests.collectors.reading import read, source_of


def spread(mean, **more):
    return {
        "mean": mean,
        "min": mean / 2,
        "max": mean * 2,
        "median": mean * 0.9,
        "p99": mean * 1.9,
        "p99.9": mean * 1.99,
        **more,
    }


def stage(**changes):
    report = {
        "benchmark_time_seconds": 20.0,
        "load_summary": {
            "count": 50,
            "schedule_delay": spread(0.001, min=-0.002),
            "send_duration": 10.0,
            "requested_rate": 5.0,
            "achieved_rate": 5.0,
        },
        "successes": {
            "count": 48,
            "latency": {
                "request_latency": spread(2.0),
                "normalized_time_per_output_token": spread(0.02),
                "time_per_output_token": spread(0.015),
                "time_to_first_token": spread(0.3),
                "inter_token_latency": spread(0.014),
            },
            "throughput": {
                "input_tokens_per_sec": 240.0,
                "output_tokens_per_sec": 120.0,
                "total_tokens_per_sec": 360.0,
                "requests_per_sec": 2.4,
            },
            "prompt_len": spread(100.0),
            "output_len": spread(50.0),
        },
        "failures": {"count": 2, "request_latency": None, "prompt_len": None},
    }
    return {**report, **changes}


def read_json(tmp_path, content, name="vllm/results/stage_3_lifecycle_metrics.json"):
    return read(inference_perf, source_of(tmp_path, json.dumps(content), name))


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


def test_a_stage(tmp_path):
    found = read_json(tmp_path, stage())
    (load,) = found.rows["stages"]
    assert load["stage"] == "vllm stage 3" and load["tool"] == "inference-perf" and load["outcome"] == "measured"
    assert (load["completed"], load["failed"]) == (48, 2)
    assert (load["input_tokens"], load["output_tokens"]) == (4800, 2400)
    assert load["duration_s"] == 20.0 and load["requested_rate_per_s"] == 5.0
    assert (load["request_rate_per_s"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (2.4, 120.0, 360.0)
    assert load["max_concurrency"] is None and load["goodput_per_s"] is None
    said = stats(found)
    assert said["ttft", "mean"] == 0.3 and said["ttft", "p50"] == pytest.approx(0.27)
    assert said["tpot", "p99.9"] == pytest.approx(0.02985) and said["e2e", "max"] == 4.0
    assert said["itl", "mean"] == 0.014 and said["normalized_tpot", "mean"] == 0.02
    assert said["schedule_delay", "min"] == -0.002  # earlier than planned: no time that anything took
    assert said["prompt_tokens", "mean"] == 100 and said["output_tokens", "p50"] == 45
    assert not found.lost


def test_older_versions_state_no_duration(tmp_path):
    report = stage()
    del report["benchmark_time_seconds"]
    (load,) = read_json(tmp_path, report).rows["stages"]
    assert load["duration_s"] == pytest.approx(48 / 2.4)


def test_newer_versions_state_totals_goodput_and_concurrency(tmp_path):
    report = stage()
    report["load_summary"]["concurrency"] = 16
    report["successes"]["prompt_tokens"] = {"total": 4801.0, "cached": 20.0, "uncached": 4781.0, "mean": 100.02}
    report["successes"]["goodput_metrics"] = {"request_goodput": 1.8, "goodput_percentage": 75.0}
    found = read_json(tmp_path, report)
    (load,) = found.rows["stages"]
    assert (load["input_tokens"], load["goodput_per_s"], load["max_concurrency"]) == (4801, 1.8, 16)
    assert stats(found)["slo_attainment", "mean"] == 0.75
    del report["successes"]["prompt_len"]
    assert stats(read_json(tmp_path, report))["prompt_tokens", "mean"] == 100.02


def test_nothing_answered_is_a_failed_load_without_latencies(tmp_path):
    report = stage()
    report["successes"] |= {
        "count": 0,
        "latency": dict.fromkeys(report["successes"]["latency"]),
        "prompt_len": None,
        "output_len": None,
    }
    report["successes"]["throughput"] = dict.fromkeys(report["successes"]["throughput"], 0.0)
    report["failures"]["count"] = 50
    found = read_json(tmp_path, report)
    (load,) = found.rows["stages"]
    assert load["outcome"] == "failed" and load["failed"] == 50 and load["request_rate_per_s"] is None
    assert "stage_stats" not in found.rows


def test_times_that_cannot_be_are_named_and_left_out(tmp_path):
    report = stage()
    report["successes"]["latency"]["time_to_first_token"] = spread(0.3, min=-1.0)
    report["successes"]["latency"]["time_per_output_token"] = spread(0.0)
    report["successes"]["latency"]["inter_token_latency"] = spread(0.01, min=0.0, median=0.0)
    found = read_json(tmp_path, report)
    said = stats(found)
    assert ("ttft", "min") not in said and said["ttft", "mean"] == 0.3
    assert not any(metric == "tpot" for metric, _ in said)
    assert said["itl", "p50"] == 0 and said["itl", "mean"] == 0.01  # tokens of one piece come at once
    assert "ttft" in found.reasons() and "below zero" in found.reasons()
    assert "tpot" in found.reasons() and "0 or less" in found.reasons()


@pytest.mark.parametrize("what", ["summary", "adapter_a", "adapter_a_stage_2"])
def test_the_same_requests_again_are_no_load(tmp_path, what):
    found = read_json(tmp_path, stage(load_summary={"count": 50}), f"vllm/{what}_lifecycle_metrics.json")
    assert not found.rows
    assert found.facts == {f"load_test_{what} of vllm": {"completed": 48, "failed": 2}}


def server(**changes):
    return {
        "load_summary": {},
        "failures": {},
        "successes": {
            "count": 48,
            "rate": 2.4,
            "queue_len": {"mean": 7},
            "request_latency": {"mean": 9.0},
            "time_to_first_token": {"mean": 0.2, "median": 0.2, "p90": 0.3, "p99": 0.4},
            "kv_cache_usage_percentage": {"mean": 0.5, "median": 0.4, "p90": 0.8, "p99": 0.9},
            "request_queue_time": {"mean": 0.05, "p99": 0.4},
            **changes,
        },
    }


def test_what_the_server_said_joins_the_load_of_its_stage(tmp_path):
    found = read_json(tmp_path, server(), "vllm/results/stage_3_prometheus_metrics.json")
    assert "stages" not in found.rows  # the clients' file has it
    assert {row["stage"] for row in found.rows["stage_stats"]} == {"vllm stage 3"}
    said = stats(found)
    assert said == {
        ("kv_usage", "mean"): 0.5,
        ("kv_usage", "p50"): 0.4,
        ("kv_usage", "p90"): 0.8,
        ("kv_usage", "p99"): 0.9,
        ("queue_length", "mean"): 7,
        ("queue", "mean"): 0.05,
        ("queue", "p99"): 0.4,
    }


def test_a_cache_that_was_never_used_was_not_seen(tmp_path):
    gauge = {"mean": 0.0, "median": 0.0, "p90": 0.0, "p99": 0.0}
    found = read_json(tmp_path, server(kv_cache_usage_percentage=gauge), "stage_0_prometheus_metrics.json")
    assert not any(metric == "kv_usage" for metric, _ in stats(found)) and "no gauge" in found.reasons()
    found = read_json(tmp_path, server(kv_cache_usage_percentage={"mean": 31.0}), "stage_0_prometheus_metrics.json")
    assert not any(metric == "kv_usage" for metric, _ in stats(found)) and "between 0 and 1" in found.reasons()


def test_yaml_says_the_same_as_json(tmp_path):
    yaml = """# made by hand
load_summary: {count: 2, requested_rate: 1.5}
failures:
  count: 0
  request_latency: null
successes:
  count: 2
  latency:
    time_to_first_token: {mean: 0.25, median: 0.25, p99.9: .5}
    request_latency: null
  throughput:
    requests_per_sec: 0.5
"""
    found = read(inference_perf, source_of(tmp_path, yaml, "stage_0_lifecycle_metrics.yaml"))
    (load,) = found.rows["stages"]
    assert load["stage"] == "stage 0" and load["duration_s"] == 4.0 and load["requested_rate_per_s"] == 1.5
    assert stats(found) == {("ttft", "mean"): 0.25, ("ttft", "p50"): 0.25, ("ttft", "p99.9"): 0.5}


def test_an_alias_is_refused_before_it_is_followed(tmp_path):
    bomb = "load_summary: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(40)) + "successes: {}\n"
    source = source_of(tmp_path, bomb, "stage_0_lifecycle_metrics.yaml")
    assert inference_perf.sniff(source) > 0.5
    with pytest.raises(InputError, match="alias"):
        read(inference_perf, source)
    deep = "load_summary: {}\nsuccesses: " + "[" * 200 + "]" * 200
    with pytest.raises(InputError, match="levels"):
        read(inference_perf, source_of(tmp_path, deep, "stage_0_lifecycle_metrics.yaml"))


def test_half_a_report_is_refused(tmp_path):
    text = json.dumps(stage())
    with pytest.raises(InputError, match="ends in the middle"):
        read(inference_perf, source_of(tmp_path, text[: len(text) // 2], "stage_0_lifecycle_metrics.json"))


OLD = {
    "start_time": 1393.25,
    "end_time": 1395.5,
    "request": "{...}",
    "response": "secret words",
    "info": {"input_tokens": 591, "output_tokens": 3, "output_token_times": [1393.5, 1394.0, 1395.25]},
    "error": None,
}
NEW = {
    "start_time": 1394.0,
    "end_time": 1396.0,
    "error": None,
    "info": {
        "request_metrics": {"text": {"input_tokens": 20}},
        "response_metrics": {
            "output_tokens": 2,
            "output_token_times": [1394.5, 1395.0],
            "response_chunks": ["secret words"],
            "server_usage": {"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": 16}},
        },
    },
}
WRONG = {
    "start_time": 1395.0,
    "end_time": 1395.5,
    "info": {"input_tokens": 9},
    "error": {"error_type": "HTTP Error 500", "error_msg": "no"},
}


def test_single_requests(tmp_path):
    source = source_of(tmp_path, json.dumps([OLD, NEW, WRONG]), "vllm/per_request_lifecycle_metrics.json")
    assert inference_perf.sniff(source) > 0.5
    found = read(inference_perf, source)
    first, second, third = found.rows["requests"]
    assert (first["arrival_ns"], first["first_token_ns"], first["last_token_ns"]) == (
        1_393_250_000_000,
        1_393_500_000_000,
        1_395_250_000_000,
    )
    assert first["gaps_ns"] == [500_000_000, 1_250_000_000] and first["status"] == "completed"
    assert (first["prompt_tokens"], first["output_tokens"], first["cached_tokens"]) == (591, 3, None)
    assert (second["prompt_tokens"], second["output_tokens"], second["cached_tokens"]) == (20, 2, 16)
    assert third["status"] == "failed" and third["error"] == "HTTP Error 500: no" and third["gaps_ns"] is None
    assert "secret words" not in str(found.rows)
    assert "unknown start" in found.reasons()


def test_requests_are_known_before_a_long_prompt(tmp_path):
    long = json.dumps([OLD | {"request": "x" * 200_000, "info": OLD["info"]}])
    source = source_of(tmp_path, long, "per_request_lifecycle_metrics.json")
    assert b"output_token_times" not in source.head and inference_perf.sniff(source) > 0.5
    assert len(read(inference_perf, source).rows["requests"]) == 1


def test_requests_that_say_their_stage(tmp_path):
    source = source_of(tmp_path, json.dumps([OLD | {"stage_id": 2}]), "vllm/per_request_lifecycle_metrics.json")
    assert read(inference_perf, source).column("requests", "stage") == ["vllm stage 2"]


def test_requests_cut_off_in_the_middle(tmp_path):
    for indent, reason in ((None, "ends in the middle"), (1, "not valid")):
        text = json.dumps([OLD, NEW], indent=indent)
        found = read(inference_perf, source_of(tmp_path, text[:-200], "per_request_lifecycle_metrics.json"))
        assert len(found.rows["requests"]) == 1 and reason in found.reasons()
    with pytest.raises(InputError, match="no single request"):
        read(inference_perf, source_of(tmp_path, '[{"start_time": "x", "error": null}]', "per_request_metrics.json"))


@pytest.mark.parametrize(
    "name, stage_",
    [
        ("stage_0_lifecycle_metrics.json", "stage 0"),
        ("vllm/results/stage_12_lifecycle_metrics.json.gz", "vllm stage 12"),
        ("a/b/stage_1_prometheus_metrics.yaml", "a b stage 1"),
        ("demo__vllm+eagle__results__stage_5_lifecycle_metrics.json", "vllm+eagle stage 5"),
        ("mine.yaml", "mine"),
    ],
)
def test_names_of_loads(name, stage_):
    assert inference_perf.stage_name(name) == stage_


def test_infinite_and_absent_rates(tmp_path):
    for said, expected in (("inf", math.inf), (None, None), (0, None), (-3, None)):
        report = stage()
        report["load_summary"]["requested_rate"] = said
        assert read_json(tmp_path, report).rows["stages"][0]["requested_rate_per_s"] == expected
