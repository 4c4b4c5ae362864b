"""What the time was lost to, over all runs, and whose runs they are."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.fleet.base import NOT_TOLD
from analyzers.fleet.sums import Columns

MOST_CAUSES, MOST_OWNERS = 10, 3
NO_LOSS = {"useful_maths", "not_broken_down", "prefill", "decode", "productive", "served", "profiled"}
UNKNOWN = "unattributed"


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


def loss_of(path: str) -> str:
    """The account that time was lost to; empty where it moved something forward, or nothing tells what it was. An idle
    device is one, whatever its host did meanwhile."""
    names = path.split("/")
    if UNKNOWN in names or names[-1] in NO_LOSS:
        return ""
    return "device_idle" if "device_idle" in names else names[-1]


def causes(of: Columns) -> tuple[Cause, ...]:
    """All accounts in which time was lost, the largest first."""
    losses = [loss_of(path) for path in of.paths]
    names = sorted({name for name in losses if name})
    if not names:
        return ()
    code = np.array([names.index(name) if name else -1 for name in losses], dtype=np.int64)[of.path]
    mine = (code >= 0) & (of.chip_s > 0)
    pair = code[mine] * max(len(of.runs), 1) + of.run[mine]
    there, where = np.unique(pair, return_inverse=True)
    chip_s = np.bincount(where, of.chip_s[mine], len(there))
    name, run = there // max(len(of.runs), 1), there % max(len(of.runs), 1)
    whole = np.bincount(name, chip_s, len(names))
    largest = np.argsort(-whole, kind="stable")
    return tuple(_cause(of, names[n], run[name == n], chip_s[name == n]) for n in largest if whole[n] > 0)


def _cause(of: Columns, account: str, run: np.ndarray, chip_s: np.ndarray) -> Cause:
    price, worst = of.flags["usd_per_chip_s"][run], of.runs[int(run[chip_s.argmax()])]
    priced, owners = ~np.isnan(price), Counter[str]()
    for n, amount in zip(run.tolist(), chip_s.tolist(), strict=True):
        owners[of.runs[n].owner or of.runs[n].team or NOT_TOLD] += amount
    return Cause(
        account=account,
        chip_s=float(chip_s.sum()),
        usd=float((price * chip_s)[priced].sum()) if priced.any() else None,
        runs=len(run),
        owners=tuple(owners.most_common(MOST_OWNERS)),
        run_id=worst.run_id,
        run_name=worst.name,
        run_chip_s=float(chip_s.max()),
    )
