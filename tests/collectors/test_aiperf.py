"""AIPerf and GenAI-Perf: records with units, times of pieces, and summaries of several versions."""

import json

import pytest

from collectors.serving import aiperf
from errors import InputError
from tests.collectors.reading import read, source_of

START = 1_759_813_207_532_900_363


def record(**changes):
    return {
        "metadata": {
            "session_num": 4,
            "x_request_id": "7609a2e7",
            "turn_index": 0,
            "request_start_ns": START,
            "request_end_ns": START + 300_000_000,
            "benchmark_phase": "profiling",
            "was_cancelled": False,
        },
        "metrics": {
            "input_sequence_length": {"value": 550, "unit": "tokens"},
            "time_to_first_token": {"value": 250.5, "unit": "ms"},
            "request_latency": {"value": 297.525, "unit": "ms"},
            "output_sequence_length": {"value": 10, "unit": "tokens"},
            "output_token_count": {"value": 9, "unit": "tokens"},
            "inter_chunk_latency": {"value": [20.5, 26.525], "unit": "ms"},
        },
        "error": None,
        **changes,
    }


def read_lines(tmp_path, records, name="run/profile_export.jsonl"):
    source = source_of(tmp_path, "".join(json.dumps(r) + "\n" for r in records), name)
    assert aiperf.sniff(source) > 0.5
    return read(aiperf, source)


def test_a_record(tmp_path):
    found = read_lines(tmp_path, [record()])
    (request,) = found.rows["requests"]
    assert request["id"] == "7609a2e7" and request["stage"] == "run" and request["status"] == "completed"
    assert request["arrival_ns"] == START
    assert request["first_token_ns"] - START == 250_500_000 and request["last_token_ns"] - START == 297_525_000
    assert request["gaps_ns"] == [20_500_000, 26_525_000]
    assert (request["prompt_tokens"], request["output_tokens"]) == (550, 10)  # reasoning tokens are output, too
    assert not found.lost


def test_failures_cancellations_and_warm_up(tmp_path):
    failed = record(
        metrics={"error_isl": {"value": 550, "unit": "tokens"}},
        error={"code": 500, "type": "ServerError", "message": "no"},
    )
    cancelled = record(error={"code": 499, "type": "RequestCancellationError", "message": "late"})
    cancelled["metadata"] = cancelled["metadata"] | {"was_cancelled": True}
    warm_up = record()
    warm_up["metadata"] = warm_up["metadata"] | {"benchmark_phase": "warmup"}
    found = read_lines(tmp_path, [warm_up, failed, cancelled, record()])
    assert found.column("requests", "status") == ["failed", "aborted", "completed"]
    assert found.column("requests", "error") == ["ServerError: no", "RequestCancellationError: late", None]
    assert found.column("requests", "first_token_ns")[:2] == [None, None]
    assert found.column("requests", "prompt_tokens") == [550, 550, 550]
    assert found.column("requests", "output_tokens") == [None, None, 10]
    assert "warm-up" in found.reasons()


def test_units_are_read(tmp_path):
    ns = record()
    ns["metrics"] = ns["metrics"] | {
        "time_to_first_token": {"value": 5, "unit": "ns"},
        "request_latency": {"value": 2, "unit": "fortnights"},
        "inter_chunk_latency": {"value": [1, -1], "unit": "us"},
    }
    (request,) = read_lines(tmp_path, [ns]).rows["requests"]
    assert request["first_token_ns"] - START == 5
    assert request["last_token_ns"] is None and request["gaps_ns"] is None


def test_records_that_are_broken(tmp_path):
    lost = read_lines(tmp_path, [record(), {"metadata": {}, "metrics": {}}])
    assert len(lost.rows["requests"]) == 1 and "without the time" in lost.reasons()
    text = json.dumps(record()) + "\n" + json.dumps(record())[:200]
    cut = read(aiperf, source_of(tmp_path, text))
    assert len(cut.rows["requests"]) == 1 and "middle" in cut.reasons()


def chat(**delta):
    return {"response": "data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}) + "\n\n"}


def test_pieces_of_genai_perf(tmp_path):
    spoken = [
        chat(role="assistant", content=""),
        chat(content="secret"),
        chat(content=" words"),
        chat(),
        {"response": "data: [DONE]"},
    ]
    silent = {"timestamp": START + 7, "response_timestamps": [START + 9], "response_outputs": [{"text_output": "yes"}]}
    export = {
        "service_kind": "openai",
        "experiments": [
            {
                "experiment": {"mode": "concurrency", "value": 10},
                "requests": [
                    {
                        "timestamp": START,
                        "request_inputs": {"payload": "secret"},
                        "response_timestamps": [START + n for n in (10, 30, 60, 65, 66)],
                        "response_outputs": spoken,
                    },
                    silent,
                    {"timestamp": START, "response_timestamps": []},
                ],
            },
            {"experiment": {"mode": "request_rate", "value": 2.5}, "requests": [silent]},
        ],
    }
    source = source_of(tmp_path, json.dumps(export), "profile_export.json")
    assert aiperf.sniff(source) > 0.5
    found = read(aiperf, source)
    first, second, third = found.rows["requests"]
    assert first["stage"] == "load concurrency 10" and third["stage"] == "load request rate 2.5"
    assert [first[k] - START for k in ("arrival_ns", "first_token_ns", "last_token_ns")] == [0, 30, 60]
    assert first["gaps_ns"] == [30] and first["output_tokens"] is None
    assert second["first_token_ns"] is None and second["last_token_ns"] == START + 9  # it came in one piece
    assert "secret" not in str(found.rows) and "without times" in found.reasons()


def block(unit, avg, **more):
    return {"unit": unit, "avg": avg, "min": avg / 2, "max": avg * 2, "p50": avg, "p99": avg * 1.5, "std": 1.0, **more}


SUMMARY = {
    "schema_version": "1.2",
    "aiperf_version": "0.8.0",
    "start_time": "2026-08-04T10:00:00.5Z",
    "request_throughput": {"unit": "requests/sec", "avg": 4.5},
    "request_latency": block("ms", 800.0, count=336),
    "time_to_first_token": block("ms", 61.5),
    "inter_token_latency": block("ms", 4.25),
    "inter_chunk_latency": block("ms", 5.25),
    "output_token_throughput": {"unit": "tokens/sec", "avg": 800.0},
    "total_token_throughput": {"unit": "tokens/sec", "avg": 3000.0},
    "goodput": {"unit": "requests/sec", "avg": 4.0},
    "output_token_throughput_per_user": block("tokens/sec/user", 230.0),
    "request_count": {"unit": "requests", "avg": 336.0},
    "error_request_count": {"unit": "requests", "avg": 35.0},
    "input_sequence_length": block("tokens", 490.0),
    "output_sequence_length": block("tokens", 180.0, sum=60480),
    "total_isl": {"unit": "tokens", "avg": 164640.0},
    "total_osl": {"unit": "tokens", "avg": 60480.0},
    "benchmark_duration": {"unit": "sec", "avg": 74.5},
    "input_config": {"endpoint": {"model_names": ["an/model"]}, "loadgen": {"concurrency": 8, "request_rate": 5.0}},
}


def read_summary(tmp_path, summary, name="run/profile_export_aiperf.json"):
    source = source_of(tmp_path, json.dumps(summary), name)
    assert aiperf.sniff(source) > 0.5
    return read(aiperf, source)


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


def test_a_summary(tmp_path):
    found = read_summary(tmp_path, SUMMARY)
    (load,) = found.rows["stages"]
    assert load["stage"] == "run" and load["start_ns"] == 1_785_837_600_500_000_000 and load["duration_s"] == 74.5
    assert (load["completed"], load["failed"], load["max_concurrency"]) == (336, 35, 8)
    assert (load["requested_rate_per_s"], load["request_rate_per_s"], load["goodput_per_s"]) == (5.0, 4.5, 4.0)
    assert (load["output_tokens_per_s"], load["total_tokens_per_s"]) == (800.0, 3000.0)
    assert (load["input_tokens"], load["output_tokens"]) == (164640, 60480)
    said = stats(found)
    assert said["ttft", "mean"] == 0.0615 and said["e2e", "p99"] == 1.2
    assert said["tpot", "mean"] == 0.00425 and said["itl", "p50"] == 0.00525  # inter token, inter chunk
    assert said["output_tokens_per_s", "max"] == 460 and said["prompt_tokens", "mean"] == 490
    assert ("output_tokens", "total") not in said
    assert found.facts == {"model": "an/model"} and not found.lost


def test_a_summary_and_its_records_are_of_one_load(tmp_path):
    names = ("run/profile_export.jsonl", "run/profile_export_aiperf.json")
    records = read_lines(tmp_path, [record()], names[0]).column("requests", "stage")
    assert records == read_summary(tmp_path, SUMMARY, names[1]).column("stages", "stage")


def test_genai_perf_without_streaming_measured_no_first_token(tmp_path):
    latency = block("ms", 4610.5)
    summary = {
        "request_throughput": {"unit": "requests/sec", "avg": 21.5},
        "request_latency": latency,
        "time_to_first_token": latency,
        "output_token_throughput": {"unit": "tokens/sec", "avg": 12277.5},
        "output_token_throughput_per_request": block("tokens/sec", 124.5),
        "input_config": {"model": ["ensemble"], "concurrency": 100, "request_rate": None},
    }
    found = read_summary(tmp_path, summary, "profile_export_genai_perf.json")
    (load,) = found.rows["stages"]
    assert load["stage"] == "load" and load["max_concurrency"] == 100 and load["requested_rate_per_s"] is None
    assert load["completed"] is None and load["failed"] is None  # not told
    said = stats(found)
    assert not any(metric == "ttft" for metric, _ in said) and "not streamed" in found.reasons()
    assert said["e2e", "mean"] == 4.6105 and said["output_tokens_per_s", "mean"] == 124.5


def test_the_oldest_write_nanoseconds_as_text(tmp_path):
    summary = {
        "request_throughput": {"unit": "requests per sec", "avg": "12.5"},
        "request_latency": {"unit": "ns", "avg": "87654321.5", "p99": "100000000"},
        "time_to_first_token": {"unit": "parsecs", "avg": "1"},
    }
    found = read_summary(tmp_path, summary, "profile_export_genai_perf.json")
    assert stats(found) == {("e2e", "mean"): 0.0876543215, ("e2e", "p99"): 0.1}
    assert found.rows["stages"][0]["request_rate_per_s"] == 12.5 and "parsecs" in found.reasons()


def test_all_failed(tmp_path):
    summary = {"aiperf_version": "0.8.0", "error_request_count": {"unit": "requests", "avg": 12}, "input_config": {}}
    found = read_summary(tmp_path, summary)
    (load,) = found.rows["stages"]
    assert (load["completed"], load["failed"], load["outcome"]) == (0, 12, "failed")
    assert "stage_stats" not in found.rows


def test_what_is_no_export(tmp_path):
    for text in ("{}", '{"request_latency": 1}', json.dumps(SUMMARY)[:300], '{"experiments": []}'):
        with pytest.raises(InputError):
            read(aiperf, source_of(tmp_path, text))


def test_what_was_in_flight_is_read_and_whether_the_submission_is_valid(tmp_path):
    said = {**SUMMARY, "effective_concurrency": {"unit": "requests", "avg": 31.5}, "submission_valid": False}
    found = read(aiperf, source_of(tmp_path, json.dumps(said), "profile_export_aiperf.json"))
    assert {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}["concurrency", "mean"] == 31.5
    assert found.facts["aiperf_submission_valid"] is False and "no valid submission" in found.reasons()


@pytest.mark.parametrize("shape", ["by name", "as a list"])
def test_older_summaries_hold_their_metrics_in_records(tmp_path, shape):
    new = SUMMARY
    metrics = {key: value for key, value in new.items() if isinstance(value, dict) and "unit" in value}
    rest = {key: value for key, value in new.items() if key not in metrics}
    inner = metrics if shape == "by name" else [{"tag": tag, **metric} for tag, metric in metrics.items()]
    older = source_of(tmp_path, json.dumps({**rest, "records": inner}), "profile_export_aiperf.json")
    assert aiperf.sniff(older) > 0.5
    newer = read(aiperf, source_of(tmp_path, json.dumps(new), "x/profile_export_aiperf.json")).rows
    found = read(aiperf, older).rows
    assert [r["value"] for r in found["stage_stats"]] == [r["value"] for r in newer["stage_stats"]]
    assert found["stages"][0]["output_tokens_per_s"] == newer["stages"][0]["output_tokens_per_s"] is not None
