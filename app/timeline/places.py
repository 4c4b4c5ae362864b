"""Places of a run as addresses of its timeline, and where such an address leads.

A place is told by what a page knows of it: times of day, a step, the name of an operation, a lane. Where it lies is
found once the timeline is there. The address then says it in ticks (`from`, `to`), with the event `at` it and the `row`
of that.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analyzers.findings.base import Finding, Steps
from analyzers.timeline import Timeline
from analyzers.timeline.moments import Stretch, between, longest_in, named, row_of, step
from app.timeline.packing import titles
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option, parse_options
from runs.run import Run
from runs.tables import Tables

FARTHEST = 1 << 62
LONGEST = 200  # characters of a name that is looked for
AROUND = 0.15  # of a stretch, what is shown before and after it
NEAR = 4.0  # times an event that is looked for by its name
_NS = Number(0, FARTHEST, whole=True)
FROM_NS = Option("from_ns", _NS, None, "where to look from, in ns since 1970", "ns")
TO_NS = Option("to_ns", _NS, None, "where to look to, in ns since 1970; default: to the end of the run", "ns")
STEP = Option("step", Number(0, FARTHEST, whole=True), None, "the number of a step")
LAST_STEP = Option("last_step", Number(0, FARTHEST, whole=True), None, "the last of several steps")
NAMED = Option("q", str, None, "the name of an event, or part of one")
LANE = Option("lane", str, None, "a lane by its title or by the beginning of it, such as host 0/3")
PLACE = (FROM_NS, TO_NS, STEP, LAST_STEP, NAMED, LANE)
TICKS = ("from", "to", "at")  # where the viewer itself says that it looks


def place_of(
    *,
    start_ns: Any = None,
    end_ns: Any = None,
    step: Any = None,
    last_step: Any = None,
    op: str = "",
    host: str = "",
    device: Any = None,
) -> dict[str, str]:
    """The address of a place, by names of PLACE; empty where nothing of it is known. Numbers may be missing as pandas
    has it; a time before 1970 or of no day is none."""
    told: dict[str, str] = {}
    if _known(start_ns) and int(start_ns) > 0:
        told["from_ns"] = str(int(start_ns))
        if _known(end_ns):
            told["to_ns"] = str(max(int(end_ns), int(start_ns)))
    elif _known(step) and int(step) >= 0:
        told["step"] = str(int(step))
        if _known(last_step) and int(last_step) > int(step):
            told["last_step"] = str(int(last_step))
    if op and len(op) <= LONGEST:
        told["q"] = op
    if told and host:
        told["lane"] = host if not _known(device) else f"{host}/{int(device)}"
    return told


def place_of_step(row: Mapping[Any, Any]) -> dict[str, str]:
    """Of a step as it was taken, with its `start_ns` and `dur_s`."""
    start, took = row["start_ns"], row["dur_s"]
    return place_of(start_ns=start, end_ns=int(start) + round(took * 1e9) if _known(start) and _known(took) else None)


def place_of_finding(found: Finding) -> dict[str, str]:
    """Where a finding lies: its steps (the first of those that follow at a distance), else since when it is so; with
    its first operation, and with its host where there is one."""
    steps = found.where.steps
    first, last = None, None
    if isinstance(steps, Steps):
        first, last = steps.first, steps.last if steps.every == 1 else None
    elif steps:
        first = steps[0]
    hosts, ops = found.where.hosts, found.where.operations
    return place_of(
        start_ns=found.since_ns if first is None else None,
        step=first,
        last_step=last,
        op=ops[0] if ops else "",
        host=hosts[0] if len(hosts) == 1 else "",
    )


def _known(value: Any) -> bool:
    return value is not None and not pd.isna(value)


def shown_of(run: Run, place: Mapping[str, str]) -> dict[str, str]:
    """As much of a place as the run's timeline can show, as far as tables tell without drawing it: empty where it can
    show nothing of it."""
    tables = run.tables
    if "step" in place and not _timed_step(tables, int(place["step"])):
        return {}
    if not {"from_ns", "step"} & set(place) and not ("q" in place and tables.rows("op_events")):
        return {}
    lane = place.get("lane", "")
    known = not lane or bool({lane, lane.rpartition("/")[0]} & _hosts(tables))
    return {name: value for name, value in place.items() if known or name != "lane"}


def _hosts(tables: Tables) -> set[str]:
    """Who has lanes of their own."""
    traced = (("captures", "host"),) if tables.rows("op_events") else ()
    sources = (*traced, ("requests", "replica"), ("iterations", "replica"), ("lifecycle", "host"))
    return {
        str(text) for table, name in sources for text in tables.arrow(table, [name])[name].unique().to_pylist() if text
    }


def _timed_step(tables: Tables, number: int) -> bool:
    rows = tables.arrow("steps", ["start_ns", "dur_ns"], [("step", "==", number), ("start_ns", ">", 0)])
    return rows.num_rows > 0


def resolved(of: Timeline, tables: Tables, given: Mapping[str, str]) -> dict[str, str]:
    """Where the timeline looks, as the viewer's own address has it. Raises QuestionError for what is no place of it."""
    asked = parse_options(PLACE, given)
    if (wrong := str(asked["q"] or asked["lane"] or "")) and len(wrong) > LONGEST:
        raise QuestionError(f"a name of {len(wrong):,} characters", expected=f"at most {LONGEST}")
    rows = _rows(of, asked["lane"]) if asked["lane"] else None
    found = _stretch(of, tables, asked)
    if asked["q"]:
        hit = named(of, asked["q"], found, rows)
        if hit is None:
            raise QuestionError(
                f"no event there bears the name {asked['q'][:60]!r}", expected="part of a name of its events"
            )
        found, room = hit, AROUND if found else NEAR
        return _shown(of, found, room)
    if rows is not None:
        found = found or Stretch(0, of.span)
        found = Stretch(found.start, found.end, longest_in(of, found, rows))
    return _shown(of, found or Stretch(0, of.span), AROUND)


def _stretch(of: Timeline, tables: Tables, asked: Mapping[str, Any]) -> Stretch | None:
    if asked["from_ns"] is not None:
        return between(of, int(asked["from_ns"]), int(FARTHEST if asked["to_ns"] is None else asked["to_ns"]))
    if asked["to_ns"] is not None:
        raise QuestionError("an end without a beginning", expected="from_ns= beside to_ns=")
    if asked["last_step"] is not None and asked["step"] is None:
        raise QuestionError("a last step without a first", expected="step= beside last_step=")
    if asked["step"] is None:
        return None
    last = asked["last_step"]
    if last is not None and last < asked["step"]:
        raise QuestionError(f"steps from {asked['step']:,} to {last:,}", expected="a last step after the first")
    return step(of, tables, int(asked["step"]), None if last is None else int(last))


def _rows(of: Timeline, text: str) -> set[int]:
    """The rows of the lanes of this title, or else of this host or device, or of those whose title it begins: titles
    cut long names of hosts."""
    told, wanted = [name.casefold() for name in titles(of)], text.casefold()
    at = [{row.lane.host.casefold(), f"{row.lane.host}/{row.lane.device}".casefold()} for row in of.lanes]
    for fits in (
        [t == wanted for t in told],
        [wanted in some for some in at],
        [t.startswith((f"{wanted},", f"{wanted}/")) for t in told],
    ):
        lanes = [lane for lane, fit in zip(of.lanes, fits, strict=True) if fit]
        if lanes:
            return {row for lane in lanes for row in range(lane.first_row, lane.first_row + lane.rows)}
    raise QuestionError(f"no lane {text[:60]!r}", expected=f"one such as {titles(of)[-1][:60]!r}")


def _shown(of: Timeline, found: Stretch, around: float) -> dict[str, str]:
    """With some room about it; a stretch of no length is still one that can be looked at."""
    room = max(int((found.end - found.start) * around), 50)
    told = {"from": str(max(found.start - room, 0)), "to": str(min(found.end + room, of.span + 1))}
    if found.event is None:
        return told
    return {**told, "at": str(found.event), "row": str(row_of(of, found.event))}
