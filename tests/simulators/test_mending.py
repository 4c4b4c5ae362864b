"""A run on paper: the ledger still closes, what is mended is gone, and the work itself stays."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.ledger import Account, Ledger
from simulators.mending import mended

NAMES = ("useful_maths", "straggler_wait", "input_wait", "checkpoint_save")


def ledger(amounts: list[float], usd_per_chip_hour: float | None = None) -> Ledger:
    useful, late, fed, saved = (
        Account(name=n, chip_seconds=s, basis="measured") for n, s in zip(NAMES, amounts, strict=True)
    )
    kept = Account.total("productive", [useful, late, fed])
    held = Account.total("held", [kept, Account.total("badput", [saved])])
    return Ledger(chips=8, account=held, useful_flops=1e15).priced(usd_per_chip_hour)


amounts = st.lists(st.floats(0.1, 1e6), min_size=4, max_size=4)
draws = st.dictionaries(st.sampled_from(("", *NAMES[1:], "hang")), st.floats(-1.0, 2e6))


@given(amounts, draws)
def test_it_closes_shrinks_by_no_more_than_was_there_and_keeps_the_work(held, drawn):
    before = ledger(held)
    after = mended(before, drawn)
    leaves = math.fsum(a.chip_seconds for _, a in after.account.walk() if not a.children)
    assert leaves == pytest.approx(after.chip_seconds, rel=1e-9)
    assert after.amount("useful_maths") == before.amount("useful_maths")
    assert 0 <= after.chip_seconds <= before.chip_seconds * (1 + 1e-9)
    for name in NAMES[1:]:
        least = before.amount(name) - max(drawn.get(name, 0.0), 0.0) - max(drawn.get("", 0.0), 0.0)
        assert max(least, 0.0) * (1 - 1e-9) <= after.amount(name) <= before.amount(name) * (1 + 1e-9)


def test_what_is_mended_is_modelled_and_the_price_stays():
    before = ledger([10.0, 20.0, 30.0, 40.0], 3.6)
    after = mended(before, {"straggler_wait": 5.0, "checkpoint_save": 40.0})
    assert after.chip_seconds == pytest.approx(55.0) and after.usd == pytest.approx(0.055)
    bases = {a.name: a.basis for _, a in after.account.walk() if not a.children}
    assert bases["straggler_wait"] == "modelled" and bases["input_wait"] == "measured"


def test_what_is_drawn_from_no_account_leaves_all_but_the_work_alike():
    after = mended(ledger([10.0, 20.0, 30.0, 40.0]), {"": 45.0})
    assert [after.amount(n) for n in NAMES] == pytest.approx([10.0, 10.0, 15.0, 20.0])
