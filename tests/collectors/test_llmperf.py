"""LLMPerf: single requests without times of day, errors, contradicting counts, and summaries."""

import json

import pytest

from collectors.serving import llmperf
from errors import InputError
from tests.collectors.reading import read, source_of


def response(**changes):
    return {
        "error_code": None,
        "error_msg": "",
        "inter_token_latency_s": 0.02,
        "ttft_s": 0.5,
        "end_to_end_latency_s": 3.0,
        "request_output_throughput_token_per_s": 50.0,
        "number_total_tokens": 700,
        "number_output_tokens": 150,
        "number_input_tokens": 550,
        "GEN_TEXT": "secret words",
        **changes,
    }


def read_json(tmp_path, content, name="a_individual_responses.json"):
    source = source_of(tmp_path, json.dumps(content, indent=4), name)
    assert llmperf.sniff(source) > 0.5
    return read(llmperf, source)


def test_requests(tmp_path):
    found = read_json(tmp_path, [response(), response(ttft_s=0.25, end_to_end_latency_s=2.5)])
    first, second = found.rows["requests"]
    assert (first["ttft_ns"], first["e2e_ns"]) == (500_000_000, 3_000_000_000)
    assert (first["prompt_tokens"], first["output_tokens"], first["status"]) == (550, 150, "completed")
    assert first["stage"] == "a" and first["arrival_ns"] is None and first["gaps_ns"] is None
    assert second["ttft_ns"] == 250_000_000
    assert "secret words" not in str(found.rows) + str(found.facts) + found.reasons()
    assert "requests (1)" in found.reasons()  # 50 tokens/s for 2.5 s are 125 tokens, not 150


def test_an_error_code_is_a_failure_whatever_was_answered(tmp_path):
    wrong = response(error_code=-100, error_msg="Output too few tokens 39", number_output_tokens=39)
    found = read_json(tmp_path, [response(), wrong, response(error_code=429, error_msg="slow", ttft_s=0)])
    assert found.column("requests", "status") == ["completed", "failed", "failed"]
    assert found.column("requests", "error") == [None, "-100: Output too few tokens 39", "429: slow"]
    assert found.column("requests", "e2e_ns") == [3_000_000_000, None, None]
    assert found.column("requests", "output_tokens") == [150, 39, 150]


def test_what_is_no_time_is_not_known(tmp_path):
    found = read_json(tmp_path, [response(ttft_s=-1.0), response(end_to_end_latency_s=None), response()])
    assert found.column("requests", "ttft_ns") == [None, 500_000_000]
    assert "without a latency" in found.reasons()


def test_half_a_file_keeps_what_is_whole(tmp_path):
    text = json.dumps([response(), response()])
    found = read(llmperf, source_of(tmp_path, text[:-40]))
    assert len(found.rows["requests"]) == 1 and "middle" in found.reasons()
    with pytest.raises(InputError, match="no request"):
        read(llmperf, source_of(tmp_path, "[]"))


SUMMARY = {
    "version": "2023-08-31",
    "name": "a_summary",
    "model": "an/model",
    "num_concurrent_requests": 64,
    "results_ttft_s_quantiles_p50": 0.5,
    "results_ttft_s_quantiles_p99": 2.5,
    "results_ttft_s_mean": 0.75,
    "results_ttft_s_min": 0.25,
    "results_ttft_s_stddev": 0.125,
    "results_end_to_end_latency_s_mean": 48.5,
    "results_inter_token_latency_s_mean": 0.3125,
    "results_number_output_tokens_min": "69",
    "results_number_output_tokens_mean": 159.5,
    "results_num_completed_requests": 128,
    "results_number_errors": 2,
    "results_mean_output_throughput_token_per_s": 135.5,
    "results_num_completed_requests_per_min": 48.0,
}


def test_a_summary(tmp_path):
    found = read_json(tmp_path, SUMMARY, "a_summary.json")
    (load,) = found.rows["stages"]
    assert load["stage"] == "a" and load["max_concurrency"] == 64
    assert (load["completed"], load["failed"], load["duration_s"]) == (128, 2, 160.0)
    assert (load["request_rate_per_s"], load["output_tokens_per_s"]) == (0.8, 135.5)
    said = {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}
    assert said["ttft", "p50"] == 0.5 and said["ttft", "std"] == 0.125 and said["e2e", "mean"] == 48.5
    assert said["normalized_tpot", "mean"] == 0.3125 and said["output_tokens", "min"] == 69
    assert not any(metric in ("itl", "tpot") for metric, _ in said)
    assert found.facts == {"model": "an/model"}


def test_a_summary_of_failures_alone(tmp_path):
    found = read_json(tmp_path, SUMMARY | {"results_num_completed_requests": 0}, "a_summary.json")
    (load,) = found.rows["stages"]
    assert load["outcome"] == "failed" and load["duration_s"] is None and "stage_stats" not in found.rows
