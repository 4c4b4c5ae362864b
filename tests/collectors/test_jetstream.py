"""JetStream's benchmark: its result file, what it prints, warm-ups and templates."""

import json
import math

import pytest

from collectors.serving import jetstream
from errors import InputError
from tests.collectors.reading import read, source_of

RESULT = {
    "metrics": {
        "num_prompts": 1200,
        "request_rate": 5.0,
        "duration": 200.0,
        "completed": 960,
        "total_input_tokens": 240000,
        "total_output_tokens": 192000,
        "request_throughput": 4.8,
        "input_throughput": 1200.0,
        "output_throughput": 960.0,
        "mean_ttft_ms": 250.5,
        "median_ttft_ms": 200.25,
        "p99_ttft_ms": 900.0,
        "mean_ttst_ms": 300.0,
        "mean_TPOT_ms": 42.5,
        "median_TPOT_ms": 40.0,
        "p99_TPOT_ms": 80.0,
    },
    "dimensions": {"date": "20250102-030405", "model_id": "llama-2", "tokenizer_id": "/t", "accelerator": "v5e"},
}
PRINTED = """Namespace(server='0.0.0.0')
Benchmarking with request rate of 0.0
Successful requests: 4
Benchmark duration: 1.500000 s
Request throughput: 2.67 requests/s
Mean ttft: 900.00 ms
Successful requests: 963
Benchmark duration: 192.600000 s
Total input tokens: 240750
Total generated tokens: 192600
Request throughput: 5.00 requests/s
Input token throughput: 1250.00 tokens/s
Output token throughput: 1000.00 tokens/s
Mean ttft: 250.50 ms
Median ttft: 200.25 ms
P99 ttft: 900.00 ms
Mean ttst: 300.00 ms
Mean TPOT: 42.50 ms
Median TPOT: 40.00 ms
P99 TPOT: 80.00 ms
----- Request complete rate time series (window_size = 10 sec) -----
"""


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


STATS = {
    ("ttft", "mean"): 0.2505,
    ("ttft", "p50"): 0.20025,
    ("ttft", "p99"): 0.9,
    ("normalized_tpot", "mean"): 0.0425,
    ("normalized_tpot", "p50"): 0.04,
    ("normalized_tpot", "p99"): 0.08,
}


def test_a_result(tmp_path):
    source = source_of(tmp_path, json.dumps(RESULT), "JetStream-5.0qps-llama-2-20250102-030405.json")
    assert jetstream.sniff(source) > 0.5
    found = read(jetstream, source)
    (load,) = found.rows["stages"]
    assert load["stage"] == "JetStream-5.0qps-llama-2-20250102-030405"
    assert (load["duration_s"], load["requested_rate_per_s"], load["completed"]) == (200.0, 5.0, 960)
    assert load["failed"] is None  # prompts are filtered before they are sent
    assert (load["input_tokens"], load["output_tokens"]) == (240000, 192000)
    assert (load["request_rate_per_s"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (4.8, 960, 2160)
    assert stats(found) == STATS  # its TPOT has the first token in it
    assert found.facts == {"model": "llama-2", "chip": "v5e"}


def test_a_rate_of_zero_is_all_at_once(tmp_path):
    for said in (0.0, "inf"):
        metrics = {k: v for k, v in RESULT["metrics"].items() if k != "request_rate"}
        about = {"request_rate": said, "model_id": "no_model", "accelerator": "no_accelerator"}
        result = {"metrics": metrics, "dimensions": about}
        found = read(jetstream, source_of(tmp_path, json.dumps(result)))
        assert found.rows["stages"][0]["requested_rate_per_s"] == math.inf and not found.facts


def test_what_it_prints_after_the_warm_up(tmp_path):
    source = source_of(tmp_path, PRINTED, "bench.txt")
    assert jetstream.sniff(source) > 0.5
    found = read(jetstream, source)
    (load,) = found.rows["stages"]
    assert (load["completed"], load["duration_s"], load["requested_rate_per_s"]) == (963, 192.6, math.inf)
    assert (load["request_rate_per_s"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (5, 1000, 2250)
    assert stats(found) == STATS


def test_nothing_answered(tmp_path):
    zeros = dict.fromkeys(("request_throughput", "input_throughput", "output_throughput", "mean_ttft_ms"), 0.0)
    result = RESULT | {"metrics": RESULT["metrics"] | zeros | {"completed": 0}}
    found = read(jetstream, source_of(tmp_path, json.dumps(result)))
    (load,) = found.rows["stages"]
    assert load["outcome"] == "failed" and load["request_rate_per_s"] is None and "stage_stats" not in found.rows


def test_templates_and_other_things_are_refused(tmp_path):
    template = "Successful requests: x\nRequest throughput: xx requests/s\nMean ttft: xxx ms\nMean TPOT: xxx ms\n"
    source = source_of(tmp_path, template)
    assert jetstream.sniff(source) > 0.5
    with pytest.raises(InputError, match="template"):
        read(jetstream, source)
    for text in ("", "hello", "{}", '{"metrics": {}}', json.dumps(RESULT)[:200]):
        with pytest.raises(InputError):
            read(jetstream, source_of(tmp_path, text))


def test_vllm_s_table_is_not_its_own(tmp_path):
    table = "Successful requests:                     10\nRequest throughput (req/s):   1.7\nMean TTFT (ms):  8.1\n"
    assert jetstream.sniff(source_of(tmp_path, table)) == 0
