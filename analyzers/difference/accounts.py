"""The ledger of differences: what each account takes of a step on a chip in B, less what it takes in A."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from analyzers.difference.step_time import ALPHA
from analyzers.time.step_accounts import StepAccounts
from runs.accounts import ACCOUNTS
from runs.ledger import Account

LEAST_STRETCHES = 4


@dataclass(frozen=True)
class AccountChange:
    """Seconds of a step and chip. `low`, `high`: between which the change lies by the scatter of the profiled steps;
    None where too few were profiled to tell it. `clear`: whether that leaves no doubt that it changed."""

    account: str
    a: float
    b: float
    low: float | None = None
    high: float | None = None

    @property
    def change(self) -> float:
        return self.b - self.a

    @property
    def clear(self) -> bool:
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def title(self) -> str:
        return ACCOUNTS[self.account].title if self.account in ACCOUNTS else self.account

    def to_dict(self) -> dict[str, Any]:
        return {"account": self.account, "a": self.a, "b": self.b, "change": self.change} | {
            "low": self.low,
            "high": self.high,
        }


def of_profiled(a: StepAccounts, b: StepAccounts) -> tuple[AccountChange, ...]:
    """By account, the largest change first."""
    names = list(dict.fromkeys([*a.seconds.columns, *b.seconds.columns]))
    return _sorted(_profiled(name, a, b) for name in names)


def of_ledgers(a: Account, b: Account, per_a: float, per_b: float) -> tuple[AccountChange, ...]:
    """Of two ledgers that nothing scatters in: leaves by name, over `per_a` and `per_b` chip-steps."""
    mine, theirs = _leaves(a, per_a), _leaves(b, per_b)
    both = ((n, mine.get(n, 0.0), theirs.get(n, 0.0)) for n in dict.fromkeys([*mine, *theirs]))
    return _sorted(AccountChange(n, before, after, after - before, after - before) for n, before, after in both)


def _sorted(of: Any) -> tuple[AccountChange, ...]:
    return tuple(sorted((c for c in of if c.a or c.b), key=lambda c: -abs(c.change)))


def _profiled(name: str, a: StepAccounts, b: StepAccounts) -> AccountChange:
    sides = [s.seconds[name].to_numpy(float) if name in s.seconds else np.zeros(len(s.steps)) for s in (a, b)]
    mean_a, mean_b = (float(np.average(v, weights=s.steps)) for v, s in zip(sides, (a, b), strict=True))
    if min(map(len, sides)) < LEAST_STRETCHES:
        return AccountChange(name, mean_a, mean_b)
    va, vb = (float(v.var(ddof=1)) / len(v) for v in sides)  # stretches are blocks already
    fa, fb = (len(v) - 1 for v in sides)
    freedom = (va + vb) ** 2 / (va**2 / fa + vb**2 / fb) if va + vb else 1.0
    reach = float(stdtrit(freedom, 1 - ALPHA / 2)) * float(np.sqrt(va + vb))
    change = mean_b - mean_a
    return AccountChange(name, mean_a, mean_b, change - reach, change + reach)


def _leaves(account: Account, per: float) -> Mapping[str, float]:
    """Seconds by account: the innermost that every run has by that name, which sum to the whole. What a job or a host
    gave its name to is entered with the account that holds it."""
    if not account.children or any(c.name not in ACCOUNTS for c in account.children):
        return {account.name: account.chip_seconds / per}
    found: dict[str, float] = {}
    for child in account.children:
        for name, seconds in _leaves(child, per).items():
            found[name] = found.get(name, 0.0) + seconds
    return found
