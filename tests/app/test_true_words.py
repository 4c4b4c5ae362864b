"""Sentences that a number can make false: what is the most, what is equal, what is unknown, what has a sign."""

import json

import numpy as np
import pytest

from analyzers.lost import interruptions
from analyzers.serving import load
from analyzers.serving import traffic as workload
from analyzers.serving.ab import Difference
from app.comparing import words as compare_words
from app.questions.interruptions import words as interruptions_words
from app.questions.load import words as load_words
from app.questions.traffic import words as workload_words
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask, open_loop, summaries
from tests.analyzers.stopped_jobs import Attempt, Job


def stopped(attempts, **facts):
    facts = {"chips": 64, "chips_per_host": 8, "usd_per_chip_hour": 3.0} | facts
    tables = Job([*attempts, Attempt(60)]).tables()
    return interruptions.analyze(tables, facts_of(facts), parse_options(interruptions.OPTIONS, {}))


def line(cause, host="h7"):
    return [(3.0, cause, host, "error", f"{host}: {cause}")]


def test_a_named_cause_is_not_the_most_costly_where_the_unknown_cost_more():
    result = stopped([Attempt(60, 5, 100, line("nic")), *[Attempt(60, 5, 50_000) for _ in range(3)]])
    said = interruptions_words.verdict(result).whole
    dark = result.causes.set_index("cause").loc["unknown"]
    assert dark["usd"] > 50 * result.causes.set_index("cause").loc["nic", "usd"]
    assert "Those of unknown cause cost the most: 2,670 chip-hours, about $8,020." in said
    assert "Of the causes that are told network adapters took 25 % of them and cost the most: " in said


def test_a_named_cause_that_cost_most_of_all_is_told_so():
    result = stopped([Attempt(60, 5, 50_000, line("nic")), Attempt(60, 5, 100), Attempt(60, 5, 100, line("hbm"))])
    said = interruptions_words.verdict(result)
    assert "Network adapters took 33 % of them and cost the most: 891 chip-hours, about $2,670." in said


def test_causes_that_cost_the_same_are_both_named():
    result = stopped([Attempt(60, 5, 100, line("nic")), Attempt(60, 5, 100, line("hbm"))])
    said = interruptions_words.verdict(result)
    assert "Network adapters and errors in HBM memory cost the most: 3.91 chip-hours, about $11.73 each." in said


def test_steps_that_were_read_without_times_are_not_said_to_be_unread():
    jobs = [(0, 3600, {"scheduler": "slurm", "outcome": "interrupted"}), (7200, 9000, {"scheduler": "slurm"})]
    life = {
        "kind": ["job"] * len(jobs),
        "start_ns": [EPOCH_NS + start * 10**9 for start, _, _ in jobs],
        "end_ns": [EPOCH_NS + end * 10**9 for _, end, _ in jobs],
        "detail": [json.dumps(detail) for *_, detail in jobs],
    }
    for steps in ({}, {"steps": {"step": range(10), "dur_ns": [10**9] * 10, "order": range(10)}}):
        result = interruptions.analyze(MemoryTables({"lifecycle": life, **steps}), facts_of({"chips": 8}), {})
        said = interruptions_words.verdict(result).whole
        assert "what it cost is not told, as nothing tells when its steps were taken." in said


def changed(a, b, ratio_low, ratio_high):
    return Difference(
        metric="ttft_s",
        statistic="mean",
        a=a,
        b=b,
        difference=b - a,
        low=ratio_low * a - a,
        high=ratio_high * a - a,
        ratio=b / a,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        clear=ratio_high < 1 or ratio_low > 1,
        better="",
        times_more=None,
        independent=100.0,
    )


@pytest.mark.parametrize(
    ("b", "low", "high", "said"),
    [
        (0.97, 0.93, 1.01, "3.0 % lower (7.0 % lower to 1.0 % higher)"),
        (1.03, 0.99, 1.08, "3.0 % higher (1.0 % lower to 8.0 % higher)"),
        (0.7, 0.6, 0.8, "30 % lower (20 to 40 %)"),
        (0.97, 0.9699, 0.9701, "3.0 % lower (3.0 %)"),
        (1.2, 1.0, 1.4, "20 % higher (no change to 40 % higher)"),
        (1.0, 0.95, 1.04, "the same (5.0 % lower to 4.0 % higher)"),
        (1.0, 1.0, 1.0, "the same"),
        (2.5, 1.7, 3.2, "2.50 times (1.70 to 3.20)"),
    ],
)
def test_an_interval_keeps_the_direction_of_its_ends(b, low, high, said):
    assert compare_words.how_much(changed(1.0, b, low, high)) == said


def curve(rates, slow=2, **changes):
    """The verdict over loads of these rates of which one is twice as slow."""
    loads = open_loop(rates, capacity=4.4)
    loads[slow]["e2e_mean"] *= 2
    loads[slow] |= changes
    return loads


def test_tries_of_one_load_on_both_sides_of_the_knee_are_no_range():
    said = load_words.verdict(ask(load, summaries(curve([2.0, 4.0, 4.0, 5.0]))))
    assert said.startswith("The knee lies at 4.00 requests/s, where one try keeps up and another does not: there ")
    other_order = load_words.verdict(ask(load, summaries(curve([2.0, 4.0, 4.0, 5.0], slow=1))))
    assert other_order == said


def test_two_loads_that_differ_never_print_alike():
    said = load_words.verdict(ask(load, summaries(curve([2.0, 4.001, 4.003, 5.0]))))
    assert said.startswith("The knee lies between 4.001 and 4.003 requests/s: ")


def test_a_load_that_answered_nothing_is_not_the_lightest():
    loads = curve([2.0, 3.0, 4.0], completed=0, failed=100, outcome="failed")
    for one in loads:
        del one["requested_rate_per_s"]  # nothing but what was answered places them
    result = ask(load, summaries(loads))
    assert load_words.verdict(result) == (
        "Of load 2, whose rate is not told, nothing was answered. No knee was seen up to 2.96 requests/s."
    )
    assert result.to_dict()["knee"]["high_load"] is None


def arriving(times_s):
    columns = {"arrival_ns": [EPOCH_NS + round(float(t) * 1e9) for t in times_s]}
    return ask(workload, MemoryTables({"requests": columns}))


@pytest.mark.parametrize(("pairs", "every_s"), [(2000, 0.2), (400, 10.0), (25, 0.05), (25, 100.0)])
@pytest.mark.parametrize("size", [2, 3])
def test_pairs_at_even_times_are_no_poisson_process_and_no_drift(pairs, every_s, size):
    times = (np.arange(pairs)[:, None] * every_s + np.arange(size) * every_s / 1000).ravel()
    result = arriving(times)
    said = workload_words.verdict(result)
    assert result.gaps.cv > 0.95 and result.to_dict()["poisson_is_fair"] is False
    assert "rate drifts" not in said and "like a Poisson" not in said
    if size == 2:
        assert result.shape == "paced" and "at an even pace" in said


def test_a_rate_that_drifts_under_even_gaps_is_not_said_to_look_like_chance():
    times = np.cumsum(1 / np.repeat([2.0, 8.0] * 30, 40))
    result = arriving(times)
    said = workload_words.verdict(result)
    assert result.shape == "drifting" and said.startswith("Single gaps vary less than chance (CV 0.6")
    assert "chance has them." in said and not said.endswith(":")
