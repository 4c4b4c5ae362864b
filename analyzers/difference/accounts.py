"""The ledger of differences: what each account takes of a step on a chip in B, less what it takes in A."""

from collections.abc import Iterable, Mapping
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
    """Seconds of a step and chip, or chip-seconds of a step. `low`, `high`: between which the change lies by the
    scatter of the profiled steps; None where too few were profiled to tell it. `clear`: whether that leaves no doubt
    that it changed."""

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


Sides = StepAccounts | Mapping[str, float]
"""Accounts of a step: of stretches of profiled steps, or of a model, in which nothing scatters, by name."""


def of_profiled(a: StepAccounts, b: StepAccounts) -> tuple[AccountChange, ...]:
    """By account, the largest change first."""
    return of_steps(a, b)


def of_steps(a: Sides, b: Sides) -> tuple[AccountChange, ...]:
    """By account, the largest change first."""
    names = dict.fromkeys([*_names(a), *_names(b)])
    return _sorted(_between(name, a, b) for name in names)


def of_ledgers(a: Account, b: Account, per_a: float, per_b: float) -> tuple[AccountChange, ...]:
    """Of two ledgers that nothing scatters in: leaves by name, over `per_a` and `per_b` steps."""
    mine, theirs = leaves(a, per_a), leaves(b, per_b)
    both = ((n, mine.get(n, 0.0), theirs.get(n, 0.0)) for n in dict.fromkeys([*mine, *theirs]))
    return _sorted(AccountChange(n, before, after, after - before, after - before) for n, before, after in both)


def _sorted(of: Any) -> tuple[AccountChange, ...]:
    return tuple(sorted((c for c in of if c.a or c.b), key=lambda c: -abs(c.change)))


def _names(side: Sides) -> Iterable[str]:
    return side.seconds.columns if isinstance(side, StepAccounts) else side


def _between(name: str, a: Sides, b: Sides) -> AccountChange:
    (mean_a, va, fa), (mean_b, vb, fb) = (_mean(name, s) for s in (a, b))
    change = mean_b - mean_a
    if va is None or vb is None:
        return AccountChange(name, mean_a, mean_b)
    if not va + vb:
        return AccountChange(name, mean_a, mean_b, change, change)
    freedom = (va + vb) ** 2 / (va**2 / fa + vb**2 / fb)
    reach = float(stdtrit(freedom, 1 - ALPHA / 2)) * float(np.sqrt(va + vb))
    return AccountChange(name, mean_a, mean_b, change - reach, change + reach)


def _mean(name: str, side: Sides) -> tuple[float, float | None, float]:
    """(mean, variance of the mean, its degrees of freedom); no variance where too few stretches were profiled."""
    if not isinstance(side, StepAccounts):
        return side.get(name, 0.0), 0.0, 1.0
    values = side.seconds[name].to_numpy(float) if name in side.seconds else np.zeros(len(side.steps))
    mean = float(np.average(values, weights=side.steps))
    if len(values) < LEAST_STRETCHES:
        return mean, None, 1.0
    return mean, float(values.var(ddof=1)) / len(values), len(values) - 1.0  # stretches are blocks already


def leaves(account: Account, per: float) -> Mapping[str, float]:
    """Seconds by account: the innermost that every run has by that name, which sum to the whole. What a job or a host
    gave its name to is entered with the account that holds it."""
    if not account.children or any(c.name not in ACCOUNTS for c in account.children):
        return {account.name: account.chip_seconds / per}
    found: dict[str, float] = {}
    for child in account.children:
        for name, seconds in leaves(child, per).items():
            found[name] = found.get(name, 0.0) + seconds
    return found
