"""Formulas of goodput, and lives, against the numbers beside the project: each that a simulator can express."""

import re
from pathlib import Path

import pytest

from simulators.checkpointing import (
    Job,
    daly_s,
    ettr,
    failures_per_1000_node_days,
    first_order_goodput,
    goodput,
    mttf_of_nodes_s,
    optimal_s,
    wall_s,
    young_s,
)
from simulators.failures import simulate
from simulators.recovery import elastic_first_order, spares_enough
from simulators.training.lives import Life, live
from simulators.two_tier import Local, two_tier_first_order

TABLE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "goodput" / "formulas_output.txt"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="the oracles beside the project are absent")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"


def lines(start: str) -> list[list[float]]:
    """The numbers of each line that starts so."""
    found = [line for line in TABLE.read_text().splitlines() if line.startswith(start)]
    assert found, start
    return [[float(n) for n in re.findall(NUMBER, line)] for line in found]


def printed(number: float, text_digits: int) -> object:
    """Equal to the last digit that was printed."""
    return pytest.approx(number, abs=0.51 * 10.0**-text_digits)


def test_intervals_goodput_and_wall_time():
    rows = lines("C=")
    assert len(rows) == 5
    for c, m, r, young, daly, best, first, at_young, at_daly, at_best, _, wall in rows:
        job = Job(save_s=c, mttf_s=m, restart_s=r)
        assert (young_s(job), daly_s(job)) == (printed(young, 3), printed(daly, 3))
        assert optimal_s(job) == pytest.approx(best, rel=3e-5)  # of a flat optimum, found there by a search
        assert first_order_goodput(job, young) == printed(first, 6)
        told = [float(goodput(job, t)) for t in (young_s(job), daly_s(job), optimal_s(job))]
        assert told == [printed(s, 6) for s in (at_young, at_daly, at_best)]
        assert wall_s(job, daly_s(job), 1e6) == printed(wall, 1)
        drawn = live(Life(job=job, interval_s=daly, span_s=300 * m), 300).goodput
        assert drawn.mean() == pytest.approx(at_daly, abs=5 * drawn.std() / 300**0.5 + 3e-3)


def test_mean_times_to_failure_of_nodes_of_eight():
    rows = [r for start in ("1024 ", "4096 ", "16384 ", "100000 ", "131072 ") for r in lines(start)]
    assert len(rows) == 10
    for gpus, rate, hours in rows:
        assert mttf_of_nodes_s(gpus / 8, rate) / 3600 == printed(hours, 4)


def test_the_published_job_of_54_days():
    [[_, all_h, unexpected_h, _, per_gpu_h, years, _, _, rate]] = lines("llama3 MTTI")
    assert pytest.approx(all_h, rel=1e-12) == 54 * 24 / 466
    found = failures_per_1000_node_days(419, 16384 / 8, 54)
    assert found == pytest.approx(rate, rel=1e-12)
    assert mttf_of_nodes_s(16384 / 8, found) / 3600 == pytest.approx(unexpected_h, rel=1e-12)
    of_chip_h = mttf_of_nodes_s(1, found) * 8 / 3600
    assert (of_chip_h, of_chip_h / 24 / 365.25) == pytest.approx((per_gpu_h, years), rel=1e-12)
    [[_, least, lost_h, lost_min]] = lines("llama3 tokens")
    assert (1 - least / 100) * 54 * 24 == pytest.approx(lost_h) and lost_h * 60 / 466 == pytest.approx(lost_min)


def test_failures_drawn_there_and_here():
    for c, m, r, drawn, exact, first in lines("MC "):
        job = Job(save_s=c, mttf_s=m, restart_s=r)
        tau = daly_s(job)
        assert float(goodput(job, tau)) == pytest.approx(exact, abs=1e-6)
        assert first_order_goodput(job, tau) == pytest.approx(first, abs=1e-6)
        mine = simulate(job, tau, failures=400_000)
        assert mine.goodput == pytest.approx(exact, abs=4 * mine.standard_error)
        assert mine.goodput == pytest.approx(drawn, abs=0.003)  # its own noise
        lives = live(Life(job=job, interval_s=tau, span_s=300 * m), 300).goodput
        assert lives.mean() == pytest.approx(drawn, abs=0.006)


def test_effective_training_time():
    for _, _, _, nodes, rate, interval_min, restart_min, share in [[0, 0, 0, *r[-5:]] for r in lines("ETTR")]:
        assert ettr(nodes, rate / 1000, restart_min * 60, interval_min * 60) == printed(share, 4)


def test_spares():
    for spares, days, share in lines("spares"):
        assert days == 1
        assert spares_enough(int(spares), 2048 * 6.5 / 1000, 1.0) == printed(share, 5)


def test_two_tiers_and_one():
    [[two, one, young]] = lines("two tier")
    job, local = Job(save_s=10, mttf_s=10800, restart_s=300), Local(save_s=1, restart_s=20, share=0.9)
    assert two_tier_first_order(job, local, 60, 3600) == pytest.approx(two, rel=1e-12)
    assert young_s(job) == pytest.approx(young, rel=1e-12)
    assert first_order_goodput(job, young_s(job)) == pytest.approx(one, rel=1e-12)
    life = Life(job=job, interval_s=60, span_s=300 * 10800, local=local, saves_per_remote=60)
    assert live(life, 200).goodput.mean() == pytest.approx(two, abs=3e-3)


def test_elastic_and_waiting():
    [[slices, waiting, elastic]] = lines("elastic")
    assert elastic_first_order(10800, 600, 1, 0) == pytest.approx(waiting, rel=1e-12)
    assert elastic_first_order(10800, 600, int(slices), 30) == pytest.approx(elastic, rel=1e-12)
    job = Job(save_s=1e-3, mttf_s=10800, wait_s=600)  # next to no saves: the wait is lost, or a slice for as long
    whole = Life(job=job, interval_s=5.0, span_s=300 * 10800)
    assert live(whole, 200).goodput.mean() == pytest.approx(waiting, abs=5e-3)
    goes_on = Life(job=job, interval_s=5.0, span_s=300 * 10800, slices=int(slices), resume_s=15.0)  # twice: 30 s
    assert live(goes_on, 200).goodput.mean() == pytest.approx(elastic, abs=5e-3)
