"""The planner: the winner was simulated, every loser has a reason, capacity is where objectives break, pools add up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.serving_plans import borne, cheaper, drawn, served, sustains
from catalog import chip, model
from catalog.inference import kv_bytes
from errors import QuestionError
from simulators.serving.cost import break_even, usd_per_million_tokens
from simulators.serving.disaggregated import balance, compare, pools, prefill_by_decode, serve
from simulators.serving.efficiency import IDEAL, SLOW, TYPICAL
from simulators.serving.engine import simulate
from simulators.serving.estimate import estimate
from simulators.serving.objectives import Objectives, Shape, capacity, drift, looked_for, settled, trial
from simulators.serving.planner import Wanted, best_formats, formats_of, plan
from simulators.serving.setup import Setup
from simulators.serving.step import decode_s, prefill_s, step_model

SHAPE = Shape(500, 100)
SOON = Objectives(ttft_s=1.0, tpot_s=0.03)


def setup(**more):
    return Setup(**{"model": model("llama3.1-8b"), "chip": chip("h100"), **more})


def wanted(**more):
    return Wanted(**{"model": model("llama3.1-8b"), "shape": SHAPE, "rate_per_s": 40.0, "objectives": SOON, **more})


def test_capacity_lies_where_the_objectives_break():
    one = setup()

    def answers(traffic):
        return simulate(one, traffic, TYPICAL, record=False).requests

    found = capacity(answers, SHAPE, SOON)
    assert found.rate_per_s > 0 and found.limit == "tpot_s"
    assert not SOON.broken(found.seen)
    beyond = answers(SHAPE.at(found.rate_per_s * 1.15, 3000)).iloc[1000:]
    assert SOON.broken(SOON.seen(beyond))
    guessed = capacity(answers, SHAPE, SOON, found.rate_per_s * 1.7)
    assert guessed.rate_per_s == pytest.approx(found.rate_per_s, rel=0.06)


def test_capacity_of_what_cannot_and_of_no_objective():
    def answers(traffic):
        return simulate(setup(), traffic, TYPICAL, record=False).requests

    never = capacity(answers, SHAPE, Objectives(tpot_s=1e-4))
    assert (never.rate_per_s, never.limit) == (0.0, "tpot_s")
    stable = capacity(answers, SHAPE, Objectives())
    assert stable.limit == "rate" and stable.rate_per_s > 0  # what it can do at all, however late


def test_one_request_alone_is_no_burst():
    def answers(traffic):
        return simulate(setup(), traffic, TYPICAL, record=False).requests

    uneven = Shape(8000, 200, 0, 2.0)
    one = float(answers(Shape(8000, 200).at(1.0, 1))["ttft_s"].iloc[0])
    seen = looked_for(answers, uneven, Objectives(ttft_s=1.5 * one)).seen
    assert seen["ttft_s"] == pytest.approx(one, rel=1e-6)
    often = looked_for(answers, uneven, Objectives(ttft_s=20 * one)).rate_per_s
    assert 0 < often < looked_for(answers, Shape(8000, 200), Objectives(ttft_s=20 * one)).rate_per_s  # bursts count


def answers_of(one):
    return lambda traffic: simulate(one, traffic, TYPICAL, record=False).requests


def test_a_queue_that_grows_shows_in_slopes_and_a_burst_does_not():
    came = np.arange(2000) / 10.0
    steady = pd.DataFrame({"arrival_s": came, "last_token_s": came + 2})
    assert drift(steady) == pytest.approx((10.0, 0.0))
    slow = pd.DataFrame({"arrival_s": came, "last_token_s": np.arange(2000) / 9.5 + 2})
    leaves, grows = drift(slow)
    assert leaves == pytest.approx(9.5) and grows == pytest.approx(10 / 9.5 - 1)
    burst = steady.assign(last_token_s=came + 2 + 5 * (abs(np.arange(2000) - 1000) < 20))
    assert drift(burst)[1] == pytest.approx(0.0, abs=2e-3)


def test_chance_is_no_queue_that_grows():
    """Well below what it can do, no trial of any seed falls behind; above it, every one does."""
    answers = answers_of(setup(max_sequences=32))
    top = capacity(answers, SHAPE, Objectives())
    assert top.limit == "rate" and top.below_per_s < 1.03 * top.rate_per_s
    bursts = replace(SHAPE, cv=2.0)

    def limit(rate, seed):
        return trial(lambda t: answers(bursts.at(rate, len(t), seed)), bursts, Objectives(), rate, 2000).limit

    for seed in range(5):
        assert [limit(share * top.rate_per_s, seed) for share in (0.9, 1.1)] == ["", "rate"]


@pytest.mark.parametrize("objectives", [SOON, Objectives(ttft_s=0.3), Objectives(), Objectives(e2e_s=2.5)])
def test_what_a_replica_bears_is_sustained_over_20_000_requests(objectives):
    one = setup(max_sequences=64)
    found = capacity(answers_of(one), SHAPE, objectives)
    assert found.settled and found.below_per_s < 1.04 * found.rate_per_s
    assert served(one, SHAPE, 0.95 * found.rate_per_s, 20_000, objectives)
    assert not served(one, SHAPE, 1.06 * found.rate_per_s, 20_000, objectives)


def test_an_objective_that_is_nearly_used_up_at_any_load_does_not_end_the_search():
    """A prompt that takes .2985 of .3 s alone takes as long at any load, until two meet too often."""

    def answers(traffic):
        rate = (len(traffic) - 1) / traffic.arrival_s[-1]
        took = 0.2985 if rate < 8.0 else 0.5
        first, last = traffic.arrival_s + took, traffic.arrival_s + took + 1.0
        return pd.DataFrame(
            {
                "arrival_s": traffic.arrival_s,
                "first_token_s": first,
                "last_token_s": last,
                "ttft_s": took,
                "tpot_s": 0.01,
                "e2e_s": took + 1.0,
            }
        )

    found = capacity(answers, SHAPE, Objectives(ttft_s=0.3), 2.0)
    assert 0.95 * 8 < found.rate_per_s < 1.05 * 8 and found.limit == "ttft_s"


def test_chance_asks_for_a_longer_trial():
    """One in a hundred may miss: 1 % that miss in stretches is chance, none at all and one in ten is not."""
    tried = []

    def answers(share):
        def serve(traffic):
            tried.append(len(traffic))
            at = np.arange(len(traffic))
            first = traffic.arrival_s + np.where(at % 2000 < 2000 * share, 2.0, 0.1)
            return pd.DataFrame(
                {
                    "arrival_s": traffic.arrival_s,
                    "first_token_s": first,
                    "last_token_s": first + 1,
                    "ttft_s": first - traffic.arrival_s,
                    "tpot_s": 0.01,
                    "e2e_s": 1.1,
                }
            )

        return serve

    for share, trials in ((0.0105, [20_000, 60_000]), (0.0, [20_000]), (0.1, [20_000])):
        tried.clear()
        trial(answers(share), SHAPE, Objectives(ttft_s=1.0), 10.0, 20_000, sure=3)
        assert tried == trials, share


def test_long_answers_need_fewer_requests_and_a_queue_that_grows_no_more():
    """A trial far beyond what is borne was enlarged for as long as its own queue grew."""
    tried = []
    one = answers_of(setup(cache_tokens=40_000))

    def answers(traffic):
        tried.append(len(traffic))
        return one(traffic)

    assert trial(answers, Shape(100, 10_000), Objectives(), 5.0, 300).limit == "rate"
    assert sum(tried) <= 3000


def test_rates_that_matter_are_tried_themselves():
    one = setup(max_sequences=64)
    rough = looked_for(answers_of(one), SHAPE, SOON)
    assert not rough.settled
    first = settled(answers_of(one), SHAPE, SOON, rough)
    assert first.rate_per_s == pytest.approx(rough.rate_per_s, rel=0.12)
    between = first.rate_per_s * 1.004
    again = settled(answers_of(one), SHAPE, SOON, rough, (between,))
    assert between in (again.rate_per_s, again.below_per_s)


@pytest.mark.parametrize("shape", [SHAPE, Shape(100, 400), Shape(4000, 50)])
@pytest.mark.parametrize("name", ["llama3.1-8b", "qwen3-30b-a3b"])
def test_no_setup_bears_more_than_the_most_that_was_reckoned(shape, name):
    """Else the planner would leave it out."""
    one = setup(model=model(name))
    for objectives in (Objectives(), Objectives(tpot_s=0.02)):
        most = estimate(one, shape, objectives).most_per_s
        assert 0 < looked_for(answers_of(one), shape, objectives, most).rate_per_s < 1.1 * most


@pytest.mark.slow
@pytest.mark.parametrize("number", [7, 12, 25])
def test_brute_force_of_small_plans(number):
    small = drawn(number + 1)[number]
    w = small.wanted
    made = plan(w, [chip(c) for c in small.chips], small.prices, {})
    best = made.best
    assert sustains(best.setup, w.shape, w.rate_per_s / best.replicas, w.objectives) >= 2
    assert cheaper(made, small) == []
    bears = borne(best.setup, w.shape, best.rate_per_replica, w.objectives)
    assert best.rate_per_replica == pytest.approx(bears, rel=0.08)


def test_the_same_question_has_the_same_answer():
    made = [plan(wanted(), [chip("h100")], {}, {}) for _ in range(2)]
    assert made[0].choices == made[1].choices


def test_the_estimate_is_the_arithmetic_it_says():
    one = setup(max_sequences=64)
    found = estimate(one, SHAPE, Objectives(), IDEAL)
    machine = step_model(one, IDEAL)
    gap = decode_s(machine, 64, 550) + 64 / 100 * prefill_s(machine, 500, 0, 8192)
    assert found.batch == 64 and found.limit == "seats"
    assert found.rate_per_s == pytest.approx(64 / (100 * gap))
    strict = estimate(one, SHAPE, Objectives(tpot_s=gap * 0.8), IDEAL)
    assert strict.limit == "tpot_s" and strict.tpot_s <= gap * 0.8 and strict.batch < 64
    small = estimate(setup(model=model("llama3.1-70b")), SHAPE, Objectives())
    assert small.rate_per_s == 0 and "weights" in small.why
    slow = estimate(one, SHAPE, Objectives(ttft_s=1e-5))
    assert "even alone" in slow.why


def test_the_plan_ranks_by_cost_and_gives_reasons():
    prices = {"TPU v6e": 2.7, "H100 SXM": 3.0}
    made = plan(wanted(), [chip("v6e"), chip("h100")], prices, {}, max_sequences=128)
    best = made.best
    assert best.basis == "simulated" and best.why.startswith("the cheapest")
    feasible = [c for c in made.choices if c.feasible]
    assert [c.usd_per_hour for c in feasible] == sorted(c.usd_per_hour for c in feasible)
    assert {c.setup.chip.name for c in feasible if c.basis == "simulated"} == {"TPU v6e", "H100 SXM"}
    assert all(c.why for c in made.choices)
    for c in feasible:
        assert c.replicas * c.rate_per_replica >= 40.0 * (1 - 1e-6)
        assert (c.replicas - 1) * c.rate_per_replica < 40.0
        assert c.usd_per_hour == pytest.approx(c.chips * prices[c.setup.chip.name])
        assert c.usd_per_million == pytest.approx(usd_per_million_tokens(4000, c.chips, prices[c.setup.chip.name]))
        if c.chips_low is not None:
            assert c.chips_low <= c.chips
            if c.chips_high is None:  # at the slow end no number of chips keeps the objectives
                assert not estimate(c.setup, SHAPE, SOON, SLOW).rate_per_s
            else:
                assert c.chips <= c.chips_high


def test_without_prices_the_fewest_chips_come_first():
    made = plan(wanted(), [chip("v6e")], {}, {})
    chips = [c.chips for c in made.choices if c.feasible]
    assert chips == sorted(chips) and made.best.usd_per_hour is None


def test_nothing_fits_and_says_why():
    made = plan(wanted(model=model("llama3.1-405b")), [chip("RTX PRO 6000 Server")], {}, {})
    assert made.best is None or made.best.feasible
    alone = plan(wanted(objectives=Objectives(tpot_s=1e-5)), [chip("h100")], {}, {})
    assert alone.best is None and all("alone" in c.why or "weights" in c.why for c in alone.choices)


def test_formats_are_those_in_which_a_chip_is_faster():
    assert best_formats(chip("v6e")) == ("bf16", "int8")  # its fp8 peak is that of bf16
    assert best_formats(chip("h100")) == ("bf16", "fp8")


def test_two_pools_conserve_requests_and_send_the_cache():
    split = pools(setup(chips=4, tensor=1, replicas=4), 1, 3)
    traffic = SHAPE.at(20.0, 400)
    rows = serve(split, traffic)
    assert len(rows) == 400 and rows.notna().all(axis=None)
    assert (rows["first_token_s"] > rows["arrival_s"]).all() and (rows["last_token_s"] > rows["first_token_s"]).all()
    sent = kv_bytes(model("llama3.1-8b"), 500) / split.link_bytes_per_s
    assert split.transfer_s(500) == pytest.approx(sent)
    gap = (rows["last_token_s"] - rows["first_token_s"]).min()
    assert gap > sent + 99 * decode_s(step_model(setup()), 1, 500) * 0.9
    slower = serve(replace(split, link_bytes_per_s=split.link_bytes_per_s / 1000), traffic)
    more = (slower["last_token_s"] - rows["last_token_s"]).median()
    assert more == pytest.approx(999 * sent, rel=0.25)


def test_a_cache_is_sent_by_the_chips_that_hold_it():
    """Where experts are dealt out over four chips, each keeps whole sequences of its own."""
    model_ = model("qwen3-30b-a3b")
    spread = pools(Setup(model=model_, chip=chip("h100"), chips=8, replicas=2, expert=4), 1, 1)
    shared = pools(Setup(model=model_, chip=chip("h100"), chips=8, replicas=2, tensor=4), 1, 1)
    assert spread.link_bytes_per_s == shared.link_bytes_per_s
    assert spread.transfer_s(10_000) == pytest.approx(kv_bytes(model_, 10_000) / spread.link_bytes_per_s)
    assert spread.transfer_s(10_000) == pytest.approx(4 * shared.transfer_s(10_000))


def test_one_token_needs_no_second_pool():
    rows = serve(pools(setup(chips=2, tensor=1, replicas=2), 1, 1), Shape(500, 1).at(5.0, 50))
    assert np.allclose(rows["first_token_s"], rows["last_token_s"]) and rows["tpot_s"].isna().all()


def test_the_first_token_that_a_client_sees_may_be_one_of_the_second_pool():
    """Of answers with a header of three tokens it is the fourth: the time until it was that of the first."""
    split, traffic = pools(setup(chips=2, tensor=1, replicas=2), 1, 1), Shape(500, 9).at(0.05, 20)
    header = replace(
        split, prefill=replace(split.prefill, silent_tokens=3), decode=replace(split.decode, silent_tokens=3)
    )
    plain, rows = serve(split, traffic), serve(header, traffic)
    assert np.allclose(rows["last_token_s"], plain["last_token_s"])
    step = decode_s(step_model(setup()), 1, 500)
    later = (rows["ttft_s"] - plain["ttft_s"]).to_numpy()
    assert np.median(later) == pytest.approx(split.transfer_s(500) + 3 * step, rel=0.01)  # of those served alone
    assert later.min() == pytest.approx(np.median(later))
    short = serve(header, Shape(500, 2).at(0.05, 20))  # all of it is header: its last token stands for the first seen
    assert np.allclose(short["first_token_s"], short["last_token_s"])


def test_the_balance_of_pools():
    one = setup()
    machine = step_model(one, SLOW)
    expected = prefill_s(machine, 500, 0, 8192) * 32 / (decode_s(machine, 32, 550) * 100)
    assert balance(one, SHAPE, 32, SLOW) == pytest.approx(expected)


def test_the_balance_that_the_scaling_book_works_out():
    # Llama 3 70B: a prompt of 8,192 in 0.910 s on 16 v5e, 32 sequences at 19 ms a step, 512 tokens each
    assert prefill_by_decode(0.910, 32, 0.019, 512) == pytest.approx(2.993, abs=5e-4)


def test_pools_are_compared_with_one_on_the_same_chips():
    found = compare(setup(chips=4, tensor=1, replicas=4), SHAPE, SOON, most=2)
    assert found.best.chips == 4 and len(found.splits) == 2
    assert found.aggregate.settled and all(bears.settled for _, bears in found.splits)
    assert found.gain == pytest.approx(found.disaggregated.rate_per_s / found.aggregate.rate_per_s)


def test_numbers_that_cannot_be_are_refused():
    for wrong in (
        lambda: Objectives(ttft_s=-1),
        lambda: Objectives(percentile=0),
        lambda: wanted(rate_per_s=0),
        lambda: pools(setup(), 0, 1),
        lambda: usd_per_million_tokens(0, 1, 1),
        lambda: break_even((0, 1), (1, 1)),
    ):
        with pytest.raises(QuestionError):
            wrong()


def test_chips_of_unlike_price_are_not_compared_by_count():
    made = plan(wanted(), [chip("v6e"), chip("h100")], {}, {})
    kinds = [c.setup.chip.name for c in made.choices if c.feasible]
    assert kinds == sorted(kinds) and len(set(kinds)) == 2
    assert any("which no price compares" in c.why for c in made.choices)


def test_weights_are_tried_as_the_model_is_published():
    def names(named: str, on: str, asked: tuple[str, ...] = ()) -> tuple[str, ...]:
        return formats_of(model(named), chip(on), asked)

    assert names("gpt-oss-120b", "b200") == names("gpt-oss-120b", "h100") == ("mxfp4",)
    assert names("gpt-oss-120b", "b200", ("fp4", "bf16")) == ("mxfp4", "bf16")
    assert names("deepseek-v3", "h200") == ("fp8-block",)
    assert names("llama3.1-70b", "b200") == ("bf16", "fp8")
    assert names("llama3.1-70b", "b200", ("fp4", "int4")) == ("nvfp4", "awq")
