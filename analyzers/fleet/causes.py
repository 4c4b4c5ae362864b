"""What the time was lost to, over all runs, and whose runs they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from analyzers.fleet.base import WHOSE, FleetRun
from analyzers.fleet.chosen import Block
from analyzers.fleet.counting import Entries
from analyzers.fleet.spent import UNKNOWN
from analyzers.fleet.sums import distinct

MOST_CAUSES, MOST_OWNERS = 10, 3
NO_LOSS = {"useful_maths", "not_broken_down", "prefill", "decode", "productive", "served", "profiled"}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """An account in which time was lost. `usd`: of runs with a price, None where none of them has one. `owners`: whose
    runs lost most in it, each with chip-seconds; `run_id`: the run that lost most, with `run_chip_s`."""

    account: str
    chip_s: float
    usd: float | None
    runs: int
    owners: tuple[tuple[str, float], ...]
    run_id: str
    run_name: str
    run_chip_s: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "chip_hours": self.chip_s / 3600,
            "usd": self.usd,
            "runs": self.runs,
            "owners": [{"owner": name, "chip_hours": s / 3600} for name, s in self.owners],
            "largest_run": {"run_id": self.run_id, "name": self.run_name, "chip_hours": self.run_chip_s / 3600},
        }


@cache
def loss_of(path: str) -> str:
    """The account that time was lost to; empty where it moved something forward, or nothing tells what it was. An idle
    device is one, whatever its host did meanwhile."""
    names = path.split("/")
    if UNKNOWN in names or names[-1] in NO_LOSS:
        return ""
    return "device_idle" if "device_idle" in names else names[-1]


@dataclass(frozen=True, eq=False)
class Losses:
    """What some runs lost. By account: `chip_s`, `usd` of `priced` runs, and how many `runs` lost it; `worst`: the slot
    of the run that lost most, of equal ones the first, which lost `worst_chip_s`. By account (`of`) and one of the
    `owners` (`whose`): `part` in chip-seconds, and the `first` of these runs, as a slot."""

    accounts: tuple[str, ...]
    owners: tuple[str, ...]
    by_account: dict[str, np.ndarray]
    by_owner: dict[str, np.ndarray]


def losses(block: Block, entries: Entries) -> Losses:
    columns = block.columns
    names = [loss_of(path) for path in columns.paths]
    accounts = sorted({name for name in names if name})
    owners, owner = columns.keys(WHOSE)
    code = np.array([accounts.index(n) if n else -1 for n in names], dtype=np.int64)[entries.path]
    mine, runs = code >= 0, max(len(columns), 1)
    pair, where = distinct(code[mine] * runs + entries.row[mine], len(accounts) * runs)
    chip_s, (account, row) = np.bincount(where, entries.chip_s[mine], len(pair)), np.divmod(pair, runs)
    price = columns.of["usd_per_chip_s"][row]
    summed = {"chip_s": chip_s, "usd": np.nan_to_num(price * chip_s), "priced": ~np.isnan(price), "runs": chip_s > 0}
    worst = _first(account, np.lexsort((block.rank[row], -chip_s, account)))
    cell, at = distinct(account * len(owners) + owner[row], len(accounts) * len(owners))
    first = _first(at, np.lexsort((block.rank[row], at)))
    there = np.unique(account)
    return Losses(
        accounts=tuple(accounts[n] for n in there.tolist()),
        owners=owners,
        by_account={
            **{name: np.bincount(account, values, len(accounts))[there] for name, values in summed.items()},
            "worst": block.slots[row[worst]],
            "worst_chip_s": chip_s[worst],
        },
        by_owner={
            "of": np.searchsorted(there, cell // len(owners)),
            "whose": cell % len(owners),
            "part": np.bincount(at, chip_s, len(cell)),
            "first": block.slots[row[first]],
        },
    )


def _first(group: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The first of each group in an order in which those of a group stand together."""
    return order[np.flatnonzero(np.diff(group[order], prepend=-1))]


def causes(parts: Sequence[Losses], rank: np.ndarray, run_at: Callable[[int], FleetRun]) -> tuple[Cause, ...]:
    """All accounts in which time was lost, the largest first. `rank`: how early each slot is among all."""
    parts = [part for part in parts if part.accounts]
    if not parts:
        return ()
    accounts = sorted({name for part in parts for name in part.accounts})
    owners = {name: n for n, name in enumerate(dict.fromkeys(name for part in parts for name in part.owners))}
    code = {name: n for n, name in enumerate(accounts)}
    mine = [np.array([code[name] for name in part.accounts], dtype=np.int64) for part in parts]
    whose = [np.array([owners[name] for name in part.owners], dtype=np.int64) for part in parts]
    of = {name: np.concatenate([part.by_account[name] for part in parts]) for name in parts[0].by_account}
    account = np.concatenate(mine)
    told = {name: np.bincount(account, of[name], len(accounts)) for name in ("chip_s", "usd", "priced", "runs")}
    worst = _first(account, np.lexsort((rank[of["worst"]], -of["worst_chip_s"], account)))
    held = _owners(parts, mine, whose, rank, list(owners))
    found = [
        Cause(
            account=name,
            chip_s=float(told["chip_s"][n]),
            usd=float(told["usd"][n]) if told["priced"][n] else None,
            runs=int(told["runs"][n]),
            owners=held[n],
            run_id=(run := run_at(int(of["worst"][worst[n]]))).run_id,
            run_name=run.name,
            run_chip_s=float(of["worst_chip_s"][worst[n]]),
        )
        for n, name in enumerate(accounts)
    ]
    return tuple(sorted(found, key=lambda cause: -cause.chip_s))


def _owners(
    parts: Sequence[Losses],
    mine: Sequence[np.ndarray],
    whose: Sequence[np.ndarray],
    rank: np.ndarray,
    names: Sequence[str],
) -> list[tuple[tuple[str, float], ...]]:
    """Of each account whose runs lost most, of equal ones the one of the first run."""
    told = zip(parts, mine, whose, strict=True)
    cells = [m[p.by_owner["of"]] * len(names) + w[p.by_owner["whose"]] for p, m, w in told]
    most = int(max(m.max() for m in mine) + 1) * len(names)
    cell, where = distinct(np.concatenate(cells), most)
    part = np.bincount(where, np.concatenate([p.by_owner["part"] for p in parts]), len(cell))
    early = rank[np.concatenate([p.by_owner["first"] for p in parts])]
    first = early[_first(where, np.lexsort((early, where)))]
    account, owner = np.divmod(cell, len(names))
    order = np.lexsort((first, -part, account))
    begins = np.flatnonzero(np.diff(account[order], prepend=-1))[1:]
    shown = (some[:MOST_OWNERS].tolist() for some in np.split(order, begins))
    return [tuple((names[int(owner[n])], float(part[n])) for n in some) for some in shown]
