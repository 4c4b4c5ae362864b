"""Receipts by hand: what two ledgers say of a promise, and when they say nothing."""

import pytest

from analyzers.receipts import Said, Side, receipt
from runs.ledger import Account, Ledger

STEPS = 100


def one(steps=STEPS, starts=1, work=None, dark=0.0, unit="kept step", **accounts) -> Side:
    """A run whose kept steps hold these accounts, besides 100 chip-seconds of useful maths and 10 of a start."""
    kept = [Account(name="useful_maths", chip_seconds=100.0, basis="derived")]
    kept += [Account(name=n, chip_seconds=s, basis="measured") for n, s in accounts.items() if s]
    kept += [Account(name="unattributed", chip_seconds=dark, basis="unattributed")] if dark else []
    start = Account(name="program_startup", chip_seconds=10.0 * starts, basis="measured")
    whole = Account.total("held", [Account.total("productive", kept), Account.total("badput", [start])])
    return Side(Ledger(chips=4, account=whole), unit, float(steps), starts, work or {})


def said(side: Side, draws, cause="slow_rank", together=None) -> Said:
    likely = sum(draws.values()) / side.ledger.chip_seconds
    return Said(cause, likely * 0.9, likely, likely * 1.1, draws, together or {})


def test_what_an_account_holds_less_a_step_was_given_whatever_others_do():
    before = one(straggler_wait=50.0)
    for other in (0.0, 500.0):
        told = receipt(said(before, {"straggler_wait": 50.0}), before, one(input_wait=other))
        assert told.gave == pytest.approx(50 / before.ledger.chip_seconds) and told.within and told.by == "accounts"
    longer = one(steps=3 * STEPS, straggler_wait=75.0)  # half as much a step
    assert receipt(said(before, {"straggler_wait": 50.0}), before, longer).gave == pytest.approx(25 / 160)


def test_of_an_account_that_two_promises_share_each_is_given_its_part():
    before, after = one(straggler_wait=60.0), one()
    together = {"straggler_wait": 60.0}
    parts = [receipt(said(before, {"straggler_wait": s}, together=together), before, after).gave for s in (45.0, 15.0)]
    assert parts == pytest.approx([45 / 170, 15 / 170])
    assert sum(parts) == pytest.approx(60 / before.ledger.chip_seconds)


def test_what_a_start_costs_is_held_a_start():
    before, after = one(starts=4), one(starts=1, steps=STEPS // 4)
    assert receipt(said(before, {"program_startup": 20.0}), before, after).gave == pytest.approx(0.0, abs=1e-12)


def test_where_profiles_cover_the_runs_differently_kept_steps_are_held_as_wholes():
    before, after = one(straggler_wait=50.0), one(dark=100.0)
    told = receipt(said(before, {"straggler_wait": 50.0}), before, after)
    assert told.by == "steps" and "profiles cover" in told.why
    assert told.gave == told.whole == pytest.approx((150 - 200) / 160)
    nowhere = receipt(said(before, {"": 40.0, "straggler_wait": 2.0}), before, one())
    assert nowhere.by == "steps" and nowhere.gave == pytest.approx(50 / 160)


def test_time_that_nothing_tells_is_taken_to_have_given_as_much_of_itself():
    before = one(straggler_wait=30.0, dark=100.0)
    told = receipt(said(before, {"straggler_wait": 30.0, "unattributed": 60.0}), before, one(dark=40.0))
    assert told.by == "accounts" and told.gave == pytest.approx(90 / before.ledger.chip_seconds)


@pytest.mark.parametrize(
    ("cause", "work", "told"),
    [
        ("slow_rank", {"precision": "f32"}, False),
        ("precision", {"precision": "f32"}, True),
        ("precision", {"chips": 8}, False),
        ("dims_padding", {"model": {"emb_dim": 128}}, True),
        ("excess_collectives", {"parallelism": {"data": 8}}, True),
    ],
)
def test_what_a_cure_changes_makes_no_other_work_of_it(cause, work, told):
    was = {"precision": "f64", "chips": 4, "model": {"emb_dim": 100}, "parallelism": {"data": 4}}
    before, after = one(straggler_wait=50.0, work=was), one(work=was | work)
    assert (receipt(said(before, {"straggler_wait": 50.0}, cause), before, after).gave is not None) == told


def test_too_few_steps_and_another_kind_of_run_say_nothing():
    before = one(straggler_wait=50.0)
    for after in (one(steps=2), one(unit="output token")):
        told = receipt(said(before, {"straggler_wait": 50.0}), before, after)
        assert told.gave is None and told.why
