"""Logs of an SGLang server: Prefill and Decode batches, facts of the start."""

import pytest

from collectors.serving import sglang_log
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
NOON = 1_772_625_600 * S  # 2026-03-04 12:00:00 UTC

START = """\
[2026-03-04 11:58:00] server_args=ServerArgs(model_path='zai-org/GLM-5-FP8', tokenizer_path='x', context_length=None, \
kv_cache_dtype='fp8_e4m3', mem_fraction_static=0.908, max_running_requests=128, chunked_prefill_size=16384, tp_size=8, \
pp_size=2, dp_size=1, page_size=64, speculative_num_draft_tokens=4)
[2026-03-04 11:59:40 TP0] KV Cache is allocated. dtype: torch.bf16, #tokens: 159552, K size: 1.75 GB, V size: 1.25 GB
[2026-03-04 11:59:41 TP0] KV Cache is allocated. #tokens: 159552, K size: 0.25 GB, V size: 0.25 GB
[2026-03-04 11:59:50 TP0] max_total_num_tokens=159552, chunked_prefill_size=16384, context_len=169000
"""


def prefill(new, cached, at="12:00:00", rank=" TP0", running=1, queued=2, usage=0.25, more=""):
    return (
        f"[2026-03-04 {at}{rank}] Prefill batch. #new-seq: 1, #new-token: {new}, #cached-token: {cached}, "
        f"token usage: {usage}, #running-req: {running}, #queue-req: {queued}, {more}\n"
    )


def decode(running=14, rate=453.37, at="12:00:10", rank=" TP0", more="", usage="#token: 8192, token usage: 0.31"):
    return (
        f"[2026-03-04 {at}{rank}] Decode batch [41], #running-req: {running}, {usage}, {more}cuda graph: True, "
        f"gen throughput (token/s): {rate}, #queue-req: 3, \n"
    )


def log(tmp_path, text):
    return read(sglang_log, source_of(tmp_path, text, "server.log"))


def test_batches_are_samples(tmp_path):
    got = log(
        tmp_path, prefill(100, 0) + prefill(50, 150, "12:00:01", more="input throughput (token/s): 99.5,") + decode()
    )
    first, second, third = got.rows["engine"]
    assert (first["ts_ns"], first["order"], first["running"], first["waiting"]) == (NOON, 0, 2, 2)  # one reads
    assert (first["kv_usage"], first["replica"], first["preemptions"]) == (0.25, None, None)
    assert [r["prompt_tokens"] for r in got.rows["engine"]] == [100, 150, 150]
    assert [r["prefix_hits"] for r in got.rows["engine"]] == [0, 150, 150]
    assert [r["prefix_queries"] for r in got.rows["engine"]] == [100, 300, 300]
    assert [r["prompt_tokens_per_s"] for r in got.rows["engine"]] == [None, 99.5, None]
    assert (third["running"], third["waiting"], third["kv_usage"], third["output_tokens_per_s"]) == (
        14,
        3,
        0.31,
        453.37,
    )
    assert second["output_tokens_per_s"] is None and third["acceptance_length"] is None


def test_speculation_and_hybrid_models(tmp_path):
    usage = "#full token: 129378, full token usage: 0.16, #swa token: 512, swa token usage: 0.20"
    [row] = log(tmp_path, decode(usage=usage, more="accept len: 2.83, accept rate: 0.26, ")).rows["engine"]
    assert (row["acceptance_length"], row["kv_usage"], row["running"]) == (2.83, 0.2, 14)


def test_ranks_that_repeat_the_first_are_left_out_and_data_parallel_ranks_are_replicas(tmp_path):
    got = log(tmp_path, prefill(7, 0) + prefill(7, 0, rank=" TP1") + prefill(7, 0, rank=" PP1 TP0"))
    assert got.column("engine", "prompt_tokens") == [7]
    got = log(
        tmp_path, prefill(7, 0, rank=" DP0 TP0") + prefill(9, 0, rank=" DP1 TP1") + prefill(1, 0, rank=" DP0 TP0")
    )
    assert got.column("engine", "replica") == ["0", "1", "0"] and got.column("engine", "prompt_tokens") == [7, 9, 8]


def test_retracted_requests_are_preemptions(tmp_path):
    retract = (
        "[2026-03-04 12:00:05 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0\n"
    )
    got = log(tmp_path, prefill(7, 0) + retract + decode() + retract.replace("TP0", "TP1") + retract + decode())
    assert got.column("engine", "preemptions") == [0, 4, 8]


def test_the_start_tells_facts(tmp_path):
    assert log(tmp_path, START).facts == {
        "engine": "sglang",
        "model": "zai-org/GLM-5-FP8",
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 2,
        "data_parallel_size": 1,
        "max_num_seqs": 128,
        "chunked_prefill_tokens": 16384,
        "kv_precision": "fp8_e4m3",
        "block_size": 64,
        "num_speculative_tokens": 3,  # the fourth is the sure token that they hang on
        "kv_cache_tokens": 159552,
        "kv_available_bytes": 3 * 2**30,
        "chips": 16,
        "parallelism": {"tensor": 8, "pipeline": 2},
    }
    several = log(tmp_path, START.replace("dp_size=1", "dp_size=8")).facts
    assert "chips" not in several and several["data_parallel_size"] == 8


def test_prompts_that_are_read_run_and_a_batch_of_nothing_new_is_of_those_that_decode(tmp_path):
    got = log(tmp_path, prefill(8192, 0, running=0, queued=0) + prefill(0, 0, running=5))
    assert got.column("engine", "running") == [1, 5]
    several = prefill(900, 0, running=3).replace("#new-seq: 1", "#new-seq: 4")
    assert log(tmp_path, several).column("engine", "running") == [7]


@pytest.mark.parametrize("scheduler, attention, seats", [(True, True, 16), (False, True, 16), (False, False, 128)])
def test_seats_are_those_of_a_rank(tmp_path, scheduler, attention, seats):
    start = START.replace("dp_size=1", f"dp_size=8, enable_dp_attention={attention}")
    line = (
        "[2026-03-04 11:59:55 DP0 TP0] max_total_num_tokens=9000, max_prefill_tokens=16384, max_running_requests=16\n"
    )
    text = start.replace(start.splitlines()[-1], "") + (line if scheduler else "")
    assert log(tmp_path, text).facts["max_num_seqs"] == seats


@pytest.mark.parametrize(
    "given, draft",
    [
        ("speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4", 3),
        ("speculative_num_steps=5, speculative_eagle_topk=8, speculative_num_draft_tokens=64", 5),  # a tree 5 deep
        ("speculative_num_steps=None, speculative_num_draft_tokens=None", None),
    ],
)
def test_a_draft_is_as_long_as_its_steps(tmp_path, given, draft):
    facts = log(tmp_path, START.replace("speculative_num_draft_tokens=4", given)).facts
    assert facts.get("num_speculative_tokens") == draft


def test_damaged_lines_and_other_files(tmp_path):
    got = log(tmp_path, prefill(100, 0)[:60] + "\n" + prefill("9" * 400, 1, usage="7.5") + prefill(5, 0))
    assert got.column("engine", "running") == [None, 1, 2] and got.column("engine", "kv_usage") == [None, None, 0.25]
    assert "batch lines (1)" in got.reasons()
    with pytest.raises(InputError, match="no line of an SGLang"):
        log(tmp_path, "a batch of cakes\n")


def test_it_knows_its_own(tmp_path):
    for text in (START, prefill(1, 1), decode(), "x\n" * 100_000 + decode()):
        assert sglang_log.sniff(source_of(tmp_path, text)) > 0.9
    for text in ("", "batch\n", "{}", "Prefill batch\n"):
        assert sglang_log.sniff(source_of(tmp_path, text)) == 0


def test_servers_behind_a_prefix_are_replicas(tmp_path):
    got = log(tmp_path, "[pod/a-0/s] " + prefill(7, 0) + "[pod/a-1/s] " + prefill(9, 0, rank=" DP1 TP1"))
    assert got.column("engine", "replica") == ["a-0", "a-1/1"] and got.column("engine", "prompt_tokens") == [7, 9]
