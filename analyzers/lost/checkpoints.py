"""Checkpoints: what saving costs, what failures cost, and how often the job saved: all that an interval rests on.

mean time to failure = time at risk / failures; at risk is the time held less waiting for machines
lost = saves (training blocked) + redone (steps taken again) + restarts (waiting and restarting after failures)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.flops.peak import hardware
from analyzers.held import PRICE
from analyzers.lost.mttf import CONFIDENCE, Mttf, mttf
from analyzers.lost.saves import Checkpoints, Spread, checkpoints, gaps, passed_over_s, spread
from analyzers.lost.stops import STARTUP, stops
from analyzers.serving.server_start import refuse_of_a_server
from analyzers.subject import chip_of, slices_of
from analyzers.time.calendar import CODE, HEADINGS, Calendar
from analyzers.time.history import History
from analyzers.time.job_past import job_past
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (PRICE,)
REPLICAS = ("data", "dp", "data_parallel", "replica")  # mesh axes that hold the same weights again
FINAL = "final"  # the kind of stop after which nothing was started
FEW = 5  # failures; with fewer the mean time to failure is a guess within a factor of two or more


@dataclass(frozen=True, kw_only=True)
class CheckpointsResult:
    """What this run measured. Seconds on the calendar of the job; None where no input tells.

    saves          rows as `analyzers.lost.saves.Checkpoints`
    stops          rows as `analyzers.lost.stops.Stops`, with `complete`: a step was taken before the next failure, and
                   `passed_over_s`: seconds of steps taken again that a save held: the job went on from an earlier one
    save, restore  how long training was blocked by one;   restart, wait  how long one took, by failure
    parts          mean seconds of a complete restart by part: they add up to its mean
    synchronous    whether saves block until they are safe; None where not told
    interval_s     median time from one save's end to the next one's beginning;  interval_steps  likewise in steps
    interval_source  saves, their ends alone (so that a save is part of it), or period and usual step
    mttf           failures, time at risk, mean time to failure and its interval
    ends, unended  saves of which the end alone was recorded, and the beginning alone
    slices         slices of the job, else data-parallel replicas
    kept_s, saves_s, redone_s, restarts_s  time in kept steps, and lost to each; other_s: the rest of `held_s`
    """

    saves: pd.DataFrame
    stops: pd.DataFrame
    save: Spread
    restore: Spread
    restart: Spread
    wait: Spread
    parts: Mapping[str, float]
    synchronous: bool | None
    interval_s: float | None
    interval_steps: float | None
    interval_source: str
    mttf: Mttf
    held_s: float
    kept_s: float
    saves_s: float
    redone_s: float
    restarts_s: float
    chips: int
    chips_known: bool
    chips_per_node: int | None
    slices: int | None
    usd_per_chip_hour: float | None
    ends: int = 0
    unended: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def other_s(self) -> float:
        return self.held_s - self.modelled_s

    @property
    def modelled_s(self) -> float:
        """Time that a model of saves and failures speaks of: kept steps and what those two cost."""
        return self.kept_s + self.saves_s + self.redone_s + self.restarts_s

    @property
    def goodput(self) -> float | None:
        """Kept steps as a share of that time."""
        return self.kept_s / self.modelled_s if self.modelled_s > 0 else None

    def usd(self, seconds: float) -> float | None:
        """What so many seconds of all chips cost; None without a price or where nobody tells how many there were."""
        if self.usd_per_chip_hour is None or not self.chips_known:
            return None
        return seconds * self.chips / 3600 * self.usd_per_chip_hour

    def to_dict(self) -> dict[str, Any]:
        lost = {"saves": self.saves_s, "redone": self.redone_s, "restarts": self.restarts_s}
        return {
            "save": {**self.save.to_dict(), "synchronous": self.synchronous},
            "interval_s": self.interval_s,
            "interval_steps": self.interval_steps,
            "interval_source": self.interval_source,
            "restore": self.restore.to_dict(),
            "restart": {**self.restart.to_dict(), "mean_s_by_part": dict(self.parts)},
            "wait": self.wait.to_dict(),
            "failures": self.mttf.count,
            "exposure_s": self.mttf.exposure_s,
            "mttf_s": self.mttf.mean_s,
            "mttf_low_s": self.mttf.low_s,
            "mttf_high_s": self.mttf.high_s,
            "confidence": CONFIDENCE,
            "held_s": self.held_s,
            "kept_s": self.kept_s,
            "modelled_s": self.modelled_s,
            "goodput": self.goodput,
            "lost": {
                name: {
                    "seconds": s,
                    "share": s / self.held_s if self.held_s else 0.0,
                    "chip_seconds": s * self.chips,
                    "usd": self.usd(s),
                }
                for name, s in lost.items()
            },
            "chips": self.chips,
            "chips_per_node": self.chips_per_node,
            "slices": self.slices,
            "usd_per_chip_hour": self.usd_per_chip_hour,
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> CheckpointsResult:
    """What saves and failures cost. Raises QuestionError where no input has times of day for the job."""
    price = options.get("usd_per_chip_hour")
    price = fact(facts, "usd_per_chip_hour") if price is None else price
    if price is not None and not (math.isfinite(price) and price >= 0):
        raise QuestionError(f"usd_per_chip_hour={price}", expected="a price of 0 dollars or more")
    past, days = job_past(tables, facts)
    if days is None:
        refuse_of_a_server(tables, facts, "a server saves no checkpoints")
        raise QuestionError(
            "nothing tells when this job started, saved or failed",
            advice="Add its goodput log, or a training log with times of day, to the same ingest.",
        )
    machine = hardware(tables, facts)
    again = _taken_again(past)
    saved, restored = (
        checkpoints(tables, kind, again, days.attempts.start, past.shifts, past.strangers)
        for kind in ("checkpoint_save", "checkpoint_restore")
    )
    found = _completed(stops(tables, past, days).rows, past)
    found = found.assign(passed_over_s=passed_over_s(found, saved))
    amounts = days.painting.amounts(len(HEADINGS)) / 1e9
    whole, interval_s, interval_steps, source = _interval(saved, past, facts)
    complete = found[found["complete"]]
    held = float(amounts.sum() - amounts[CODE["outside"]])
    said = whole["synchronous"].dropna()
    return CheckpointsResult(
        saves=saved.rows,
        stops=found,
        save=spread(whole["blocked_s"].to_numpy(dtype=float)),
        restore=spread(restored.rows["blocked_s"].to_numpy(dtype=float)),
        restart=spread(complete["startup_s"].to_numpy()),
        wait=spread(found["down_s"].to_numpy()),
        parts={name: float(complete[f"{name}_s"].mean()) for name in STARTUP if complete[f"{name}_s"].sum() > 0},
        synchronous=bool(said.mode().iloc[0]) if len(said) else None,
        interval_s=interval_s,
        interval_steps=interval_steps,
        interval_source=source,
        mttf=mttf(len(found), held - float(found["down_s"].sum())),
        held_s=held,
        kept_s=float(amounts[CODE["kept"]]),
        saves_s=float(amounts[CODE["checkpoint_save"]]),
        redone_s=float(amounts[CODE["wasted_progress"]]),
        restarts_s=float(found["down_s"].sum() + found["startup_s"].sum()),
        chips=machine.chips,
        chips_known=machine.chips_known,
        chips_per_node=_chips_per_node(facts),
        slices=_slices(facts),
        usd_per_chip_hour=price,
        ends=len(saved.ends),
        unended=saved.unended,
        notes=(*machine.notes, *days.notes, *_notes(saved, whole, found, past, days, source)),
    )


def _taken_again(past: History) -> np.ndarray:
    """When steps began that had been taken before, ns."""
    number = past.rows["step"].to_numpy(dtype=np.int64, na_value=-1)
    highest = np.maximum.accumulate(np.append(-1, number))[:-1]
    return past.rows.loc[number <= highest, "start_ns"].dropna().to_numpy(dtype=np.int64)


def _completed(rows: pd.DataFrame, past: History) -> pd.DataFrame:
    """With `complete`: whether a step was begun between a stop's restart and the next one's. Where the record ends
    without the job being done is no stop here: it may still run."""
    rows = rows[rows["kind"] != FINAL].reset_index(drop=True)
    begun = np.sort(past.rows["start_ns"].dropna().to_numpy(dtype=np.int64))
    again = rows["restart_ns"].to_numpy(dtype=np.int64)
    following = np.append(begun, np.iinfo(np.int64).max)[np.searchsorted(begun, again)]
    return rows.assign(complete=following < np.append(again[1:], np.iinfo(np.int64).max)[: len(again)])


def _interval(saved: Checkpoints, past: History, facts: Facts) -> tuple[pd.DataFrame, float | None, float | None, str]:
    """(saves that an interval is asked for, seconds, steps, where it is from). Of two tiers the remote one counts."""
    rows = saved.rows
    whole = rows[rows["tier"] != "local"]
    for told, source in ((whole, "saves"), (saved.ends, "ends of saves")):
        seconds, steps = gaps(told)
        if len(seconds):
            known = steps[np.isfinite(steps)]
            return whole, float(np.median(seconds)), float(np.median(known)) if len(known) else None, source
    period = fact(facts, "checkpoint_period_steps")
    usual = past.rows[past.rows["kept"] & ~past.rows["first"] & past.rows["dur_ns"].notna()]["dur_ns"]
    if isinstance(period, int | float) and period > 0 and len(usual):
        return whole, float(period) * float(usual.median()) / 1e9, float(period), "period and usual step"
    return whole, None, None, ""


def _chips_per_node(facts: Facts) -> int | None:
    known = chip_of(facts)
    value = known.value("chips_per_host") if known else None
    return int(value) if value else None


def _slices(facts: Facts) -> int | None:
    """Slices of the job, else its data-parallel replicas: what it could go on without one of."""
    value = slices_of(facts)
    mesh = fact(facts, "parallelism")
    if not (value and value > 1) and isinstance(mesh, dict):
        axes = [n for axis, n in mesh.items() if axis in REPLICAS and isinstance(n, int) and n > 0]
        value = math.prod(axes) if axes else value
    return value if value and value >= 1 else None


def _notes(
    saved: Checkpoints, whole: pd.DataFrame, found: pd.DataFrame, past: History, days: Calendar, source: str
) -> tuple[str, ...]:
    notes = [
        (f"Steps are taken from {past.origin}. " if len(past.rows) else "No step was read. ")
        + "A failure is a start of the job where the one before had not ended, a loss of slices, or a return to an "
        "earlier step."
    ]
    if not len(saved.rows) and (told := len(saved.ends)):
        notes.append(
            f"Of {told:,} {'save' if told == 1 else 'saves'} the end alone was recorded: how long one blocks training "
            "is not known. Orbax entries in the goodput log would tell."
        )
    elif not len(saved.rows) and (told := saved.unended):
        notes.append(
            f"Of {told:,} {'save' if told == 1 else 'saves'} the beginning alone was recorded: how long one blocks "
            "training is not known. Orbax entries in the goodput log would tell."
        )
    elif not len(saved.rows):
        notes.append("No save was recorded. Orbax entries in the goodput log would tell what one costs.")
    elif len(whole) < len(saved.rows):
        notes.append(
            f"{len(saved.rows) - len(whole)} saves went to local storage, {len(whole)} to remote storage: "
            "interval and cost are those of the remote ones."
        )
    if (whole["synchronous"] == False).any():  # noqa: E712 - null is neither
        notes.append(
            "Saves are written in the background: what is known is how long they block, not when they are "
            "safe. A checkpoint still being written when a failure strikes is lost."
        )
    if saved.unended and (len(saved.rows) or len(saved.ends)):
        notes.append(f"Saves without a recorded end, in no figure: {saved.unended}.")
    if source == "period and usual step":
        notes.append(
            "The interval is the period that the job printed times its usual step: fewer than two saves of "
            "one attempt were recorded."
        )
    if len(past.rows) and (lost := int((~found["complete"]).sum())):
        notes.append(
            f"{lost} of {len(found)} failures struck before training went on: their cost is counted, but they "
            "are not in the usual restart."
        )
    if passed := float(found["passed_over_s"].sum()):
        notes.append(
            f"{fmt.duration(passed)} of the steps taken again a save held that was safe by then: the job went on from "
            "an earlier one, which no shorter interval mends."
        )
    if 0 < len(found) < FEW:
        count = "one failure" if len(found) == 1 else f"{len(found)} failures"
        notes.append(f"Only {count}: the mean time to failure is known within its interval and no better.")
    if days.open_ended:
        notes.append(
            f"{fmt.count(days.open_ended, 'recorded interval has', 'recorded intervals have')} no end: phases were "
            "entered up to the next event."
        )
    return tuple(notes)
