"""Lines of NVIDIA's DLLogger (DeepLearningExamples): `DLLL {"timestamp": "1.5e9", "step": [0, 12], "data": {...}}`.

    job          from the start of the logger (timestamp - elapsedtime) to its summary (`step` is []), or open-ended
    attempt      grows where elapsedtime drops, as another start wrote on in the file (not another process beside it,
                 which began before the entry before was written), or where the step drops: of such a start the job
                 begins with its first step, and the time since the last step of the one before is no step's
    steps        entries of [epoch, iteration], or of a plain number, that tell of training; where the iterations begin
                 anew with each epoch they are numbered on. What is logged of a step in several lines is one entry; a
                 step that is logged again (an optimizer that skips one at an overflow of the loss scale) is one, as
                 long as all its tries
      dur_ns     what the entry says of an iteration (`train_iter_time`, or data_time + compute_time, in the unit that
                 METADATA tells, else s); else the time since the entry before, by the number of steps between. Where an
                 evaluation or the end of an epoch was logged between and that is longer by half than the step before,
                 or where NeMo's timing, a mean over a few steps, tells that no step took so long, as long as that one
                 (or that mean, where it is less): the rest is no time of a step. Saves are in it
      loss       of the step (`step_loss`, `train_loss`, `train.loss`, `loss`), else a mean (`average_loss`)
    checkpoint_save  where `checkpoint_step` tells that one begins; nothing tells its end
    scalars      every number of any entry, by time, with the unit that METADATA tells
    facts        of the parameters: planned steps, batch, length of a sequence, parallelism, as NeMo names them
`train_start` among the parameters tells when the first step began. What DLLogger prints is read likewise, where it
names iterations (`dllogger_printed`).
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from collectors.base import Item, Source
from collectors.reading.attempts import Lanes, Start
from collectors.reading.textlog import NS_PER_S, clean, fits, seconds_to_ns, shows, whole
from collectors.training.dllogger_printed import SNIFF as PRINTED
from collectors.training.dllogger_printed import printed
from collectors.training.handled_lines import HandledLines
from collectors.training.parameters import facts_of
from collectors.training.unprinted import FAR, MOST

NAME = "dllogger"
TITLE = "DLLogger log"
HELP = "Lines of NVIDIA's DLLogger (DeepLearningExamples' dllogger.json): steps, losses, evaluations, summary."

_SNIFF = re.compile(rb'DLLL \{"(?:timestamp|datetime|elapsedtime|type|step)"|' + PRINTED.encode())
_MARK = "DLLL {"
_DECODER = json.JSONDecoder(strict=False)
_STAMP = re.compile(r"(\d{1,10})(?:\.(\d{1,9})\d{0,20})?", re.ASCII)
_NOT_TRAINING = re.compile(r"(?:avg_|mean_|best_)?(?:final|val|eval|valid|validation|dev|test|infer\w*)(?:[_.]|\b)")
_EPOCH = re.compile(r"epoch_|_epoch|(?:^|_)avg(?:_|$)")  # of a plain number's entry: it is of an epoch
_LOSSES = ("step_loss", "train_loss", "train.loss", "loss", "train_reduced_loss", "reduced_train_loss", "average_loss")
_TIMES = (
    ("train_iter_time",),
    ("iter_time",),
    ("train.data_time", "train.compute_time"),
    ("step_time",),
    ("took",),
)  # s
_SMOOTHED, _SMOOTHED_OVER = "train_step_timing in s", 5  # steps of which NeMo's timing is a mean
_SCALES = {"ms": 1e-3, "us": 1e-6}
_MAX_STEPS = re.compile(r"\bmax_steps=(\d{1,15})\b", re.ASCII)
_MOST_EPOCHS, _MOST_UNITS, _MAX_NAME = 100_000, 10_000, 200
_MOST_BETWEEN = 5_000_000  # steps that were not logged, of one file
_LATELY = 64  # entries among which one that is written again is looked for
EXPECTED = 'lines such as `DLLL {"timestamp": "1618506478.69", "type": "LOG", "step": [0, 12], "data": {"loss": 1.5}}`'
EVERY = "not each was logged: those between two took the mean since the entry before"
NUMBERED_ON = "their iterations begin anew with each epoch: they are numbered on"
PAUSED = "something else lies before them, such as an evaluation: they are taken to be as long as the step before"
TRIED = "they were logged again before the next one, as an optimizer that skips a step does: one of all tries"
TWICE = "each was written once more, as where several processes or collectors of logs do: it counts once"
OTHERS = "other processes wrote of it too, within half of its time: it counts once"
CUT = "they are cut off, or no JSON with `step` and `data`"


def sniff(source: Source) -> float:
    return 0.85 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, job, other numbers and planned steps. Raises InputError where there is no entry with a number."""
    yield from _Log(source).read(source, EXPECTED)


class _Log(HandledLines):
    def __init__(self, source: Source):
        super().__init__(source, "kind", "start_ns", "end_ns", "attempt", "step", "order", "source")
        self.handlers = ((_MARK, self.entry), ("DLL", self.printed))
        self.units: dict[str, str] = {}
        self.lanes = Lanes()
        self.epochs = _Epochs()
        self.jobs: list[tuple[int, Start]] = []  # when starts of the job began that have not ended
        self.begun = False
        self.lately: deque[int] = deque(maxlen=_LATELY)
        self.between = 0  # steps that were not logged, so far
        self.elapsed_s: float | None = None
        self.seen_ns = 0  # the latest time of an entry
        self.before: int | None = None  # when the step before was logged, or training began
        self.before_of: int | None = None  # which step that was
        self.waiting: _Step | None = None  # the last step: it may be logged again
        self.usual_ns: int | None = None  # how long the step before took
        self.paused = False  # something else was logged since

    def entry(self, offset: int, line: str, whole: bool) -> None:
        text = line[line.find(_MARK) + len(_MARK) - 1 :]
        if (key := hash(text)) in self.lately:  # to the microsecond
            self.tally.add("entries", TWICE, offset)
            return
        self.lately.append(key)
        found = _entry(text)
        if found is None:
            self.tally.add("entries", CUT, offset)
            return
        at = _stamp_ns(found.get("timestamp"))
        self._started(at, found.get("elapsedtime"))
        metric, about, data = found.get("metric"), found.get("metadata"), found.get("data")
        unit = about.get("unit") if isinstance(about, dict) else None
        if isinstance(metric, str) and isinstance(unit, str) and len(self.units) < _MOST_UNITS:
            self.units[_name(metric[:_MAX_NAME])] = clean(unit)[:20]
        if isinstance(data, dict):
            self._data(offset, found.get("step"), at, data)

    def printed(self, offset: int, line: str, whole: bool) -> None:
        found = printed(line)
        if found is None:
            return
        if (key := hash(line[found.begin :])) in self.lately:
            self.tally.add("entries", TWICE, offset)
            return
        self.lately.append(key)
        at = self.clock.time_ns(line[found.begin : found.dated], offset)
        for name, unit in found.units.items():
            if len(self.units) < _MOST_UNITS:
                self.units[_name(name)] = clean(unit)
        self._started(at, None)
        self._data(offset, found.step, at, found.data)

    def ended(self) -> None:
        self._enter()
        self._job_ends(None)

    def _started(self, at: int | None, elapsed: object) -> None:
        """Follow which start of the job writes."""
        if at is None:
            return
        seconds = _seconds(elapsed)
        began = at - (seconds_to_ns(seconds) or 0)
        if (
            seconds is not None
            and self.elapsed_s is not None
            and seconds < self.elapsed_s - 1
            and began >= self.seen_ns - NS_PER_S
        ):
            self._enter()
            self._job_ends(None)
            self.lanes.restart()
            self.attempt = self.lanes.attempt
            self.before = self.before_of = self.usual_ns = None
            self.paused = self.begun = False
        self.elapsed_s, self.seen_ns = self.elapsed_s if seconds is None else seconds, max(self.seen_ns, at)
        if not self.begun:
            self.jobs, self.begun = [(began, self.lanes.start)], True

    def _runs(self, began: int, start: Start, again: bool) -> None:
        """A step of this start began: so had the job, whose first line may tell of that step."""
        if again:
            self.jobs.append((began, start))
        elif len(self.jobs) == 1:
            self.jobs = [(min(began, at), of) for at, of in self.jobs]

    def _job_ends(self, at: int | None) -> None:
        """Rows of the starts of the job up to now, the last of which ends. One that was doubted is of that before."""
        starts: dict[int, int] = {}
        for began, start in self.jobs:
            starts.setdefault(start.number, began)
        last = max(starts, default=0)
        for attempt, began in starts.items():
            self._lived("job", began, at if attempt == last else None, None, attempt)
        self.jobs = []

    def _lived(self, kind: str, start: int, end: int | None, step: int | None, attempt: int) -> None:
        self.life.add(kind, start, end, attempt, step, self.order, self.source)
        self.order += 1

    def _data(self, offset: int, step: object, at: int | None, data: dict[str, Any]) -> None:
        values = {_name(n[:_MAX_NAME]): v for n, raw in data.items() if (v := _number(raw)) is not None}
        number = self._number_of(step, values, offset)
        if number is not None:
            self._step(number, at, values, offset)
        elif isinstance(step, list | int | float) and step != []:
            self.paused = True
        add, last, units, source = self.scalars.add, self.last_step, self.units, self.source
        for name, value in values.items():
            add(at, last, name, value, units.get(name), source)
        if step == "PARAMETER":
            self._parameters(at, data)
        elif step == []:
            self._enter()
            self._job_ends(at)

    def _parameters(self, at: int | None, data: dict[str, Any]) -> None:
        if data.get("train_start") is True:
            self._enter()
            self.before, self.before_of, self.paused = at, None, False
        if at is not None and (saved := whole(data.get("checkpoint_step"))) is not None:
            self._lived("checkpoint_save", at, None, saved, self.attempt)
        if named := _MAX_STEPS.search(str(data.get("Config"))[:10_000]):
            self.facts["planned_steps"] = int(named[1])
        self.facts |= facts_of(data)

    def _number_of(self, step: object, values: Mapping[str, float], offset: int) -> int | None:
        """The number of the step that an entry tells of; None where it tells of something else."""
        if not any(map(_of_training, values)):
            return None
        if isinstance(step, list) and len(step) >= 2:
            epoch, iteration = whole(step[0]), whole(step[1])
            if epoch is None or iteration is None or iteration < 0:
                return None
            number, anew = self.epochs.number(epoch, iteration)
            if anew:
                self.tally.add("epochs", NUMBERED_ON, offset)
            return number if fits(number) else None
        number = whole(step)
        return None if number is None or number < 0 or any(map(_of_an_epoch, values)) else number

    def _step(self, number: int, at: int | None, values: Mapping[str, float], offset: int) -> None:
        step = self.waiting
        if step is None or step.number != number:
            self._enter()
            again = self.before_of is not None and number < self.before_of  # that one was of another start
            self.waiting = _Step(number, at, dict(values), None if again else self.before, self.paused)
            self.before, self.before_of, self.paused, self.last_step = at, number, False, number
        elif step.values.keys() & values.keys() and self._at_once(step, at):
            self.tally.add("steps", OTHERS, offset)
        elif step.values.keys() & values.keys():
            self.tally.add("steps", TRIED, offset)
            step.tried_s += self._told_s(step.values) or 0
            step.tries += 1
            step.at, step.values = at if at is not None else step.at, dict(values)
        else:
            step.values |= values

    def _at_once(self, step: "_Step", at: int | None) -> bool:
        """Whether a step was logged again before it can have been taken again: by another process."""
        if at is None or step.at is None:
            return False
        first_ns = NS_PER_S if step.before is None else (step.at - step.before) // step.tries
        return abs(at - step.at) < (self.usual_ns or first_ns) / 2

    def _told_s(self, values: Mapping[str, float]) -> float | None:
        """Seconds of an iteration, as an entry says."""
        for names in _TIMES:
            if names[0] in values and all(values.get(name, 0) > 0 for name in names):
                return sum(values[name] * _SCALES.get(self.units.get(name, "s"), 1.0) for name in names)
        return None

    def _enter(self) -> None:
        """Rows of the step that waited, and of those between it and the one logged before."""
        step, self.waiting = self.waiting, None
        if step is None:
            return
        taken = self.lanes.take(step.number, step.at)
        again, self.attempt = self.lanes.attempt > self.attempt, max(self.attempt, self.lanes.attempt)
        count = step.number - taken.before if taken.before is not None else 1
        count = count if 1 <= count <= MOST and self.between + count <= _MOST_BETWEEN else 1
        self.between += count - 1
        each = self._each_ns(step, count)
        if self.jobs and step.at is not None:
            self._runs(step.at - (each or 0) * count, taken.start, again)
        for n in range(step.number - count + 1, step.number + 1):
            last = n == step.number
            start = None if step.at is None or each is None else step.at - each * (step.number - n + 1)
            row = (n, None, start, each, None, None, _loss(step.values) if last else None)
            self.steps.add(taken.start, *row, self.order, step.at if last else None, NAME, self.source)
            self.order += 1
        if count > 1:
            self.tally.add("steps", EVERY, count=count - 1)
        self.before, self.before_of, self.usual_ns = step.at, step.number, each // step.tries if each else self.usual_ns

    def _each_ns(self, step: "_Step", count: int) -> int | None:
        told_s, smoothed = self._told_s(step.values), step.values.get(_SMOOTHED)
        if told_s is not None:
            return seconds_to_ns(told_s + step.tried_s)
        if step.at is None or step.before is None or step.at <= step.before:
            return None if smoothed is None or smoothed <= 0 else seconds_to_ns(smoothed)
        each = (step.at - step.before) // count
        most = None if smoothed is None or smoothed <= 0 else seconds_to_ns(_SMOOTHED_OVER * smoothed)
        never = most is not None and each > most
        if self.usual_ns is None or not (never or (step.paused and each > FAR * self.usual_ns)):
            return each
        self.tally.add("steps", PAUSED, count=count)
        return self.usual_ns if most is None else min(self.usual_ns, most // _SMOOTHED_OVER)


@dataclass
class _Step:
    """A step that was logged, with its numbers: when, when the one before was, and whether something else was since.
    `tried_s`: seconds of tries before the last, as they say."""

    number: int
    at: int | None
    values: dict[str, float]
    before: int | None
    paused: bool
    tried_s: float = 0.0
    tries: int = 1


class _Epochs:
    """Numbers of steps, of epochs that may count theirs anew. `first`: of each epoch, the number before its
    iteration 0."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._last: tuple[int, int] | None = None  # epoch and iteration of the entry before
        self._stride = 1

    def number(self, epoch: int, iteration: int) -> tuple[int, bool]:
        """(the number of a step, whether an epoch begins with it that counts its own)."""
        anew = False
        if epoch not in self._first and len(self._first) < _MOST_EPOCHS:
            base = 0
            if self._last is not None and epoch > self._last[0]:
                base = self._first.get(self._last[0], 0)
                if iteration <= self._last[1]:
                    base, anew = base + self._last[1] + self._stride - iteration, True
            self._first[epoch] = base
        elif self._last is not None and self._last[0] == epoch and iteration > self._last[1]:
            self._stride = iteration - self._last[1]
        self._last = epoch, iteration
        return self._first.get(epoch, 0) + iteration, anew


@lru_cache(4096)
def _name(written: str) -> str:
    return clean(written)


@lru_cache(4096)
def _of_training(name: str) -> bool:
    return not _NOT_TRAINING.match(name)


@lru_cache(4096)
def _of_an_epoch(name: str) -> bool:
    return bool(_EPOCH.search(name))


def _entry(text: str) -> dict[str, Any] | None:
    try:
        found = _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and ("data" in found or "metadata" in found) else None


def _stamp_ns(value: object) -> int | None:
    """A time in seconds since the epoch, written as text: to the last digit."""
    found = _STAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return seconds_to_ns(value)
    ns = int(found[1]) * NS_PER_S + int((found[2] or "0").ljust(9, "0"))
    return ns if fits(ns) else None


def _seconds(value: object) -> float | None:
    """Seconds as a number or in text."""
    if isinstance(value, str) and _STAMP.fullmatch(value):
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isinstance(value, float) or abs(value) < 1e300 else None


def _loss(values: Mapping[str, float]) -> float | None:
    return next((values[name] for name in _LOSSES if name in values), None)
