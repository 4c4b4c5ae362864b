"""Runs laid out as columns: each run is read once, when it came or is another."""

from collections.abc import Sequence
from itertools import count, islice

import numpy as np

from analyzers.fleet.base import FleetRun
from analyzers.fleet.columns import Columns, Known, joined, known_of, offsets
from analyzers.fleet.packed import FLAGS, Laid, Packed, packed, unpacked
from analyzers.fleet.spent import KEPT

_stamps = count(1)  # another one of each row that was ever made


def columns_of(runs: Sequence[FleetRun]) -> Columns:
    """A row of each run, in their order."""
    return laid_out(known_of(runs), [packed(run.spent) for run in runs])


def laid_out(known: Known, spent: Sequence[Packed]) -> Columns:
    """A row of each run, of which this is known, and which spent this."""
    laid = unpacked(spent)
    of, pieces = _of(known, laid), laid.pieces
    lot = offsets(of["lots"])[pieces.row] + pieces["lot"]
    whole = np.bincount(lot, pieces["share"], int(of["lots"].sum()))
    pieces.of["share"] = pieces["share"] / whole[lot]
    for lists in (laid.entries, pieces):
        lists.of["lot"] = lists["lot"].astype(np.int32)
    return Columns(
        texts=known.texts,
        paths=laid.paths,
        of=of,
        entries=laid.entries,
        pieces=pieces,
        held=laid.held,
        files=laid.files,
    )


def replaced(columns: Columns, rows: Sequence[int], fresh: Columns) -> Columns:
    """With these in the place of what is in these rows."""
    order = np.arange(len(columns))
    order[list(rows)] = len(columns) + np.arange(len(rows))
    made = joined([columns, fresh]).taken(order)
    made.keep_keys(columns, rows, fresh)
    return made


def _of(known: Known, laid: Laid) -> dict[str, np.ndarray]:
    """What is known of each run, by row.

    usd_per_chip_s, mfu, flops    NaN where it is not known
    from_ns, to_ns                from the first instant to the last of the time held
    job                           a number that is the same for runs of one job on the same chips and as many, 0 of
                                  those that name none, or no time of day. Others may have it too
    stamp                         another one of each row, and of one run whenever it is another
    """
    head, entries, rows = laid.of, laid.entries, len(laid.of)
    whole, dated = head["whole"].copy(), head["held"] > 0
    in_steps = np.array([p.partition("/")[0] in KEPT for p in laid.paths], dtype=bool)
    return {
        **known.of,
        **{name: (head["flags"] & bit) > 0 for name, bit in FLAGS.items()},
        "compiled": known.texts["kind"] == "compiled",
        "owned": _owned(known),
        "runtime": ~np.isnan(known.of["goodput"]),
        "dated": dated,
        "lots": head["lots"].astype(np.int32),
        "whole": whole,
        "whole_kept": np.bincount(entries.row, entries["chip_s"] * in_steps[entries["path"]], rows),
        "usd_per_chip_s": np.divide(head["usd"], whole, out=np.full(rows, np.nan), where=whole > 0),
        "flops": head["flops"].copy(),
        "from_ns": head["from_ns"].copy(),
        "to_ns": head["to_ns"].copy(),
        "job": _jobs(known, dated),
        "stamp": np.fromiter(islice(_stamps, rows), dtype=np.int64, count=rows),
    }


def _owned(known: Known) -> np.ndarray:
    told = {id(tags): tags for tags in known.texts["tags"]}
    owned = {i: bool(FleetRun(run_id="", name="", tags=tags).owner) for i, tags in told.items()}
    return np.array([owned[id(tags)] for tags in known.texts["tags"]], dtype=bool)


def _jobs(known: Known, dated: np.ndarray) -> np.ndarray:
    job, chip, chips = known.texts["job"], known.texts["chip"], known.of["chips"]
    found = np.zeros(len(job), dtype=np.int64)
    for row in np.flatnonzero(dated & (job != "")).tolist():
        found[row] = hash((job[row], chip[row], None if np.isnan(chips[row]) else chips[row])) or 1
    return found


def job_of(run: FleetRun) -> tuple[str, str, float | None]:
    """What runs of one job have in common."""
    return run.job, run.chip, run.chips
