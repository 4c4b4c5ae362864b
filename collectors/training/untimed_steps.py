"""Steps of metrics of which none tells a step's time (`tracked_steps`): they took the time between two entries of a
loss of training, where it is sure that their numbers count steps.

    sure      where they are the job's own axis (W&B's `trainer/global_step`; its own count of calls is none), where a
              program is known by a name (`SURE`), or where an epoch logged with each grows less than they do: whole
              ones may stand still, of parts some are between
    dur_ns    the mean since the entry before. Where an evaluation was logged between, or a whole epoch ended, and that
              is longer by half than it is elsewhere: as long as before, and the rest is no time of a step; with nothing
              elsewhere and an evaluation it is not known. Saves, and evaluations that nothing tells, are in it
    format    `tensorboard_entries` and so on: whatever else tells how long the same steps took goes before them
Nothing is told where of none the time is known.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import isfinite, nan

from collectors.base import Fact, Rows, Source
from collectors.reading.attempts import STEP_COLUMNS, Lanes, StepRows, Taken
from collectors.reading.textlog import BATCH_ROWS, Tally, within_64_bits
from collectors.training.unprinted import FAR, MOST

MOST_ENTRIES = 1_000_000
MOST_FILLED = 2_000_000  # steps that entries may stand for beside their own
SURE = ("lm loss", "tokens_per_second_per_gpu")  # Megatron, torchtune: their steps are optimizer steps
_OF = r"train(?:ing|er)?"
_LOSS = re.compile(rf"(?:{_OF}[/_. ])?loss(?:[/_]step)?|loss[/_.]{_OF}(?:/total)?|lm loss", re.IGNORECASE)
_EPOCH = re.compile(rf"(?:{_OF}[/_. ])?epoch", re.IGNORECASE)
_SET = r"(?:eval(?:uation)?|val|valid|validation|dev|test)"
_EVALUATED = re.compile(rf"{_SET}[/_. -].*|.*[/_. ]{_SET}", re.IGNORECASE)
BETWEEN = "none tells its time: they took the mean between two entries of their loss; saves lie in it"
PAUSED = "an evaluation or the end of an epoch lies before them: they are taken to be as long as others"
UNKNOWN = "an evaluation lies before them, and before all others: how long they took is not known"
TOO_MANY = f"more than {MOST_FILLED:,} stand between those that were logged: they are left out"
_EVALUATION, _EPOCHS_END = 1, 2  # what lies before an entry


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """What a name is of: `loss`, `epoch`, `evaluation`, `sure`, or nothing."""
    if _LOSS.fullmatch(name):
        return "loss"
    if name in SURE:
        return "sure"
    return "epoch" if _EPOCH.fullmatch(name) else "evaluation" if _EVALUATED.fullmatch(name) else ""


class UntimedSteps:
    """`told` each number whose `kind_of` is something, in its order; `rest` and `facts` at the end, where nothing else
    told how long a step took. `counted`: as `LoggedSteps` has it."""

    counted: bool | None = None

    def __init__(self, source: Source, format: str, tally: Tally, host: str | None = None):
        self._source, self._tally, self._host = source.name, tally, host
        self._format = f"{format}_entries"  # less exact than whatever else tells of the same steps
        self._name: str | None = None  # of the loss: the first that comes
        self._step, self._at, self._loss, self._epoch = array("q"), array("q"), array("d"), array("d")
        self._before = bytearray()  # what lies before each entry
        self._evaluated = self._sure = False
        self._barred = False  # some have a number that is none of the job's
        self._here: int | None = None  # the step at hand, and the epoch and the entry that it has
        self._at_epoch, self._entered = nan, False
        self._averaged: Counter[int] = Counter()

    def told(self, step: int, at: int | None, name: str, value: float) -> None:
        kind = kind_of(name)
        if step != self._here:
            self._here, self._at_epoch, self._entered = step, nan, False
        self._sure |= kind == "sure"
        if kind == "evaluation":
            if self._entered and at == self._at[-1]:
                self._before[-1] |= _EVALUATION
            else:
                self._evaluated = True
        elif kind == "epoch":
            self._at_epoch = value
            if self._entered:
                self._epoch[-1] = value
        elif kind == "loss" and self._name in (None, name) and at is not None and len(self._step) < MOST_ENTRIES:
            self._name, self._entered = name, True
            self._sure |= self.counted is True
            self._barred |= self.counted is False
            self._step.append(step)
            self._at.append(at)
            self._loss.append(value)
            self._epoch.append(self._at_epoch)
            self._before.append(_EVALUATION if self._evaluated else 0)
            self._evaluated = False

    def rest(self) -> Iterator[Rows]:
        if not (self._name in SURE or self._sure or any(map(isfinite, self._epoch))):
            return  # to look through all entries for whether they count steps takes longer than to read them
        lanes = Lanes()
        taken = [lanes.take(step, at) for step, at in zip(self._step, self._at, strict=True)]
        since = [one.before for one in taken]
        took = [self._took(n, before) for n, before in enumerate(since)]
        if not self._counts_steps(since):
            return
        usual = self._usual(since, took)
        if all(each is None for each in usual):
            return
        yield from self._rows(taken, usual)

    def facts(self) -> Iterator[Fact]:
        """Of how many steps a mean is as a rule, where it is of several."""
        if self._averaged and (count := self._averaged.most_common(1)[0][0]) > 1:
            yield Fact("steps_averaged_over", count)

    def _took(self, n: int, before: int | None) -> int | None:
        """How long a step up to entry `n` took in the mean, by the time since the entry before alone."""
        if before is None or not n or self._step[n - 1] != before or not 1 <= self._step[n] - before <= MOST:
            return None
        ns = (self._at[n] - self._at[n - 1]) // (self._step[n] - before)
        return ns if ns > 0 else None

    def _counts_steps(self, since: list[int | None]) -> bool:
        if self._name in SURE:
            return True
        if self._barred or self._sure:
            return not self._barred
        grown = [
            (self._epoch[n] - self._epoch[n - 1], self._step[n] - before)
            for n, before in enumerate(since)
            if n and before is not None and isfinite(self._epoch[n] + self._epoch[n - 1])
        ]
        whole = all(epoch.is_integer() for epoch in self._epoch if isfinite(epoch))
        moved = any(epochs > 0 for epochs, _ in grown)
        return bool(grown) and (whole or moved) and all(0 <= epochs < steps for epochs, steps in grown)

    def _usual(self, since: list[int | None], took: list[int | None]) -> list[int | None]:
        """How long a step up to each entry took, none of what lies between counted."""
        for n, before in enumerate(since):
            if n and before is not None and self._epoch[n] // 1 > self._epoch[n - 1] // 1:
                self._before[n] |= _EPOCHS_END
        settled = [each if not what else None for each, what in zip(took, self._before, strict=True)]
        first = next((each for each in settled if each is not None), None)
        found: list[int | None] = []
        for n, each in enumerate(took):
            what = self._before[n]
            usual = first = settled[n] or first
            if each is not None and what and usual is not None and each > usual * FAR:
                self._tally.add("steps", PAUSED, count=self._step[n] - self._step[n - 1])
                each = usual
            elif each is not None and what & _EVALUATION and usual is None:
                self._tally.add("steps", UNKNOWN, count=self._step[n] - self._step[n - 1])
                each = None
            found.append(each)
        return found

    def _rows(self, taken: list[Taken], usual: list[int | None]) -> Iterator[Rows]:
        rows, order, filled = StepRows(*STEP_COLUMNS), 0, 0
        for n, each in enumerate(usual):
            step, at = self._step[n], self._at[n]
            count = 1 if each is None else step - (taken[n].before or 0)
            if filled + count - 1 > MOST_FILLED:
                self._tally.add("steps", TOO_MANY, count=count - 1)
                count = 1
            filled += count - 1
            if each is not None:
                self._averaged[count] += 1
                self._tally.add("steps", BETWEEN, count=count)
            for one in range(step - count + 1, step + 1):
                last = one == step
                start = None if each is None else within_64_bits(at - each * (step - one + 1))
                loss = self._loss[n] if last else None
                row = (one, self._host, start, each, None, None, loss, order, at if last else None)
                rows.add(taken[n].start, *row, self._format, self._source)
                order += 1
            if len(rows.rows) >= BATCH_ROWS:
                yield from rows.full()
        yield from rows.rest()
