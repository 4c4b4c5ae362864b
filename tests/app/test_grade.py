"""The ladder of a run: its own utilisations in order, a published run beside it, the best of its kind in the store."""

import math

import pytest

from analyzers.flops.published import reviewed
from app.grading import graded
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.figure import by_account
from app.questions.findings.ladder import said
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from app.workspace import workspace
from catalog.chips import chip
from runs.ledger import Ledger
from tests.app.made_runs import START_NS, S, write
from tests.bundled import bundled

MODEL, CHIP, CHIPS, SEQ = "llama3.1-70b", "TPU 7x", 64, 8192
SLOW = 1.5  # times a usual step: what the last step takes


@pytest.fixture
def place(tmp_path):
    return workspace(str(tmp_path / "store"))


def made(place, name, tokens_per_s, steps=30, **facts):
    """A run of steps that are alike but for the last, at this rate of tokens."""
    usual = 4 * S
    took = [usual] * (steps - 1) + [int(SLOW * usual)]
    start = [START_NS + sum(took[:n]) for n in range(steps)]
    tokens = usual / S * tokens_per_s
    rows = {
        "host": [None] * steps,
        "step": list(range(steps)),
        "start_ns": start,
        "dur_ns": took,
        "tokens_per_s_per_chip": [tokens * S / t for t in took],
    }
    said = {"chip": CHIP, "chips": CHIPS, "model": MODEL, "seq": SEQ, "precision": "bf16"}
    return write(place.store, name, {"steps": rows}, said | facts)


def answer(place, run):
    return ask(FINDINGS, run, {}, place.registry)


def test_rungs_are_one_count_of_flops_over_different_times(place):
    run = made(place, "mine", 500.0)
    result, mfu = answer(place, run), ask(MFU, run, {}, place.registry)
    ladder = result.ladder
    assert {"peak", "best_step", "usual_steps", "wall"} <= {r.name for r in ladder.rungs}
    assert ladder.rung("held") is None and "no input prints the FLOPs of a step" in ladder.missing[0]
    heights = [r.utilisation for r in ladder.rungs]
    assert heights == sorted(heights, reverse=True) and heights[0] == 1.0
    usual, best = ladder.rung("usual_steps"), ladder.rung("best_step")
    assert usual.utilisation == mfu.mfu and best.utilisation == mfu.best
    by_hand = mfu.flops_per_token * 500.0 / chip(CHIP).value("bf16_flops_per_s")
    assert best.utilisation == pytest.approx(by_hand, rel=1e-6)
    assert usual.utilisation == pytest.approx(by_hand * 29 / (28 + SLOW), rel=0.01)  # without the first
    assert usual.tokens_per_s_per_chip == pytest.approx(ask(STEPS, run, {}, place.registry).tokens_per_s_per_chip)
    assert usual.step_s == ask(STEPS, run, {}, place.registry).median_step_s


def test_the_published_run_is_of_the_same_chip_format_and_count(place):
    ladder = answer(place, made(place, "mine", 500.0)).ladder
    told = ladder.rung("published")
    like = [
        r.utilisation
        for r in reviewed()
        if r.run.chip == CHIP and r.run.precision == "bf16" and r.run.convention == "causal" and r.utilisation
        if r.parameters and abs(math.log2(r.parameters / 70.6e9)) <= 2 and not r.contradictions
        if abs(math.log2(r.run.chips / CHIPS)) <= 4
    ]
    assert told.utilisation == max(like) and told.basis == "published" and "causal" in told.over
    assert "published: llama3.1-70b on 64 chips" in said(ladder)
    alone = answer(place, made(place, "narrow", 500.0, precision="fp8")).ladder
    assert alone.rung("published") is None or "fp8" in alone.rung("published").over
    apart = answer(place, made(place, "one chip", 500.0, chips=1)).ladder
    assert apart.rung("published") is None and any("like size" in why for why in apart.missing)


def test_the_best_run_of_its_kind_stands_beside_it_and_others_do_not(place):
    mine = made(place, "mine", 300.0)
    made(place, "better", 500.0)
    made(place, "best of another model", 900.0, model="llama3.1-8b")
    made(place, "best of another chip", 900.0, chip="v6e")
    told = graded(mine, answer(place, mine), place).rung("store")
    assert (
        told.title == "Best here: better"
        and told.utilisation > 1.5 * answer(place, mine).ladder.rung("best_step").utilisation
    )
    assert answer(place, mine).ladder.rung("store") is None  # what other runs are is no part of the kept answer


def test_bundled_runs_stand_below_what_bounds_them_and_say_what_they_cannot(place, tmp_path_factory):
    for name in ("training", "fleet-54-days-simulated"):
        run = bundled(tmp_path_factory, name)
        ladder = graded(run, answer(place, run), place)
        best = ladder.rung("best_step").utilisation
        for bound in ("roof", "compiled"):
            assert ladder.rung(bound) is None or ladder.rung(bound).utilisation >= best
        assert ladder.missing and all(why and not why.endswith(".") for why in ladder.missing)
        assert ladder.rung("held").utilisation <= ladder.rung("wall").utilisation * 1.02
        assert ladder.to_dict()["rungs"][0]["peak_share"] == 1.0


def test_the_gap_closes_with_the_ledger_and_one_name_is_one_number(place, tmp_path_factory):
    run = bundled(tmp_path_factory, "training")
    result = answer(place, run)
    ledger: Ledger = result.ledger
    amounts = by_account(ledger)
    assert math.fsum(amounts.values()) == pytest.approx(ledger.chip_seconds, rel=1e-9)
    assert amounts["straggler_wait"] == pytest.approx(ledger.amount("straggler_wait"), rel=1e-9)
    assert math.fsum(s for _, s in result.gap) + ledger.amount("useful_maths") == pytest.approx(result.whole, rel=1e-9)


def test_without_a_rate_it_says_why(place):
    run = write(place.store, "bare", {"steps": {"step": [0, 1, 2], "start_ns": [0, S, 2 * S], "dur_ns": [S] * 3}}, {})
    ladder = answer(place, run).ladder
    assert not ladder.rungs and "share of the peak" in ladder.missing[0]
