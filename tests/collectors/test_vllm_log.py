"""Logs of a vLLM server: samples, speculation, iterations, facts of the start."""

import pytest

from collectors.serving import vllm_log
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.serving_files import BLOCK

S = 1_000_000_000
DAY = "server-2026-06-14.log"
NOON = 1_781_438_400 * S  # 2026-06-14 12:00:00 UTC

START = """\
(APIServer pid=1) INFO 06-14 11:56:30 [api_server.py:1595] vLLM API server version 0.22.1
(APIServer pid=1) INFO 06-14 11:56:37 [utils.py:273] non-default args: {'model_tag': 'a/b', 'model': 'Qwen/Qwen3-32B', \
'max_model_len': 262144, 'tensor_parallel_size': 2, 'max_num_batched_tokens': 2048, 'max_num_seqs': 128}
(EngineCore pid=32) INFO 06-14 11:57:02 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: \
model='Qwen/Qwen3-32B', speculative_config=SpeculativeConfig(method='eagle', model='draft/x', num_spec_tokens=3), \
dtype=torch.bfloat16, max_seq_len=262144, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=4, \
kv_cache_dtype=fp8, device_config=cuda
(EngineCore_DP0 pid=3) INFO 06-14 11:57:20 [model.py:9] Model loading took 17.5 GiB and 6.456767 seconds
(EngineCore_DP0 pid=3) INFO 06-14 11:57:24 [gpu_worker.py:361] Available KV cache memory: 7.5 GiB
(EngineCore_DP1 pid=4) INFO 06-14 11:57:24 [gpu_worker.py:361] Available KV cache memory: 7.25 GiB
(EngineCore_DP0 pid=3) INFO 06-14 11:57:24 [kv_cache_utils.py:1319] GPU KV cache size: 447,181 tokens
(EngineCore_DP0 pid=3) INFO 06-14 11:57:24 [kv.py:9] Maximum concurrency for 131,072 tokens per request: 3.41x
"""


def sample(
    at="06-14 12:00:00",
    engine="Engine 000: ",
    device="GPU",
    prompt=100.5,
    output=20.25,
    running=3,
    waiting=1,
    kv=12.3,
    hit=", Prefix cache hit rate: 45.6%",
    more="",
):
    return (
        f"(APIServer pid=1) INFO {at} [loggers.py:259] {engine}Avg prompt throughput: {prompt} tokens/s, Avg "
        f"generation throughput: {output} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs{more}, "
        f"{device} KV cache usage: {kv}%{hit}\n"
    )


SPECULATION = (
    "(APIServer pid=1) INFO 06-14 12:00:00 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 3.42, "
    "Accepted throughput: 67.60 tokens/s, Drafted throughput: 83.70 tokens/s, Accepted: 676 tokens, Drafted: 837 "
    "tokens, Per-position acceptance rate: 0.921, 0.828, 0.674, Avg Draft acceptance rate: 80.8%\n"
)


@pytest.mark.parametrize("engine, told", [("8 Engines Aggregated: ", 8), ("Engine 000: ", None)])
def test_engines_that_are_told_together_are_counted(tmp_path, engine, told):
    assert read(vllm_log, source_of(tmp_path, sample(engine=engine), DAY)).facts.get("engines_aggregated") == told


def iteration(n, ms, prompt=0, decodes=3, tokens=3, at="06-14 12:00:00", process="EngineCore_DP0", kv=""):
    return (
        f"({process} pid=7) INFO {at} [core.py:407] Iteration({n}): {1 if prompt else 0} context requests, {prompt} "
        f"context tokens, {decodes} generation requests, {tokens} generation tokens, iteration elapsed time: {ms} "
        f"ms{kv}\n"
    )


def log(tmp_path, text, name=DAY):
    return read(vllm_log, source_of(tmp_path, text, name))


def test_a_line_of_the_engine_is_a_sample(tmp_path):
    [row] = log(tmp_path, sample()).rows["engine"]
    assert {k: v for k, v in row.items() if v is not None} == {
        "ts_ns": NOON,
        "order": 0,
        "replica": "0",
        "running": 3,
        "waiting": 1,
        "kv_usage": 0.123,
        "prefix_hit_rate": 0.456,
        "prompt_tokens_per_s": 100.5,
        "output_tokens_per_s": 20.25,
        "source": DAY,
    }


@pytest.mark.parametrize("device", ["GPU", "TPU", "HPU", "CPU"])
def test_every_device_has_a_cache(tmp_path, device):
    assert log(tmp_path, sample(device=device, hit="")).column("engine", "kv_usage") == [0.123]


def test_version_0_counts_the_swapped_as_waiting(tmp_path):
    text = (
        "INFO 06-14 12:00:00 metrics.py:295] Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: "
        "7.0 tokens/s, Running: 3 reqs, Swapped: 1 reqs, Pending: 2 reqs, GPU KV cache usage: 1.2%, "
        "CPU KV cache usage: 9.0%.\n"
        "INFO 06-14 12:00:00 metrics.py:311] Prefix cache hit rate: GPU: 40.0%, CPU: 0.00%\n"
        "WARNING 06-14 12:00:01 scheduler.py:1057] Sequence group cmpl-7 is preempted by PreemptionMode.RECOMPUTE mode "
        "because there is not enough KV cache space. total_num_cumulative_preemption=51\n"
    )
    got = log(tmp_path, text + text.replace(":00 ", ":10 ").replace("=51", "=101") + text.splitlines()[0] + "\n")
    assert got.column("engine", "waiting") == [3, 3, 3] and got.column("engine", "kv_usage") == [0.012] * 3
    assert got.column("engine", "prefix_hit_rate") == [0.4, 0.4, None]
    assert got.column("engine", "preemptions") == [0, 51, 101]
    assert got.column("engine", "replica") == [None] * 3


def test_preemptions_and_drafts_are_added_up(tmp_path):
    text = (
        sample(more=", Preemptions: 4")
        + SPECULATION
        + sample("06-14 12:00:10", engine="Engine 001: ", more=", Deferred: 1 reqs")
        + sample("06-14 12:00:20", more=", Preemptions: 3")
        + SPECULATION.replace("676", "24").replace("837", "63")
    )
    got = log(tmp_path, text)
    assert got.column("engine", "preemptions") == [4, 0, 7]
    assert got.column("engine", "replica") == ["0", "1", "0"]
    assert got.column("engine", "drafted") == [837, None, 900] and got.column("engine", "accepted") == [676, None, 700]
    assert got.column("engine", "acceptance_length") == [3.42, None, 3.42]
    assert got.column("engine", "acceptance_per_position")[0] == [0.921, 0.828, 0.674]


def test_a_log_that_never_tells_of_preemptions_may_not_count_them(tmp_path):
    assert log(tmp_path, sample() + sample()).column("engine", "preemptions") == [None, None]


def test_lines_run_together_coloured_and_repeated(tmp_path):
    text = sample().rstrip("\n") + sample("06-14 12:00:10", engine="Engine 007: ", running=9)
    got = log(tmp_path, "\x1b[36m" + text.replace("(APIServer", "\x1b[0;0m (APIServer").rstrip() + " [repeated 3x]\n")
    assert got.column("engine", "running") == [3, 9] and got.column("engine", "replica") == ["0", "7"]
    assert got.column("engine", "ts_ns") == [NOON, NOON + 10 * S]


def test_engines_that_are_summed_up_are_no_replica(tmp_path):
    assert log(tmp_path, sample(engine="4 Engines Aggregated: ")).column("engine", "replica") == [None]


def test_iterations(tmp_path):
    text = iteration(0, 500.25, prompt=2048, decodes=0, tokens=0) + iteration(1, 20, kv=", GPU KV cache usage: 1.5%")
    text += iteration(2, 20, tokens=12) + iteration(0, 30, process="EngineCore_DP1") + iteration(3, 0.02)
    got = log(tmp_path, text)
    rows = got.rows["iterations"]
    assert [r["order"] for r in rows] == [0, 1, 2, 0, 3] and [r["replica"] for r in rows] == ["0", "0", "0", "1", "0"]
    assert [r["dur_ns"] for r in rows] == [500_250_000, 20_000_000, 20_000_000, 30_000_000, None]
    assert [r["prefill_tokens"] for r in rows] == [2048, 0, 0, 0, 0] and rows[0]["prefill_requests"] == 1
    assert [r["decode_tokens"] for r in rows] == [0, 3, None, 3, 3]
    assert [r["drafted_tokens"] for r in rows] == [0, 0, 9, 0, 0] and rows[1]["kv_usage"] == 0.015
    # Within the second that lines tell, one follows on the other; replicas have their own.
    assert [r["start_ns"] and r["start_ns"] - NOON for r in rows] == [-500_250_000, 0, 20_000_000, -30_000_000, None]
    assert "durations of iterations (1)" in got.reasons()


def test_iterations_never_begin_after_the_second_in_which_they_ended(tmp_path):
    rows = log(tmp_path, "".join(iteration(n, 400) for n in range(4))).rows["iterations"]
    ends = [(r["start_ns"] + r["dur_ns"] - NOON) / S for r in rows]
    assert ends == [0, 0.4, 0.8, 1.0]


def test_the_start_tells_facts(tmp_path):
    assert log(tmp_path, START).facts == {
        "engine": "vllm",
        "engine_version": "0.22.1",
        "model": "Qwen/Qwen3-32B",
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 4,
        "chips": 8,
        "max_num_seqs": 128,
        "parallelism": {"data": 4, "tensor": 2, "pipeline": 1},
        "max_num_batched_tokens": 2048,
        "max_model_len": 262144,
        "num_speculative_tokens": 3,
        "precision": "bf16",
        "kv_precision": "fp8",
        "kv_available_bytes": 7.25 * 2**30,
        "kv_cache_tokens": 447181,
        "weights_loaded_bytes": 17.5 * 2**30,
        "max_concurrency_at": {"tokens": 131072, "sequences": 3.41},
    }


def test_without_a_year_times_hold_among_themselves(tmp_path):
    got = log(tmp_path, sample("12-31 23:59:55") + sample("01-01 00:00:05"), "server.log")
    first, second = got.column("engine", "ts_ns")
    assert second - first == 10 * S and first == (365 * 86_400 + 86_395) * S  # of a leap year
    assert got.facts["engine_times"] == "since start"
    assert "nothing gives the year" in got.reasons()


def test_the_year_of_a_full_date_in_the_log(tmp_path):
    got = log(
        tmp_path, "2026-12-31T20:00:00Z pulling image\n" + sample("12-31 23:59:55") + sample("01-01 00:00:05"), "x.log"
    )
    assert got.column("engine", "ts_ns")[1] == 1_798_761_605 * S and "engine_times" not in got.facts


def test_lines_without_a_time(tmp_path):
    got = log(tmp_path, sample().partition("259] ")[2] * 2)
    assert got.column("engine", "ts_ns") == [None, None] and got.column("engine", "order") == [0, 1]


def test_a_result_in_the_same_file_is_read_too(tmp_path):
    got = log(tmp_path, sample() + BLOCK + sample("06-14 12:00:10"), "all-2026-06-14.log")
    assert len(got.rows["engine"]) == 2
    assert got.column("stages", "tool") == ["vllm_bench"] and got.column("stages", "completed") == [3000]
    assert vllm_log.sniff(source_of(tmp_path, sample() + BLOCK)) > 0.9
    amid = BLOCK.replace("Mean TPOT", sample("06-14 12:00:20") + "Mean TPOT")
    both = log(tmp_path, sample() + amid, "all-2026-06-14.log")
    assert len(both.rows["engine"]) == 2 and both.rows["stage_stats"] == got.rows["stage_stats"]


def test_lines_that_tell_of_failures_are_evidence(tmp_path):
    got = log(tmp_path, sample() + "ERROR 06-14 12:00:03 [core.py:9] torch.OutOfMemoryError: CUDA out of memory.\n")
    assert len(got.rows["evidence"]) == 1


def test_what_is_no_such_log(tmp_path):
    with pytest.raises(InputError, match="no line of a vLLM server"):
        log(tmp_path, "INFO: hello\n")
    assert vllm_log.sniff(source_of(tmp_path, b'{"a": 1}')) == 0
    assert vllm_log.sniff(source_of(tmp_path, START)) == vllm_log.sniff(source_of(tmp_path, iteration(1, 2))) > 0.9


def test_a_line_cut_off_is_named(tmp_path):
    got = log(tmp_path, sample() + sample().partition(", Running")[0] + "\n")
    assert got.column("engine", "running") == [3, None] and "engine lines (1): cut off" in got.reasons()
    assert log(tmp_path, sample(kv="200.0", hit="")).column("engine", "kv_usage") == [None]


def test_servers_behind_a_prefix_are_replicas_with_counters_of_their_own(tmp_path):
    def preempted(total):
        return (
            f"WARNING 06-14 12:00:00 [scheduler.py:1] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE "
            f"mode because of the cache. total_num_cumulative_preemption={total}\n"
        )

    text = "".join(
        f"[pod/vllm-{n}/server] {line}"
        for n, line in (
            (0, preempted(3)),
            (1, preempted(1)),
            (0, sample()),
            (1, sample()),
            (1, preempted(2)),
            (0, sample()),
            (1, sample()),
        )
    )
    got = log(tmp_path, text)
    assert got.column("engine", "replica") == ["vllm-0/0", "vllm-1/0"] * 2
    assert got.column("engine", "preemptions") == [3, 1, 3, 2]


def test_a_zone_that_is_none_of_ours_is_said(tmp_path):
    got = log(tmp_path, "2026-06-14 12:00:00 CST " + sample())
    assert got.column("engine", "ts_ns") == [NOON] and "CST, which means different hours" in got.reasons()


def test_hits_outside_the_device_are_hits(tmp_path):
    text = sample(more=", External prefix cache hit rate: 50.0%")
    assert log(tmp_path, text).column("engine", "prefix_hit_rate") == [pytest.approx(0.456 + 0.544 * 0.5)]
    v0 = (
        "INFO 06-14 12:00:00 metrics.py:295] Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: "
        "7.0 tokens/s, Running: 3 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 1.2%, "
        "CPU KV cache usage: 9.0%.\n"
        "INFO 06-14 12:00:00 metrics.py:311] Prefix cache hit rate: GPU: {}%, CPU: {}%\n"
    )
    for gpu, cpu, found in (("0.00", "85.00", 0.85), ("-100.00", "85.00", 0.85), ("40.00", "0.00", 0.4)):
        assert log(tmp_path, v0.format(gpu, cpu)).column("engine", "prefix_hit_rate") == [found]
    assert log(tmp_path, v0.format("-100.00", "-100.00")).column("engine", "prefix_hit_rate") == [None]


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=1) INFO 06-14 11:56:37 [utils.py:273] non-default args: {'model': 'Qwen/Qwen3-30B-A3B', "
        "'tensor_parallel_size': 2, 'quantization': 'fp8', 'enable_expert_parallel': True}",
        "INFO 06-14 11:57:02 [core.py:113] Initializing a V1 LLM engine (v0.22.1) with config: "
        "model='Qwen/Qwen3-30B-A3B', "
        "dtype=torch.bfloat16, tensor_parallel_size=2, quantization=fp8, enable_expert_parallel=True, "
        "kv_cache_dtype=auto",
        "INFO 06-14 11:57:02 [api_server.py:1] vLLM API server version 0.8.5\n"
        "INFO 06-14 11:57:02 [api_server.py:2] args: Namespace(model='Qwen/Qwen3-30B-A3B', dtype='auto', "
        "block_size=None, tensor_parallel_size=2, quantization='fp8', enable_expert_parallel=True)",
    ],
)
def test_where_experts_lie_and_what_weights_are_kept_in_is_read(tmp_path, line):
    facts = log(tmp_path, line + "\n" + sample()).facts
    assert facts["enable_expert_parallel"] is True and facts["quantization"] == "fp8"
    assert (facts["model"], facts["tensor_parallel_size"]) == ("Qwen/Qwen3-30B-A3B", 2)


def test_what_is_left_to_the_engine_is_told_by_its_configuration(tmp_path):
    first = "INFO 06-14 11:56:37 [api_server.py:2] args: Namespace(model='a/b', max_model_len=None, dtype='auto')\n"
    facts = log(tmp_path, first + START.replace("'model_tag': 'a/b', ", "'dtype': 'auto', ")).facts
    assert (facts["max_model_len"], facts["precision"]) == (262144, "bf16")
    assert "enable_expert_parallel" not in facts and "quantization" not in facts
