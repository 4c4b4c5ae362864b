"""What gates can look at beside the time of a step: rates, MFU, goodput, memory, and requests, each with its range."""

from dataclasses import replace

import numpy as np
import pytest

from analyzers.compiled.accounts import TOLD
from analyzers.difference import Side, difference
from analyzers.difference.step_time import settled
from analyzers.time.training_accounts import leaf, parent
from app.comparing.answer import Compared
from app.comparing.gate_figures import OF_A_STEP, Found, Sides
from app.comparing.gates import FAILED, NOT_TOLD, PASSED, gate
from runs.ledger import Ledger
from tests.app.commands import out
from tests.app.made_runs import PEAK, step_columns, write
from tests.app.served_runs import busy


def job(store, name, step_s, *, seed, mfu=0.4, steps=120):
    """Steps that scatter by 1 %, each with the FLOPs that give this MFU at one second, and 1000 tokens."""
    took = (step_s * 1e9 * (1 + 0.01 * np.random.default_rng(seed).normal(size=steps))).astype(int)
    rates = [1e12 / t for t in took.tolist()]
    columns = step_columns(took, model_flops_per_chip=[mfu * PEAK] * steps, tokens_per_s_per_chip=rates)
    return write(store, name, {"steps": columns}, {"chip": "TPU v5p", "chips": 4})


@pytest.fixture
def slower(place):
    return Compared(job(place.store, "a", 1.0, seed=1), job(place.store, "b", 1.06, seed=2), place)


def test_a_rate_changes_as_the_step_does_the_other_way_round(slower):
    step, rate = (gate(g).look(slower.sides) for g in ("step_time>+1%", "tokens_per_s<-1%"))
    assert rate.change == pytest.approx(1 / (1 + step.change) - 1)
    assert (rate.low, rate.high) == pytest.approx((1 / (1 + step.high) - 1, 1 / (1 + step.low) - 1))
    assert rate.low < 1 / 1.06 - 1 < rate.high and rate.outcome == FAILED
    assert gate("tokens_per_s<-20%").look(slower.sides).outcome == PASSED


def test_mfu_is_gated_in_points(slower):
    found = gate("mfu<-0.5").look(slower.sides)
    assert found.low < 0.4 / 1.06 - 0.4 < found.high and found.outcome == FAILED
    assert found.change == pytest.approx(0.4 / 1.06 - 0.4, abs=0.001)
    assert found.why.startswith("MFU of settled steps changed by −2.") and found.why.endswith(" points).")
    assert gate("mfu<-5").look(slower.sides).outcome == PASSED


def test_mfu_of_twice_the_work_in_the_same_time_is_twice(place):
    a, b = job(place.store, "a", 1.0, seed=1, mfu=0.2), job(place.store, "b", 1.0, seed=2, mfu=0.4)
    found = gate("mfu<-0.5").look(Compared(a, b, place).sides)
    assert found.outcome == PASSED and found.change == pytest.approx(0.2, abs=0.001)


@pytest.mark.parametrize("text", ["goodput<-2", "peak_memory>+5%", "ttft_p99>+10%", "input_wait>+1%"])
def test_what_has_no_interval_cannot_be_told_and_says_why(slower, text):
    found = gate(text).look(slower.sides)
    assert found.outcome == NOT_TOLD and (found.low, found.high) == (None, None)
    assert "no interval: " in found.why or "cannot be compared: " in found.why


def test_requests_are_gated_by_the_interval_of_the_comparison(place, capsys):
    a, b = busy(place.store), busy(place.store, "slow", rate=3, seed=5)
    found = Compared(a, b, place)
    told = {(d.metric, d.statistic): d for d in found.served.differences}
    for name, key in (("e2e_mean", ("e2e_s", "mean")), ("ttft_p50", ("ttft_s", "p50"))):
        d, judged = told[key], gate(f"{name}>+0.001%").look(found.sides)
        assert (judged.change, judged.low, judged.high) == pytest.approx(
            (d.ratio - 1, d.ratio_low - 1, d.ratio_high - 1)
        )
        assert judged.outcome == (FAILED if d.ratio_low > 1 else NOT_TOLD if d.ratio_high > 1 else PASSED)
    dark = next(d for d in found.served.differences if d.ratio_low is None)
    judged = gate(f"{dark.metric.removesuffix('_s')}_{dark.statistic}>+900%").look(found.sides)
    assert judged.outcome == NOT_TOLD and dark.why in judged.why
    assert out(capsys, "compare", "busy", "slow", "--fail-if", "step_time>+1%")[0] == 4
    assert out(capsys, "compare", "busy", "slow", "--fail-if", "e2e_p50>+9000%")[0] in (0, 4)


def compiled(name, seconds=1.0):
    """A compiled step of one chip, a fifth of it in each account that a program tells."""
    held = parent("held", [parent("productive", [leaf(n, seconds / 5, "modelled", "") for n in TOLD], "")], "")
    return Side(name=name, kind="compiled", facts={}, ledger=Ledger(chips=1, account=held))


def ran(name, seconds=1.0):
    took, none = seconds * (1 + 0.001 * np.random.default_rng(1).normal(size=100)), np.zeros(100, bool)
    return Side(name=name, kind="training", facts={}, steps=settled(np.arange(100), took, none, none))


@pytest.mark.parametrize("text", ["step_time>+1%", "tokens_per_s<-1%", "mfu<-0.5", "input_wait>+1%", "peak_memory>+5%"])
def test_a_compilers_bound_is_gated_against_no_measured_run(text):
    for one, other in ((compiled("a"), ran("b", 0.9)), (ran("a", 2.0), compiled("b"))):
        found = difference(one, other, 0.005)
        judged = gate(text).look(Sides(jobs=found, both=lambda tell: ((5.0, "measured"), (5.0, "modelled"))))
        assert judged.outcome == NOT_TOLD and judged.change is None, judged


def test_of_two_compiled_programs_only_what_a_program_tells_is_gated():
    found = Sides(jobs=difference(compiled("a"), compiled("b"), 0.005))
    passed = {name for name in OF_A_STEP if gate(f"{name}>+1%").look(found).outcome == PASSED}
    assert passed == set(TOLD)
    assert "does not tell this account" in gate("input_wait>+1%").look(found).why
    assert gate("step_time>+1%").look(found).outcome == PASSED
    worse = Sides(jobs=difference(compiled("a"), compiled("b", 1.5), 0.005))
    assert gate("padding>+1%").look(worse).outcome == FAILED


def looked(text, **found):
    """A gate's outcome of what was found."""
    of = gate(text)
    return replace(of, figure=replace(of.figure, change=lambda sides: Found(**found))).look(Sides())


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_passes_no_gate(odd):
    for text in ("step_time>+1%", "step_time<-1%"):
        for ends in ({"low": 0.0, "high": 0.0}, {"low": odd, "high": odd}):
            assert looked(text, change=odd, **ends).to_dict()["change"] is None
            assert looked(text, change=odd, **ends).outcome == NOT_TOLD
        assert looked(text, change=0.0, low=odd, high=odd).outcome == NOT_TOLD
        assert looked(text, change=0.0, low=0.0, high=0.0, beside=odd).outcome == NOT_TOLD


def test_stalls_stand_beyond_the_end_of_the_range():
    scatter = {"change": 0.001, "low": -0.006, "high": 0.008}
    assert looked("step_time>+1%", **scatter).outcome == PASSED
    assert looked("step_time>+1%", **scatter, beside=0.003).outcome == NOT_TOLD
    assert looked("step_time>+1%", **scatter, beside=-0.003).outcome == PASSED
    assert looked("tokens_per_s<-1%", change=0.0, low=-0.008, high=0.006, beside=-0.003).outcome == NOT_TOLD


def test_a_gate_that_asks_for_an_improvement_fails_where_there_was_none():
    for text, sign in (("step_time>-1%", 1), ("tokens_per_s<+1%", -1)):
        assert looked(text, change=0.0, low=-0.002, high=0.002).outcome == FAILED
        assert looked(text, change=0.0, low=0.0, high=0.0).outcome == FAILED
        assert looked(text, change=0.0, low=-0.02, high=0.02).outcome == NOT_TOLD
        assert looked(text, change=-0.05 * sign, low=-0.05 * sign, high=-0.05 * sign).outcome == PASSED
        assert looked(text, change=0.0, low=-0.002, high=0.002, beside=-0.02 * sign).outcome == NOT_TOLD
