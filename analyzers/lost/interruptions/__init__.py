"""Interruptions: what each cost, why it happened, how often they come, and which hosts bring more than their share."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts, fact
from analyzers.flops.peak import hardware
from analyzers.intervals import Spans, overlap_with
from analyzers.lost.interruptions.evidence import Evidence, evidence
from analyzers.lost.interruptions.fleet_rates import UNCOUNTED, Nodes, Rate, compared, nodes_of, rate
from analyzers.lost.interruptions.tallies import PLANNED, by_cause, by_family, by_host
from analyzers.lost.mttf import Lemons, Mttf, Spread, Trend, as_json, exponential, mttf, trend
from analyzers.lost.stops import STARTUP, Stops, stops
from analyzers.serving.server_start import refuse_of_a_server
from analyzers.time.calendar import CODE, HEADINGS, Calendar
from analyzers.time.device_time import devices
from analyzers.time.job_past import job_past
from catalog.causes import CAUSES
from errors import QuestionError
from errors.numbers import COUNT, USD
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option(
        "usd_per_chip_hour", USD, None, "price of a chip-hour in dollars; without it nothing has a price", unit="USD"
    ),
    Option("chips_per_host", COUNT, None, "chips of one host; default: what the run or the catalogue says"),
)
ENDS = ("restart", "final")
"""Kinds of stops that ended an attempt: these are counted. What training survived is listed, not counted."""

S = 1_000_000_000
_WHOLE = (
    "number",
    "attempt",
    "lost_steps",
    "lines",
    "last_sign_ns",
    "restart_ns",
    "back_ns",
    "last_step",
    "resumed_step",
    "noticed_ns",
    "device",
)
_REAL = ("down_s", "detect_s", "wait_s", "startup_s", "wasted_s", "lost_s", "back_s", "chip_hours", "usd")


@dataclass(frozen=True, kw_only=True)
class InterruptionsResult:
    """`rows`, in order of time, one per stop of the job:

    number (from 1), kind (restart, final, elastic, rollback: see analyzers.lost.stops.KINDS), attempt, last_sign_ns,
    noticed_ns, restart_ns, back_ns, down_s (chips held between two starts), detect_s and wait_s (its parts before and
    after it was noticed), startup_s with one `<heading>_s` per part, lost_steps, wasted_s, lost_s (down + startup +
    wasted), back_s (from the last sign of life to the first new step), chip_hours, usd, last_step, resumed_step,
    cause, family, planned, confidence, host and device (that failed, as a line that names a cause says), reported_by
    (host of the line), lines, evidence_ns, severity, text, source, offset.

    `attempts`: attempt, start_ns, end_ns, finished. `phases`: what the calendar says, start_ns, end_ns, heading, time
    neighbours of one heading merged. `causes`, `families`, `hosts`: see `tallies.py`.
    `held_s`: wall time in which chips were held; None without times of day. `mttf`: held time between interruptions
    of any kind; `mttf_unplanned`: between unplanned ones. `gaps_s`: those times, one by one; the time since the last
    is not among them. `rate`: unplanned interruptions per 1,000 node-days.
    """

    rows: pd.DataFrame
    attempts: pd.DataFrame
    phases: pd.DataFrame
    causes: pd.DataFrame
    families: pd.DataFrame
    hosts: pd.DataFrame
    count: int
    planned: int
    survived: int
    chips: int
    chips_known: bool
    nodes: Nodes
    held_s: float | None
    mttf: Mttf
    mttf_unplanned: Mttf
    gaps_s: np.ndarray
    spread: Spread
    trend: Trend
    lemons: Lemons | None
    rate: Rate
    priced: bool
    notes: tuple[str, ...]

    @property
    def unplanned(self) -> int:
        return self.count - self.planned

    @property
    def counted(self) -> pd.DataFrame:
        """The rows that are counted: what ended an attempt."""
        return self.rows[self.rows["kind"].isin(ENDS)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "interruptions": [_row(r) for r in self.rows.to_dict("records")],
            "count": self.count,
            "planned": self.planned,
            "unplanned": self.unplanned,
            "survived": self.survived,
            "held_s": self.held_s,
            "mttf_s": self.mttf.to_dict(),
            "mttf_unplanned_s": self.mttf_unplanned.to_dict(),
            "per_1000_node_days": self.rate.to_dict(),
            "nodes": self.nodes.count,
            "exponential": as_json(self.spread),
            "trend": as_json(self.trend),
            "attempts": _records(self.attempts),
            "by_cause": _records(self.causes),
            "by_family": _records(self.families),
            "by_host": _records(self.hosts),
            "fleets": compared(self.rate),
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> InterruptionsResult:
    """Every interruption. Raises QuestionError where no input tells of the job's steps or its starts."""
    price, per_host = _checked(facts, options)
    past, days = job_past(tables, facts)
    if days is None and (past.origin == "profile" or not len(past.rows)):
        refuse_of_a_server(tables, facts, "interruptions are told of jobs that take steps")
        raise QuestionError(
            "nothing tells when this job was started or which steps it took",
            advice="Add goodput entries or a training log with step lines to the same ingest.",
        )
    machine = hardware(tables, facts)
    found = stops(tables, past, days)
    told = evidence(tables, found.rows, found.usual_s, past.shifts, past.attempts, past.foreign)
    chips = machine.chips if machine.chips_known else None
    rows = _rows(found, told, chips, price)
    ended = rows[rows["kind"].isin(ENDS)]
    held_s, at_s = _held(days, ended)
    nodes = nodes_of(facts, chips, machine.devices_per_chip, devices(tables), per_host)
    unplanned = int((~ended["planned"]).sum())
    failed = rows[rows["kind"].isin((*ENDS, "elastic")) & ~rows["planned"]]
    hosts, lemon = by_host(failed, held_s, nodes.count if chips else 1)  # at least those that are named
    gaps = np.diff(at_s, prepend=0.0)
    return InterruptionsResult(
        rows=rows,
        attempts=_attempts(days),
        phases=_phases(days),
        causes=by_cause(ended, held_s),
        families=by_family(ended, held_s),
        hosts=hosts,
        count=len(ended),
        planned=len(ended) - unplanned,
        survived=len(rows) - len(ended),
        chips=machine.chips,
        chips_known=machine.chips_known,
        nodes=nodes,
        held_s=held_s,
        mttf=mttf(len(ended), held_s),
        mttf_unplanned=mttf(unplanned, held_s),
        gaps_s=gaps,
        spread=exponential(gaps),
        trend=trend(at_s, held_s or 0.0),
        lemons=lemon,
        rate=rate(unplanned, nodes.count, held_s),
        priced=price is not None and machine.chips_known,
        notes=(*machine.notes, *_notes(found, told, rows, days, nodes, past.notes)),
    )


def _checked(facts: Facts, options: dict[str, Any]) -> tuple[float | None, int | None]:
    price, per_host = options.get("usd_per_chip_hour"), options.get("chips_per_host")
    price = fact(facts, "usd_per_chip_hour") if price is None else price
    if price is not None and not (math.isfinite(price) and price >= 0):
        raise QuestionError(f"usd_per_chip_hour={price}", expected="a price of 0 dollars or more")
    if per_host is not None and not 1 <= per_host <= 1 << 20:
        raise QuestionError(f"chips_per_host={per_host}", expected="a whole number from 1")
    return price, per_host


def _rows(found: Stops, told: Evidence, chips: int | None, price: float | None) -> pd.DataFrame:
    """Stops with their evidence and their costs."""
    rows = pd.concat([found.rows.reset_index(drop=True), told.found], axis=1)
    rows = rows[(rows["kind"] != "final") | rows["noticed_ns"].notna() | found.ended].reset_index(drop=True)
    rows["family"] = [CAUSES[c].family if c in CAUSES else "unknown" for c in rows["cause"]]
    rows["planned"] = rows["family"].isin(PLANNED)
    for name in ("last_sign_ns", "restart_ns", "back_ns"):
        rows[name] = rows[name].astype("Int64")
    rows["detect_s"] = _seconds(rows["noticed_ns"] - rows["last_sign_ns"])
    rows["wait_s"] = np.maximum(rows["down_s"].to_numpy(dtype=float) - rows["detect_s"], 0.0)
    rows["back_s"] = _seconds(rows["back_ns"] - rows["last_sign_ns"])
    rows["lost_s"] = rows[["down_s", "startup_s", "wasted_s"]].sum(axis=1, min_count=1).astype(float)
    rows["chip_hours"] = rows["lost_s"] * (np.nan if chips is None else chips) / 3600
    rows["usd"] = rows["chip_hours"] * (np.nan if price is None else price)
    rows["reported_by"] = rows["host"]
    symptom = rows["confidence"] == "guess"  # who reports a symptom is seldom who failed
    rows["host"] = rows["host"].where(~symptom, None)
    rows["device"] = rows["device"].mask(symptom)
    rows.insert(0, "number", np.arange(1, len(rows) + 1))
    return rows.drop(columns="begun_ns")


def _seconds(ns: pd.Series) -> np.ndarray:
    return ns.astype("Float64").to_numpy(np.float64, na_value=np.nan) / S


def _held(days: Calendar | None, ended: pd.DataFrame) -> tuple[float | None, np.ndarray]:
    """Seconds in which chips were held, and when in that time each interruption came."""
    if days is None:
        return None, np.zeros(0)
    outside = days.painting.spans(CODE["outside"])
    at = ended["last_sign_ns"].to_numpy(dtype=np.int64)
    begin = np.full(len(at) + 1, days.start_ns)
    end = np.append(at, days.end_ns)
    held = (end - begin - overlap_with(outside, Spans(begin, end))) / S
    return float(held[-1]), held[:-1]


def _attempts(days: Calendar | None) -> pd.DataFrame:
    if days is None:
        return pd.DataFrame({"attempt": [], "start_ns": [], "end_ns": [], "finished": []})
    return pd.DataFrame(
        {
            "attempt": np.arange(len(days.finished)),
            "start_ns": days.attempts.start,
            "end_ns": days.last_sign_ns,
            "finished": days.finished,
        }
    )


def _phases(days: Calendar | None) -> pd.DataFrame:
    """The painted calendar, neighbours of one heading merged."""
    if days is None:
        return pd.DataFrame({"start_ns": [], "end_ns": [], "heading": []})
    label, edges = days.painting.label, days.painting.edges
    turns = np.flatnonzero(np.diff(label, prepend=-1))
    return pd.DataFrame(
        {
            "start_ns": edges[turns],
            "end_ns": np.append(edges[turns[1:]], edges[-1]),
            "heading": pd.Categorical.from_codes(label[turns], categories=list(HEADINGS)),
        }
    )


def _notes(
    found: Stops,
    told: Evidence,
    rows: pd.DataFrame,
    days: Calendar | None,
    nodes: Nodes,
    past_notes: tuple[str, ...],
) -> tuple[str, ...]:
    last = ", and its last end where a log tells why" if (rows["kind"] == "final").any() else ""
    notes = [
        f"An interruption is a start of the job after one that did not end by itself{last}; what training "
        "survived (slices lost, steps taken again in place) is listed and not counted."
    ]
    if days is None:
        notes.append("The input carries no times of day: only lost steps can be counted, no downtime and no rate.")
    elif not found.finished and not (rows["kind"] == "final").any():
        notes.append("The last attempt has no end: it still runs, or it was stopped without a line of any log.")
    if not told.rows:
        notes.append(
            "No log line tells of a failure, so every cause is unknown: ingest the logs of the hosts with the run."
        )
    else:
        notes.append(f"{told.rows:,} log lines tell of failures; {told.used:,} of them lie near an interruption.")
    if told.unplaced:
        notes.append(f"{told.unplaced:,} of them say neither when nor in which attempt they were written: left out.")
    if nodes.words == UNCOUNTED:
        notes.append("Without the number of chips no rate per node can be told.")
    elif nodes.count is None:
        notes.append("Without chips per host no rate per node can be told: ask with --option chips_per_host=N.")
    else:
        notes.append(f"{nodes.count:,} {'host' if nodes.count == 1 else 'hosts'}: {nodes.words}.")
    return (*notes, *(days.notes if days else past_notes))


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """One interruption for the JSON answer."""
    out = {name: None if pd.isna(row[name]) else int(row[name]) for name in _WHOLE}
    out |= {name: _real(row[name]) for name in _REAL}
    out |= {name: row[name] for name in ("kind", "cause", "family", "confidence", "host")}
    out["planned"] = bool(row["planned"])
    out["startup"] = {name: _real(row[f"{name}_s"]) for name in STARTUP if not pd.isna(row[f"{name}_s"])}
    out["evidence"] = (
        None
        if row["text"] is None
        else {
            "text": row["text"],
            "reported_by": row["reported_by"],
            "source": row["source"],
            "severity": row["severity"],
            "offset": None if pd.isna(row["offset"]) else int(row["offset"]),
            "ts_ns": None if pd.isna(row["evidence_ns"]) else int(row["evidence_ns"]),
        }
    )
    return out


def _real(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON: nothing that is not a number stays."""
    return [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in table.astype(object).where(table.notna(), None).to_dict("records")
    ]
