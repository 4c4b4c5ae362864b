"""GuideLLM reports, new and old: loads of a sweep, weighted statistics, requests by how they ended."""

import json
import math

import pytest

from collectors.serving import guidellm
from errors import InputError
from tests.collectors.reading import read, source_of

NOTHING = {
    "mean": 0.0,
    "median": 0.0,
    "std_dev": 0.0,
    "min": 0.0,
    "max": 0.0,
    "count": 0,
    "total_sum": 0.0,
    "percentiles": {"p50": 0.0, "p99": 0.0},
}


def by_end(mean, total=None, n=2):
    good = {
        "mean": mean,
        "median": mean,
        "mode": 7.0,
        "variance": 5.0,
        "std_dev": 0.5,
        "min": mean / 2,
        "max": mean * 2,
        "count": n,
        "total_sum": mean * n if total is None else total,
        "percentiles": {"p001": mean / 2, "p50": mean, "p99": mean * 1.5, "p999": mean * 2},
    }
    return {"successful": good, "errored": NOTHING, "incomplete": NOTHING, "total": good}


def benchmark(strategy=None, **changes):
    return {
        "type_": "generative_benchmark",
        "config": {
            "strategy": strategy or {"type_": "constant", "rate": 2.0, "max_concurrency": 512},
            "backend": {"model": "a/model"},
        },
        "scheduler_metrics": {},
        "start_time": 1_786_678_148.25,
        "end_time": 1_786_678_153.25,
        "duration": 5.0,
        "metrics": {
            "request_totals": {"successful": 2, "errored": 1, "incomplete": 3, "total": 6},
            "requests_per_second": by_end(0.4),
            "request_concurrency": by_end(1.5),
            "request_latency": by_end(2.5),
            "prompt_token_count": by_end(71.5),
            "output_token_count": by_end(8.0),
            "time_to_first_token_ms": by_end(250.0),
            "time_per_output_token_ms": by_end(312.5),
            "inter_token_latency_ms": by_end(31.25),
            "output_tokens_per_second": by_end(3.25),
            "tokens_per_second": by_end(31.5),
        },
        "requests": {
            "successful": [
                {
                    "request_id": "a",
                    "output": "secret words",
                    "request_args": "secret",
                    "prompt_tokens": 51,
                    "output_tokens": 8,
                    "cached_tokens": 16,
                    "request_start_time": 1_786_678_148.25,
                    "request_end_time": 1_786_678_150.75,
                    "info": {
                        "timings": {
                            "request_start": 1_786_678_148.25,
                            "first_token_iteration": 1_786_678_148.5,
                            "last_token_iteration": 1_786_678_150.5,
                        }
                    },
                }
            ],
            "errored": [{"request_id": "b", "request_start_time": 1_786_678_149.0, "info": {"error": "no"}}],
            "incomplete": [
                {
                    "request_id": "c",
                    "info": {"timings": {"request_start": 1_786_678_150.0, "request_end": 1_786_678_152.0}},
                }
            ],
            "total": None,
        },
        **changes,
    }


def read_report(tmp_path, *benchmarks, name="sweep.json", **more):
    report = {"metadata": {"version": 2, "guidellm_version": "0.6.0"}, "benchmarks": list(benchmarks), **more}
    source = source_of(tmp_path, json.dumps(report), name)
    assert guidellm.sniff(source) > 0.5
    return read(guidellm, source)


def stats(found):
    return {(r["metric"], r["statistic"]): r["value"] for r in found.rows["stage_stats"]}


def test_a_load(tmp_path):
    found = read_report(tmp_path, benchmark())
    (load,) = found.rows["stages"]
    assert load["stage"] == "sweep constant 2/s" and load["start_ns"] == 1_786_678_148_250_000_000
    assert (load["duration_s"], load["requested_rate_per_s"], load["max_concurrency"]) == (5.0, 2.0, 512)
    assert (load["completed"], load["failed"]) == (2, 1)
    assert (load["input_tokens"], load["output_tokens"]) == (143, 16)
    assert (load["request_rate_per_s"], load["output_tokens_per_s"], load["total_tokens_per_s"]) == (0.4, 3.25, 31.5)
    said = stats(found)
    assert said["ttft", "mean"] == 0.25 and said["ttft", "p0.1"] == 0.125 and said["ttft", "p99.9"] == 0.5
    assert said["normalized_tpot", "mean"] == 0.3125 and said["itl", "mean"] == 0.03125 and said["e2e", "p99"] == 3.75
    assert said["concurrency", "mean"] == 1.5 and said["e2e", "std"] == 0.5
    assert not any(metric in ("tpot", "output_tokens_per_s") for metric, _ in said)
    assert {which for _, which in said} == {"mean", "p50", "std", "min", "max", "p0.1", "p99", "p99.9"}
    assert "cut off" in found.reasons() and found.facts == {"model": "a/model"}


def test_requests_by_how_they_ended(tmp_path):
    found = read_report(tmp_path, benchmark())
    good, bad, cut = found.rows["requests"]
    assert {row["stage"] for row in (good, bad, cut)} == {"sweep constant 2/s"}
    assert good["arrival_ns"] == 1_786_678_148_250_000_000
    assert good["first_token_ns"] - good["arrival_ns"] == 250_000_000
    assert good["last_token_ns"] - good["arrival_ns"] == 2_250_000_000
    assert (good["prompt_tokens"], good["cached_tokens"], good["output_tokens"]) == (51, 16, 8)
    assert (bad["status"], bad["error"], cut["status"]) == ("failed", "no", "cut_off")
    assert (cut["first_token_ns"], cut["last_token_ns"] - cut["arrival_ns"]) == (None, 2_000_000_000)
    assert bad["last_token_ns"] is None and "secret" not in str(found.rows)


def test_names_and_rates_of_a_sweep(tmp_path):
    strategies = [
        {"type_": "synchronous"},
        {"type_": "throughput", "max_concurrency": 64},
        {"type_": "concurrent", "streams": 16},
        {"type_": "poisson", "rate": 1.25},
        {"type_": "poisson", "rate": 1.25},
    ]
    found = read_report(tmp_path, *[benchmark(strategy) for strategy in strategies])
    assert found.column("stages", "stage") == [
        "sweep synchronous",
        "sweep throughput",
        "sweep concurrent 16",
        "sweep poisson 1.25/s",
        "sweep poisson 1.25/s #2",
    ]
    assert found.column("stages", "requested_rate_per_s") == [None, math.inf, None, 1.25, 1.25]
    assert found.column("stages", "max_concurrency") == [1, 64, 16, None, None]


def test_the_first_version(tmp_path):
    old = benchmark()
    del old["scheduler_metrics"], old["config"], old["duration"]
    old["args"] = {"strategy": {"type_": "constant", "rate": 2.0}}
    old["run_stats"], old["request_totals"] = {}, old["metrics"].pop("request_totals")
    old["requests"] = {
        "successful": [
            {
                "request_id": "a",
                "prompt": "secret",
                "prompt_tokens": 5,
                "output_tokens": 3,
                "start_time": 10.0,
                "first_token_time": 10.5,
                "last_token_time": 11.5,
                "end_time": 12.0,
            }
        ]
    }
    found = read_report(tmp_path, old)
    (load,), (request,) = found.rows["stages"], found.rows["requests"]
    assert load["stage"] == "sweep constant 2/s" and (load["completed"], load["failed"]) == (2, 1)
    assert load["duration_s"] == 5.0
    assert (request["first_token_ns"], request["last_token_ns"]) == (10_500_000_000, 11_500_000_000)
    assert not any(metric == "normalized_tpot" for metric, _ in stats(found))  # that version's was neither of the two


def test_nothing_answered(tmp_path):
    none = benchmark()
    nobody = {"successful": NOTHING, "errored": NOTHING, "incomplete": NOTHING, "total": NOTHING}
    none["metrics"] = dict.fromkeys(none["metrics"], nobody) | {"request_totals": {"successful": 0, "errored": 6}}
    found = read_report(tmp_path, none)
    (load,) = found.rows["stages"]
    assert (load["completed"], load["failed"], load["outcome"]) == (0, 6, "failed")
    assert "stage_stats" not in found.rows and load["request_rate_per_s"] is None


def test_what_is_no_report(tmp_path):
    for text in ('{"benchmarks": 3}', '{"benchmarks": [{}]}', "[]", json.dumps({"benchmarks": [benchmark()]})[:900]):
        with pytest.raises(InputError):
            read(guidellm, source_of(tmp_path, text))
    found = read_report(tmp_path, {"metrics": None}, benchmark())
    assert len(found.rows["stages"]) == 1 and "without metrics" in found.reasons()


def test_warm_up_and_cool_down_are_no_part_of_the_load(tmp_path):
    """Statistics are of the measured window; requests that only touch it count, as GuideLLM counts them."""
    base = 1_786_678_148.25
    sent = {
        "warm": (-3.0, -0.5),
        "over the start": (-1.0, 0.5),
        "inside": (1.0, 3.0),
        "over the end": (4.0, 6.0),
        "cool": (5.5, 7.0),
    }
    requests = [
        {
            "request_id": name,
            "prompt_tokens": 5,
            "output_tokens": 3,
            "request_start_time": base + start,
            "request_end_time": base + end,
            "info": {
                "timings": {
                    "request_start": base + start,
                    "first_token_iteration": base + start + 0.1,
                    "last_token_iteration": base + end,
                }
            },
        }
        for name, (start, end) in sent.items()
    ]
    one = benchmark(
        requests={"successful": requests},
        scheduler_metrics={
            "request_start_time": base - 3.0,
            "measure_start_time": base,
            "measure_end_time": base + 5.0,
        },
    )
    found = read_report(tmp_path, one)
    assert [r["id"] for r in found.rows["requests"]] == ["over the start", "inside", "over the end"]
    assert "warm-up or the cool-down" in found.reasons()
