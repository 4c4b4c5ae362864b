"""How long steps of Hugging Face's Trainer took, by when it logged to W&B: a loss at the end of a step in so many.

    dur_ns     the time since the loss before, less what evaluations between the two took (`eval/runtime`, or of each
               set by its name), over the steps between; saves lie in it. Of a first step that was logged, from when
               training began: `train/train_runtime` before its last row, and not before the run of W&B
    loss       of the last of these steps, the mean since the loss before
    lifecycle  evaluations, which end when they are logged
Steps before the first loss are not told: nothing says when they began. Histories that other code logs tell no times in
this way, since what else the job did between two entries stands nowhere.
"""

import re
from array import array
from collections.abc import Iterator, Mapping

from collectors.base import Rows, Source
from collectors.reading.attempts import STEP_COLUMNS
from collectors.reading.textlog import Buffer, Tally, fits, seconds_to_ns
from collectors.training.unprinted import MOST

AXIS = "train/global_step"
MARKS = ("train/loss", "train/epoch")  # what each row with a loss has
RUNTIME = "train/train_runtime"
MEAN = "they took the mean since the loss that was logged before, less evaluations; saves lie in it"
_EVALUATED = re.compile(r"(?:eval|test)/(?:.{1,70}_)?runtime")
_ENOUGH = 10  # losses
_UNKNOWN = -1


class Pace:
    """Losses in the order of a history: `row` each, `rest` and `steps` at the end. `run_began`: when the run of W&B
    was started, where that is known."""

    def __init__(self, source: Source, format: str, tally: Tally, host: str | None = None):
        self._source, self._format, self._tally, self.host = source.name, format, tally, host
        self._step, self._at, self._paused, self._loss = array("q"), array("q"), array("q"), array("d")
        self.run_began = _UNKNOWN
        self._pause = 0  # ns of evaluations since the last loss
        self._began: int | None = None
        self._evaluations = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "order", "source")
        self._order = 0

    def row(self, step: int | None, at: int | None, row: Mapping[str, float]) -> None:
        """The numbers of one row, which the Trainer logged at this time behind this step."""
        if step is None or at is None or not fits(step) or AXIS not in row:
            return
        for name, value in row.items():
            if name.endswith("runtime") and _EVALUATED.fullmatch(name):
                self._evaluated(step, at, value)
        if (took := seconds_to_ns(row.get(RUNTIME))) is not None:
            self._began = at - took
        if all(name in row for name in MARKS):
            for column, value in zip((self._step, self._at, self._paused), (step, at, self._pause), strict=True):
                column.append(value)
            self._loss.append(row[MARKS[0]])
            self._pause = 0

    @property
    def covers(self) -> bool:
        """Whether nearly all steps that were taken are told: those before the first loss are not."""
        return len(self._step) >= _ENOUGH

    def rest(self) -> Iterator[Rows]:
        """Evaluations."""
        yield from self._evaluations.rest()

    def steps(self) -> Iterator[Rows]:
        """Rows of `steps`."""
        rows = Buffer("steps", "attempt", *STEP_COLUMNS)
        attempt = order = 0
        for n, (step, at, paused) in enumerate(zip(self._step, self._at, self._paused, strict=True)):
            before, since = (self._step[n - 1], self._at[n - 1]) if n else (step - 1, self._first())
            if step <= before:
                attempt, since = attempt + 1, _UNKNOWN
            count = step - before
            took = at - since - paused
            if since == _UNKNOWN or took <= 0 or not 1 <= count <= MOST:
                continue
            each = took // count
            for number in range(before + 1, step + 1):
                last = number == step
                start = at - each * (step - number + 1)
                told = (number, self.host, start, each, None, None, self._loss[n] if last else None)
                rows.add(attempt, *told, order, at if last else None, self._format, self._source)
                order += 1
            if count > 1:
                self._tally.add("steps", MEAN, count=count)
            yield from rows.full()
        yield from rows.rest()

    def _first(self) -> int:
        """When the first step of all began, where that is known."""
        return max(self._began, self.run_began) if self._began is not None and self._step[0] == 1 else _UNKNOWN

    def _evaluated(self, step: int, at: int, seconds: float) -> None:
        took = seconds_to_ns(seconds)
        if took is not None and took > 0:
            self._pause += took
            self._evaluations.add("eval", at - took, at, 0, step, self._order, self._source)
            self._order += 1
