"""Metrics that a job logged by name and step, as trackers of experiments keep them (TensorBoard and its like).

What a tracker keeps is a name, a step and a number, and mostly the time when it was logged. Each becomes a row of
`scalars`. Where one of the names tells how long a step took (`LOGGED`), there are rows of `steps` as well:

    dur_ns                  what that name tells; where it is a mean since it was logged before, of each step since
    start_ns                when it was logged, which is when the step ended, less the durations up to there
    tokens_per_s_per_chip   only where the job counts them by device
    model_flops_per_chip    FLOP/s of a device, as the job counts them, times the duration
    attempt                 grows where the step drops: the job was started again
The time between two entries tells no step's: evaluations and saves lie in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from collectors.base import Rows, Source
from collectors.reading.attempts import STEP_COLUMNS, Lanes, StepRows
from collectors.reading.textlog import Buffer, Tally, clean, fits, seconds_to_ns
from collectors.training.unprinted import MOST

MAX_NAME = 200  # characters of a name


@dataclass(frozen=True)
class Logged:
    """What one job's code calls the time of a step in seconds, and what it logs with it. `mean`: over all steps since
    it was logged before. `tokens_per_s`, `tflops_per_s`, `tflops` (of a step): of a device."""

    step_seconds: str
    mean: bool = False
    tokens_per_s: str = ""
    tflops_per_s: str = ""
    tflops: str = ""
    loss: str = ""


LOGGED = (
    Logged(  # MaxText
        "perf/step_time_seconds",
        tokens_per_s="perf/per_device_tokens_per_sec",
        tflops_per_s="perf/per_device_tflops_per_sec",
        tflops="perf/per_device_tflops",
        loss="learning/loss",
    ),
    Logged(  # torchtitan
        "time_metrics/end_to_end(s)",
        mean=True,
        tokens_per_s="throughput(tps)",
        tflops_per_s="tflops",
        loss="loss_metrics/global_avg_loss",
    ),
    Logged("timing_s/step", tokens_per_s="perf/throughput", loss="actor/pg_loss"),  # verl
    Logged("train_step_timing in s", loss="reduced_train_loss"),  # NeMo
    Logged("iteration-time", mean=True, tflops_per_s="throughput", loss="lm loss"),  # Megatron
)
_BY_TIME = {one.step_seconds: one for one in LOGGED}
_TOLD = frozenset(
    name
    for one in LOGGED
    for name in (one.step_seconds, one.tokens_per_s, one.tflops_per_s, one.tflops, one.loss)
    if name
)
EVERY = "not each was logged: those between two took the mean since the one before"


class Tracked:
    """What one source logged, in its order: `add` each number, `full` in between, `rest` at the end. `format`: the
    collector. `host`: of which host, null for the job as a whole."""

    def __init__(self, source: Source, format: str, tally: Tally, host: str | None = None):
        self._source, self._format, self._tally, self._host = source.name, format, tally, host
        self._scalars = Buffer("scalars", "ts_ns", "step", "name", "value", "unit", "source")
        self._steps = StepRows(*STEP_COLUMNS)
        self._lanes = Lanes()
        self._order = 0
        self._at: int | None = None
        self._step: int | None = None
        self._values: dict[str, float] = {}  # of the step at hand, what may be told of a row of `steps`

    def add(self, step: int | None, ts_ns: int | None, name: str, value: float, unit: str | None = None) -> None:
        """A number of this name, logged for this step at this time. What comes for one step in a row is one entry."""
        self._scalars.add(ts_ns, step, clean(name)[:MAX_NAME], value, unit, self._source)
        if step is not None and name in _TOLD and fits(step):
            if step != self._step:
                self._enter()
                self._step = step
            self._values[name] = value
            if name in _BY_TIME or self._at is None:
                self._at = ts_ns

    def full(self) -> Iterator[Rows]:
        """Batches that are full."""
        yield from self._scalars.full()
        yield from self._steps.full()

    def rest(self) -> Iterator[Rows]:
        """Whatever is left: nothing comes after it."""
        self._enter()
        yield from self._scalars.rest()
        yield from self._steps.rest()

    def _enter(self) -> None:
        """Rows of the step at hand, where its time was logged."""
        step, at, values = self._step, self._at, self._values
        self._step, self._at, self._values = None, None, {}
        timed = next((one for name, one in _BY_TIME.items() if name in values), None)
        if step is None or timed is None:
            return
        seconds = values[timed.step_seconds]
        each = seconds_to_ns(seconds) if seconds > 0 else None
        taken = self._lanes.take(step, at, each)
        count = step - taken.before if timed.mean and taken.before is not None else 1
        if not 1 <= count <= MOST:
            count = 1
        told = (_positive(values.get(timed.tokens_per_s)), _flops(timed, values, seconds))
        for n in range(step - count + 1, step + 1):
            last = n == step
            start = None if at is None or each is None else at - each * (step - n + 1)
            row = (n, self._host, start, each, *told, values.get(timed.loss) if last else None)
            self._steps.add(taken.start, *row, self._order, at if last else None, self._format, self._source)
            self._order += 1
        if count > 1:
            self._tally.add("steps", EVERY, count=count - 1)


def _flops(timed: Logged, values: dict[str, float], seconds: float) -> float | None:
    """FLOPs of a step and device, by the job's own count."""
    told = values.get(timed.tflops)
    if told is None and (rate := values.get(timed.tflops_per_s)) is not None:
        told = rate * seconds
    return _positive(None if told is None else told * 1e12)


def _positive(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) and value > 0 else None
