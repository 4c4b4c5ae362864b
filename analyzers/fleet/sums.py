"""Sums over runs: every entry of every run, by what it is counted under.

All sums of a fleet (of groups, of runs, of accounts, of periods) are sums of the same entries, so that they agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyzers.fleet.base import FleetRun

USEFUL = "useful_maths"
KEPT = ("productive", "served")  # time in kept steps; of serving, in tokens of answers


@dataclass(frozen=True, kw_only=True)
class Sum:
    """What some runs spent together. All amounts are chip-seconds of the counted time.

    usd             of runs with a price; None where none has one. `unpriced_runs`, `unpriced_chip_s`: of the others
    accounts        by path below `held`; they sum to `chip_s`
    runtime_chip_s  of runs that tell which of their time went into kept steps (or answers), of which `kept_chip_s` did
    program_chip_s  time in kept steps (or answers) of runs that tell their useful maths as well, which is
                    `useful_chip_s`, of `both_chip_s` in all; `at_least`: of some of them it is what it is at least
    mfu_chip_s      time in kept steps of runs whose MFU is known, the weight of `mfu`
    flops           the model's FLOPs in kept steps, of runs that tell them, which held `flops_chip_s`
    """

    runs: int
    chip_s: float
    usd: float | None
    unpriced_runs: int
    unpriced_chip_s: float
    accounts: Mapping[str, float]
    runtime_chip_s: float
    kept_chip_s: float
    both_chip_s: float
    program_chip_s: float
    useful_chip_s: float
    at_least: bool
    mfu: float | None
    mfu_chip_s: float
    flops: float | None
    flops_chip_s: float

    @property
    def runtime_goodput(self) -> float | None:
        """Of the time held, the share in kept steps; None where no run tells."""
        return self.kept_chip_s / self.runtime_chip_s if self.runtime_chip_s > 0 else None

    @property
    def program_goodput(self) -> float | None:
        """Of the time in kept steps, the share that the model's FLOPs take at the chips' peak."""
        return self.useful_chip_s / self.program_chip_s if self.program_chip_s > 0 else None

    @property
    def product(self) -> float | None:
        """Runtime x program goodput, both of the runs that tell both: useful maths over the time held."""
        return self.useful_chip_s / self.both_chip_s if self.both_chip_s > 0 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "chip_hours": self.chip_s / 3600,
            "chip_seconds": self.chip_s,
            "usd": self.usd,
            "unpriced_runs": self.unpriced_runs,
            "unpriced_chip_hours": self.unpriced_chip_s / 3600,
            "runtime_goodput": self.runtime_goodput,
            "runtime_goodput_told_share": self._share(self.runtime_chip_s),
            "program_goodput": self.program_goodput,
            "program_goodput_is_at_least": self.at_least,
            "runtime_x_program_goodput": self.product,
            "runtime_x_program_told_share": self._share(self.both_chip_s),
            "mfu": self.mfu,
            "mfu_weight_chip_hours": self.mfu_chip_s / 3600,
            "model_flops": self.flops,
            "model_flops_told_share": self._share(self.flops_chip_s),
            "accounts_chip_seconds": dict(self.accounts),
        }

    def _share(self, part: float) -> float | None:
        return min(part / self.chip_s, 1.0) if self.chip_s > 0 else None


@dataclass(frozen=True)
class Columns:
    """Entries as arrays: `run` and `path` as positions in `runs` and `paths`, chip-seconds that are counted.

    `whole_kept`: of each run, all of its time in kept steps, whatever part of it is counted; `whole`: of each entry all
    chip-seconds; `lot`: where an entry lies in time, -1 of one without a time of day. `flags`: by run.
    """

    runs: Sequence[FleetRun]
    paths: Sequence[str]
    run: np.ndarray
    path: np.ndarray
    chip_s: np.ndarray
    whole_kept: np.ndarray
    flags: dict[str, np.ndarray]
    lot: np.ndarray
    whole: np.ndarray

    def of(self, mine: np.ndarray, chip_s: np.ndarray | None = None) -> "Columns":
        """Some of the entries, with other amounts where these are given."""
        amount = self.chip_s[mine] if chip_s is None else chip_s
        return replace(
            self, run=self.run[mine], path=self.path[mine], chip_s=amount, lot=self.lot[mine], whole=self.whole[mine]
        )


def flags_of(runs: Sequence[FleetRun]) -> dict[str, np.ndarray]:
    """What is known of each run, as arrays over runs."""
    spent = [r.spent for r in runs]
    whole = np.array([s.chip_s if s else 0.0 for s in spent])
    usd = np.array([np.nan if s is None or s.usd is None else s.usd for s in spent])
    flops = [np.nan if s is None or s.useful_flops is None else s.useful_flops for s in spent]
    return {
        "usd_per_chip_s": np.divide(usd, whole, out=np.full(len(runs), np.nan), where=whole > 0),
        "mfu": np.array([np.nan if r.mfu is None else r.mfu for r in runs]),
        "runtime": np.array([r.goodput is not None for r in runs], dtype=bool),
        "useful": np.array([bool(s and s.useful_told) for s in spent], dtype=bool),
        "least": np.array([bool(s and s.useful_least) for s in spent], dtype=bool),
        "flops": np.array(flops, dtype=float),
    }


def sums(of: Columns, key: np.ndarray, count: int) -> list[Sum]:
    """The sum of the entries under each key, 0 to count - 1; `key`: of each entry, below 0 where it is in none."""
    mine = key >= 0
    key, run, path, chip_s = key[mine], of.run[mine], of.path[mine], of.chip_s[mine]
    wide = max(len(of.paths), 1)
    per_path = np.bincount(key * wide + path, chip_s, count * wide).reshape(count, wide)
    parts = _per_run(of, key, run, path, chip_s)
    at = np.searchsorted(parts["key"], np.arange(count + 1))
    return [_sum(of, per_path[k], {n: v[at[k] : at[k + 1]] for n, v in parts.items()}) for k in range(count)]


def _per_run(of: Columns, key: np.ndarray, run: np.ndarray, path: np.ndarray, chip_s: np.ndarray) -> dict[str, Any]:
    """The entries added up by key and run, in order of both: all, those in kept steps, and useful maths."""
    pair = key.astype(np.int64) * max(len(of.runs), 1) + run
    there, where = np.unique(pair, return_inverse=True)
    kept = np.array([p.partition("/")[0] in KEPT for p in of.paths], dtype=bool)
    useful = np.array([p.rpartition("/")[2] == USEFUL for p in of.paths], dtype=bool)
    return {
        "key": there // max(len(of.runs), 1),
        "run": there % max(len(of.runs), 1),
        "chip_s": np.bincount(where, chip_s, len(there)),
        "kept": np.bincount(where, chip_s * kept[path], len(there)),
        "useful": np.bincount(where, chip_s * useful[path], len(there)),
    }


def _sum(of: Columns, per_path: np.ndarray, parts: Mapping[str, np.ndarray]) -> Sum:
    some = parts["chip_s"] > 0
    parts = {name: values[some] for name, values in parts.items()}
    told = {name: values[parts["run"]] for name, values in of.flags.items()}
    chip_s, kept, useful, runtime = parts["chip_s"], parts["kept"], parts["useful"], told["runtime"]
    price, mfu, both = told["usd_per_chip_s"], told["mfu"], told["runtime"] & told["useful"]
    weight = np.where(np.isnan(mfu), 0.0, kept)
    whole = of.whole_kept[parts["run"]]
    flops = told["flops"] * np.divide(kept, whole, out=np.zeros(len(kept)), where=whole > 0)
    known = ~np.isnan(flops)
    return Sum(
        runs=len(chip_s),
        chip_s=_add(per_path),
        usd=_add((price * chip_s)[~np.isnan(price)]) if (~np.isnan(price)).any() else None,
        unpriced_runs=int(np.isnan(price).sum()),
        unpriced_chip_s=_add(chip_s[np.isnan(price)]),
        accounts={of.paths[i]: float(per_path[i]) for i in np.flatnonzero(per_path > 0).tolist()},
        runtime_chip_s=_add(chip_s[runtime]),
        kept_chip_s=_add(kept[runtime]),
        both_chip_s=_add(chip_s[both]),
        program_chip_s=_add(kept[both]),
        useful_chip_s=_add(useful[both]),
        at_least=bool((told["least"] & both).any()),
        mfu=_add(np.nan_to_num(mfu) * weight) / _add(weight) if weight.any() else None,
        mfu_chip_s=_add(weight),
        flops=_add(flops[known]) if known.any() else None,
        flops_chip_s=_add(chip_s[known]),
    )


def _add(values: np.ndarray) -> float:
    return math.fsum(values.tolist())
