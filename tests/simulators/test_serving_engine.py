"""The engine against the same rules in plain Python, and against what must hold whatever the traffic."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.serving_plain import serve as plain
from catalog import chip, model
from catalog.inference import accepted_length, kv_bytes
from errors import QuestionError
from runs.tables import MemoryTables
from simulators.serving.efficiency import IDEAL, TYPICAL
from simulators.serving.engine import simulate
from simulators.serving.memory import kv_capacity_bytes
from simulators.serving.result import Simulated, from_errors, from_runs, gaps, spread, tables
from simulators.serving.setup import Setup, Speculation
from simulators.serving.step import step_model, step_time
from simulators.serving.traffic import Traffic, closed, gamma, of_tables, poisson

SMALL = Setup(model=model("llama-3.1-8b"), chip=chip("h100"))
TIGHT = Setup(model=model("llama-3.1-8b"), chip=chip("v5e"), chips=2, max_sequences=64, token_budget=1024)


def mixed(requests: int, rate: float, seed: int, longest: int = 3000) -> Traffic:
    rng = np.random.default_rng(seed)
    return replace(
        poisson(rate, requests, 10, 10, seed=seed),
        prompt=rng.integers(1, longest, requests),
        output=rng.integers(1, 400, requests),
    )


def blocks(prompts: list[list[int]], every_s: float = 10.0, output: int = 4, tokens: int = 64) -> Traffic:
    """Prompts of whole blocks and one token more, so far apart that each runs alone."""
    counts = np.array([len(p) for p in prompts])
    return Traffic(
        np.arange(len(prompts)) * every_s,
        counts * tokens + 1,
        np.full(len(prompts), output),
        np.zeros_like(counts),
        "blocks",
        hash_start=np.concatenate(([0], np.cumsum(counts))),
        hash_ids=np.array([b for p in prompts for b in p], dtype=np.int64),
        block_tokens=tokens,
    )


def compared(setup: Setup, traffic: Traffic) -> int:
    """Both engines give the same times; how often requests were put back."""
    fast = simulate(setup, traffic, TYPICAL)
    slow, engine = plain(
        setup,
        TYPICAL,
        list(zip(traffic.arrival_s.tolist(), traffic.prompt.tolist(), traffic.output.tolist(), strict=True)),
    )
    assert len(fast.steps) == engine.steps
    for column, name in (
        ("scheduled_s", "scheduled"),
        ("first_token_s", "first"),
        ("last_token_s", "last"),
        ("preemptions", "preemptions"),
    ):
        np.testing.assert_allclose(fast.requests[column], [getattr(r, name) for r in slow], rtol=1e-9, atol=1e-9)
    assert fast.requests["preemptions"].sum() == engine.preempted
    return engine.preempted


@pytest.mark.parametrize(
    "setup",
    [
        SMALL,
        replace(SMALL, max_sequences=16, token_budget=256),
        replace(SMALL, asynchronous=False),
        Setup(model=model("qwen3-32b"), chip=chip("h100"), chips=2, max_sequences=64, token_budget=1024),
    ],
)
def test_same_times_as_the_plain_engine(setup):
    compared(setup, mixed(200, 8, 1))
    compared(setup, mixed(200, 60, 2))


@pytest.mark.parametrize("asynchronous", [True, False])
def test_same_times_as_the_plain_engine_when_the_cache_runs_full(asynchronous):
    assert compared(replace(TIGHT, asynchronous=asynchronous), mixed(200, 20, 3)) > 10


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 2**31),
    st.integers(1, 60),
    st.floats(0.5, 200),
    st.integers(1, 32),
    st.integers(32, 700),
    st.booleans(),
    st.sampled_from([1, 16, 64]),
)
def test_same_times_whatever_the_traffic_and_limits(seed, requests, rate, seats, budget, asynchronous, page):
    setup = replace(TIGHT, max_sequences=seats, token_budget=budget, asynchronous=asynchronous, page_tokens=page)
    compared(setup, mixed(requests, rate, seed, 6000))


def test_what_must_hold_of_every_step_and_request():
    outcome = simulate(TIGHT, mixed(300, 20, 4), gaps=True)
    rows, steps = outcome.requests, outcome.steps
    assert (rows["arrival_s"] <= rows["scheduled_s"]).all() and (rows["scheduled_s"] < rows["first_token_s"]).all()
    assert (rows["first_token_s"] <= rows["last_token_s"]).all()
    assert (steps["running"] <= 64).all() and steps["kv_usage"].between(0, 1).all()
    assert (steps["prefill_tokens"] + steps["decode_tokens"] <= 1024).all()
    # steps of one replica never overlap, and every token is somewhere
    assert (np.diff(steps["start_s"]) >= steps["dur_s"].to_numpy()[:-1] - 1e-9).all()
    computed = rows["prompt"].sum() + steps["recomputed_tokens"].sum()
    assert steps["prefill_tokens"].sum() >= computed
    assert steps["gaps"].sum() + len(outcome.late_gaps_s) == (rows["output"] - 1).sum()
    flat, counts = outcome.gaps_s
    assert counts.tolist() == (rows["output"] - 1).tolist()
    span = np.add.reduceat(np.append(flat, 0), np.minimum(np.cumsum(counts) - counts, len(flat) - 1))
    busy = counts > 0
    assert span[busy] == pytest.approx((rows["last_token_s"] - rows["first_token_s"])[busy].to_numpy())
    told = gaps(outcome)
    assert told["mean"] == pytest.approx(flat.mean()) and told["max"] == pytest.approx(flat.max())
    assert told["p99"] == pytest.approx(np.percentile(flat, 99, method="inverted_cdf"), rel=1e-6)
    parts = steps[["compute_s", "memory_s", "communication_s", "overhead_s"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(steps["dur_s"].to_numpy())
    assert sum(outcome.part_s.values()) == pytest.approx(steps["dur_s"].sum())


def test_one_request_alone_takes_the_time_of_its_steps():
    outcome = simulate(SMALL, poisson(1, 1, 1000, 3), IDEAL)
    model_ = step_model(SMALL, IDEAL)
    first = step_time(model_, chunks=[(1000, 0)]).seconds
    more = sum(step_time(model_, [context]).seconds for context in (1001, 1002))
    row = outcome.requests.iloc[0]
    assert row["ttft_s"] == pytest.approx(first) and row["e2e_s"] == pytest.approx(first + more)


def test_a_header_that_no_client_sees_makes_the_first_token_a_later_one():
    """The engine does the same work; only when the client saw the first of the answer differs."""
    traffic = mixed(60, 8, 5)
    plain_, header = (simulate(replace(SMALL, silent_tokens=n), traffic, record=False).requests for n in (0, 3))
    assert (header["e2e_s"] == plain_["e2e_s"]).all()
    assert (header["first_token_s"] >= plain_["first_token_s"]).all()
    alone = simulate(replace(SMALL, silent_tokens=3), poisson(1, 1, 1000, 9), IDEAL).requests.iloc[0]
    model_ = step_model(SMALL, IDEAL)
    before = [step_time(model_, chunks=[(1000, 0)]), *(step_time(model_, [c]) for c in (1001, 1002, 1003))]
    assert alone["ttft_s"] == pytest.approx(sum(s.seconds for s in before))
    short = simulate(replace(SMALL, silent_tokens=3), poisson(1, 1, 1000, 2), IDEAL).requests.iloc[0]
    assert short["ttft_s"] == short["e2e_s"]


def test_asynchronous_scheduling_makes_an_arrival_wait_for_the_step_after_the_next():
    long = Traffic(np.array([0.0, 1.0]), np.array([10, 10]), np.array([1000, 1]), np.zeros(2, dtype=np.int64), "two")
    late, soon = (simulate(replace(SMALL, asynchronous=a), long).requests["ttft_s"][1] for a in (True, False))
    step = step_time(step_model(SMALL), [100]).seconds
    assert late - soon == pytest.approx(step, rel=0.2)


def test_a_closed_loop_keeps_as_many_in_flight():
    outcome = simulate(SMALL, closed(8, 50, 500, 40))
    rows = outcome.requests
    moments = np.sort(np.concatenate((rows["arrival_s"], rows["last_token_s"])))
    flying = [((rows["arrival_s"] <= t) & (rows["last_token_s"] > t)).sum() for t in moments[:-9]]
    assert max(flying) == 8 and min(flying[8:-8]) >= 7
    assert rows["arrival_s"].is_monotonic_increasing


def test_replicas_share_the_load():
    two = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), chips=2, replicas=2)
    traffic = mixed(200, 30, 5)
    both = simulate(two, traffic)
    for r in (0, 1):
        mine = np.arange(200) % 2 == r
        alone = simulate(
            SMALL,
            replace(
                traffic,
                arrival_s=traffic.arrival_s[mine],
                prompt=traffic.prompt[mine],
                output=traffic.output[mine],
                cached=traffic.cached[mine],
            ),
        )
        np.testing.assert_allclose(both.requests["last_token_s"][mine], alone.requests["last_token_s"])
    assert both.steps["start_s"].is_monotonic_increasing
    # one long request after another on the same replica: sending to the emptier one is better
    skewed = replace(traffic, output=np.where(np.arange(200) % 2 == 0, 390, 5))
    turn, emptier = (simulate(two, skewed, routing=r).requests["e2e_s"].mean() for r in ("round_robin", "least_loaded"))
    assert emptier < turn


def test_the_prefix_cache_finds_what_was_seen_before_and_only_that():
    outcome = simulate(SMALL, blocks([[1, 2, 3], [1, 2, 3], [1, 2, 9], [7], [1, 2, 3, 4], [8, 2]]))
    assert outcome.requests["cached"].tolist() == [0, 192, 128, 0, 192, 0]
    assert not simulate(replace(SMALL, prefix_cache=False), blocks([[1, 2], [1, 2]])).requests["cached"].any()


def test_the_prefix_cache_forgets_what_was_unused_longest():
    block = kv_bytes(SMALL.model, 64)
    spare = kv_capacity_bytes(replace(SMALL, reserve_bytes=0.0))
    small = replace(SMALL, reserve_bytes=spare - 38.5 * block)  # four prompts of ten blocks do not stay all
    lists = [list(range(k * 10, k * 10 + 10)) for k in range(4)]
    found = simulate(small, blocks([*lists, lists[3], lists[0]])).requests["cached"].tolist()
    assert found[:4] == [0] * 4 and found[4] == 640 and 0 < found[5] < 640
    large = simulate(SMALL, blocks([*lists, lists[3], lists[0]])).requests["cached"].tolist()
    assert large[4:] == [640, 640]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6))
def test_an_endless_prefix_cache_finds_every_longest_prefix(seed):
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(0, 3, rng.integers(1, 6)).tolist() for _ in range(20)]
    prompts = [[hash(tuple(p[: k + 1])) % 10**9 for k in range(len(p))] for p in prompts]  # identities of prefixes
    seen: set[int] = set()
    expected = []
    for p in prompts:
        known = next((k for k, b in enumerate(p) if b not in seen), len(p))
        expected.append(known * 64)
        seen |= set(p)
    assert simulate(SMALL, blocks(prompts)).requests["cached"].tolist() == expected


def test_stated_hits_are_not_computed_and_take_room_once():
    told, none = (simulate(SMALL, poisson(5, 100, 2000, 50, cached=c)) for c in (1500, 0))
    assert told.requests["cached"].eq(1500).all()
    assert told.steps["prefill_tokens"].sum() == 100 * 500 and none.steps["prefill_tokens"].sum() == 100 * 2000
    assert told.steps["kv_usage"].max() < none.steps["kv_usage"].max()
    own = simulate(SMALL, replace(poisson(5, 100, 2000, 50, cached=1500), own_cache=True))
    assert own.steps["kv_usage"].max() > 1.5 * told.steps["kv_usage"].max()


def test_speculation_keeps_what_theory_says():
    drafted = replace(SMALL, speculation=Speculation(4, 0.7))
    outcome = simulate(drafted, poisson(5, 200, 100, 400), seed=1)
    rows = outcome.requests
    per_step = outcome.steps["decode_tokens"].sum() / outcome.steps["decode_requests"].sum()
    assert per_step == pytest.approx(accepted_length(0.7, 4), rel=0.02)
    assert rows["accepted"].sum() == outcome.steps["accepted_tokens"].sum()
    assert rows["tpot_s"].mean() < simulate(SMALL, poisson(5, 200, 100, 400)).requests["tpot_s"].mean()
    again = simulate(drafted, poisson(5, 200, 100, 400), seed=1)
    assert again.requests.equals(rows)


def test_sliding_layers_take_no_room_beyond_their_window():
    setup = Setup(model=model("gemma3-12b"), chip=chip("h100"))
    outcome = simulate(setup, poisson(1, 1, 8000, 2))
    pages = kv_bytes(setup.model, 8000) / kv_capacity_bytes(setup)
    assert outcome.steps["kv_usage"].max() == pytest.approx(pages, rel=0.02)


def test_what_can_never_fit_is_refused_and_the_rest_served():
    traffic = replace(poisson(5, 4, 100, 10), prompt=np.array([100, 900_000, 100, 100]))
    outcome = simulate(SMALL, traffic)
    assert outcome.requests["last_token_s"].isna().tolist() == [False, True, False, False]
    with pytest.raises(QuestionError, match="no request fits"):
        simulate(SMALL, poisson(5, 4, 900_000, 10))
    whole = replace(SMALL, chunked=False, token_budget=512)
    assert simulate(whole, replace(traffic, prompt=np.array([100, 600, 100, 400]))).requests["ttft_s"].isna().sum() == 1


def test_results_and_rows_of_the_tables():
    setup = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), chips=2, replicas=2)
    outcome = simulate(setup, mixed(60, 20, 6), gaps=True)
    made = tables(outcome)
    memory = MemoryTables(made)
    back = of_tables(memory, "made")
    np.testing.assert_allclose(back.arrival_s, outcome.requests["arrival_s"], atol=2e-9)
    assert back.prompt.tolist() == outcome.requests["prompt"].tolist()
    assert memory.rows("iterations") == len(outcome.steps)
    gap = memory.arrow("requests", ["gaps_ns"])["gaps_ns"].to_pylist()
    assert [len(g) for g in gap] == (outcome.requests["output"] - 1).tolist()
    slow, fast = simulate(setup, mixed(60, 20, 6), IDEAL), outcome
    result = Simulated(outcome, from_runs(outcome, (slow, fast)), "modelled").to_dict()
    low, high = result["error_band"]["tpot_s"]["mean"]
    assert low < result["tpot_s"]["mean"] <= high
    assert result["ttft_s"] == spread(outcome.requests["ttft_s"].to_numpy())
    assert sum(result["time_share"].values()) == pytest.approx(1)
    assert result["per_chip"] * 2 == pytest.approx(result["output_tokens_per_s"])
    off = {"ttft_mean": (-0.1, 0.2), "ttft_p99": (0, 0), "tpot_mean": (-0.1, 0.0), "tpot_p99": (0, 0)}
    band = from_errors(outcome, off)
    assert band["ttft_s"]["mean"][1] == pytest.approx(1.2 * result["ttft_s"]["mean"])
    assert band["output_tokens_per_s"]["value"][1] == pytest.approx(result["output_tokens_per_s"] / 0.9)


def test_a_band_of_tokens_per_second_holds_no_more_than_was_asked_for():
    setup = Setup(model=model("llama-3.1-8b"), chip=chip("h100"))
    off = {"ttft_mean": (0, 0), "ttft_p99": (0, 0), "tpot_mean": (-0.3, 0.25), "tpot_p99": (0, 0)}
    sent = poisson(2, 300, 500, 100)
    outcome = simulate(setup, sent)
    low, high = from_errors(outcome, off)["output_tokens_per_s"]["value"]
    assert low < outcome.output_tokens_per_s < high == pytest.approx(sent.output.sum() / sent.arrival_s[-1])
    flooded = simulate(setup, poisson(500, 300, 500, 100))
    held = simulate(setup, closed(8, 50, 500, 100))
    for free in (flooded, held):
        most = from_errors(free, off)["output_tokens_per_s"]["value"][1]
        assert most == pytest.approx(free.output_tokens_per_s / 0.7)


def test_traffic_is_as_asked():
    bursts = gamma(10, 3, 20_000, 10, 10, seed=1)
    between = np.diff(bursts.arrival_s)
    assert between.mean() == pytest.approx(0.1, rel=0.1) and between.std() / between.mean() == pytest.approx(3, rel=0.1)
    assert np.diff(gamma(10, 0, 50, 10, 10).arrival_s) == pytest.approx(0.1)
    assert gamma(10, 3, 100, 10, 10, seed=1).faster(2).arrival_s == pytest.approx(bursts.arrival_s[:100] / 2)
    for wrong in (
        lambda: poisson(0, 5, 1, 1),
        lambda: poisson(1, 0, 1, 1),
        lambda: poisson(1, 5, 0, 1),
        lambda: poisson(1, 5, 10, 1, 11),
        lambda: closed(0, 5, 1, 1),
        lambda: gamma(1, -1, 5, 1, 1),
        lambda: bursts.faster(0),
    ):
        with pytest.raises(QuestionError):
            wrong()


def test_traffic_of_tables_leaves_out_what_has_no_time_or_failed():
    memory = MemoryTables(
        {
            "requests": {
                "arrival_ns": [5_000_000_000, None, 4_000_000_000, 6_000_000_000, 7_000_000_000],
                "prompt_tokens": [1000, 10, 600, 10, None],
                "output_tokens": [5, 5, 7, 0, 5],
                "hash_ids": [[9, 8], None, [9, 7], None, None],
                "status": ["completed", None, None, "failed", None],
            }
        }
    )
    found = of_tables(memory, "trace")
    assert found.arrival_s.tolist() == [0.0, 1.0] and found.prompt.tolist() == [600, 1000]
    assert found.rows.tolist() == [2, 0] and found.block_tokens == 512 and found.origin_ns == 4_000_000_000
    assert found.hash_ids[found.hash_start[0]] == found.hash_ids[found.hash_start[1]]
    assert "3 of 5 requests are left out" in found.notes[0]
    with pytest.raises(QuestionError, match="no requests with times"):
        of_tables(MemoryTables({"requests": {"prompt_tokens": [1]}}), "empty")


@pytest.mark.parametrize("size", [16, 256, 512, 1024])
def test_blocks_have_the_size_that_fits_every_prompt(size):
    """Of a chat most prompts are of one block, whatever its size, and the few long ones tell which it is."""
    rng = np.random.default_rng(0)
    prompt = np.where(rng.random(300) < 0.95, rng.integers(1, min(size, 200), 300), rng.integers(3000, 9000, 300))
    ids = [list(range(-(-p // size))) for p in prompt.tolist()]
    rows = {
        "arrival_ns": [10**10 * i for i in range(300)],
        "prompt_tokens": prompt,
        "output_tokens": [4] * 300,
        "hash_ids": ids,
    }
    traffic = of_tables(MemoryTables({"requests": rows}), "a chat")
    assert traffic.block_tokens == size
    found = simulate(Setup(model=model("llama-3.1-8b"), chip=chip("h100")), traffic).requests["cached"]
    longest = np.concatenate(([0], np.maximum.accumulate(prompt)[:-1]))
    assert found.tolist() == (np.minimum(prompt - 1, longest) // size * size).tolist()
