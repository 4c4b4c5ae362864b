"""Speculation: counts against arithmetic by hand, theory against independent draws, and what is refused."""

import json
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving import speculation
from analyzers.serving.speculation.model import (
    best,
    by_draft,
    by_positions,
    greatest_cost,
    least_acceptance,
    machine,
    needed_chance,
    still_rising,
    wilson,
)
from catalog.chips import chip
from catalog.inference import accepted_length, critical_batch, speculation_speedup
from catalog.models import model
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

DENSE = {"model": "llama-3.1-8b", "chip": "v5e"}
COUNTERS = {
    "engine": {
        "ts_ns": [1, 2, 3, 4],
        "order": [0, 1, 2, 3],
        "drafts": [10, 110, 50, 60],
        "drafted": [40, 440, 200, 240],
        "accepted": [20, 270, 100, 120],
        "accepted_per_position": [[9, 6, 3, 2], [99, 76, 53, 42], [40, 30, 20, 10], [49, 35, 23, 13]],
    }
}


def asked(tables=None, facts=None, **options):
    known = parse_options(speculation.OPTIONS, options)
    return speculation.analyze(MemoryTables(tables or {}), facts_of(facts or {}), known)


def test_the_contract():
    told = asked(COUNTERS, DENSE, cost=0.1).to_dict()
    json.dumps(told, allow_nan=False)
    drafts, drafted, accepted = 100 + 50 + 10, 400 + 200 + 40, 250 + 100 + 20  # the process started again once
    assert (told["drafts"], told["drafted"], told["accepted"]) == (drafts, drafted, accepted)
    assert told["acceptance_rate"] == pytest.approx(accepted / drafted)
    assert told["mean_accepted_length"] == pytest.approx(1 + accepted / drafts)
    assert told["by_position"] == pytest.approx([139 / drafts, 105 / drafts, 73 / drafts, 53 / drafts])
    assert sum(told["by_position"]) == pytest.approx(told["mean_accepted_length"] - 1)
    a = told["acceptance_chance"]
    assert accepted_length(a, 4) == pytest.approx(told["mean_accepted_length"])
    assert told["theory"] == pytest.approx([a, a**2, a**3, a**4])
    assert told["speedup"] == pytest.approx(told["mean_accepted_length"] / 1.4)
    for (low, high), share in zip(told["by_position_interval"], told["by_position"], strict=True):
        assert low < share < high


@pytest.mark.parametrize(
    ("accepted", "last", "shares"),
    [(960, [660, 200, 100], [0.6, 0, 0]), (900, [600, 200, 100], [0, 0, 0])],
)
def test_what_was_accepted_of_none_while_it_was_watched_is_none(accepted, last, shares):
    """A hundred drafts of three came: a counter that stood still meanwhile says nothing of what it had counted."""
    tables = {
        "engine": {
            "ts_ns": [1, 2],
            "drafts": [1000, 1100],
            "drafted": [3000, 3300],
            "accepted": [900, accepted],
            "accepted_per_position": [[600, 200, 100], last],
        }
    }
    told = asked(tables, cost=0.1).to_dict()
    assert (told["drafts"], told["drafted"], told["accepted"]) == (100, 300, accepted - 900)
    assert told["acceptance_rate"] == pytest.approx((accepted - 900) / 300)
    assert told["mean_accepted_length"] == pytest.approx(1 + sum(shares))
    assert told["by_position"] == pytest.approx(shares)
    idle = {"engine": {n: [v[0], v[0]] for n, v in tables["engine"].items()} | {"ts_ns": [1, 2]}}
    assert asked(idle, cost=0.1).to_dict()["acceptance_rate"] == pytest.approx(0.3)  # nothing came: since its start


def test_tokens_drawn_alike_give_the_chance_back():
    random, k, a, n = np.random.default_rng(11), 5, 0.73, 40_000
    accepted = (random.random((n, k)) < a).cumprod(axis=1).sum(axis=0)
    tables = {
        "engine": {
            "ts_ns": [1, 2],
            "drafts": [0, n],
            "drafted": [0, n * k],
            "accepted": [0, int(accepted.sum())],
            "accepted_per_position": [[0.0] * k, accepted.astype(float).tolist()],
        }
    }
    result = asked(tables)
    assert result.acceptance == pytest.approx(a, abs=0.005)
    rows = result.positions
    assert ((rows["low"] <= rows["theory"]) & (rows["theory"] <= rows["high"])).sum() >= 4
    assert rows["conditional"].to_numpy() == pytest.approx(a, abs=0.012)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 0.99), st.integers(1, 12))
def test_the_chance_is_the_one_that_gives_the_length(a, k):
    assert needed_chance(accepted_length(a, k), k) == pytest.approx(a, abs=1e-6)


def test_lengths_that_cannot_be_are_clipped():
    assert needed_chance(1.0, 4) == 0 and needed_chance(5.0, 4) == 1 and needed_chance(9.0, 4) == 1


def test_wilson_against_its_formula():
    low, high = wilson(np.array([0.8]), 100)
    assert (low[0], high[0]) == (pytest.approx(0.7112, abs=1e-3), pytest.approx(0.8666, abs=1e-3))
    low, high = wilson(np.array([0.0, 1.0]), 10)
    assert low[0] == 0 and high[1] == 1 and high[0] > 0 and low[1] < 1


def test_draft_lengths():
    drafts = by_draft(0.8, 0.05)
    assert [d.speedup for d in drafts] == [speculation_speedup(0.8, k, 0.05) for k in range(17)]
    assert best(drafts).tokens == int(np.argmax([d.speedup for d in drafts])) == 8
    assert best(by_draft(0.3, 0.5)).tokens == 0  # nothing pays
    assert speculation_speedup(least_acceptance(5, 0.05), 5, 0.05) == pytest.approx(1)
    assert least_acceptance(5, 1.0) is None and least_acceptance(3, 0.0) == 0.0
    length = accepted_length(0.8, 5)
    assert length / (5 * greatest_cost(length, 5) + 1) == pytest.approx(1)


@pytest.mark.parametrize(("a", "cost"), [(0.95, 0.01), (0.8, 0.05), (0.9, 0.02), (0.97, 0.005), (0.99, 0.001)])
def test_the_best_draft_is_the_best_of_all_lengths(a, cost):
    most = max(range(1001), key=lambda k: speculation_speedup(a, k, cost))
    drafts = by_draft(a, cost)
    assert best(drafts).tokens == best(by_positions(a ** np.arange(1, 4), cost)).tokens == most
    assert len(drafts) >= 17 and not still_rising(drafts)


@pytest.mark.parametrize(("a", "cost"), [(0.8, 0.0), (1.0, 0.05)])
def test_where_each_further_token_gains_no_length_is_best(a, cost):
    for drafts in (by_draft(a, cost), by_positions(a ** np.arange(1, 4), cost)):
        assert len(drafts) == 17 and still_rising(drafts)


def test_another_length_beyond_what_was_tried_is_by_the_run_s_positions():
    longer = asked(COUNTERS, draft=30, cost=0.1)
    assert longer.length == pytest.approx(by_positions(np.array(longer.observed.positions), 0.1, 30)[-1].length)


def test_measured_positions_and_beyond():
    drafts = by_positions(np.array([0.8, 0.6]), 0.1, 4)
    assert [d.length for d in drafts] == pytest.approx([1, 1.8, 2.4, 2.85, 3.1875])  # the last chance, 0.75, holds on
    assert drafts[2].speedup == pytest.approx(2.4 / 1.2)
    alike = by_positions(0.7 ** np.arange(1, 5), 0.1, 12)
    assert [d.speedup for d in alike] == pytest.approx([d.speedup for d in by_draft(0.7, 0.1, 12)])


def test_break_even_of_a_dense_model_with_short_sequences():
    """Verifying is free up to Bc / (k + 1); drafting pays up to Bc (L - k c) / (k + 1)."""
    m = machine(model("llama-3.1-8b"), chip("v5e"))
    critical = critical_batch(chip("v5e").need("bf16_flops_per_s"), chip("v5e").need("hbm_bytes_per_s"))
    k, c, length = 5, 0.05, accepted_length(0.8, 5)
    assert m.critical_tokens() == pytest.approx(critical)
    assert m.break_even(length, k, c) == pytest.approx(critical * (length - k * c) / (k + 1))
    assert m.speedup(1, length, k, c) == m.speedup(critical / 6, length, k, c) == pytest.approx(length / 1.25)
    assert m.speedup(1e5, length, k, c) == pytest.approx(length / (k + 1 + k * c))


@pytest.mark.parametrize("context", [0, 8192, 131072])
@pytest.mark.parametrize(("name", "on"), [("qwen3-32b", "H20"), ("llama3.1-405b", "H20"), ("llama-3.1-8b", "v5e")])
def test_verifying_costs_nothing_up_to_the_free_batch(name, on, context):
    """Attention counts too: on a chip of little compute it turns compute-bound at a single sequence."""
    m = machine(model(name), chip(on), context)
    for draft in (3, 8):
        free = m.free_batch(draft)
        at = max(free, 1.0)
        assert (m.step_s(at, draft + 1) == pytest.approx(m.step_s(at))) == (free >= 1)
        assert m.step_s(1.1 * at, draft + 1) > 1.001 * m.step_s(1.1 * at)
    assert (free == 0) == (context > 0 and on == "H20")
    assert m.caches_bound(8) == (context > 0 and on == "v5e")


def test_weights_are_as_published_where_nobody_says_else():
    facts = {"model": "gpt-oss-120b", "chip": "h100", "chips": 1}
    given = [
        asked(facts=facts, acceptance=0.8, draft=5, cost=0.05, **more).break_even_batch
        for more in ({}, {"weights_precision": "published"}, {"weights_precision": "bf16"})
    ]
    assert given[0] == given[1] != given[2]


def test_long_contexts_make_drafts_pay_at_any_batch():
    short, long = (asked(facts=DENSE, acceptance=0.8, draft=5, cost=0.05, context=n) for n in (0, 16384))
    assert short.break_even_batch < 200 and long.break_even_batch == inf
    told = long.to_dict()
    assert told["break_even_batch"] is None and told["pays_at_any_batch"] is True
    assert short.to_dict()["pays_at_any_batch"] is False


def test_experts_make_verifying_dearer():
    m = machine(model("mixtral-8x7b"), chip("H100"))
    one, five = m.step_s(1), m.step_s(1, 5)
    assert five > 2 * one  # five tokens meet more of the experts than one


def test_a_draft_that_never_pays():
    assert asked(facts=DENSE, acceptance=0.1, draft=8, cost=0.5).break_even_batch == 0


def test_a_log_s_sums_begin_at_zero():
    tables = {
        "engine": {
            "ts_ns": [1, 2],
            "drafted": [400, 800],
            "accepted": [200, 500],
            "acceptance_length": [3.0, 4.0],
            "acceptance_per_position": [[0.8, 0.6, 0.4, 0.2], [0.9, 0.8, 0.7, 0.6]],
        }
    }
    result = asked(tables)
    assert result.observed.rate == 500 / 800 and result.draft == 4
    assert list(result.positions["acceptance"]) == pytest.approx([0.85, 0.7, 0.55, 0.4])
    assert result.length == pytest.approx(1 + 500 / 200)
    alone = {"engine": {"ts_ns": [1, 2], "acceptance_length": [3.0, 4.0]}}
    result = asked(alone)
    assert result.length == 3.5 and result.observed.rate is None and any("not told" in n for n in result.notes)


def test_requests_need_the_length_of_a_draft():
    tables = {"requests": {"id": ["a", "b", "c"], "drafted": [100, 60, 5], "accepted": [70, 30, 9]}}
    with pytest.raises(QuestionError, match="how many a draft has"):
        asked(tables)
    for result in (asked(tables, draft=4), asked(tables, {"num_speculative_tokens": 4})):
        assert result.observed.rate == 100 / 160  # 9 of 5 cannot be
        assert result.length == pytest.approx(1 + 100 / 40)


def test_a_load_test_s_own_words():
    tables = {
        "stage_stats": {
            "stage": ["one"] * 6 + ["two"],
            "metric": [
                "acceptance_rate",
                "acceptance_length",
                "acceptance_rate",
                "acceptance_rate",
                "drafts",
                "drafted_tokens",
                "acceptance_rate",
            ],
            "statistic": ["mean", "mean", "per_position_0", "per_position_1", "total", "total", "mean"],
            "value": [0.6, 2.2, 0.7, 0.5, 100, 200, 0.9],
        }
    }
    result = asked(tables, stage="one")
    assert (result.observed.rate, result.length, result.draft) == (0.6, 2.2, 2.0)
    assert list(result.positions["acceptance"]) == [0.7, 0.5]
    with pytest.raises(QuestionError, match="no load 'three'"):
        asked(tables, stage="three")


def test_several_loads_are_told_as_one():
    """A short load that accepts much beside a long one that accepts little: pooled, not the first's."""
    rows = [
        ("one", "drafts", "total", 100),
        ("one", "drafted_tokens", "total", 200),
        ("one", "accepted_tokens", "total", 170),
        ("one", "acceptance_rate", "per_position_0", 0.9),
        ("one", "acceptance_rate", "per_position_1", 0.8),
        ("two", "drafts", "total", 900),
        ("two", "drafted_tokens", "total", 1800),
        ("two", "accepted_tokens", "total", 450),
        ("two", "acceptance_rate", "per_position_0", 0.4),
        ("two", "acceptance_rate", "per_position_1", 0.1),
    ]
    tables = {"stage_stats": dict(zip(("stage", "metric", "statistic", "value"), zip(*rows, strict=True), strict=True))}
    result = asked(tables)
    assert result.positions["acceptance"].tolist() == pytest.approx([0.45, 0.17])
    assert result.length == pytest.approx(1 + 620 / 1000) == pytest.approx(1 + sum(result.observed.positions))
    backwards = {"stage_stats": {k: v[::-1] for k, v in tables["stage_stats"].items()}}
    assert asked(backwards).positions.equals(result.positions)
    shares = [r for r in rows if r[1] == "acceptance_rate"] + [
        ("one", "acceptance_rate", "mean", 0.8),
        ("two", "acceptance_rate", "mean", 0.3),
    ]
    columns = zip(*shares, strict=True)
    alike = asked({"stage_stats": dict(zip(("stage", "metric", "statistic", "value"), columns, strict=True))})
    assert alike.positions["acceptance"].tolist() == pytest.approx([0.65, 0.45])
    assert alike.observed.rate == pytest.approx(0.55)


def test_counts_are_of_loads_that_print_them_all():
    tables = {
        "stage_stats": {
            "stage": ["a", "a", "a", "b"],
            "metric": ["drafts", "drafted_tokens", "accepted_tokens", "drafts"],
            "statistic": ["total"] * 4,
            "value": [100, 300, 150, 900],
        }
    }
    assert asked(tables).length == pytest.approx(2.5)


def test_passes_with_and_without_drafts_at_equal_batch():
    n = 10
    tables = {
        "iterations": {
            "dur_ns": [30_000_000] * n + [10_000_000] * n + [99_000_000] * n + [5_000_000],
            "prefill_tokens": [0] * (2 * n) + [512] * n + [0],
            "decode_requests": [8] * (3 * n) + [3],
            "decode_tokens": [32] * n + [8] * n + [32] * n + [3],
            "drafted_tokens": [32] * n + [0] * n + [32] * n + [0],
            "accepted_tokens": [24] * n + [0] * n + [24] * n + [0],
        }
    }
    result = asked(tables)
    assert len(result.passes) == 1  # 3 requests without drafts have no partner, passes with prompts do not count
    row = result.passes.iloc[0]
    assert (row["batch"], row["with_s"], row["without_s"]) == (8, pytest.approx(0.0075), pytest.approx(0.01))
    assert result.measured_speedup == pytest.approx(4 / 3)
    assert result.observed.source == "iterations" and result.observed.rate == 0.75
    assert result.length == pytest.approx(4.0) and result.draft == 4


def test_another_length_is_by_the_run_s_positions():
    result = asked(COUNTERS, draft=2, cost=0.1)
    assert result.length == pytest.approx(1 + (139 + 105) / 160)
    assert result.speedup == pytest.approx(result.length / 1.2)


def test_the_draft_model_s_weights_are_its_cost():
    facts = {"model": "llama-3.1-70b", "draft_model": "llama-3.1-8b"}
    result = asked(COUNTERS, facts)
    assert result.cost == pytest.approx((8.03 - 0.525) / (70.55 - 1.05), rel=0.01)  # without tables only looked up in
    assert asked(COUNTERS, facts | {"draft_model": "my-eagle-head"}).cost == 0.05


def test_a_model_of_the_user_s_own_is_no_obstacle():
    result = asked(COUNTERS, {"model": "my/own", "chip": "v5e"})
    assert result.machine is None and "not known here" in result.notes[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"acceptance": 1.5},
        {"acceptance": 0.5, "draft": 0},
        {"acceptance": 0.5, "cost": -1.0},
        {"acceptance": 0.5, "context": -1},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(QuestionError):
        asked(facts=DENSE, **wrong)
