"""`trainer_state.json` of Hugging Face's Trainer (TRL, Axolotl, LLaMA-Factory too): what it logged, by step.

    steps     loss           of the step that it was logged at: the mean since the one logged before
              dur_ns         (train_runtime - runtimes of evaluations before it) / steps, in ns: one mean for all steps
                             that the time is of, saves included; null where the training never came to its end
    scalars   any other number of an entry with its step: `grad_norm`, `eval_loss`, `eval_runtime` (s), `train_loss` ...
    facts     planned_steps (`max_steps`), steps_averaged_over (steps of which one mean is told)
It tells no time of day. `train_runtime` is of the steps since the job was last resumed, of which nothing tells how many
they are; `train_loss` is the sum of the losses of these steps over the number of all. Where the losses that were logged
add up to it, the time is of all steps; where they do not, or could not show it, no step's time is told.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.attempts import STEP_COLUMNS, Start, StepRows
from collectors.reading.documents import document
from collectors.reading.textlog import Buffer, Tally, clean, seconds_to_ns, whole
from errors import InputError

NAME = "trainer_state"
TITLE = "Hugging Face Trainer state"
HELP = "Hugging Face's trainer_state.json, of a checkpoint or of the whole job: losses, evaluations, mean step time."

COMPARED = True  # its content is compared with that of others of the input before it is read

_HISTORY, _STEP = re.compile(rb'"log_history"\s*:\s*\['), re.compile(rb'"global_step"\s*:\s*\d')
_RUNTIME = re.compile(r"(?!train_).{1,100}_runtime")  # of an evaluation, by the name of its set
_UNITS = (
    ("_runtime", "s"),
    ("_samples_per_second", "samples/s"),
    ("_steps_per_second", "steps/s"),
    ("_tokens_per_second", "tokens/s"),
    ("total_flos", "FLOP"),
    ("num_input_tokens_seen", "tokens"),
)
_COUNTED = ("total_flos", "num_input_tokens_seen")
_APART = ("step", "loss")  # what is no scalar
_MAX_NAME = 200
_MOST_STEPS = 5_000_000  # that are entered one by one
_CLOSE = 1e-3  # how nearly losses have to add up, of the sum of their amounts
_ROUNDED = 5e-5  # of losses that are written with four digits behind the point, as most versions do
_LAST = 5  # losses whose spread tells how far those behind them may be from the last
_FEW = 0.05  # of the steps, that may be missed: the mean is off by no more
EXPECTED = 'a JSON object with "log_history", a list of entries with "step", as Trainer saves it with each checkpoint'
RESUMED = (
    "its losses do not add up to train_loss, as of a job that was resumed, and nothing tells from which step on: "
    "train_runtime is of some of its steps, and no step's time is told"
)
UNSHOWN = "their mean is train_runtime over all: no loss was logged, which would show that the job was not resumed"
UNCLEAR = (
    "losses that are no numbers, about zero or too few cannot show that it is of all steps and that the job was not "
    "resumed: no step's time is told"
)
ENDLESS = "nothing tells how long they took: train_runtime is written when training has ended"


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return 0.95 if head == b"{" and _HISTORY.search(source.head) and _STEP.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, other numbers and facts. Raises InputError where it is no whole state, or nothing was logged."""
    state = _state(source)
    history = _History(source.name)
    for entry in state["log_history"]:
        history.entry(entry)
        yield from history.full()
    planned, reached = whole(state.get("max_steps")), whole(state.get("global_step"))
    history.ended(reached, state)
    if not history.entries:
        raise InputError("nothing was logged in it", where=source.name, expected=EXPECTED)
    yield from history.rest()
    if planned is not None and planned > 0:
        yield Fact("planned_steps", planned)
    if history.averaged > 1:
        yield Fact("steps_averaged_over", history.averaged)
    yield from history.tally.lost()


def histories(source: Source) -> list[str]:
    """A digest of what was logged up to each entry: the state of an earlier checkpoint of a job is the beginning of a
    later one's. Nothing of a file that is no whole state."""
    try:
        entries = _state(source)["log_history"]
    except InputError:
        return []
    running, found = hashlib.sha256(), []
    for entry in entries:
        running.update(json.dumps(entry, sort_keys=True).encode("utf-8", "replace"))
        found.append(running.hexdigest())
    return found


def _state(source: Source) -> dict[str, Any]:
    state = document(source, EXPECTED, constant=float)
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise InputError("no state of Hugging Face's Trainer", where=source.name, expected=EXPECTED)
    return state


@dataclass(frozen=True)
class _Logged:
    """A loss, the mean of the steps behind `before` up to `step`."""

    step: int
    before: int
    loss: float
    start: Start


class _History:
    """What was logged so far. `begun`: the step behind which the training that goes on began."""

    def __init__(self, source: str):
        self.source, self.tally = source, Tally()
        self._scalars = Buffer("scalars", "step", "name", "value", "unit", "source")
        self._steps = StepRows(*STEP_COLUMNS)
        self.entries = self.averaged = self._order = self._begun = 0
        self._start, self._logged = Start(0), list[_Logged]()
        self._evaluated_s: list[float] = []
        self._counted: dict[str, float] = {}  # of what the state counts too: what the last entry said

    def entry(self, entry: object) -> None:
        step = whole(entry.get("step")) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or step is None or step < 0:
            self.tally.add("entries", "they are no JSON object with a `step`")
            return
        self.entries += 1
        numbers = {clean(name)[:_MAX_NAME]: value for name, raw in entry.items() if (value := _number(raw)) is not None}
        self._counted |= {name: numbers[name] for name in _COUNTED if name in numbers}
        for name, value in numbers.items():
            if name not in _APART:
                self._scalars.add(step, name, value, _unit(name), self.source)
            if _RUNTIME.fullmatch(name) and 0 < value < 1e9:
                self._evaluated_s.append(value)
        if odd := len(entry) - len(numbers):
            self.tally.add("values", "they are no numbers", count=odd)
        if "loss" in numbers:
            self._loss(step, numbers["loss"])
        if "train_runtime" in numbers:
            self._trained(step, numbers["train_runtime"], numbers.get("train_loss"))

    def full(self) -> Iterator[Item]:
        yield from self._scalars.full()
        yield from self._steps.full()

    def rest(self) -> Iterator[Item]:
        yield from self._scalars.rest()
        yield from self._steps.rest()

    def ended(self, reached: int | None, state: dict[str, Any]) -> None:
        """The state has come to its end: steps whose time is not told, and what it counted up to `reached`."""
        if self._logged:
            self.tally.add("steps", ENDLESS, count=len(self._logged))
        self._untimed()
        for name in _COUNTED:
            value = _number(state.get(name))
            if value and reached is not None and self.entries and self._counted.get(name) != value:
                self._scalars.add(reached, name, value, _unit(name), self.source)

    def _loss(self, step: int, loss: float) -> None:
        last = self._logged[-1].step if self._logged else self._begun
        if step < last:  # the number drops: another training
            self._untimed()
            self._start, self._begun, last = Start(self._start.number + 1), 0, 0
            self._evaluated_s = []
        elif step == last:
            self.tally.add("losses", "another of the same step was logged before")
            return
        self._logged.append(_Logged(step, last, loss, self._start))

    def _trained(self, step: int, runtime_s: float, mean_loss: float | None) -> None:
        """Training has ended with this step: each took the mean since it began."""
        count, took_s = step - self._begun, runtime_s - fsum(self._evaluated_s)
        logged, self._evaluated_s = self._logged, []
        shown = _adds_up(logged, count, step, mean_loss)
        each = None if took_s <= 0 or count <= 0 else seconds_to_ns(took_s / count)
        if shown is False or (shown is None and logged):
            self.tally.add("train_runtime", RESUMED if shown is False else UNCLEAR)
        elif each is not None and self._order + count <= _MOST_STEPS:
            self._timed(step, count, each)
            if shown is None:
                self.tally.add("steps", UNSHOWN, count=count)
        self._untimed()
        self._begun = step

    def _timed(self, step: int, count: int, each: int) -> None:
        losses = {one.step: one.loss for one in self._logged}
        self._logged = []
        for n in range(step - count + 1, step + 1):
            self._row(self._start, n, each, losses.get(n))
        self.averaged = max(self.averaged, count)

    def _untimed(self) -> None:
        for one in self._logged:
            self._row(one.start, one.step, None, one.loss)
        self._logged = []

    def _row(self, start: Start, step: int, each: int | None, loss: float | None) -> None:
        self._steps.add(start, step, None, None, each, None, None, loss, self._order, None, NAME, self.source)
        self._order += 1


def _adds_up(logged: list[_Logged], count: int, step: int, mean_loss: float | None) -> bool | None:
    """Whether the losses of `count` steps are those of which `mean_loss`, over all up to `step`, was made; None where
    that cannot be told: where those before some step, had the job been resumed there, would not be missed."""
    parts = [(one.step - one.before) * one.loss for one in logged]
    amount = sum(map(abs, parts))
    if mean_loss is None or not parts or logged[-1].step > step or not (isfinite(mean_loss) and isfinite(amount)):
        return None
    last, tail = logged[-1], step - logged[-1].step
    late = [one.loss for one in logged[-_LAST:]]
    spread = max(late) - min(late) if len(late) > _LAST // 2 else abs(last.loss)
    digits = _ROUNDED if all(round(one.loss, 4) == one.loss for one in logged) else 0.0
    doubt = _CLOSE * amount + digits * step + tail * abs(last.loss) / 10
    doubt += 2 * spread * (tail * max(tail, last.step - last.before)) ** 0.5  # of steps behind the last that was logged
    before, begun = 0.0, step - count
    for one, part in zip(logged, parts, strict=True):
        first = max(one.before, begun + _FEW * count)
        if first <= one.step:
            low = before + (first - one.before) * one.loss
            if min(abs(low), abs(before + part)) <= doubt or (low > 0) != (before + part > 0):
                return None
        before += part
    return abs(mean_loss * step - before - tail * last.loss) <= doubt


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isinstance(value, float) or abs(value) < 1e300 else None


def _unit(name: str) -> str | None:
    return next((unit for ending, unit in _UNITS if name.endswith(ending)), None)
