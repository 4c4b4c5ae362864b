"""Results of SGLang's bench_serving: the printed block, and JSON lines."""

import json
import math

import pytest

from collectors.serving import sglang_bench, vllm_bench
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.serving_files import BLOCK, SGLANG_BLOCK, statistics_ms, template

S = 1_000_000_000


def load(**more):
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": math.inf,
        "max_concurrency": 16,
        "sharegpt_output_len": None,
        "random_input_len": 1024,
        "random_output_len": 16,
        "random_range_ratio": 0.0,
        "duration": 8.0,
        "completed": 3,
        "total_input_tokens": 600,
        "total_output_tokens": 9,
        "total_output_tokens_retokenized": 9,
        "request_throughput": 0.375,
        "input_throughput": 75.0,
        "output_throughput": 1.125,
        "mean_e2e_latency_ms": 900.0,
        "median_e2e_latency_ms": 850.5,
        "std_e2e_latency_ms": 10.0,
        "p99_e2e_latency_ms": 1000.0,
        "mean_tpot_ms": 25.0,
        "median_tpot_ms": 24.0,
        "concurrency": 1.5,
        "accept_length": 2.5,
        "slo_attainment": 0.75,
        **more,
    }


def detailed(**more):
    ttfts, itls, outs = [0.5, 0.25, 0.0, 0.75], [[0.125, 0.125], [0.25], [], [0.0625] * 3], [3, 2, 0, 4]
    return (
        load(
            **statistics_ms([0.5, 0.25, 0.75], "ttft"),
            **statistics_ms([0.125, 0.125, 0.25, *[0.0625] * 3], "itl"),
            input_lens=[100, 200, 150, 300],
            output_lens=outs,
            ttfts=ttfts,
            itls=itls,
            generated_texts=["é"] * 4,
            errors=["", "", "refused", ""],
        )
        | more
    )


def saved(tmp_path, *loads, name="out.jsonl"):
    text = "".join(json.dumps(x) + "\n" for x in loads)
    return read(sglang_bench, source_of(tmp_path, text, name))


def stats(got):
    return {(r["metric"], r["statistic"]): r["value"] for r in got.rows["stage_stats"]}


def test_a_line_is_a_load(tmp_path):
    got = saved(tmp_path, load(), load(request_rate=4.0, max_concurrency=None))
    first, second = got.rows["stages"]
    assert (first["stage"], first["requested_rate_per_s"], first["max_concurrency"]) == ("out.jsonl", math.inf, 16)
    assert (second["stage"], second["requested_rate_per_s"], second["max_concurrency"]) == ("out.jsonl #2", 4.0, None)
    assert (first["tool"], first["completed"], first["duration_s"], first["failed"]) == ("sglang_bench", 3, 8.0, None)
    assert stats(got) == {
        ("e2e", "mean"): 0.9,
        ("e2e", "p50"): 0.8505,
        ("e2e", "std"): 0.01,
        ("e2e", "p99"): 1.0,
        ("tpot", "mean"): 0.025,
        ("tpot", "p50"): 0.024,
        ("concurrency", "mean"): 1.5,
        ("acceptance_length", "mean"): 2.5,
        ("slo_attainment", "mean"): 0.75,
    }


def test_details_are_requests_to_their_last_token(tmp_path):
    got = saved(tmp_path, detailed())
    rows = got.rows["requests"]
    assert [r["status"] for r in rows] == ["completed", "completed", "failed", "completed"]
    assert [r["ttft_ns"] for r in rows] == [S // 2, S // 4, None, 3 * S // 4]
    assert rows[0]["e2e_ns"] == 3 * S // 4 and rows[0]["gaps_ns"] == [S // 8, S // 8]
    assert rows[0]["arrival_ns"] is None  # only durations are known
    assert got.column("stages", "failed") == [1]
    # The summary's own latency ends later than the last token: it is not held against the gaps.
    assert "the summary says" not in got.reasons()
    assert "p99_ttft_ms" in saved(tmp_path, detailed(p99_ttft_ms=1.0)).reasons()


def test_the_printed_block(tmp_path):
    got = read(sglang_bench, source_of(tmp_path, SGLANG_BLOCK, "bench.log"))
    [stage] = got.rows["stages"]
    assert (stage["tool"], stage["completed"], stage["requested_rate_per_s"]) == ("sglang_bench", 1920, math.inf)
    assert (stage["max_concurrency"], stage["failed"], stage["output_tokens"]) == (None, None, 157031)
    assert (stage["total_tokens_per_s"], stage["output_tokens_per_s"]) == (9361.52, 734.77)
    assert stats(got) == {
        ("e2e", "mean"): 157.84285,
        ("e2e", "p50"): 157.29017,
        ("ttft", "mean"): 112.0434,
        ("ttft", "p50"): 140.97491,
        ("ttft", "p99"): 145.54645,
        ("itl", "mean"): 0.56994,
        ("itl", "max"): 151.00849,
        ("concurrency", "mean"): 1418.05,
        ("acceptance_length", "mean"): 2.5,
    }
    assert got.lost == []


def test_templates_and_other_files(tmp_path):
    with pytest.raises(InputError, match="template"):
        read(sglang_bench, source_of(tmp_path, template(SGLANG_BLOCK)))
    with pytest.raises(InputError, match="no result"):
        read(sglang_bench, source_of(tmp_path, '{"backend": "sglang"}\n'))


def test_a_half_written_line_is_named(tmp_path):
    whole = json.dumps(load()) + "\n"
    got = read(sglang_bench, source_of(tmp_path, whole + json.dumps(load())[:99], "out.jsonl"))
    assert len(got.rows["stages"]) == 1 and [lost.offset for lost in got.lost] == [len(whole)]


def test_each_tool_knows_its_own(tmp_path):
    for text in (SGLANG_BLOCK, json.dumps(load()), json.dumps(detailed())):
        source = source_of(tmp_path, text)
        assert sglang_bench.sniff(source) >= 0.9 and vllm_bench.sniff(source) == 0
    assert sglang_bench.sniff(source_of(tmp_path, BLOCK)) == sglang_bench.sniff(source_of(tmp_path, "{}")) == 0


def test_what_the_server_said_of_itself(tmp_path):
    info = {
        "model_path": "a/model",
        "tp_size": 4,
        "dp_size": 1,
        "page_size": 16,
        "version": "0.5.2",
        "kv_cache_dtype": "auto",
        "internal_states": [{"memory_usage": {"token_capacity": 1_234_567}}],
    }
    facts = saved(tmp_path, load(server_info=info)).facts
    assert facts == {
        "model": "a/model",
        "tensor_parallel_size": 4,
        "data_parallel_size": 1,
        "page_size": 16,
        "chips": 4,
        "engine_version": "0.5.2",
        "kv_cache_tokens": 1_234_567,
        "engine": "sglang",
    }


def test_a_router_names_servers_of_prefill_and_of_decode(tmp_path):
    one = {"model_path": "a/model", "max_total_num_tokens": 500_000}
    info = {"prefill": [{**one, "tp_size": 4}] * 2, "decode": [{**one, "tp_size": 8, "max_total_num_tokens": 900_000}]}
    facts = saved(tmp_path, load(server_info=info)).facts
    assert facts == {
        "model": "a/model",
        "prefill_workers": 2,
        "decode_workers": 1,
        "prefill_tensor_parallel_size": 4,
        "decode_tensor_parallel_size": 8,
        "chips": 16,
        "kv_cache_tokens": 900_000,
        "engine": "sglang",
    }
