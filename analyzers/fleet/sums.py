"""Sums over runs: every entry of every run, by what it is counted under.

All sums of a fleet (of groups, of runs, of accounts, of periods) are sums of the same entries, so that they agree. Some
runs are tallied by themselves, and tallies are added up: what one of a million runs changes is the tally of its part.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from analyzers.fleet.columns import Columns
from analyzers.fleet.counting import Entries
from analyzers.fleet.spent import KEPT, UNKNOWN, USEFUL

V = TypeVar("V")
SPARSE = 16  # times as many numbers as there are items: of so many each that may be has no place of its own


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

    @property
    def unknown_chip_s(self) -> float:
        """Chip-seconds of which no input tells what they were."""
        return math.fsum(s for path, s in self.accounts.items() if UNKNOWN in path.split("/"))

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


class Measures(NamedTuple, Generic[V]):
    """What is added up of each run, or comes of that. `runs`: how many; chip-seconds by what they are, `useful` and
    `program` of runs that tell both goodput and maths; `mfu_weighted`: MFU times chip-seconds in kept steps, `weight`
    these; `tells_flops`: of how many runs, and `flops_chip_s` their chip-seconds."""

    runs: V
    usd: V
    priced: V
    unpriced: V
    unpriced_chip_s: V
    runtime: V
    kept: V
    both: V
    program: V
    useful: V
    least: V
    mfu_weighted: V
    weight: V
    flops: V
    tells_flops: V
    flops_chip_s: V


@dataclass(frozen=True, eq=False)
class Tally:
    """What some runs spent under each key, 0 to count - 1: `values` by measure (`Measures`) and key, and the
    chip-seconds under a `key` in an account, where there are any (`path`: its position in `paths`)."""

    values: np.ndarray
    paths: tuple[str, ...]
    key: np.ndarray
    path: np.ndarray
    chip_s: np.ndarray


def tally(columns: Columns, entries: Entries, key: np.ndarray, count: int) -> Tally:
    """The entries under each key, `key`: of each entry."""
    runs, paths = max(len(columns), 1), max(len(columns.paths), 1)
    kept = np.array([p.partition("/")[0] in KEPT for p in columns.paths], dtype=bool)
    useful = np.array([p.rpartition("/")[2] == USEFUL for p in columns.paths], dtype=bool)
    pair, where = distinct(key * runs + entries.row, count * runs)
    chip_s = [entries.chip_s * mask for mask in (1, kept[entries.path], useful[entries.path])]
    told = _measures(columns, pair % runs, *(np.bincount(where, amount, len(pair)) for amount in chip_s))
    cell, at = distinct(key * paths + entries.path, count * paths)
    return Tally(
        values=np.array([np.bincount(pair // runs, values, count) for values in told]),
        paths=columns.paths,
        key=cell // paths,
        path=cell % paths,
        chip_s=np.bincount(at, entries.chip_s, len(cell)),
    )


def distinct(codes: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """(those that there are, in order, and where among them each is). `most`: they are below it."""
    if most > SPARSE * len(codes):
        return np.unique(codes, return_inverse=True)
    there = np.zeros(most, dtype=bool)
    there[codes] = True
    found, place = np.flatnonzero(there), np.empty(most, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[codes]


def _measures(
    columns: Columns, row: np.ndarray, chip_s: np.ndarray, kept: np.ndarray, useful: np.ndarray
) -> Measures[np.ndarray]:
    """What is added up of each run: its chip-seconds, those in kept steps, and in useful maths are given."""
    of = {name: columns.of[name][row] for name in _OF_RUNS}
    price, mfu, runtime, both = of["usd_per_chip_s"], of["mfu"], of["runtime"], of["runtime"] & of["useful"]
    whole, priced, weight = of["whole_kept"], ~np.isnan(price), np.where(np.isnan(mfu), 0.0, kept)
    flops = of["flops"] * np.divide(kept, whole, out=np.zeros(len(kept)), where=whole > 0)
    known = ~np.isnan(flops)
    return Measures(
        runs=chip_s > 0,
        usd=np.where(priced, price * chip_s, 0.0),
        priced=priced,
        unpriced=~priced,
        unpriced_chip_s=np.where(priced, 0.0, chip_s),
        runtime=chip_s * runtime,
        kept=kept * runtime,
        both=chip_s * both,
        program=kept * both,
        useful=useful * both,
        least=of["least"] & both,
        mfu_weighted=np.nan_to_num(mfu) * weight,
        weight=weight,
        flops=np.where(known, flops, 0.0),
        tells_flops=known,
        flops_chip_s=chip_s * known,
    )


_OF_RUNS = ("usd_per_chip_s", "mfu", "runtime", "useful", "least", "whole_kept", "flops")


def added_up(parts: Sequence[Tally], keys: Sequence[np.ndarray], count: int) -> list[Sum]:
    """The sum under each key, 0 to count - 1; `keys`: of each part the keys of its own keys."""
    if not parts:
        return [_sum(Measures(*[0.0] * len(Measures._fields)), {})] * count
    paths = sorted({path for part in parts for path in part.paths})
    code = {path: n for n, path in enumerate(paths)}
    key = np.concatenate([mine[part.key] for part, mine in zip(parts, keys, strict=True)])
    path = np.concatenate([np.array([code[p] for p in part.paths], dtype=np.int64)[part.path] for part in parts])
    cell, where = distinct(key * len(paths) + path, count * len(paths))
    chip_s = np.bincount(where, np.concatenate([part.chip_s for part in parts]), len(cell)).tolist()
    at = np.searchsorted(cell, np.arange(count + 1) * len(paths)).tolist()
    names = [paths[n] for n in (cell % len(paths)).tolist()]
    all_keys, values = np.concatenate(keys), np.concatenate([part.values for part in parts], axis=1)
    told = np.array([np.bincount(all_keys, measure, count) for measure in values]).T.tolist()
    accounts = (dict(zip(names[a:b], chip_s[a:b], strict=True)) for a, b in zip(at[:-1], at[1:], strict=True))
    return [_sum(Measures(*one), mine) for one, mine in zip(told, accounts, strict=True)]


def _sum(told: Measures[float], accounts: Mapping[str, float]) -> Sum:
    return Sum(
        runs=int(told.runs),
        chip_s=math.fsum(accounts.values()),
        usd=told.usd if told.priced else None,
        unpriced_runs=int(told.unpriced),
        unpriced_chip_s=told.unpriced_chip_s,
        accounts=accounts,
        runtime_chip_s=told.runtime,
        kept_chip_s=told.kept,
        both_chip_s=told.both,
        program_chip_s=told.program,
        useful_chip_s=told.useful,
        at_least=bool(told.least),
        mfu=told.mfu_weighted / told.weight if told.weight else None,
        mfu_chip_s=told.weight,
        flops=told.flops if told.tells_flops else None,
        flops_chip_s=told.flops_chip_s,
    )
