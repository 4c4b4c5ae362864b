"""MLPerf Inference summaries by scenario, results that LoadGen calls invalid, and the detailed log."""

import math

import pytest

from collectors.serving import mlperf_inference
from collectors.training import mllog
from errors import InputError
from tests.collectors.reading import read, source_of

BAR = "================================================"


def summary(scenario="Server", result="VALID", top="", stats="", parameters=""):
    return f"""{BAR}
MLPerf Results Summary
{BAR}
SUT name : PySUT
Scenario : {scenario}
Mode     : PerformanceOnly
{top}Result is : {result}
  Performance constraints satisfied : {"Yes" if result == "VALID" else "NO"}
  Min duration satisfied : Yes
  Early stopping satisfied: Yes
TTFT Early Stopping Result:
 * Run successful.

{BAR}
Additional Stats
{BAR}
{stats}
{BAR}
Test Parameters Used
{BAR}
samples_per_query : 1
{parameters}
No warnings encountered during test.
"""


SERVER = {
    "top": "Completed samples per second    : 99.86\nCompleted tokens per second: 29522.56\n",
    "stats": """Scheduled samples per second : 104.15
Min latency (ns)                : 756127764
Mean latency (ns)               : 37756807070
50.00 percentile latency (ns)   : 32917446649
99.90 percentile latency (ns)   : 145708791529

Completed tokens per second                 : 29522.56
Mean First Token latency (ns)               : 963332124
99.00 percentile first token latency (ns)   : 1760966679

Max Time to Output Token (ns)                : 1358427611
99.00 percentile time to output token (ns)   : 164964162
""",
    "parameters": "target_qps : 104\nttft_latency (ns): 2000000000\ntpot_latency (ns): 200000000\n"
    "min_query_count : 100\nmax_duration (ms): 0\n",
}


def read_summary(tmp_path, text, name="Server/mlperf_log_summary.txt"):
    source = source_of(tmp_path, text, name)
    assert mlperf_inference.sniff(source) > 0.5 and mllog.sniff(source) == 0
    return read(mlperf_inference, source)


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


def test_a_server_run(tmp_path):
    found = read_summary(tmp_path, summary(**SERVER))
    (load,) = found.rows["stages"]
    assert load["stage"] == "Server" and load["requested_rate_per_s"] == 104
    assert (load["request_rate_per_s"], load["output_tokens_per_s"]) == (99.86, 29522.56)
    assert load["completed"] is None and load["outcome"] == "measured"  # how many samples is not told
    assert stats(found) == {
        ("e2e", "min"): 0.756127764,
        ("e2e", "mean"): 37.75680707,
        ("e2e", "p50"): 32.917446649,
        ("e2e", "p99.9"): 145.708791529,
        ("ttft", "mean"): 0.963332124,
        ("ttft", "p99"): 1.760966679,
        ("tpot", "max"): 1.358427611,
        ("tpot", "p99"): 0.164964162,
    }
    assert found.facts == {
        "mlperf_scenario": "Server",
        "mlperf_result": "VALID",
        "mlperf_sut": "PySUT",
        "mlperf_mode": "PerformanceOnly",
        "mlperf_ttft_limit_s": 2.0,
        "mlperf_tpot_limit_s": 0.2,
        "mlperf_min_queries": 100,
    }
    assert not found.lost


def test_an_invalid_result_is_named(tmp_path):
    found = read_summary(tmp_path, summary(result="INVALID", **SERVER))
    assert found.facts["mlperf_result"] == "INVALID"
    assert "INVALID: performance constraints satisfied" in found.reasons()
    assert found.facts["mlperf_invalid_reason"] == "not satisfied: performance constraints"
    assert found.rows["stages"][0]["request_rate_per_s"] == 99.86


def test_offline_sends_all_at_once(tmp_path):
    text = summary(
        "Offline",
        top="Samples per second: 17.0963\nTokens per second: 4375.5\n",
        stats="Max latency (ns)                : 2994801193381",
        parameters="target_qps : 17",
    )
    found = read_summary(tmp_path, text, "results/run_1/mlperf_log_summary.txt")
    (load,) = found.rows["stages"]
    assert load["stage"] == "results/run_1 Offline" and load["requested_rate_per_s"] == math.inf
    assert (load["request_rate_per_s"], load["output_tokens_per_s"]) == (17.0963, 4375.5)
    assert stats(found) == {("e2e", "max"): 2994.801193381}


def test_single_stream(tmp_path):
    text = summary(
        "SingleStream",
        top="90th percentile latency (ns) : 1234567890\n99.0th first token percentile latency (ns) : 234567890\n",
        stats="QPS w/ loadgen overhead         : 1.25\nQPS w/o loadgen overhead        : 1.5\n"
        "TPS w/ loadgen overhead         : 62.5\nMean latency (ns) : 800000000\n",
    )
    found = read_summary(tmp_path, text, "mlperf_log_summary.txt")
    (load,) = found.rows["stages"]
    assert load["stage"] == "SingleStream" and load["max_concurrency"] == 1 and load["requested_rate_per_s"] is None
    assert (load["request_rate_per_s"], load["output_tokens_per_s"]) == (1.25, 62.5)
    assert stats(found) == {("e2e", "p90"): 1.23456789, ("ttft", "p99"): 0.23456789, ("e2e", "mean"): 0.8}


def test_tokens_that_loadgen_only_inferred_are_named(tmp_path):
    text = summary("Offline", top="Samples per second: 10\nTokens per second (inferred): 2500\n")
    found = read_summary(tmp_path, text)
    assert found.rows["stages"][0]["output_tokens_per_s"] == 2500 and "not counted" in found.reasons()


def test_older_server_runs_state_what_was_sent_alone(tmp_path):
    found = read_summary(tmp_path, summary(top="Scheduled samples per second : 104.15\n"))
    assert found.rows["stages"][0]["request_rate_per_s"] is None


def test_accuracy_runs_zero_times_and_second_summaries_are_named(tmp_path):
    text = summary(stats="Min latency (ns) : 0\nMax latency (ns) : -5").replace("PerformanceOnly", "AccuracyOnly")
    found = read_summary(tmp_path, summary("Offline") + text)
    assert found.rows["stages"][0]["stage"] == "Server" and "stage_stats" not in found.rows
    for said in ("accuracy run", "0 or less", "the last one counts"):
        assert said in found.reasons()


DETAIL = """:::MLLOG {"key": "loadgen_version", "value": "5.1 @ 1bc3e998cb", "time_ms": 0.01, "namespace": "mlperf"}
:::MLLOG {"key": "effective_target_qps", "value": 104.0, "time_ms": 0.02}
:::MLLOG {"key": "effective_scenario", "value": "Server", "time_ms": 0.02}
:::MLLOG {"key": "error_runtime", "value": "slow", "time_ms": 7.5}
:::MLLOG {"key": "result_validity", "value": "VALID", "time_ms": 99.5}
:::MLLOG {"key": "result_query_count", "value": 62400, "time_ms": 99.5}
:::MLLOG {"key": "result_mean_latency_ns", "value": 377
"""


def test_the_detailed_log_brings_facts_alone(tmp_path):
    source = source_of(tmp_path, DETAIL, "mlperf_log_detail.txt")
    assert mlperf_inference.sniff(source) > 0.5 and mllog.sniff(source) == 0
    found = read(mlperf_inference, source)
    assert not found.rows and found.facts == {
        "loadgen_version": "5.1 @ 1bc3e998cb",
        "mlperf_target_qps": 104,
        "mlperf_scenario": "Server",
        "mlperf_result": "VALID",
        "mlperf_queries": 62400,
    }
    assert "error_runtime" in found.reasons() and "cut off" in found.reasons()


def test_what_is_no_summary(tmp_path):
    for text in ("", "hello\n", f"{BAR}\nMLPerf Results Summary\n{BAR}\nSUT name : x\nScenario : Server\n"):
        with pytest.raises(InputError):
            read(mlperf_inference, source_of(tmp_path, text))
