"""The two sides of a comparison, out of the answers that pages show of each run."""

import time
from dataclasses import replace
from typing import Any

import pandas as pd

from analyzers.difference import DifferenceResult, Side, difference, of_one_rule
from analyzers.difference.operations import COLUMNS, OpChange, matched, of_programs
from analyzers.difference.step_time import FLOOR, ROUNDING, StepTimes, stalls_alike, step_times
from analyzers.time.job_past import steps_taken
from analyzers.time.step_accounts import StepAccounts, step_accounts
from app.comparing.figures import figures_of
from app.comparing.requests import one_twice
from app.library.changes import FOLLOWED
from app.questions.asking import ask
from app.questions.base import Question
from app.questions.hlo_diff import HLO_DIFF
from app.questions.ledger import LEDGER
from app.questions.operations import OPERATIONS
from app.questions.steps import STEPS
from app.workspace import Workspace
from errors import ChipledgerError
from runs.kept import Answers
from runs.run import Run

ALL_OPS = 5000
_compared = Answers(128 << 20)
_sides = Answers(128 << 20)
_steps = Answers(64 << 20)


def compare_jobs(a: Run, b: Run, place: Workspace, floor: float = FLOOR) -> DifferenceResult:
    """B against A. Raises QuestionError where they are one run, or nothing of them can be compared."""
    if a.run_id == b.run_id:
        raise one_twice(a)
    live = _runs_still(a, place), _runs_still(b, place)
    names = a.manifest.name, b.manifest.name  # people give others
    return _compared.get((a.writing, b.writing, floor, live, names), lambda: _compare(a, b, place, floor, live))


def _compare(a: Run, b: Run, place: Workspace, floor: float, live: tuple[bool, bool]) -> DifferenceResult:
    looked = [replace(side_of(run, place), live=still) for run, still in zip((a, b), live, strict=True)]
    ruled = of_one_rule(*looked)
    one, other = (
        now if now is then else replace(now, profiled=_profiled(run, now.steps))
        for run, then, now in zip((a, b), looked, ruled, strict=True)
    )
    return difference(one, other, floor, _operations(a, b, one, other, place))


def side_of(run: Run, place: Workspace) -> Side:
    """What of a run is compared. Of a run that does not change it is worked out once."""
    return _sides.get((run.writing, run.manifest.name), lambda: _looked_at(run, place))


def steps_compared(run: Run) -> StepTimes | None:
    """The `steps` of its side alone: who asks for no more need not wait for its ledger and all its figures."""
    if run.manifest.kind == "compiled":
        return None
    return _steps.get(run.writing, lambda: step_times(run.tables, run.manifest.facts))


def both_compared(a: Run, b: Run) -> tuple[StepTimes, StepTimes] | None:
    """The steps by which the two are compared; None where there is no scatter of both to show."""
    one, other = steps_compared(a), steps_compared(b)
    if one is None or other is None or min(len(one.seconds), len(other.seconds)) < 2:
        return None
    one, other = stalls_alike(one, other)
    return one, other


def _looked_at(run: Run, place: Workspace) -> Side:
    manifest = run.manifest
    compiled = manifest.kind == "compiled"
    steps = steps_compared(run)
    profiled = _profiled(run, steps)
    answer = _try(LEDGER, run, {}, place)
    told = None if steps is None else _try(STEPS, run, {}, place)
    device_steps = profiled.device_steps if profiled else 0
    return Side(
        name=manifest.name,
        kind="simulated" if manifest.simulated and not compiled else manifest.kind,
        facts=manifest.facts,
        ledger=answer and answer.ledger,
        kept_steps=0 if compiled else _kept(run),
        tokens_per_step_per_chip=None if told is None or steps is None else _tokens(told.rows, steps),
        steps=steps,
        profiled=profiled,
        figures=figures_of(run, steps, device_steps, lambda question, of, options: _try(question, of, options, place)),
    )


def _profiled(run: Run, steps: StepTimes | None) -> StepAccounts | None:
    """Accounts of its profiled steps; None where no profile shows any."""
    if steps is None or not run.manifest.tables.get("captures"):
        return None
    return step_accounts(run.tables, run.manifest.facts, steps.accounted)


def _tokens(rows: pd.DataFrame, steps: StepTimes) -> float | None:
    """Of a settled step on one chip; None where the log does not tell it. A rate that was printed is not that of the
    pauses in a step: steps without any tell it, where there are some."""
    mine = rows[rows["kept"].astype(bool) & rows["step"].isin(steps.step)]
    alone = mine["step"].map(dict(zip(steps.step.tolist(), steps.seconds.tolist(), strict=True)))
    unpaused = mine[mine["dur_s"].astype(float) <= alone * (1 + ROUNDING)]
    mine = unpaused if len(unpaused) else mine
    found = (mine["tokens_per_s_per_chip"].astype(float) * mine["dur_s"].astype(float)).mean()
    return float(found) if found > 0 else None


def _runs_still(run: Run, place: Workspace) -> bool:
    live = place.store.live.current(run.run_id)
    return live is not None and live.state_at(time.time_ns()) in FOLLOWED


def _kept(run: Run) -> int:
    return int(steps_taken(run.tables, run.manifest.facts).rows["kept"].astype(bool).sum())


def _try(question: Question[Any], run: Run, options: dict[str, Any], place: Workspace) -> Any:
    """The answer; None where there is none."""
    try:
        return ask(question, run, options, place.registry)
    except ChipledgerError:
        return None


def _operations(a: Run, b: Run, one: Side, other: Side, place: Workspace) -> tuple[OpChange, ...]:
    """By their programs where both keep some that were timed, else by what traces say of them."""
    if a.manifest.kind == b.manifest.kind == "compiled":
        found = _try(HLO_DIFF, a, {"other_run": b.run_id, "top": ALL_OPS}, place)
        return () if found is None else of_programs(found.pairs, _modelled(a, place), _modelled(b, place))
    frames = [_ops(run, side, place) for run, side in ((a, one), (b, other))]
    return matched(*frames) if all(f is not None for f in frames) else ()  # type: ignore[arg-type]


def _modelled(run: Run, place: Workspace) -> dict[str, float]:
    """Seconds of a step by operation of a program that nobody timed: the least that its roof allows."""
    found = _try(OPERATIONS, run, {"top": ALL_OPS}, place)
    if found is None:
        return {}
    return found.rows.groupby("op")["roof_seconds"].sum().fillna(0.0).to_dict()


def _ops(run: Run, side: Side, place: Workspace) -> pd.DataFrame | None:
    """Operations with the seconds of a step on one device; None where no profile shows steps."""
    steps = side.profiled.device_steps if side.profiled else 0
    found = _try(OPERATIONS, run, {"top": ALL_OPS}, place) if steps else None
    if found is None:
        return None
    rows = found.rows
    return rows[[c for c in COLUMNS if c in rows]].assign(seconds=rows["self_seconds"].fillna(0.0) / steps)
