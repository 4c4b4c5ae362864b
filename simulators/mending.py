"""A run on paper: its ledger as it would be with some of what is wrong mended.

What a finding draws leaves the accounts that it came out of, and the chips are held for as much less. Accounts shrink
no further than to nothing; what is drawn from no account in particular leaves all of them alike, useful maths apart.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from runs.ledger import Account, Ledger

KEPT = ("useful_maths", "prefill", "decode")
"""What no cure takes away: the work itself."""


def mended(ledger: Ledger, draws: Mapping[str, float], basis_source: str = "modelled: mended on paper") -> Ledger:
    """The ledger less these chip-seconds by account (`""`: of no account in particular). O(accounts)."""
    there = {name: _amount(ledger.account, name) for name in draws if name}
    factors = {n: 1 - min(max(draws[n], 0.0) / s, 1.0) for n, s in there.items() if s > 0}
    less = _scaled(ledger.account, factors, basis_source)
    spread = max(draws.get("", 0.0), 0.0)
    loose = math.fsum(a.chip_seconds for _, a in less.walk() if not a.children and a.name not in KEPT)
    if spread and loose:
        names = {a.name for _, a in less.walk() if not a.children and a.name not in KEPT}
        less = _scaled(less, dict.fromkeys(names, 1 - min(spread / loose, 1.0)), basis_source)
    price = ledger.usd / ledger.chip_seconds * 3600 if ledger.usd is not None and ledger.chip_seconds else None
    return replace(ledger, account=less).priced(price)


def _amount(account: Account, name: str) -> float:
    """Chip-seconds of the accounts of that name; one within another of its name is not counted twice."""
    if account.name == name:
        return account.chip_seconds
    return math.fsum(_amount(part, name) for part in account.children)


def _scaled(account: Account, factors: Mapping[str, float], source: str) -> Account:
    """The account with those named times their factor, as wholes."""
    if account.name in factors:
        return _marked(account.scaled(factors[account.name]), source)
    if not account.children:
        return account
    parts = [_scaled(part, factors, source) for part in account.children]
    return replace(Account.total(account.name, parts, account.source))


def _marked(account: Account, source: str) -> Account:
    """Modelled, as is all below it."""
    if not account.children:
        return replace(account, basis="modelled", source=source, usd=None)
    return Account.total(account.name, [_marked(part, source) for part in account.children], source)
