"""What was truly done to a training job and what it cost, by its workers' clocks and against its twin."""

from statistics import median
from typing import Any

from benchmarks.diagnosis.case import Case, Planted, Told
from benchmarks.diagnosis.draw import STOPS, TWIN_MEASURED
from benchmarks.diagnosis.faults import BY_CAUSE
from benchmarks.diagnosis.training.launch import Ran

Spans = dict[int, tuple[int, int]]
"""Start and end of each step that was completed, ns since the epoch."""


def spans(events: list[dict[str, Any]]) -> Spans:
    ends = {e["step"]: e["ns"] for e in events if e["event"] == "step_end"}
    return {e["step"]: (e["ns"], ends[e["step"]]) for e in events if e["event"] == "step_start" and e["step"] in ends}


def steps_s(ran: Ran) -> dict[int, float]:
    """Seconds of each step of the last attempt, by process 0."""
    return {s: (e - b) / 1e9 for s, (b, e) in spans(ran.events[-1][0]).items()}


def noise_s(twin: Ran) -> float:
    """How far the sum of a sound run's steps may lie from another's, seconds: three deviations of the sum."""
    took = list(steps_s(twin).values())[1:]
    middle = median(took)
    return 3 * 1.4826 * median(abs(t - middle) for t in took) * len(took) ** 0.5


def told(case: Case, ran: Ran, twin: Ran) -> list[Told]:
    """The faults of a case with what each cost, the largest first."""
    chips, found = case.processes, []
    for p in case.planted:
        if p.cause not in TWIN_MEASURED:
            found.append(Told(p.cause, _clocked_s(case, p, ran) * chips, "clocks", place(p)))
    for p in case.planted:
        if p.cause in TWIN_MEASURED:
            took, usual = (sum(t for s, t in steps_s(r).items() if s or p.cause == "cold_cache") for r in (ran, twin))
            others = sum(t.chip_seconds or 0.0 for t in found)
            found.append(Told(p.cause, max((took - usual) * chips - others, 0.0), "twin", place(p)))
    return sorted(found, key=lambda t: -(t.chip_seconds or 0.0))


def place(p: Planted) -> dict[str, Any]:
    """Where a fault is, as far as its kind has a place."""
    kind = BY_CAUSE[p.cause].place
    if kind == "ranks":
        return {"ranks": list(p.ranks)}
    if kind == "links":
        return {"links": [list(p.ranks)]}
    if kind == "steps":
        return {"steps": {"first": p.first, "last": p.last, "every": p.every}}
    return {}


def _clocked_s(case: Case, p: Planted, ran: Ran) -> float:
    """Seconds that all chips lost to a fault, by the clocks of those who did it.

    Ranks meet in every step: what the slowest of them does in a step is what the step is longer by.
    """
    if p.cause in STOPS and p.cause != "slow_restore":
        return _stopped_s(p, ran)
    if p.cause.startswith("recompile_"):
        took = steps_s(ran)
        usual = median(t for s, t in took.items() if s and s not in p.steps)
        return sum(max(took[s] - usual, 0.0) for s in p.steps if s in took)
    if p.cause == "frequent_checkpoints":
        extra = [
            e
            for worker in ran.events[-1][:1]
            for e in worker
            if e["event"] == "saved" and e["step"] % case.checkpoint_every
        ]
        return sum((e["ns"] - e["start_ns"]) / 1e9 for e in extra)
    worst: dict[tuple[int, int], float] = {}
    for attempt, workers in enumerate(ran.events):
        for events in workers:
            mine: dict[tuple[int, int], float] = {}
            for e in events:
                if e["event"] == "harm" and e["cause"] == p.cause:
                    key = (attempt, e["step"])
                    mine[key] = mine.get(key, 0.0) + (e["end_ns"] - e["start_ns"]) / 1e9
            for key, seconds in mine.items():
                worst[key] = max(worst.get(key, 0.0), seconds)
    return sum(worst.values())


def _stopped_s(p: Planted, ran: Ran) -> float:
    """From the step in which the job stopped first until the step is begun for the last time: the whole cost."""
    hurt = p.first + (1 if p.cause == "nan_rollback" else 0)  # the step itself was sound; from the next on it is not
    begun = [e["ns"] for attempt in ran.events for e in attempt[0] if e["event"] == "step_start" and e["step"] == hurt]
    return (begun[-1] - begun[0]) / 1e9
