"""The three laws of the ledger, and that +, -, scaling and pricing keep them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.ledger import Account, Ledger, LedgerError

amounts = st.floats(min_value=0, max_value=1e12, allow_subnormal=False)
bases = st.sampled_from(["measured", "derived", "modelled", "unattributed"])


def leaves(name):
    return st.builds(Account, name=st.just(name), chip_seconds=amounts, basis=bases)


@st.composite
def trees(draw, name="held", depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(leaves(name))
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    return Account.total(name, [draw(trees(n, depth - 1)) for n in names])


ledgers = st.builds(Ledger, chips=st.integers(1, 9216), account=trees(), useful_flops=st.none() | amounts)


def closes(account):
    assert account.chip_seconds >= 0
    if account.children:
        amount = math.fsum(c.chip_seconds for c in account.children)
        assert math.isclose(amount, account.chip_seconds, rel_tol=1e-9, abs_tol=0)
        for child in account.children:
            closes(child)


@given(ledgers, ledgers)
def test_adding_keeps_the_laws_and_every_chip_second(a, b):
    both = a + b
    closes(both.account)
    assert math.isclose(both.chip_seconds, a.chip_seconds + b.chip_seconds, rel_tol=1e-9, abs_tol=1e-12)
    assert both.chips == a.chips + b.chips


@given(ledgers, ledgers)
def test_adding_commutes_in_every_amount(a, b):
    left, right = a + b, b + a
    for name in {acc.name for _, acc in left.account.walk()}:
        assert math.isclose(left.amount(name), right.amount(name), rel_tol=1e-9, abs_tol=1e-12)


@given(ledgers, st.floats(0, 1e6))
def test_scaling_keeps_the_laws(ledger, factor):
    scaled = ledger.scaled(factor)
    closes(scaled.account)
    assert math.isclose(scaled.chip_seconds, ledger.chip_seconds * factor, rel_tol=1e-9, abs_tol=1e-12)
    assert scaled.account.basis == ledger.account.basis


@given(ledgers, st.floats(0.01, 1e3))
def test_dollars_close_like_chip_seconds(ledger, price):
    priced = ledger.priced(price)
    for _, account in priced.account.walk():
        assert math.isclose(account.usd, account.chip_seconds / 3600 * price, rel_tol=1e-9, abs_tol=1e-12)
        if account.children:
            assert math.isclose(account.usd, math.fsum(c.usd for c in account.children), rel_tol=1e-8, abs_tol=1e-9)
    assert priced.priced(None).usd is None


@given(ledgers, ledgers)
def test_subtracting_an_account_from_itself_is_nothing_and_signs_turn_with_sides(a, b):
    def check(one, other):
        assert one.chip_seconds == -other.chip_seconds
        sides = {c.name: c for c in other.children}
        for child in one.children:
            check(child, sides[child.name])

    assert all(d.chip_seconds == 0 for d in (a - a).children)
    check(a - b, b - a)


@given(ledgers)
def test_json_round_trip(ledger):
    account = Account.from_dict(ledger.to_dict()["account"])
    assert account == ledger.account
    shares = [child["share"] for child in ledger.to_dict()["account"]["children"]]
    if shares and ledger.chip_seconds:
        assert math.isclose(math.fsum(shares), 1.0, rel_tol=1e-9)


@given(trees())
def test_a_parent_is_never_surer_than_what_it_is_made_of(account):
    order = ["measured", "derived", "modelled"]
    known = [c.basis for c in account.children if c.chip_seconds > 0 and c.basis != "unattributed"]
    if known:
        assert account.basis == max(known, key=order.index)


@pytest.mark.parametrize("bad", [-1.0, -1e-300, math.nan, math.inf])
def test_no_negative_and_no_nonsense(bad):
    with pytest.raises(LedgerError):
        Account(name="held", chip_seconds=bad, basis="measured")


def test_children_that_do_not_sum_are_refused():
    child = Account(name="a", chip_seconds=1.0, basis="measured")
    with pytest.raises(LedgerError, match="its children 1.0"):
        Account(name="held", chip_seconds=1.0 + 1e-8, basis="measured", children=(child,))


def test_two_children_of_one_name_are_refused():
    child = Account(name="a", chip_seconds=1.0, basis="measured")
    with pytest.raises(LedgerError, match="two children"):
        Account.total("held", [child, child])


def test_adding_a_leaf_to_a_tree_says_that_it_was_not_broken_down():
    leaf = Account(name="held", chip_seconds=3.0, basis="measured")
    tree = Account.total("held", [Account(name="productive", chip_seconds=2.0, basis="measured")])
    both = leaf + tree
    assert both.child("not_broken_down").chip_seconds == 3.0
    assert both.child("productive").chip_seconds == 2.0


def test_an_unknown_price_stays_unknown_in_a_sum():
    a = Ledger(chips=1, account=Account(name="held", chip_seconds=3600.0, basis="measured")).priced(2.0)
    b = Ledger(chips=1, account=Account(name="held", chip_seconds=3600.0, basis="measured"))
    assert a.usd == 2.0
    assert (a + b).usd is None


def test_ledgers_cannot_be_scaled_below_zero():
    with pytest.raises(LedgerError, match="scale"):
        Ledger(chips=1, account=Account(name="held", chip_seconds=1.0, basis="measured")).scaled(-1)
