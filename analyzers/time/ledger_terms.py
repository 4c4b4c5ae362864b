"""What the figures of `ledger` mean: its accounts."""

from catalog.terms import Term
from runs.accounts import ACCOUNTS

ACCOUNT_TERMS = {name: Term(kind.title, kind.meaning, unit="chip-seconds") for name, kind in ACCOUNTS.items()}
TERMS = tuple(ACCOUNT_TERMS.values())
