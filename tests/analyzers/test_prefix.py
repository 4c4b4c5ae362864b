"""The prefix cache: replays against a cache simulated block by block, measured rates, savings, and what is refused."""

import json
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import prefix_cache as prefix
from analyzers.serving.prefix_cache import block_size
from analyzers.serving.prefix_cache.measured import measured_prefix
from analyzers.serving.prefix_cache.replay import NEVER, replay, sizes_to_show
from analyzers.serving.prefix_cache.saved import prefill_flops, saved
from catalog.inference import output_flops, prefill_attention_flops, prompt_token_flops
from catalog.models import model
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

S = 1_000_000_000


def asked(tables, facts=None, **options):
    return prefix.analyze(MemoryTables(tables), facts_of(facts or {}), parse_options(prefix.OPTIONS, options))


def flat(prompts):
    return np.concatenate([np.array(p, dtype=np.int64) for p in prompts]), np.cumsum([0, *map(len, prompts)])


def simulated(prompts, size):
    """Blocks found by a cache that really holds `size` blocks: looked up first, then touched from the last."""
    cache, found = OrderedDict(), 0
    for blocks in prompts:
        for block in blocks:
            if block not in cache:
                break
            found += 1
        for block in reversed(blocks):
            cache.pop(block, None)
            cache[block] = True
        while len(cache) > size:
            cache.popitem(last=False)
    return found


PROMPTS = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True), min_size=1, max_size=25)


@settings(max_examples=150, deadline=None)
@given(PROMPTS, st.integers(1, 14))
def test_every_size_at_once_is_each_size_alone(prompts, size):
    """Any block identities, also ones that are no chain of prefixes."""
    played = replay(*flat(prompts))
    assert played.found(size).sum() == simulated(prompts, size)
    assert played.found().sum() == simulated(prompts, 10**9)
    sizes = np.arange(1, 20)
    assert list(np.round(played.rates(sizes) * played.blocks).astype(int)) == [simulated(prompts, s) for s in sizes]


@settings(max_examples=60, deadline=None)
@given(PROMPTS)
def test_a_larger_cache_never_finds_less_and_enough_is_the_least(prompts):
    played = replay(*flat(prompts))
    assert (np.diff(played.rates(np.arange(1, 30))) >= 0).all()
    enough, whole = played.size_for(0.9), played.found().sum()
    if not whole:
        assert enough is None
    else:
        assert played.found(enough).sum() >= 0.9 * whole > (played.found(enough - 1).sum() if enough > 1 else -1)


def test_the_same_prompt_again_after_others():
    played = replay(*flat([[1, 2, 3], [4, 5], [1, 2, 3]]), np.array([0, 5, 9]))
    assert list(played.reach[:5]) == [NEVER] * 5
    assert list(played.reach[5:]) == [2, 3, 4]  # 4 and 5 lie above 1; each later block one deeper
    assert list(played.age_ns[5:]) == [9, 9, 9] and played.distinct == 5
    assert played.found(3).sum() == 1 and played.found(5).sum() == 3


def test_a_block_behind_one_that_is_missing_is_not_found():
    assert replay(*flat([[1, 2], [9, 2]])).found().sum() == 0


def test_replicas_keep_apart():
    one = replay(*flat([[1], [1], [1]]))
    two = replay(*flat([[1], [1], [1]]), None, np.array([0, 1, 0]))
    assert (one.found().sum(), two.found().sum(), two.distinct) == (2, 1, 2)


def test_sizes_are_whole_and_reach_the_end():
    sizes = sizes_to_show(1000)
    assert sizes[0] == 1 and sizes[-1] == 1000 and (np.diff(sizes) > 0).all() and list(sizes_to_show(1)) == [1]


def requests(prompts, **more):
    n = len(prompts)
    return {
        "requests": {
            "id": [str(i) for i in range(n)],
            "hash_ids": prompts,
            "arrival_ns": [i * S for i in range(n)],
            **more,
        }
    }


def test_the_contract():
    tables = requests([[1, 2, 3], [1, 2, 4], [1, 2, 3]], prompt_tokens=[48, 40, 48], tenant=["a", "b", "a"])
    result = asked(tables, {"model": "llama-3.1-8b", "chip": "H100"}, blocks=3)
    told = result.to_dict()
    json.dumps(told, allow_nan=False)
    assert told["infinite_hit_rate"] == pytest.approx(5 / 9)
    assert told["hit_rate"] == pytest.approx(4 / 9)  # 3 had to go for 4
    assert told["block_tokens"] == 16 and told["size_bytes"] == 3 * 16 * 131072
    assert [r["blocks"] for r in told["by_size"]] == [1, 2, 3, 4]
    assert told["enough"]["blocks"] == 4
    assert {t["tenant"]: t["infinite_hit_rate"] for t in told["tenants"]} == {"a": pytest.approx(3 / 6), "b": 2 / 3}
    assert sum(r["blocks"] for r in told["reuse"]) == 5
    assert told["saved"]["size"]["token_share"] == pytest.approx((32 + 32) / 136)
    assert told["measured_hit_rate"] is None


def test_requests_are_replayed_in_order_of_arrival():
    forward = requests([[1, 2], [1, 3]])
    backward = {"requests": {**forward["requests"], "arrival_ns": [5 * S, 1 * S]}}
    assert asked(backward).infinite_hit_rate == asked(forward).infinite_hit_rate == 0.25
    some = {"requests": {**forward["requests"], "hash_ids": [[1, 2], None]}}
    result = asked(some)
    assert result.requests == 1 and any("1 requests without hash_ids" in n for n in result.notes)


def test_the_engine_s_own_size_is_asked_about():
    tables = requests([[1, 2, 3], [4, 5, 6], [1, 2, 3]])
    result = asked(tables, {"kv_cache_tokens": 64, "block_tokens": 16})
    assert (result.size_blocks, result.size_source) == (4, "as large as the engine's cache")
    assert result.hit_rate == pytest.approx(1 / 9)


def test_replicas_of_a_run_have_caches_of_their_own():
    tables = requests([[1], [1], [1]], replica=["x", "y", "x"])
    assert asked(tables).infinite_hit_rate == pytest.approx(1 / 3)
    assert asked(tables, caches="shared").infinite_hit_rate == pytest.approx(2 / 3)


@pytest.mark.parametrize("tokens, part_full", [(16, True), (512, True), (16, False), (128, False)])
def test_how_long_a_block_is_follows_from_the_prompts(tokens, part_full):
    prompt = np.random.default_rng(5).integers(tokens, 40 * tokens, 400)
    counts = -(-prompt // tokens) if part_full else prompt // tokens
    assert block_size(prompt, counts) == tokens


def test_a_block_s_length_that_cannot_be_told():
    assert block_size(np.array([100]), np.array([1])) is None  # 128, or any longer
    assert block_size(np.array([100, 3]), np.array([1, 90])) is None
    assert block_size(np.array([]), np.array([])) is None


def test_counters_with_a_restart():
    tables = {
        "engine": {
            "ts_ns": [1, 2, 3, 4, 2, 3],
            "order": [0, 1, 2, 3, 0, 1],
            "replica": ["a"] * 4 + ["b"] * 2,
            "prefix_hits": [100, 150, 20, 30, 0, 10],
            "prefix_queries": [1000, 1200, 100, 150, 500, 600],
        }
    }
    found = measured_prefix(MemoryTables(tables))
    assert found.hit_rate == pytest.approx((50 + 20 + 10 + 10) / (200 + 100 + 50 + 100))
    assert found.source == "counters" and len(found.over_time) == 4


def test_one_scrape_tells_what_was_counted_since_the_start():
    found = measured_prefix(MemoryTables({"engine": {"ts_ns": [1], "prefix_hits": [30], "prefix_queries": [40]}}))
    assert found.hit_rate == 0.75
    wrong = {"engine": {"ts_ns": [1], "prefix_hits": [50], "prefix_queries": [40]}}
    assert measured_prefix(MemoryTables(wrong)).hit_rate is None


def test_requests_and_log_tell_too():
    tables = {
        "requests": {
            "id": ["a", "b", "c"],
            "arrival_ns": [0, S, 2 * S],
            "prompt_tokens": [100, 300, 10],
            "cached_tokens": [50, 150, 20],
        }
    }
    found = measured_prefix(MemoryTables(tables))
    assert (found.hit_rate, found.source, found.tokens) == (0.5, "requests", 400)  # 20 of 10 cannot be
    log = {"engine": {"ts_ns": [1, 2, 3], "prefix_hit_rate": [0.2, 0.4, 1.4]}}
    assert measured_prefix(MemoryTables(log)).hit_rate == pytest.approx(0.3)
    result = asked(log)
    assert not result.replayed and any("hash_ids" in n for n in result.notes)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["llama-3.1-8b", "gemma-4-31b", "deepseek-v3"]), st.integers(1, 9000), st.integers(0, 9000))
def test_flops_of_prompts_at_once_are_those_of_each(name, prompt, cached):
    cached = min(cached, prompt)
    m = model(name)
    one = prompt_token_flops(m) * (prompt - cached) + output_flops(m)
    one += prefill_attention_flops(m, prompt - cached, cached)
    assert prefill_flops(m, np.array([prompt]), np.array([cached]))[0] == pytest.approx(one, rel=1e-12)


def test_the_last_token_is_never_saved():
    found = saved(None, np.array([100]), np.array([128]), None)
    assert found["token_share"] == pytest.approx(0.99) and found["flops"] is None
    m = model("llama-3.1-8b")
    whole = prefill_flops(m, np.array([100.0]), np.array([0.0]))[0]
    found = saved(m, np.array([100]), np.array([50]), 1e12)
    assert found["flops"] == pytest.approx(whole - prefill_flops(m, np.array([100.0]), np.array([50.0]))[0])
    assert found["chip_seconds"] == pytest.approx(found["flops"] / 1e12)


def test_first_tokens_by_what_was_found():
    tables = {
        "requests": {
            "id": [str(i) for i in range(6)],
            "status": ["completed"] * 6,
            "prompt_tokens": [100] * 6,
            "cached_tokens": [0, 0, 0, 80, 80, 20],
            "ttft_ns": [S, 2 * S, 3 * S, S // 10, S // 10, S // 2],
            "e2e_ns": [9 * S] * 6,
            "output_tokens": [5] * 6,
        }
    }
    rows = asked(tables).first_tokens.set_index("found")["ttft_s"]
    assert dict(rows) == {"nothing found": 2.0, "less than half": 0.5, "half or more": 0.1}


def test_what_cannot_be_answered_is_refused():
    with pytest.raises(QuestionError, match="nothing of a prefix cache"):
        asked({"requests": {"id": ["a"], "prompt_tokens": [5]}})
    tables = requests([[1]])
    for wrong in ({"blocks": 0}, {"gigabytes": 5.0}, {"block_tokens": 0}):
        with pytest.raises(QuestionError):
            asked(tables, **wrong)
    with pytest.raises(QuestionError):
        asked(tables, {"model": "llama-3.1-8b", "block_tokens": 16}, gigabytes=-1.0)


def printed(prompt, rate, found):
    n = len(rate)
    return measured_prefix(
        MemoryTables(
            {
                "engine": {
                    "ts_ns": [i * 10 * S for i in range(n)],
                    "order": list(range(n)),
                    "running": [1] * n,
                    "waiting": [0] * n,
                    "prompt_tokens_per_s": prompt,
                    "output_tokens_per_s": [5.0] * n,
                    "prefix_hit_rate": rate,
                }
            }
        )
    ).hit_rate == pytest.approx(found)


def test_rates_of_all_requests_so_far_are_not_averaged():
    """Prompts of 1,000 tokens, of which all but the first find 976: the engine prints the rate of all so far."""
    prompts_so_far = np.cumsum([1] * 10 + [0] * 20 + [30])
    rate = [0.976 * (k - 1) / k for k in prompts_so_far]
    assert printed([100.0] * 10 + [0.0] * 20 + [3000.0], rate, 0.976 * 39 / 40)


def test_rates_of_newest_requests_count_by_their_prompts():
    """The first 10 lines find .9, the next 10, of which the engine prints the newest alone, .1."""
    assert printed([100.0] * 20, [0.9] * 10 + [0.1] * 10, 0.5)
    assert printed([100.0] * 10 + [300.0] * 10, [0.9] * 10 + [0.1] * 10, 0.3)
