"""Room in the cache: who has to give way, what one group holds, and what the tokens of a stated cache are."""

from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from catalog.inference import kv_bytes, spans
from simulators.serving.engine import simulate
from simulators.serving.memory import RUNTIME_BYTES, kv_capacity_bytes, reserve_bytes
from simulators.serving.setup import Setup
from simulators.serving.traffic import Traffic, poisson

ONE = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), cache_tokens=20_000)


@pytest.mark.parametrize("at", [3, 10])
def test_a_prefix_gives_way_to_a_request_that_needs_its_room(at):
    """It was held forever: a request of 12,000 tokens beside a prefix of 14,900 in a cache of 20,000 waited for good,
    and all behind it were told as refused."""
    traffic = poisson(5, 40, 1000, 50)
    prompt, cached = traffic.prompt.copy(), traffic.cached.copy()
    prompt[0], cached[0], prompt[at] = 15_000, 14_900, 12_000
    outcome = simulate(ONE, replace(traffic, prompt=prompt, cached=cached))
    assert len(outcome.served) == 40
    assert outcome.steps["kv_usage"].max() <= 1
    assert outcome.requests["cached"].tolist() == [14_900] + [0] * 39


def test_a_sequence_lies_in_the_cache_of_one_group():
    """Four groups of one chip each with 10,000 tokens of cache hold no sequence of 30,000."""
    setup = Setup(model=model("qwen3-30b-a3b"), chip=chip("h100"), chips=4, expert=4, cache_tokens=10_000)
    traffic = poisson(5, 20, 1000, 50)
    prompt = traffic.prompt.copy()
    prompt[3] = 30_000
    outcome = simulate(setup, replace(traffic, prompt=prompt))
    assert np.flatnonzero(outcome.requests["last_token_s"].isna()).tolist() == [3]
    whole = replace(setup, chunked=False, token_budget=512)
    prompt[3] = 600  # more than a group reads in a step
    outcome = simulate(whole, replace(traffic, prompt=np.where(prompt == 1000, 100, prompt)))
    assert np.flatnonzero(outcome.requests["last_token_s"].isna()).tolist() == [3]


def test_each_group_has_seats_a_step_and_a_reserve_of_its_own():
    """Eight chips with sequences of their own were given the reserve of one step among them, and run one each."""
    one = Setup(model=model("qwen3-30b-a3b"), chip=chip("h100"), max_sequences=8, token_budget=1024)
    eight = replace(one, chips=8, expert=8, tensor=1)
    steps = simulate(eight, poisson(1000, 300, 900, 50)).steps
    assert steps["running"].max() == 8 * 8
    assert (steps["prefill_tokens"] + steps["decode_tokens"]).max() == 8 * 1024
    assert (
        reserve_bytes(eight)
        == reserve_bytes(one)
        == pytest.approx(1024 * (2 * 8 * 768 + 6 * 2048) * 2 + 8 * 151_936 * 4 + RUNTIME_BYTES)
    )


@pytest.mark.parametrize("asynchronous", [True, False])
def test_requests_of_one_step_share_what_the_first_of_them_brings(asynchronous):
    """Twelve prompts of 640 tokens with the same 576 at their beginning, at once: vLLM marks blocks as cached when it
    schedules them, so eleven find them in the same step. Each was computed anew until a step had gone."""
    count, blocks, tokens = 12, 9, 64
    ids = np.array([[*range(blocks), 100 + i] for i in range(count)]).ravel()
    traffic = Traffic(
        np.zeros(count),
        np.full(count, 640),
        np.full(count, 5),
        np.zeros(count, dtype=np.int64),
        "burst",
        hash_start=np.arange(count + 1) * (blocks + 1),
        hash_ids=ids,
        block_tokens=tokens,
    )
    outcome = simulate(replace(ONE, asynchronous=asynchronous, token_budget=4096), traffic)
    assert outcome.requests["cached"].tolist() == [0] + [576] * 11
    assert outcome.steps["prefill_tokens"].sum() == 640 + 11 * 64


def test_the_tokens_of_a_stated_cache():
    """gpt-oss has 18 layers with a window of 128 and 18 without: vLLM counted tokens that all keep until 0.20, since
    then those of sequences of its longest length, whose windows hold 128 - 1 tokens and those of one step."""
    setup = Setup(model=model("gpt-oss-120b"), chip=chip("h100"), chips=2, cache_tokens=500_000, token_budget=8192)
    layer = 2 * 8 * 64 * 2 / 2  # bytes of a token, on one of two chips
    assert [s.bytes_per_token for s in spans(setup.model, tensor=2)] == [18 * layer, 18 * layer]
    assert kv_capacity_bytes(replace(setup, cache_length=0)) == pytest.approx(500_000 * 36 * layer)
    at = kv_capacity_bytes(replace(setup, cache_length=131_072))
    assert at == pytest.approx(500_000 * 18 * layer * (1 + (127 + 8192) / 131_072))
    assert kv_capacity_bytes(replace(setup, cache_length=4096)) == pytest.approx(500_000 * 36 * layer)
    assert kv_capacity_bytes(setup) == pytest.approx(500_000 * kv_bytes(setup.model, 8192, tensor=2) / 8192)
    full = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), cache_tokens=20_000)
    assert {kv_capacity_bytes(replace(full, cache_length=n)) for n in (None, 0, 8192)} == {20_000 * 131_072}
