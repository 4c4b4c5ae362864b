"""The metrics of which a history can be told, each as a run tells it with the range of its own scatter."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import stdtrit

from analyzers.difference.step_time import ALPHA, stalling, variance_of_mean
from analyzers.intervals import length
from analyzers.serving.served import Served, served
from analyzers.time.booked import measured
from analyzers.time.calendar import CODE
from analyzers.time.device_uses import logged_input_wait
from analyzers.time.job_past import job_past
from analyzers.time.ledger import LedgerResult
from analyzers.time.training_accounts import BADPUT
from app.comparing.gate_figures import OF_A_STEP
from app.comparing.rates import goodput, useful_s
from app.comparing.sides import side_of, steps_compared
from app.questions.asking import ask
from app.questions.ledger import LEDGER
from app.workspace import Workspace
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from errors.nearest import did_you_mean
from runs.accounts import ACCOUNTS
from runs.run import Run

SHARE = "1"
SEEN = {"exposed_communication", "exposed_copies", "straggler_wait", "input_wait", "device_idle"}  # by a profile
OF_COLLECTIVES = {"exposed_communication", "straggler_wait"}
WITHIN = {*OF_A_STEP, "idle_unexplained"} - {"useful_maths", "compilation"}
"""Accounts that the ledger enters for profiled steps alone: of all chip time they would tell how much was profiled."""
LEAST_BLOCKS = 20  # steps: of fewer no range of their mean is told

Value = tuple[float, float | None, float | None]  # with the ends of its range, None where a run tells none


@dataclass(frozen=True, kw_only=True)
class Metric:
    """`of`: of a run, None where it does not tell it. `stalling`: the same with stalls as steps, where it is of steps.
    `unit`: of its values. `of_shares`: it is a share, and changes in points. `more`: whether more of it is worse; None
    where that is not known. `bounded`: a value is what it is at least, and the end of its range what it is at most."""

    name: str
    title: str
    of: Callable[[Run, Workspace], Value | None]
    shown: Callable[[float], str]
    unit: str = "s"
    more: bool | None = True
    stalling: Callable[[Run, Workspace], Value | None] | None = None
    bounded: bool = False

    @property
    def of_shares(self) -> bool:
        return self.unit == SHARE

    @property
    def inside(self) -> str:
        """Its title within a sentence."""
        first, then = self.title[:1], self.title[1:2]
        return f"{first.lower()}{self.title[1:]}" if then.islower() else self.title

    def values(self, runs: Iterable[Run], place: Workspace) -> tuple[list[tuple[Run, Value]], int]:
        """(of each run that tells it, how many of them stall so much that stalls are steps in all of them)."""
        runs, of, stall = list(runs), self.of, 0
        if self.stalling is not None:
            stall = sum(steps is not None and steps.stalls_kept for steps in map(steps_compared, runs))
            of = self.stalling if stall else of
        return [(run, found) for run in runs if (found := of(run, place)) is not None], stall


def _step(run: Run, place: Workspace, stalls: bool = False) -> Value | None:
    """Mean of settled steps, with or without stalls; of a compiled program the least that its chip takes."""
    if run.manifest.kind == "compiled":
        ledger = side_of(run, place).ledger
        least = ledger.chip_seconds / ledger.chips if ledger else None
        return None if not least else (least, least, least)
    steps = steps_compared(run)
    if steps is None or not len(steps.seconds):
        return None
    steps = stalling(steps) if stalls else steps
    seconds, mean = steps.seconds, steps.mean_s
    if len(seconds) < LEAST_BLOCKS:
        return mean, None, None
    variance, freedom = variance_of_mean(seconds)
    reach = float(stdtrit(min(freedom, 1e6), 1 - ALPHA / 2)) * math.sqrt(variance)
    return mean, max(mean - reach, 0.0), mean + reach


def _tokens(run: Run, place: Workspace, stalls: bool = False) -> Value | None:
    tokens, step = side_of(run, place).tokens_per_step_per_chip, _step(run, place, stalls)
    return None if tokens is None or step is None else _over(tokens, step)


def _over(work: float, step: Value) -> Value:
    mean, low, high = step
    return work / mean, (work / high if high else None), (work / low if low else None)


def _mfu(run: Run, place: Workspace, stalls: bool = False) -> Value | None:
    useful, step = useful_s(run, place), _step(run, place, stalls)
    return None if useful is None or step is None else _over(useful, step)


def _goodput(run: Run, place: Workspace) -> Value | None:
    found = goodput(run, place)
    return None if found is None else (found, None, None)


def _account(name: str) -> Callable[[Run, Workspace], Value | None]:
    def of(run: Run, place: Workspace) -> Value | None:
        try:
            result: LedgerResult = ask(LEDGER, run, {}, place.registry)
        except ChipledgerError:
            return None
        ledger = result.ledger
        whole, there = ledger.chip_seconds, any(a.name == name for _, a in ledger.account.walk())
        told = whole > 0 and (there or _is_none(name, run, result))
        if not told or name not in WITHIN or result.serving or not ledger.amount("productive"):
            return (ledger.amount(name) / whole, None, None) if told else None
        return _within(name, run, result)

    return of


def _within(name: str, run: Run, result: LedgerResult) -> Value:
    """Of the kept step time that profiles cover: however much they cover, the same job tells the same. Where no profile
    does, of all of it. Of collectives nobody compared, all or nothing may be of this account. Fetches that a log tells
    it tells of all steps: where it tells of longer waits than a profile of a few saw, those count."""
    ledger, logged = result.ledger, result.ledger.amount("input_wait_logged") if name == "input_wait" else 0.0
    if not result.profiled_share:
        return ledger.amount(name) / ledger.amount("productive"), None, None
    seen = ledger.amount("productive") * result.profiled_share
    value = (ledger.amount(name) - logged) / seen
    if name == "input_wait" and result.profiled_share < 1:
        value = max(value, _logged_wait(run))
    dark = ledger.amount("communication_or_wait") / seen if name in OF_COLLECTIVES else 0.0
    return (value, value, value + dark) if dark else (value, None, None)


def _logged_wait(run: Run) -> float:
    """Share of kept step time that the job's own log tells to be waiting for its input."""
    past, days = job_past(run.tables, run.manifest.facts)
    kept = None if days is None else days.painting.spans(CODE["kept"])
    if days is None or kept is None or not len(kept.start):
        return 0.0
    return logged_input_wait(kept, days, past) / (length(kept) / 1e9)


def _is_none(name: str, run: Run, result: LedgerResult) -> bool:
    """Whether nothing under this account means that there was none of it: of a heading of the calendar where this holds
    steps, of an account inside steps where they were profiled, and no collective is left untold that may hold it."""
    if result.serving or run.manifest.kind == "compiled":
        return False
    if name in BADPUT:
        found = measured(run.tables, run.manifest.facts)
        return found is not None and found[1] is not None and len(found[1].steps) > 0
    seen = name in SEEN and bool(result.profiled_share)
    return seen and not (name in OF_COLLECTIVES and result.ledger.amount("communication_or_wait"))


def _request(metric: str, q: float) -> Callable[[Run, Workspace], Value | None]:
    def of(run: Run, place: Workspace) -> Value | None:
        values = _timed(run)
        if values is None or metric not in values.timed:
            return None
        told = values.timed[metric].dropna().to_numpy(dtype=float)
        return (float(np.quantile(told, q)), None, None) if len(told) else None

    return of


def _timed(run: Run) -> Served | None:
    try:
        return served(run.tables) if run.manifest.kind == "serving" else None
    except ChipledgerError:
        return None


def _of_steps(
    name: str, title: str, of: Callable[..., Value | None], shown: Callable[[float], str], unit: str, more: bool
) -> Metric:
    return Metric(name=name, title=title, of=of, shown=shown, unit=unit, more=more, stalling=partial(of, stalls=True))


def _metrics() -> Mapping[str, Metric]:
    found = [
        _of_steps("step_time", "Settled step time", _step, fmt.duration, "s", more=True),
        _of_steps("tokens_per_s", "Tokens/s of a chip in settled steps", _tokens, fmt.number, "tokens/s", more=False),
        _of_steps("mfu", "MFU of settled steps", _mfu, fmt.share, SHARE, more=False),
        Metric(name="goodput", title="Goodput", of=_goodput, shown=fmt.share, unit=SHARE, more=False),
    ]
    for metric, title in (("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "E2E")):
        for word, q in (("p50", 0.5), ("p99", 0.99)):
            name, of = f"{metric.removesuffix('_s')}_{word}", _request(metric, q)
            found.append(Metric(name=name, title=f"{word} {title}", of=of, shown=fmt.duration))
    return {m.name: m for m in found}


METRICS = _metrics()


def metric(name: str) -> Metric:
    """Raises QuestionError where there is none of that name."""
    if name in METRICS:
        return METRICS[name]
    if name in ACCOUNTS:
        of = "step time that profiles cover" if name in WITHIN else "chip time"
        title = f"{ACCOUNTS[name].title} (share of the {of})"
        return Metric(name=name, title=title, of=_account(name), shown=fmt.share, unit=SHARE, more=None, bounded=True)
    known = [*METRICS, *ACCOUNTS]
    raise QuestionError(
        f"no metric {name[:80]!r}",
        expected=f"{', '.join(METRICS)}, or an account of the ledger",
        advice=did_you_mean(name, known),
    )
