"""What has to be read of a run itself: its settled steps and its curves. Both are kept, since a run never changes."""

import numpy as np

from analyzers.difference.step_time import StepTimes, step_times
from analyzers.several.curves import COLUMNS, Curve, curve
from analyzers.time.step_accounts import StepAccounts, step_accounts
from app.menu import kind_of
from app.questions.asking import ask
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from app.workspace import Workspace
from errors import ChipledgerError
from runs.kept import Answers
from runs.run import Run

MOST_READ = 20  # runs whose steps are read: more curves could not be told from each other, and would take their time
_steps = Answers(64 << 20)
_curves = Answers(64 << 20)
_accounts = Answers(16 << 20)


def steps_of(run: Run) -> StepTimes | None:
    """Its settled steps; None where it tells of none, or can no longer be read."""
    if kind_of(run) != "job" or not run.manifest.tables.get("steps"):
        return None
    try:
        return _steps.get(run.writing, lambda: step_times(run.tables, run.manifest.facts))
    except ChipledgerError:
        return None


def accounts_of(run: Run) -> StepAccounts | None:
    """Of its profiled steps, as two runs are compared; None where no profile shows any."""
    times = steps_of(run)
    if times is None or not run.manifest.tables.get("captures"):
        return None
    try:
        return _accounts.get(run.writing, lambda: step_accounts(run.tables, run.manifest.facts, times.accounted))
    except ChipledgerError:
        return None


def tokens_of(run: Run, place: Workspace) -> float | None:
    """Tokens of a usual step of all chips; None where its log does not tell them."""
    try:
        rows = ask(STEPS, run, {}, place.registry).rows
    except ChipledgerError:
        return None
    chips = run.manifest.fact("chips")
    told = (rows["tokens_per_s_per_chip"].astype("Float64") * rows["dur_s"].astype("Float64")).dropna()
    return float(told.median()) * chips if len(told) and chips else None


def curve_of(run: Run, place: Workspace, of: str, over: str, smooth: int) -> Curve | str:
    """A text: why there is none."""
    if kind_of(run) != "job" or not run.manifest.tables.get("steps"):
        return "it has no steps"
    try:
        return _curves.get((run.writing, of, over, smooth), lambda: _curve(run, place, of, over, smooth))
    except ChipledgerError as e:
        return str(e)


def _curve(run: Run, place: Workspace, of: str, over: str, smooth: int) -> Curve | str:
    mfu = COLUMNS[of] == "mfu"
    rows = ask(MFU, run, {}, place.registry).rows if mfu else ask(STEPS, run, {}, place.registry).rows
    times = steps_of(run)
    chips = run.manifest.fact("chips")
    usual = np.zeros(0, np.int64) if times is None else times.step
    return curve(rows, usual, of, over, int(chips) if chips else None, smooth)
