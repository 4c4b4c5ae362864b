"""The steps that metrics logged by name tell of: which names tell a step's time, and what each says of it (`LOGGED`).

    dur_ns                  what that name tells. Of a mean (Megatron, torchtitan) each step since it was logged before;
                            of the time of one step in so many (NeMo) those between as `unprinted` has it. torchtitan
                            divides the time since it logged before, or since a validation, by its interval, however
                            many steps that were: it is told by the steps there were
    start_ns                when it was logged, which is when the step ended, less the durations up to there
    tokens_per_s_per_chip   only where the job counts them by device
    model_flops_per_chip    FLOP/s of a device, as the job counts them, times the duration
    loss                    what was logged as such for the step
    attempt                 grows where the step drops: the job was started again
How many steps the first mean of an attempt is of is told by the next: from one to the other as a rule. The time between
two entries tells no step's, as evaluations and saves lie in it, but of Hugging Face's Trainer, which tells how long its
evaluations took: less these it is the mean of the steps between, saves included. They are rows of `lifecycle`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite

from collectors.base import Fact, Rows, Source
from collectors.reading.attempts import STEP_COLUMNS, Lanes, StepRows, Taken
from collectors.reading.textlog import BATCH_ROWS, Buffer, Tally, seconds_to_ns, within_64_bits
from collectors.training.unprinted import BETWEEN, MOST, first_of, stood_for

# of one step; a mean of several; time over the interval of logging; no time: that since the entry before is the steps'
ONE, MEAN, SHARE, BETWEEN_ENTRIES = "one", "mean", "share", "between"
MOST_FILLED = 2_000_000  # steps of one source that entries may stand for beside their own
NEAR = 0.1  # a number of steps as times tell it is one where it is no further from a whole one


@dataclass(frozen=True)
class Logged:
    """What one job's code calls the time of a step, in seconds times `scale`, or steps a second where it is a `rate`;
    `kind`: what that is of. What it logs with it: `tokens_per_s`, `tflops_per_s`, `tflops` (of a step), of a device;
    `batch`, sequences of a step of the whole job. `beside`: names without which it is another's. `anew`: where that is
    logged the time is counted from there. `pauses`: what follows a step, and may be a part of its time, with the kind
    of `lifecycle` that it is.
    `within`: a count of epochs: where it is as high as the step, or grows as fast, the step is one of epochs."""

    time: str
    kind: str = ONE
    tokens_per_s: str = ""
    tflops_per_s: str = ""
    tflops: str = ""
    loss: str = ""
    batch: str = ""
    scale: float = 1.0
    rate: bool = False
    beside: tuple[str, ...] = ()
    anew: str = ""
    pauses: tuple[tuple[str, str], ...] = ()
    within: str = ""

    @property
    def names(self) -> Iterator[str]:
        told = (self.time, self.tokens_per_s, self.tflops_per_s, self.tflops, self.loss, self.batch, self.anew)
        return filter(None, (*told, *self.beside, *(name for name, _ in self.pauses)))

    def seconds(self, value: float) -> float:
        """How long a step took, of what is logged as its time; none below 0."""
        if self.rate:
            return 1 / value if value > 0 else -1.0
        return value * self.scale


_LOSS = "loss"  # of several programs
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
        SHARE,
        tokens_per_s="throughput(tps)",
        tflops_per_s="tflops",
        loss="loss_metrics/global_avg_loss",
        anew="validation_metrics/loss",
    ),
    Logged(  # verl
        "timing_s/step",
        tokens_per_s="perf/throughput",
        loss="actor/pg_loss",
        pauses=(("timing_s/testing", "eval"), ("timing_s/save_checkpoint", "checkpoint_save")),
    ),
    Logged("train_step_timing in s", loss="reduced_train_loss"),  # NeMo
    # MindFormers, in the names of Megatron: milliseconds of the one step, throughput in samples
    Logged("iteration-time", loss="loss", scale=1e-3, beside=("B-samples-per-day",)),
    Logged(  # Megatron-Bridge
        "iteration-time",
        MEAN,
        tflops_per_s="throughput/tflops/device",
        loss="lm loss",
        batch="batch-size",
        beside=("throughput/tflops/device",),
    ),
    Logged("iteration-time", MEAN, tflops_per_s="throughput", loss="lm loss", batch="batch-size"),  # Megatron-LM
    Logged("iteration-time/iteration-time", MEAN, loss="lm-loss-training/lm loss"),  # Megatron-DeepSpeed
    Logged("throughput/duration", loss="train/loss", beside=("throughput/loading_time",)),  # Levanter
    Logged("timing/steps_per_second", MEAN, loss="loss", rate=True, beside=("timing/seqs_per_second",)),  # T5X
    Logged("global_step/sec", MEAN, loss="loss", rate=True),  # TensorFlow's estimators
    Logged("batch_steps_per_second", loss="batch_loss", rate=True),  # Keras
    # Hugging Face's Trainer
    Logged("train/loss", BETWEEN_ENTRIES, loss="train/loss", beside=("train/epoch", "train/learning_rate")),
    Logged(_LOSS, BETWEEN_ENTRIES, loss=_LOSS, beside=("epoch", "learning_rate"), within="epoch"),  # to MLflow
)
TIMES = frozenset(one.time for one in LOGGED) - {_LOSS}
LOSSES = frozenset(one.loss for one in LOGGED if one.loss)
ANEW = frozenset(one.anew for one in LOGGED if one.anew)
_TOLD = frozenset(name for one in LOGGED for name in one.names)
_EVALUATED = re.compile(r"eval[/_](?:.{1,70}_)?runtime")  # of one set, or of each of several by its name; s
NO_LOSSES: Mapping[int, float] = {}
EVERY = "not each was logged: those between two took the mean since the one before"
TOO_MANY = f"more than {MOST_FILLED:,} stand between those that were logged: they are left out"
LESS_EVALUATIONS = "none tells its time: they took the mean between two entries, less evaluations; saves lie in it"
NO_INTERVAL = "their time is a share of one that only a second entry tells: how long they took is not known"
_SAID = {ONE: BETWEEN, MEAN: EVERY, SHARE: EVERY, BETWEEN_ENTRIES: LESS_EVALUATIONS}


def is_told(name: str) -> bool:
    """Whether a name may tell something of steps."""
    return name in _TOLD or _EVALUATED.fullmatch(name) is not None


@dataclass
class _Entry:
    """What was logged for one step in a row, and when; how long evaluations took behind that."""

    step: int
    at: int | None = None
    values: dict[str, float] = field(default_factory=dict)
    anew: int | None = None  # the step at which the time was counted anew since the entry before
    paused_ns: int = 0  # evaluations since the entry before
    evaluated_ns: int = 0  # behind what it tells of steps


@dataclass
class _First:
    """The first entry of an attempt, which waits for the next."""

    entry: _Entry
    rule: Logged
    taken: Taken
    losses: Mapping[int, float]


class LoggedSteps:
    """Rows of `steps` and of `lifecycle` of what one source logged: `told` each number whose name `is_told` in its
    order. `begun_ns`: when training began; `share_of_tokens`: tokens of a sequence over the chips; as far as the source
    tells these before it."""

    timed = False  # whether anything told how long they take so far
    counted: bool | None = None  # whether the numbers of steps are sure to be the job's, or sure not to be
    begun_ns: int | None = None
    share_of_tokens: float | None = None

    def __init__(self, source: Source, format: str, tally: Tally, host: str | None = None):
        self._source, self._format, self._tally, self._host = source.name, format, tally, host
        self._rows = StepRows(*STEP_COLUMNS)
        self._ready: list[Rows] = []
        self._life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "host", "order", "source")
        self._lanes = Lanes()
        self._entry: _Entry | None = None
        self._first: _First | None = None
        self._epoch: tuple[int, float] | None = None  # of the entry before that tells of one: its step and its epoch
        self._losses: dict[str, dict[int, float]] = {}  # by name and step, since the last entry with a time
        self._paused_ns = 0  # evaluations since the last entry with a time
        self._anew: int | None = None  # the last step at which the time was counted anew
        self._stride = 0  # from one entry to the next as a rule, 0: not known
        self._interval: int | None = None  # of steps, by which a time was divided
        self._averaged: Counter[int] = Counter()
        self._order = self._filled = 0

    def told(self, step: int, at: int | None, name: str, value: float) -> None:
        entry = self._entry
        if entry is None or step != entry.step or (name in TIMES and name in entry.values):
            self._close()
            entry = self._entry = _Entry(step)
        if name in _TOLD:
            entry.values[name] = value
            self.timed |= name in TIMES and name not in LOSSES
            if name in TIMES or entry.at is None:
                entry.at = at
        elif took := seconds_to_ns(value):
            self._evaluated(entry, at, took)

    def full(self) -> Iterator[Rows]:
        """Batches that are full."""
        yield from self._ready
        self._ready = []
        yield from self._life.full()

    def rest(self) -> Iterator[Rows]:
        """Whatever is left: nothing comes after it."""
        self._close()
        self._begin(None)
        yield from self.full()
        yield from self._rows.rest()
        yield from self._life.rest()

    def facts(self) -> Iterator[Fact]:
        """Of how many steps a mean is as a rule, where it is of several."""
        if self._averaged and (count := self._averaged.most_common(1)[0][0]) > 1:
            yield Fact("steps_averaged_over", count)

    def _evaluated(self, entry: _Entry, at: int | None, took: int) -> None:
        """An evaluation that took so long, and was logged when it ended."""
        if took < 0:
            return
        entry.evaluated_ns += took
        if at is not None:
            self._interval_of("eval", at - took, at, entry.step)

    def _close(self) -> None:
        """Enter what was logged for the step at hand."""
        entry, self._entry = self._entry, None
        if entry is None:
            return
        values = entry.values
        for rule in LOGGED:
            if self._is_of(entry, rule):
                self._timed(entry, rule)
                break
        else:
            for name in LOSSES & values.keys():
                losses = self._losses.setdefault(name, {})
                if len(losses) < MOST:
                    losses[entry.step] = values[name]
        for name in ANEW:
            if name in values:
                self._anew = entry.step
        self._paused_ns += entry.evaluated_ns

    def _is_of(self, entry: _Entry, rule: Logged) -> bool:
        if not all(name in entry.values for name in (rule.time, *rule.beside)):
            return False
        return not rule.within or (self.counted is not False and self._counts_steps(entry, entry.values[rule.within]))

    def _counts_steps(self, entry: _Entry, epoch: float) -> bool:
        """Whether an entry's number is of a step and not of an epoch, of which the first may be 0: it grows by more."""
        before, self._epoch = self._epoch, (entry.step, epoch)
        if before is not None and 0 < entry.step - before[0] <= epoch - before[1]:
            self._first = None  # what came before it was one of epochs too
            return False
        return epoch < entry.step

    def _timed(self, entry: _Entry, rule: Logged) -> None:
        """An entry that tells how long a step took, or several."""
        self.timed = True
        each = seconds_to_ns(rule.seconds(entry.values[rule.time])) if rule.kind != BETWEEN_ENTRIES else None
        taken = self._lanes.take(entry.step, entry.at, each)
        losses, self._losses = self._losses.get(rule.loss, NO_LOSSES), {}
        entry.paused_ns, self._paused_ns = self._paused_ns, 0
        entry.anew, self._anew = self._anew, None
        if self._first:
            self._begin(entry if taken.lane is self._first.taken.lane else None)
        if taken.before is None:
            self._first = _First(entry, rule, taken, losses)
            return
        count = entry.step - taken.before
        self._enter(entry, rule, taken, count if 1 <= count <= MOST else 1, losses)

    def _begin(self, then: _Entry | None) -> None:
        """Enter the first entry of an attempt, behind which `then` came."""
        if (first := self._first) is None:
            return
        self._first, step = None, first.entry.step
        if then is not None and step < then.step <= step + MOST:
            self._stride = then.step - step
            if first.rule.kind == SHARE:
                self._interval = _interval(first.entry, then, then.values.get(first.rule.time))
        self._enter(first.entry, first.rule, first.taken, self._of_first(first, then), first.losses)

    def _of_first(self, first: _First, then: _Entry | None) -> int:
        """Of how many steps the first entry of an attempt tells, behind which `then` came: no more than fit in since
        training began, and where each tells the tokens since the one before as many as these."""
        step, at = first.entry.step, first.entry.at
        if first.rule.kind == SHARE:
            most = max(1, min(self._interval or 1, step, MOST))
            had, has = (_tokens_since(first.rule, one.values) if one else None for one in (first.entry, then))
            if step == 1 or then is None or not had or not has:
                return 1 if step == 1 else min(first_of(step, self._stride), most)
            steps = then.step - max(step, then.anew or step)
            return max(1, min(round(min(steps * had / has, most)), most))
        if first.rule.kind != MEAN:
            return first_of(step, self._stride)
        count = max(1, min(self._stride, step + 1, MOST))
        each = seconds_to_ns(first.rule.seconds(first.entry.values[first.rule.time]))
        if at is not None and self.begun_ns is not None and first.taken.start.number == 0 and each and each > 0:
            count = max(1, min(count, round((at - self.begun_ns) / each)))
        return count

    def _enter(self, entry: _Entry, rule: Logged, taken: Taken, count: int, losses: Mapping[int, float]) -> None:
        """Rows of the `count` steps up to that of an entry."""
        step, at, values = entry.step, entry.at, entry.values
        seconds: float | None = rule.seconds(values[rule.time])
        if rule.kind == BETWEEN_ENTRIES:
            seconds = self._since(entry, taken, count)
            count = count if seconds is not None else 1
        elif rule.kind == SHARE:
            seconds = self._by_steps(seconds, step, count, entry.anew)
        each = (seconds_to_ns(seconds) or None) if seconds is not None and seconds > 0 else None
        if rule.kind == ONE and each is not None:
            gap = taken.lane.took_ns if taken.before is not None else None
            count, each = stood_for(step, taken.before, self._stride, each, gap)
        elif rule.kind != ONE:
            self._averaged[count] += 1
        if self._filled + count - 1 > MOST_FILLED:
            self._tally.add("steps", TOO_MANY, count=count - 1)
            count = 1
        self._filled += count - 1
        told = (self._tokens_per_s(rule, values, each), _flops(rule, values, each))
        end = at
        if rule.pauses and each is not None and at is not None and taken.before == step - 1 and count == 1:
            end, each, told = self._paused(entry, rule, taken, each, told)
        for n in range(step - count + 1, step + 1):
            last = n == step
            start = None if end is None or each is None else within_64_bits(end - each * (step - n + 1))
            loss = values.get(rule.loss) if last else losses.get(n)
            row = (n, self._host, start, each, *told, loss, self._order, at if last else None)
            self._rows.add(taken.start, *row, self._format, self._source)
            self._order += 1
            if len(self._rows.rows) >= BATCH_ROWS:
                self._ready += self._rows.full()
        if count > 1:
            self._tally.add("steps", _SAID[rule.kind], count=count - (rule.kind != BETWEEN_ENTRIES))

    def _paused(self, entry: _Entry, rule: Logged, taken: Taken, each: int, told: tuple) -> tuple[int, int, tuple]:
        """When a step ended that evaluations and saves came behind, how long it took, and its rates. Whether the time
        of the step holds them is told by the time since the entry before."""
        at, gap, ns = entry.at or 0, taken.lane.took_ns or 0, {}
        for name, kind in rule.pauses:
            if (took := seconds_to_ns(entry.values.get(name))) and 0 < took <= gap:
                ns[kind] = took
        inside = min(
            (sum(some) for n in range(len(ns) + 1) for some in combinations(ns.values(), n)),
            key=lambda held: abs(each + sum(ns.values()) - held - gap),
        )
        if not ns or inside >= each:
            return at, each, told
        end = at - sum(ns.values())
        since = end
        for kind, took in ns.items():
            self._interval_of(kind, since, since + took, entry.step)
            since += took
        tokens, flops = told
        return end, each - inside, (tokens and tokens * each / (each - inside), flops)

    def _interval_of(self, kind: str, start: int, end: int, step: int) -> None:
        attempt = self._lanes.attempt
        self._life.add(kind, start, end, attempt, step, self._host, self._order, self._source)
        self._order += 1

    def _tokens_per_s(self, rule: Logged, values: dict[str, float], each_ns: int | None) -> float | None:
        """Of a chip: as logged, else by the sequences of a step."""
        told = values.get(rule.tokens_per_s)
        if told is None and each_ns and self.share_of_tokens and (batch := values.get(rule.batch)):
            told = batch * self.share_of_tokens * 1e9 / each_ns
        return _positive(told)

    def _since(self, entry: _Entry, taken: Taken, count: int) -> float | None:
        """How long each of `count` steps took, of the time since the entry before, or since training began."""
        since = taken.lane.took_ns if taken.before is not None else None
        if taken.before is None and taken.start.number == 0 and entry.at is not None and self.begun_ns is not None:
            since = entry.at - self.begun_ns
        if since is None or since <= entry.paused_ns:
            return None
        return (since - entry.paused_ns) / count / 1e9

    def _by_steps(self, share: float, step: int, count: int, anew: int | None) -> float | None:
        """How long each of `count` steps took, of a time that was divided by the interval of logging."""
        if self._interval is None:
            self._tally.add("steps", NO_INTERVAL)
            return None
        if anew is not None and step - count < anew < step:
            count = step - anew
        return share * self._interval / count


def _tokens_since(rule: Logged, values: dict[str, float]) -> float | None:
    """In proportion to the tokens since it was logged before: their rate times a share of that time."""
    return _positive(values.get(rule.tokens_per_s, 0.0) * values.get(rule.time, 0.0))


def _interval(first: _Entry, then: _Entry, share: float | None) -> int:
    """Every how many steps is logged, by the first two entries of an attempt; the first step of all is logged too."""
    stride = then.step - first.step
    if first.step != 1:
        return stride
    if first.at is None or then.at is None or not share or not isfinite(share) or share <= 0:
        return then.step if stride > 1 else 1
    told = (then.at - first.at) / 1e9 / share
    return 1 if stride == 1 and abs(told - 1) <= NEAR else then.step


def _flops(rule: Logged, values: dict[str, float], each_ns: int | None) -> float | None:
    """FLOPs of a step and device, by the job's own count."""
    told = values.get(rule.tflops)
    if told is None and each_ns and (rate := values.get(rule.tflops_per_s)) is not None:
        told = rate * each_ns / 1e9
    return _positive(None if told is None else told * 1e12)


def _positive(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) and value > 0 else None
