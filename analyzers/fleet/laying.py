"""Runs laid out as columns: each run is read once, when it came or is another."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from analyzers.fleet.base import FleetRun
from analyzers.fleet.columns import Columns, Lists, joined, offsets
from analyzers.fleet.spent import KEPT, Spent, heading_of

EVEN = ""  # the heading of what is spread evenly over the time held
_S = 1_000_000_000
_stamps = count(1)  # another one of each row that was ever made


def columns_of(runs: Sequence[FleetRun]) -> Columns:
    """A row of each run, in their order."""
    at = _Laying()
    for run in runs:
        at.lay(run.spent)
    bare = np.empty(len(runs), dtype=object)
    bare[:] = [run if run.spent is None else replace(run, spent=None) for run in runs]
    entries = at.entries.lists(path=np.int32, chip_s=np.float64, lot=np.int32)
    paths = tuple(at.paths)
    of = _known(runs)
    in_steps = np.array([p.partition("/")[0] in KEPT for p in paths], dtype=bool)
    of["lots"] = np.array(at.lots, dtype=np.int32)
    of["whole_kept"] = np.bincount(entries.row, entries["chip_s"] * in_steps[entries["path"]], len(runs))
    pieces = at.pieces.lists(lot=np.int32, start=np.int64, end=np.int64, share=np.float64)
    lot = offsets(of["lots"])[pieces.row] + pieces["lot"]
    whole = np.bincount(lot, pieces["share"], int(of["lots"].sum()))
    pieces.of["share"] = pieces["share"] / whole[lot]
    return Columns(
        runs=bare,
        paths=paths,
        of=of,
        entries=entries,
        pieces=pieces,
        held=at.held.lists(start=np.int64, end=np.int64),
        files=at.files.lists(file=np.int64),
    )


def replaced(columns: Columns, rows: Sequence[int], runs: Sequence[FleetRun]) -> Columns:
    """With these runs in the place of what is in these rows."""
    order = np.arange(len(columns))
    order[list(rows)] = len(columns) + np.arange(len(rows))
    fresh = columns_of(runs)
    made = joined([columns, fresh]).taken(order)
    made.keep_keys(columns, rows, fresh)
    return made


class _Growing:
    """Lists that are still being filled: the items of one row after those of another."""

    def __init__(self) -> None:
        self.items: list[tuple[int | float, ...]] = []
        self.length: list[int] = []

    def end_row(self) -> None:
        self.length.append(len(self.items))

    def lists(self, **kinds: type) -> Lists:
        columns = zip(*self.items, strict=True) if self.items else ((),) * len(kinds)
        of = {name: np.array(told, dtype=kind) for (name, kind), told in zip(kinds.items(), columns, strict=True)}
        return Lists(np.array([0, *self.length], dtype=np.int64), of)


class _Laying:
    def __init__(self) -> None:
        self.paths: dict[str, int] = {}
        self.lots: list[int] = []
        self.entries, self.pieces, self.held, self.files = (_Growing() for _ in range(4))

    def lay(self, spent: Spent | None) -> None:
        lots: dict[str, int] = {}
        for entry in spent.entries if spent is not None else ():
            path = self.paths.setdefault(entry.path, len(self.paths))
            lot = lots.setdefault(heading_in(spent, entry.path), len(lots)) if spent is not None and spent.held else -1
            self.entries.items.append((path, entry.chip_s, lot))
        if spent is not None:
            self.held.items.extend(spent.held)
            self.files.items.extend((hash(file),) for file in spent.inputs)
            for heading, lot in lots.items():
                self.pieces.items.extend(_evenly(spent, lot) if heading == EVEN else _in_cells(spent, heading, lot))
        self.lots.append(len(lots))
        for growing in (self.entries, self.pieces, self.held, self.files):
            growing.end_row()


def heading_in(spent: Spent, path: str) -> str:
    """Under which heading an account's time lies in the cells of its run; EVEN where these do not tell."""
    heading = heading_of(path)
    told = spent.cells is not None and any(spent.cells.of.get(heading, ()))
    return heading if told else EVEN


def _evenly(spent: Spent, lot: int) -> list[tuple[int, int, int, float]]:
    return [(lot, a, b, float(b - a)) for a, b in spent.held]


def _in_cells(spent: Spent, heading: str, lot: int) -> list[tuple[int, int, int, float]]:
    """The cells that hold any of it; the first and the last end with the run."""
    cells = spent.cells
    assert cells is not None
    width, first, last = cells.each_s * _S, spent.held[0][0], spent.held[-1][1]
    told = ((cells.start_s * _S + i * width, us) for i, us in enumerate(cells.of[heading]) if us > 0)
    return [(lot, max(at, first), min(at + width, last), float(us)) for at, us in told]


def _known(runs: Sequence[FleetRun]) -> dict[str, np.ndarray]:
    """What is known of each run, by row.

    usd_per_chip_s, mfu, flops    NaN where it is not known
    from_ns, to_ns                from the first instant to the last of the time held
    job                           a number that is the same for runs of one job on the same chips and as many, 0 of
                                  those that name none, or no time of day. Others may have it too
    stamp                         another one of each run, and of one run whenever it is another
    """
    spent = [r.spent for r in runs]
    held = [s.held if s else () for s in spent]
    whole = np.array([s.chip_s if s else 0.0 for s in spent], dtype=float)
    usd = np.array([np.nan if s is None or s.usd is None else s.usd for s in spent], dtype=float)
    flags = {
        **{name: [getattr(r, name) for r in runs] for name in ("damaged", "simulated", "pending")},
        **{name: [getattr(r, name) for r in runs] for name in ("archived", "demo", "live")},
        "compiled": [r.kind == "compiled" for r in runs],
        "owned": [bool(r.owner) for r in runs],
        "runtime": [r.goodput is not None for r in runs],
        "chips_known": [bool(s and s.chips_known) for s in spent],
        "useful": [bool(s and s.useful_told) for s in spent],
        "least": [bool(s and s.useful_least) for s in spent],
        "dated": [bool(h) for h in held],
        "evenly": [bool(s and s.held and s.cells is None) for s in spent],
    }
    numbers = {
        "whole": whole,
        "usd_per_chip_s": np.divide(usd, whole, out=np.full(len(runs), np.nan), where=whole > 0),
        "mfu": [np.nan if r.mfu is None else r.mfu for r in runs],
        "flops": [np.nan if s is None or s.useful_flops is None else s.useful_flops for s in spent],
    }
    whole_numbers = {
        "created_ns": [r.created_ns for r in runs],
        "from_ns": [min(a for a, _ in h) if h else 0 for h in held],
        "to_ns": [max(b for _, b in h) if h else 0 for h in held],
        "job": [hash(job_of(r)) or 1 if r.job and h else 0 for r, h in zip(runs, held, strict=True)],
        "stamp": [next(_stamps) for _ in runs],
    }
    return {
        **{name: np.array(told, dtype=bool) for name, told in flags.items()},
        **{name: np.array(told, dtype=float) for name, told in numbers.items()},
        **{name: np.array(told, dtype=np.int64) for name, told in whole_numbers.items()},
    }


def job_of(run: FleetRun) -> tuple[str, str, int | None]:
    """What runs of one job have in common."""
    return run.job, run.chip, run.chips
