"""What each serving engine calls its metrics, and what becomes of them."""

import math

import pytest

from tests.app.metrics_server import exposition
from tests.collectors.scrapes import SGLANG, WHO, engine, metrics


def test_a_scrape_of_vllm(tmp_path):
    got = metrics(tmp_path, exposition(40))
    [row] = engine(got)
    assert row == {
        "order": 0,
        "replica": "0",
        "running": 3,
        "waiting": 1,
        "kv_usage": 0.25,
        "prompt_tokens": 4000,
        "output_tokens": 800,
        "preemptions": 4,
    }
    buckets = [(r["le"], r["count"], r["total"], r["replica"]) for r in got.rows["histograms"]]
    assert buckets == [(le, n, 5.0, "0") for le, n in ((0.001, 0), (0.01, 10), (0.1, 20), (1.0, 40), (math.inf, 40))]
    assert set(got.column("histograms", "name")) == {"vllm:time_to_first_token_seconds"}
    assert got.column("scalars", "name") == ["process_start_time_seconds"]
    assert got.facts == {"engine": "vllm", "model": "meta-llama/Llama-3.1-8B-Instruct"} and not got.lost


def test_a_scrape_of_sglang(tmp_path):
    got = metrics(tmp_path, SGLANG)
    [row] = engine(got)
    assert row == {
        "order": 0,
        "running": 162,
        "waiting": 2826,
        "kv_usage": 0.28,
        "prefix_hit_rate": 0.0075,
        "output_tokens_per_s": 86.5,
        "prompt_tokens": 8_128_902,
        "prefix_queries": 8_128_902,
        "prefix_hits": 4000,
        "output_tokens": 7_557_572,
    }
    assert got.facts == {"engine": "sglang", "model": "qwen", "kv_cache_tokens": 454_097}
    assert [(r["name"], r["count"]) for r in got.rows["histograms"]] == [
        ('sglang:per_stage_req_latency_seconds{stage="prefill"}', 5),
        ('sglang:per_stage_req_latency_seconds{stage="prefill"}', 6),
        ('sglang:per_stage_req_latency_seconds{stage="decode"}', 1),
        ('sglang:per_stage_req_latency_seconds{stage="decode"}', 9),
    ]


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        (f"vllm:gpu_cache_usage_perc{WHO} 0.5", "kv_usage", 0.5),
        (f"vllm:kv_cache_usage_perc{WHO} 1", "kv_usage", 1.0),
        (f"vllm:prefix_cache_hits_total{WHO} 3.0", "prefix_hits", 3),
        (f"vllm:prefix_cache_queries{WHO} 3.0", "prefix_queries", 3),
        (f"vllm:num_preemptions{WHO} 7", "preemptions", 7),
        (f"vllm:spec_decode_num_drafts_total{WHO} 9", "drafts", 9),
        (f"vllm:avg_generation_throughput_toks_per_s{WHO} 12.5", "output_tokens_per_s", 12.5),
        ("tgi_queue_size 4", "waiting", 4),
        ('jetstream_prefill_backlog_size{id="x"} 4', "waiting", 4),
        (f"lmdeploy:num_requests_waiting{WHO} 300.0", "waiting", 300),
        (f"lmdeploy:gpu_cache_usage_perc{WHO} 0.99", "kv_usage", 0.99),
        (f"lmdeploy:generation_tokens_total{WHO} 7.0", "output_tokens", 7),
        ("llamacpp:requests_processing 4", "running", 4),
        ("llamacpp:requests_deferred 46", "waiting", 46),
        ("llamacpp:tokens_predicted_total 39080", "output_tokens", 39080),
    ],
)
def test_names_of_many_versions(tmp_path, line, column, value):
    assert engine(metrics(tmp_path, line + "\n"))[0][column] == value


def test_accepted_tokens_by_position(tmp_path):
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    text = "".join(f'{name}{{engine="0",position="{p}"}} {n}.0\n' for p, n in ((1, 40), (0, 70), (2, 10)))
    assert metrics(tmp_path, text).rows["engine"][0]["accepted_per_position"] == [70, 40, 10]
    assert metrics(tmp_path, text.replace('"1"', '"5"')).rows["engine"][0]["accepted_per_position"] is None


def test_a_cache_counted_in_blocks_is_told_in_tokens(tmp_path):
    config = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="1000"} 1.0\n'
    name = "vllm:gpu_prefix_cache_queries_total"
    text = f"# HELP {name} GPU prefix cache queries, in terms of number of queried blocks.\n{name}{WHO} 10.0\n"
    got = metrics(tmp_path, text + config)
    assert got.rows["engine"][0]["prefix_queries"] == 160
    assert got.facts == {"engine": "vllm", "model": "llama", "block_tokens": 16, "kv_cache_tokens": 16_000}
    without = metrics(tmp_path, text)
    assert without.rows["engine"][0]["prefix_queries"] is None and "count blocks" in without.reasons()
    tokens = metrics(tmp_path, text.replace("blocks", "tokens") + config)
    assert tokens.rows["engine"][0]["prefix_queries"] == 10


def test_any_label_of_who_tells_leaves_the_gauges(tmp_path):
    text = exposition(40).replace('{engine="0"', '{cluster="eu",prometheus_replica="a",team="x",engine="0"')
    got = metrics(tmp_path, text)
    assert [(r["replica"], r["running"], r["output_tokens"]) for r in engine(got)] == [("0", 3, 800)]
    assert set(got.column("histograms", "name")) == {"vllm:time_to_first_token_seconds"}
    again = [line for line in text.splitlines() if '"eu"' in line]
    twice = text + "\n".join(line.replace('replica="a"', 'replica="b"') for line in again) + "\n"
    assert [r["running"] for r in engine(metrics(tmp_path, twice))] == [3]  # two Prometheus tell the same
    other = text + "\n".join(line.replace('"eu"', '"us"') for line in again) + "\n"
    assert [(r["replica"], r["running"]) for r in engine(metrics(tmp_path, other))] == [("eu 0", 3), ("us 0", 3)]


def test_what_labels_split_is_added_up_unless_one_tells_of_all(tmp_path):
    got = metrics(
        tmp_path,
        """sglang:num_running_reqs{model_name="q",priority=""} 7
sglang:num_running_reqs{model_name="q",priority="0"} 5
sglang:num_running_reqs{model_name="q",priority="1"} 2
sglang:num_queue_reqs{model_name="q",priority="0"} 4
sglang:num_queue_reqs{model_name="q",priority="1"} 5
sglang:token_usage{model_name="q",priority="0"} 0.5
sglang:prompt_tokens_total{model_name="q"} 1000
sglang:cached_tokens_total{cache_source="device",model_name="q"} 400
sglang:cached_tokens_total{cache_source="host",model_name="q"} 100
sglang:generation_tokens_total{is_streaming="false",model_name="q"} 100
sglang:generation_tokens_total{is_streaming="true",model_name="q"} 50
sglang:num_retracted_requests_total{model_name="q"} 3
""",
    )
    assert engine(got) == [
        {
            "order": 0,
            "running": 7,
            "waiting": 9,
            "kv_usage": 0.5,
            "prefix_queries": 1000,
            "prompt_tokens": 1000,
            "prefix_hits": 500,
            "output_tokens": 150,
            "preemptions": 3,
        }
    ]


def test_hits_outside_the_device_are_hits(tmp_path):
    text = "".join(
        f"vllm:{name}_total{WHO} {n}\n"
        for name, n in (
            ("prefix_cache_queries", 1000),
            ("prefix_cache_hits", 300),
            ("external_prefix_cache_queries", 700),
            ("external_prefix_cache_hits", 500),
        )
    )
    [row] = engine(metrics(tmp_path, text))
    assert (row["prefix_hits"], row["prefix_queries"]) == (800, 1000)
    [row] = engine(metrics(tmp_path, "\n".join(text.splitlines()[2:]) + "\n"))
    assert (row["prefix_hits"], row["prefix_queries"]) == (500, 700)
    swapped = f"vllm:num_requests_waiting{WHO} 2\nvllm:num_requests_swapped{WHO} 3\n"
    assert engine(metrics(tmp_path, swapped))[0]["waiting"] == 5
    rates = f"vllm:gpu_prefix_cache_hit_rate{WHO} 0\nvllm:cpu_prefix_cache_hit_rate{WHO} 0.85\n"
    assert engine(metrics(tmp_path, rates))[0]["prefix_hit_rate"] == 0.85


def test_tensorrt_llm_and_its_triton_backend(tmp_path):
    got = metrics(
        tmp_path,
        """trtllm_num_requests_running{model_name="m",engine_type="trtllm"} 4
trtllm_num_requests_waiting{model_name="m",engine_type="trtllm"} 2
trtllm_kv_cache_utilization{model_name="m",engine_type="trtllm"} 0.62
""",
    )
    assert engine(got) == [{"order": 0, "running": 4, "waiting": 2, "kv_usage": 0.62}]
    triton = "".join(
        f'nv_trt_llm_{metric}{{{label}="{kind}",model="tensorrt_llm",version="1"}} {value}\n'
        for metric, label, kind, value in (
            ("request_metrics", "request_type", "scheduled", 12),
            ("request_metrics", "request_type", "waiting", 3),
            ("request_metrics", "request_type", "max", 512),
            ("kv_cache_block_metrics", "kv_cache_block_type", "used", 50),
            ("kv_cache_block_metrics", "kv_cache_block_type", "max", 200),
            ("kv_cache_block_metrics", "kv_cache_block_type", "tokens_per", 64),
        )
    )
    got = metrics(tmp_path, triton)
    assert engine(got) == [{"order": 0, "running": 12, "waiting": 3, "kv_usage": 0.25}]
    assert (got.facts["block_tokens"], got.facts["kv_cache_tokens"]) == (64, 12_800)
    assert got.facts["max_num_seqs"] == 512


def test_metrics_of_no_engine_say_so(tmp_path):
    got = metrics(tmp_path, 'node_load1{host="a"} 5\n')
    assert not got.rows.get("engine")
    assert ["what ran, waited and was cached is not told" in lost.reason for lost in got.lost] == [True]


def test_triton_counts_by_model(tmp_path):
    got = metrics(
        tmp_path,
        "".join(
            f'nv_inference_request_success{{model="{m}",version="1"}} {n}\n' for m, n in (("bert", 500), ("t5", 3))
        ),
    )
    assert not got.rows.get("engine") and got.facts["engine"] == "triton"
    assert {r["name"]: r["value"] for r in got.rows["scalars"]} == {
        'nv_inference_request_success{model="bert",version="1"}': 500,
        'nv_inference_request_success{model="t5",version="1"}': 3,
    }
    assert ["nothing of what ran at a time" in lost.reason for lost in got.lost] == [True]


def test_tensorrt_llm_serve_tells_its_blocks(tmp_path):
    got = metrics(
        tmp_path,
        "".join(
            f'trtllm_{n}{{model_name="m",engine_type="trtllm"}} {v}\n'
            for n, v in (
                ("num_requests_running", 4),
                ("kv_cache_used_blocks", 30),
                ("kv_cache_max_blocks", 120),
                ("kv_cache_tokens_per_block", 32),
            )
        ),
    )
    assert engine(got) == [{"order": 0, "running": 4, "kv_usage": 0.25}]
    assert (got.facts["block_tokens"], got.facts["kv_cache_tokens"]) == (32, 3_840)
