"""The ledger: every chip-second paid for, entered in exactly one account.

Three laws hold for every `Account`, whoever makes it (measured, compiled or simulated):
1. the children of an account sum to it exactly (relative 1e-9);
2. no account is negative;
3. what is not known is entered as `unattributed`, never dropped and never spread over the others.
Ledgers add (runs into a fleet), scale, take a price, and subtract (this run against that one).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from runs.accounts import ACCOUNTS

Basis = Literal["measured", "derived", "modelled", "unattributed"]
_STRENGTH = {"measured": 0, "derived": 1, "modelled": 2}
TOLERANCE = 1e-9  # relative; what doubles can hold over a sum of many accounts


class LedgerError(ValueError):
    """A ledger that breaks one of its laws. Always a defect of the code that made it, never of an input."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """One account: an amount in chip-seconds, how it is known, and what it is made of.

    `chip_seconds` is given for a leaf; `total(...)` makes a parent from its children.
    `basis` is measured, derived, modelled or unattributed; `source` says from which input and by which rule.
    `usd` is its price in dollars, or None where no price is known.
    """

    name: str
    chip_seconds: float
    basis: Basis
    source: str = ""
    usd: float | None = None
    children: tuple["Account", ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.chip_seconds) or self.chip_seconds < 0:
            raise LedgerError(f"account {self.name}: {self.chip_seconds} chip-seconds; an amount is finite and >= 0")
        if self.children:
            if len({c.name for c in self.children}) != len(self.children):
                raise LedgerError(f"account {self.name}: two children of one name")
            amount = math.fsum(c.chip_seconds for c in self.children)
            if abs(amount - self.chip_seconds) > TOLERANCE * max(amount, self.chip_seconds):
                raise LedgerError(f"account {self.name}: holds {self.chip_seconds}, its children {amount} chip-seconds")

    @staticmethod
    def total(name: str, children: Iterable["Account"], source: str = "") -> "Account":
        """A parent: the sum of its children, with their weakest basis."""
        parts = tuple(children)
        return Account(
            name=name,
            chip_seconds=math.fsum(c.chip_seconds for c in parts),
            basis=_weakest(parts),
            source=source,
            usd=_sum_usd(parts),
            children=parts,
        )

    @property
    def title(self) -> str:
        return ACCOUNTS[self.name].title if self.name in ACCOUNTS else self.name

    @property
    def unknown(self) -> float:
        """Chip-seconds in it of which no input tells what they were."""
        leaves = (a for _, a in self.walk() if not a.children)
        return math.fsum(a.chip_seconds for a in leaves if a.basis == "unattributed")

    def child(self, name: str) -> "Account | None":
        return next((c for c in self.children if c.name == name), None)

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], "Account"]]:
        """(path of names, account) for this account and all below it, parents first."""
        here = (*path, self.name)
        yield here, self
        for c in self.children:
            yield from c.walk(here)

    def scaled(self, factor: float) -> "Account":
        """The same account, `factor` (>= 0) times as large in chip-seconds and dollars."""
        if self.children:
            return replace(
                Account.total(self.name, (c.scaled(factor) for c in self.children), self.source), basis=self.basis
            )
        usd = None if self.usd is None else self.usd * factor
        return replace(self, chip_seconds=self.chip_seconds * factor, usd=usd)

    def priced(self, usd_per_chip_hour: float | None) -> "Account":
        """The same account with dollars at one price for every chip-second; None takes the dollars away."""
        children = tuple(c.priced(usd_per_chip_hour) for c in self.children)
        usd = None if usd_per_chip_hour is None else self.chip_seconds / 3600 * usd_per_chip_hour
        return replace(self, usd=usd, children=children)

    def __add__(self, other: "Account") -> "Account":
        if self.name != other.name:
            raise LedgerError(f"cannot add account {other.name} to account {self.name}")
        source = self.source if self.source == other.source else "several runs"
        if not self.children and not other.children:
            parts = (self, other)
            return Account(
                name=self.name,
                chip_seconds=self.chip_seconds + other.chip_seconds,
                basis=_weakest(parts),
                source=source,
                usd=_sum_usd(parts),
            )
        mine, theirs = _opened(self), _opened(other)
        names = list(dict.fromkeys([*mine, *theirs]))
        merged = [mine[n] + theirs[n] if n in mine and n in theirs else mine.get(n) or theirs[n] for n in names]
        return Account.total(self.name, merged, source)

    def assumed(self) -> "Account":
        """The same account where the number of chips is assumed: what was measured is derived then."""
        basis: Basis = "derived" if self.basis == "measured" else self.basis
        return replace(self, basis=basis, children=tuple(c.assumed() for c in self.children))

    def to_dict(self, whole: float | None = None) -> dict[str, Any]:
        """As JSON: name, chip_seconds, share of the whole ledger (0 to 1), usd, basis, source, children."""
        whole = self.chip_seconds if whole is None else whole
        return {
            "name": self.name,
            "chip_seconds": self.chip_seconds,
            "share": self.chip_seconds / whole if whole else 0.0,
            "usd": self.usd,
            "basis": self.basis,
            "source": self.source,
            "children": [c.to_dict(whole) for c in self.children],
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "Account":
        return Account(
            name=data["name"],
            chip_seconds=data["chip_seconds"],
            basis=data["basis"],
            source=data.get("source", ""),
            usd=data.get("usd"),
            children=tuple(Account.from_dict(c) for c in data.get("children", ())),
        )


def _weakest(parts: Iterable[Account]) -> Basis:
    """The least certain basis among accounts that hold anything; unattributed only where all are."""
    known: list[Basis] = [p.basis for p in parts if p.chip_seconds > 0 and p.basis != "unattributed"]
    if known:
        return max(known, key=_STRENGTH.__getitem__)
    parts = list(parts)
    if any(p.chip_seconds > 0 for p in parts) or not parts:
        return "unattributed"
    return parts[0].basis


def _sum_usd(parts: Iterable[Account]) -> float | None:
    """The dollars of all parts; None as soon as one that holds time has no price."""
    parts = [p for p in parts if p.chip_seconds > 0 or p.usd is not None]
    if not parts or any(p.usd is None for p in parts):
        return None
    return math.fsum(p.usd for p in parts if p.usd is not None)


def _opened(account: Account) -> dict[str, Account]:
    """Children by name; an account without children becomes one child that says it was not broken down."""
    if account.children:
        return {c.name: c for c in account.children}
    if account.chip_seconds == 0:
        return {}
    return {"not_broken_down": replace(account, name="not_broken_down")}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One account in two ledgers: `left` minus `right` in chip-seconds and in shares, children likewise."""

    name: str
    left: float
    right: float
    left_share: float
    right_share: float
    children: tuple["Difference", ...] = ()

    @property
    def chip_seconds(self) -> float:
        return self.left - self.right

    @property
    def share(self) -> float:
        return self.left_share - self.right_share


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All accounts of a run, with the chips that were held and the useful FLOPs that came out.

    `useful_flops` is the model's FLOPs in steps that were kept, over all chips; None where not known. `chips_known`:
    whether an input tells how many chips there were; else it is counted as one, and no amount is measured.
    """

    chips: int
    account: Account
    useful_flops: float | None = None
    chips_known: bool = True

    @property
    def chip_seconds(self) -> float:
        return self.account.chip_seconds

    @property
    def usd(self) -> float | None:
        return self.account.usd

    def __add__(self, other: "Ledger") -> "Ledger":
        """Two runs as one: accounts, dollars, chips and useful FLOPs added; unknown plus anything is unknown."""
        known = self.useful_flops is not None and other.useful_flops is not None
        return Ledger(
            chips=self.chips + other.chips,
            account=self.account + other.account,
            useful_flops=self.useful_flops + other.useful_flops if known else None,  # type: ignore[operator]
            chips_known=self.chips_known and other.chips_known,
        )

    def scaled(self, factor: float) -> "Ledger":
        """The same run `factor` (>= 0) times: longer, not wider, so the chips stay."""
        if not (math.isfinite(factor) and factor >= 0):
            raise LedgerError(f"cannot scale a ledger by {factor}; a factor is finite and >= 0")
        flops = None if self.useful_flops is None else self.useful_flops * factor
        return replace(self, account=self.account.scaled(factor), useful_flops=flops)

    def priced(self, usd_per_chip_hour: float | None) -> "Ledger":
        """The same ledger with every account in dollars at one price; in none where nobody tells how many chips held
        it."""
        return replace(self, account=self.account.priced(usd_per_chip_hour if self.chips_known else None))

    def __sub__(self, other: "Ledger") -> Difference:
        """This ledger against that one, account by account; an account that one lacks counts as 0 there."""
        return _difference(self.account, other.account, self.chip_seconds or 1.0, other.chip_seconds or 1.0)

    @property
    def unknown(self) -> float:
        """Chip-seconds of which no input tells what they were."""
        return self.account.unknown

    def find(self, name: str) -> Account | None:
        """The first account of this name, parents first."""
        return next((a for _, a in self.account.walk() if a.name == name), None)

    def amount(self, name: str) -> float:
        """Chip-seconds in all accounts of this name; 0.0 where there is none."""
        return math.fsum(a.chip_seconds for _, a in self.account.walk() if a.name == name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "chips": self.chips,
            "chip_seconds": self.chip_seconds,
            "usd": self.usd,
            "useful_flops": self.useful_flops,
            "account": self.account.to_dict(),
        }


def _difference(left: Account | None, right: Account | None, left_whole: float, right_whole: float) -> Difference:
    mine = {c.name: c for c in left.children} if left else {}
    theirs = {c.name: c for c in right.children} if right else {}
    a, b = (left.chip_seconds if left else 0.0), (right.chip_seconds if right else 0.0)
    return Difference(
        name=(left or right).name,  # type: ignore[union-attr]
        left=a,
        right=b,
        left_share=a / left_whole,
        right_share=b / right_whole,
        children=tuple(
            _difference(mine.get(n), theirs.get(n), left_whole, right_whole) for n in dict.fromkeys([*mine, *theirs])
        ),
    )
