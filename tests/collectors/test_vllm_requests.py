"""Single requests of vLLM's engine, and the files beside them."""

import json

import pytest

from collectors.serving import vllm_requests
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
HEADER = "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n"


def request(n, delay=0.0, **more):
    """A request sent n seconds after an epoch, queued `delay` later on a clock that is 1,000,000 s behind."""
    sent = 1_777_000_000.0 + n
    queued = sent - 1_000_000.0 + delay
    return {
        "request_id": f"bench-{n}",
        "input_toks": 100 + n,
        "output_toks": 11,
        "arrival_time": sent,
        "queued_ts": queued,
        "scheduled_ts": queued + 0.25,
        "first_token_ts": queued + 0.5,
        "last_token_ts": queued + 1.5,
        **more,
    }


def lines(*requests):
    return "".join(json.dumps(r) + "\n" for r in requests)


def got(tmp_path, text, name="requests.jsonl"):
    return read(vllm_requests, source_of(tmp_path, text, name))


def test_engine_times_move_onto_the_calendar(tmp_path):
    found = got(tmp_path, lines(request(0, 0.125), request(1, 0.0625), request(2, 0.5)))
    rows = found.rows["requests"]
    at = [r["arrival_ns"] for r in rows]
    # The second was queued soonest after it was sent: what the others took longer they arrived later.
    assert at == [(1_777_000_000 + n) * S + late for n, late in enumerate((62_500_000, 0, 437_500_000))]
    assert [r["scheduled_ns"] - a for r, a in zip(rows, at, strict=True)] == [250_000_000] * 3
    assert [r["last_token_ns"] - r["first_token_ns"] for r in rows] == [S] * 3
    assert rows[0]["prompt_tokens"] == 100 and rows[0]["output_tokens"] == 11 and rows[0]["status"] == "completed"
    assert "took up to 437.5 ms longer (median 62.5 ms)" in found.reasons()


def test_what_did_not_happen_is_written_as_zero(tmp_path):
    found = got(tmp_path, lines(request(0), request(1, last_token_ts=0.0, first_token_ts=0.0, output_toks=0)))
    assert found.column("requests", "status") == ["completed", "failed"]
    assert found.column("requests", "first_token_ns")[1] is None
    assert "did not complete" in found.reasons()


def test_one_broken_time_does_not_move_the_others(tmp_path):
    right = got(tmp_path, lines(request(0), request(1)))
    found = got(tmp_path, lines(request(0), request(1), request(2, queued_ts=5.0)))
    assert found.rows["requests"][:2] == right.rows["requests"]


def test_damaged_lines_are_counted_and_the_rest_is_kept(tmp_path):
    text = lines(request(0)) + "half {\n[1]\n" + lines(request(1, scheduled_ts="soon", input_toks=-5))
    found = got(tmp_path, text + lines(request(2))[:60])
    assert found.column("requests", "id") == ["bench-0", "bench-1"]
    assert found.column("requests", "scheduled_ns")[1] is None and found.column("requests", "prompt_tokens")[1] is None
    for what in ("lines (2)", "times of requests (1)", "the last line (1): the file ends"):
        assert what in found.reasons()
    with pytest.raises(InputError, match="no request"):
        got(tmp_path, '{"a": 1}\n')


def test_samples_count_from_the_start(tmp_path):
    found = got(tmp_path, HEADER + "1.0,9069.0,166.0,9,2,12.5\n2.5,0.0,1.0,0,0,0.0\n", "timeseries.csv")
    first, second = found.rows["engine"]
    assert (first["ts_ns"], first["running"], first["waiting"], first["kv_usage"]) == (S, 9, 2, 0.125)
    assert (first["prompt_tokens_per_s"], second["output_tokens_per_s"], second["ts_ns"]) == (9069.0, 1.0, 5 * S // 2)
    assert found.facts == {"engine_times": "since start"}


def test_a_column_of_zeros_beside_running_requests_is_not_known(tmp_path):
    found = got(tmp_path, HEADER + "1.0,1.0,1.0,9,2,0.0\n2.0,1.0,1.0,9,2,0.0\n", "timeseries.csv")
    assert found.column("engine", "kv_usage") == [None, None] and "not measured" in found.reasons()
    idle = got(tmp_path, HEADER + "1.0,0.0,0.0,0,0,0.0\n", "timeseries.csv")
    assert idle.column("engine", "kv_usage") == [0.0]


def test_samples_that_are_damaged(tmp_path):
    found = got(tmp_path, HEADER + "x,1,1,1,1,1\n1.0,nan,-3,1,1,700\n-4,1,1,1,1,1\n2.0,1.0", "timeseries.csv")
    assert found.column("engine", "ts_ns") == [S, 2 * S]
    assert found.column("engine", "prompt_tokens_per_s") == [None, 1.0]
    assert found.column("engine", "output_tokens_per_s") == [None, None]
    assert found.column("engine", "kv_usage") == [None, None] and "samples (4)" in found.reasons()
    with pytest.raises(InputError, match="no sample"):
        got(tmp_path, HEADER, "timeseries.csv")


def test_meta_tells_how_the_engine_was_started(tmp_path):
    meta = {
        "model": "Qwen/Qwen3-32B",
        "vllm_version": "0.19.0",
        "started_at": "2026-04-25T18:49:44.514072Z",
        "engine_kwargs": {
            "tensor_parallel_size": 2,
            "data_parallel_size": 3,
            "max_num_seqs": 128,
            "max_num_batched_tokens": 2048,
            "max_model_len": None,
            "dtype": "bfloat16",
            "kv_cache_dtype": "auto",
        },
    }
    assert got(tmp_path, json.dumps(meta, indent=2)).facts == {
        "engine": "vllm",
        "engine_version": "0.19.0",
        "model": "Qwen/Qwen3-32B",
        "tensor_parallel_size": 2,
        "data_parallel_size": 3,
        "chips": 6,
        "parallelism": {"data": 3, "tensor": 2},
        "max_num_seqs": 128,
        "max_num_batched_tokens": 2048,
        "precision": "bf16",
        "started_ns": 1_777_142_984_514_072_000,
    }
    with pytest.raises(InputError, match="not JSON"):
        got(tmp_path, json.dumps(meta, indent=2)[:-20])


def system(**instance):
    memory = {"mem_size": 96, "mem_bw": 1597, "mem_util": 0.9}
    return json.dumps(
        {
            "nodes": [
                {
                    "instances": [
                        {
                            "model_name": "Qwen/Qwen3-32B",
                            "hardware": "RTXPRO6000",
                            "npu_mem": memory,
                            "num_npus": 2,
                            **instance,
                        }
                    ]
                }
            ]
        }
    )


def test_the_speed_of_the_memory_tells_the_edition(tmp_path):
    assert got(tmp_path, system()).facts == {"chip": "RTX PRO 6000 Server", "chips": 2, "model": "Qwen/Qwen3-32B"}
    assert got(tmp_path, system(npu_mem={"mem_bw": 1792})).facts["chip"] == "RTX PRO 6000 Workstation"
    assert got(tmp_path, system(npu_mem={"mem_bw": 7})).facts["chip"] == "RTXPRO6000"
    assert got(tmp_path, system(hardware="H9000")).facts["chip"] == "H9000"
    with pytest.raises(InputError, match="no instance"):
        got(tmp_path, '{"nodes": [], "npu_mem": 1, "hardware": 2}')


def test_each_of_the_files_is_known(tmp_path):
    for text in (lines(request(0)), HEADER + "1,1,1,1,1,1\n", '{"vllm_version": "1", "engine_kwargs": {}}', system()):
        assert vllm_requests.sniff(source_of(tmp_path, text)) >= 0.9
    for text in ("", "t,x\n1,2\n", '{"request_id": 1}\n', "[]"):
        assert vllm_requests.sniff(source_of(tmp_path, text)) == 0
