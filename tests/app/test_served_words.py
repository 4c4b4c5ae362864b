"""Sentences of served runs that their numbers must bear: several servers, sampled requests, a load without a rate."""

import pytest

from analyzers.serving import engine, load
from analyzers.serving import latency as serving
from app.questions.engine import words as engine_said
from app.questions.latency import words as serving_said
from app.questions.load import words as load_said
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9


def two_servers(waits: int) -> MemoryTables:
    """a runs 10 requests and has room; 20 run in b, which may not run more, and some wait."""
    n = 20
    return MemoryTables(
        {
            "engine": {
                "ts_ns": [EPOCH_NS + 10 * i * S for i in range(n)] * 2,
                "order": [*range(n)] * 2,
                "replica": ["a"] * n + ["b"] * n,
                "running": [10] * n + [20] * n,
                "waiting": [0] * n + [waits] * n,
                "kv_usage": [0.3] * n + [0.6] * n,
            }
        }
    )


def test_a_wait_at_one_of_two_servers_is_a_share_of_their_time_and_its_cache_is_known():
    text = engine_said.verdict(ask(engine, two_servers(5))).whole
    assert "50 % of the servers' time for a seat (at most 20 run)" in text
    assert "While they waited for a seat at most 60 % of the cache was in use." in text and "not known" not in text
    assert "% of the time for a seat" in engine_said.verdict(ask(engine, two_servers(5), replica="b"))


def sums(**stats: float) -> dict:
    keys = [k.split("_") for k in stats]
    return {
        "stage": ["a"] * len(stats),
        "metric": [k[0] for k in keys],
        "statistic": [k[1] for k in keys],
        "value": list(stats.values()),
    }


def test_the_pace_of_a_load_is_not_that_of_its_one_request_kept():
    tables = MemoryTables(
        {
            "stages": {"stage": ["a"], "tool": ["guidellm"], "order": [0], "source": ["a.json"], "completed": [46]},
            "stage_stats": sums(ttft_p50=0.0164, ttft_p99=0.0213, itl_p50=0.00492),
            "requests": {
                "id": ["r"],
                "stage": ["a"],
                "status": ["completed"],
                "arrival_ns": [EPOCH_NS],
                "first_token_ns": [EPOCH_NS + S // 10],
                "last_token_ns": [EPOCH_NS + S],
                "output_tokens": [10],
            },
        }
    )
    result = ask(serving, tables)
    assert result.load.kept == 1 and result.load.statistic("tpot_s", "p50") == 0.1
    assert "every 4.92 ms" in serving_said.verdict(result)


def test_one_request_is_no_half_of_them():
    tables = MemoryTables(
        {
            "requests": {
                "id": ["r"],
                "status": ["completed"],
                "arrival_ns": [EPOCH_NS],
                "first_token_ns": [EPOCH_NS + S // 10],
                "last_token_ns": [EPOCH_NS + S],
                "output_tokens": [10],
            }
        }
    )
    assert serving_said.verdict(ask(serving, tables)).startswith("The one request had its first token within 100 ms.")


def test_a_load_without_a_rate_is_told_by_what_it_made():
    tables = MemoryTables(
        {
            "stages": {
                "stage": ["a"],
                "tool": ["inferencex"],
                "order": [0],
                "source": ["a.json"],
                "max_concurrency": [4],
                "output_tokens_per_s": [221.0],
            },
            "stage_stats": sums(ttft_p99=0.586, tpot_mean=0.0173),
        }
    )
    assert load_said.verdict(ask(load, tables)) == "One load with 4 in flight allowed, 221 tokens/s, p99 TTFT 586 ms."


@pytest.mark.parametrize("failed", [0, 1, 50])
def test_latencies_are_of_the_requests_that_completed(failed):
    """Of 100 requests: half of those that completed is a quarter of all where half failed."""
    n = 100
    at = [EPOCH_NS + i * S for i in range(n)]
    done = [i >= failed for i in range(n)]
    requests = {
        "arrival_ns": at,
        "first_token_ns": [t + S // 10 if d else None for t, d in zip(at, done, strict=True)],
        "last_token_ns": [t + S if d else None for t, d in zip(at, done, strict=True)],
        "prompt_tokens": [100] * n,
        "output_tokens": [20 if d else None for d in done],
        "status": ["completed" if d else "failed" for d in done],
    }
    text = serving_said.verdict(ask(serving, MemoryTables({"requests": requests})))
    whose = "requests that completed" if failed else "requests"
    first = f"Half of the {whose} had their first token within 100 ms"
    assert first in text
    assert text.startswith(first if failed < 5 else "50 requests of 100 did not complete, with ")
