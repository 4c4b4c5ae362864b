"""A run's `.wandb` file, which the client of Weights & Biases writes below `wandb/run-<date>-<id>/` while the job runs.

    history      scalars, and steps where a name tells their time (`collectors.training.tracked`). The step is the job's
                 own where it was logged (train/global_step, trainer/global_step, global_step from the first row on, or
                 what define_metric made the x axis of all); else `_step`, W&B's count of calls or what the job gave
                 it. `_timestamp`: when it was logged.
    output_raw   the job's console, read as a log of its framework is: steps, evidence, settings. Steps are those of the
                 console where it tells nearly as many, since a log knows of saves; but a progress bar tells whole
                 seconds, so that a history goes before it. Numbers that the history has are not told again. Training
                 of Hugging Face's Trainer began when its bar was drawn first
    stats        scalars and memory (`collectors.training.wandb_system`)
    config       facts that are certain (`collectors.training.wandb_config`); environment: chip, chips_of_host
    run, exit    a job in the lifecycle, from the start of the run for as long as its exit says (whole seconds). It has
                 no end where the job did not come to its own: a run without an exit was killed, or still runs, and an
                 exit code that is not 0 is evidence of why, as is a notice of preemption
    summary      scalars without a time, of what no history tells

chips of a job of Hugging Face's Trainer, which says no number of them: the samples that it trained on, over its steps,
the batch of a device and the accumulation, is how many processes it had, and W&B says how many GPUs the process is on.
Where these agree, or one of them is 1, their product is the number of chips; else nothing tells it.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from collectors.base import Fact, Item, Lost, Rows, Source
from collectors.reading.evidence import Evidence
from collectors.reading.protobuf import message_types
from collectors.reading.textlog import NS_PER_S, Buffer, Tally, clean, fits, seconds_to_ns, whole
from collectors.training.tracked import MAX_NAME, Tracked
from collectors.training.wandb_config import JOB_STEPS, axes_of, facts, hardware, machine_of, numbers, step_of
from collectors.training.wandb_console import Console, ConsoleLines, told
from collectors.training.wandb_records import MAGIC, records
from collectors.training.wandb_system import System
from errors import InputError

NAME = "wandb_log"
TITLE = "W&B run (.wandb)"
HELP = (
    "Weights & Biases run files (run-<id>.wandb): metrics, the job's console (read as its own log), system metrics, "
    "configuration, exit code."
)

_MESSAGES = message_types(
    "chipledger.wandb",
    """
    Item: bytes key=1, bytes* nested_key=2, bytes value_json=16
    Time: int64 seconds=1, int32 nanos=2
    History: Item* item=1, HistoryStep step=2
    HistoryStep: int64 num=1
    Changes: Item* update=1
    Stats: Time timestamp=2, Item* item=3
    Output: int32 output_type=1, Time timestamp=2, bytes line=3
    Metric: bytes name=1, bytes glob_name=2, bytes step_metric=4
    Run: Changes config=4, bytes display_name=8, bytes host=13, int64 starting_step=14, Time start_time=17, \
bool resumed=18, int32 runtime=20
    Exit: int32 exit_code=1, int32 runtime=2
    Gpu: bytes name=1
    Tpu: bytes name=1, uint64 count=4
    Environment: bytes gpu_type=18, uint64 gpu_count=19, Gpu* gpu_nvidia=24, Tpu tpu=29
    Empty:
    Record: History history=2, Changes summary=3, Output output=4, Changes config=5, Stats stats=7, Metric metric=12, \
Output output_raw=13, Run run=17, Exit exit=18, Empty preempting=23, Environment environment=26
    """,
)
RECORD = _MESSAGES["Record"]
FORMAT = "wandb"  # of steps, whichever of W&B's files tells them
_COUNTS_STEPS = re.compile(r"(?:^|[/_. ])(?:step|steps|iter|iteration|iterations)$", re.IGNORECASE)
_OTHER_VALUES = "no numbers: text, pictures, histograms, tables"
_OF_STEPS = ("steps (", "step lines (", "lines of numbers (")  # how what is said of steps begins
_NEARLY = 0.9
_BEGUN = re.compile(r"\s*0%\|[^|]{0,200}\| 0/\d+ \[00:00<\?, *\?it/s\]")  # a bar as it is drawn first
_MOST_NAMES = 100_000  # of a run; thousands are usual
_MOST_SAID = 10_000  # values of a configuration or a summary
_LONGEST_VALUE = 1 << 20  # characters of one value's JSON


def sniff(source: Source) -> float:
    return 1.0 if source.head.startswith(MAGIC) else 0.0


def read(source: Source) -> Iterator[Item]:
    """All that the run tells. Raises InputError where the file is no such log, or holds nothing that is told."""
    run, empty = _Run(source), True
    with tempfile.TemporaryDirectory(prefix="chipledger-") as folder:
        lines = Path(folder) / "console"
        with lines.open("wb") as out:
            run.console = Console(out, run.tally)
            for offset, data in records(source, run.tally):
                run.record(offset, data)
                for rows in run.full():
                    empty = False
                    yield rows
            run.console.close()
        for item in (*run.rest(), *run.facts()):
            empty = False
            yield item
        console = told(ConsoleLines(source.path, source.name, source.index, lines)) if run.console.lines else ()
        for item in run.beside(console):
            empty = False
            yield item
    if empty:
        raise InputError(
            "neither metrics nor a console nor a start of the run in it",
            where=source.name,
            expected="the run-<id>.wandb of a run that was started",
            advice="Did the job end before it logged anything?",
        )
    yield from run.tally.lost()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _ns(time: Any) -> int | None:
    """A time of Protobuf; None where it is not set."""
    ns = time.seconds * NS_PER_S + time.nanos
    return ns if ns > 0 and fits(ns) else None


def value_of(raw: bytes) -> Any:
    """What a value's JSON holds; None where it is none."""
    if len(raw) > _LONGEST_VALUE:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


class _Run:
    """What one file tells, record by record."""

    def __init__(self, source: Source):
        self.source = source.name
        self.tally = Tally()
        self.of_steps = Tally()  # what is to be said of those that the history tells
        self.tracked = Tracked(source, FORMAT, self.of_steps)
        self.system = System(source)
        self.evidence = Evidence(source, self.tally)
        self.console: Console
        self.config: dict[str, Any] = {}
        self.machine: dict[str, Any] = {}
        self.summary: dict[str, float] = {}
        self.last: dict[str, float] = {}  # the last value of each name
        self.axes: list[str] = [*JOB_STEPS]
        self.begun = False  # a row of metrics has come
        self.start_ns: int | None = None
        self.seen_ns: int | None = None  # the latest time of anything so far
        self.again = False  # the run goes on from one before, whose time its exit counts too
        self.ended: tuple[int, int, int | None] | None = None  # exit code, seconds, the latest time before it
        self.steps: list[Rows] = []
        self.raw = self.counted = False  # whether the job's own steps were logged
        self.name = ""
        self.step: int | None = None

    def record(self, offset: int, data: bytes) -> None:
        try:
            record = RECORD.FromString(data)
        except DecodeError:
            self.tally.add("records", "they are no message of W&B's", offset)
            return
        for field, value in record.ListFields():
            getattr(self, f"_{field.name}")(offset, value)

    def full(self) -> Iterator[Rows]:
        yield from self._noting(self.tracked.full())
        yield from self.system.full()

    def rest(self) -> Iterator[Item]:
        yield from self._noting(self.tracked.rest())
        yield from self.system.rest()
        alone = Buffer("scalars", "name", "value", "source")
        for name, value in self.summary.items():
            if name not in self.last:
                alone.add(name, value, self.source)
        yield from alone.rest()
        yield from self._lifecycle()
        yield from self.evidence.rest()

    def _noting(self, rows: Iterable[Rows]) -> Iterator[Rows]:
        """Rows of steps wait until it is known what the console tells."""
        for one in rows:
            if one.table == "steps":
                self.steps.append(one)
            else:
                yield one

    # of the kinds of records, each by its name

    def _history(self, offset: int, history: Any) -> None:
        row: dict[str, float] = {}
        for item in history.item:
            key = _text(item.key) or ".".join(map(_text, item.nested_key))
            try:
                row[key] = float(item.value_json)  # nearly all of them
            except ValueError:
                found = dict(numbers(value_of(item.value_json), key))
                row |= found
                if not found and key != "_wandb":
                    self.tally.add("values", _OTHER_VALUES, offset)
        at = seconds_to_ns(row.get("_timestamp"))
        self._seen(at)
        if not self.begun and any(name[:1] != "_" for name in row):
            self.begun = True
            self.axes += [name for name in axes_of(row) if name not in self.axes]
        axis = next((name for name in self.axes if step_of(row.get(name)) is not None), None)
        self.counted |= axis is not None
        self.tracked.counts(axis is not None)
        # of a row without it W&B's own count would be another
        step = step_of(row.get(axis) if axis else None if self.counted else row.get("_step", history.step.num))
        self.step = self.step if step is None else step
        for name, value in row.items():
            if name[:1] == "_" and name in ("_step", "_timestamp", "_runtime", "_wandb") or name == axis:
                self.last[name] = value
                continue
            if name in self.last or len(self.last) < _MOST_NAMES:
                self.last[name] = value
            self.tracked.add(step, at, name, value)

    def _summary(self, offset: int, summary: Any) -> None:
        for item in summary.update:
            key = _text(item.key) or ".".join(map(_text, item.nested_key))
            for name, value in numbers(value_of(item.value_json), key):
                if name[:1] != "_" and (name in self.summary or len(self.summary) < _MOST_SAID):
                    self.summary[clean(name)[:MAX_NAME]] = value

    def _metric(self, offset: int, metric: Any) -> None:
        axis = _text(metric.step_metric)
        if metric.glob_name == b"*" and _COUNTS_STEPS.search(axis) and axis not in self.axes:
            self.axes.append(axis)

    def _stats(self, offset: int, stats: Any) -> None:
        at = _ns(stats.timestamp)
        self._seen(at)
        found: list[tuple[str, float]] = []
        for item in stats.item:
            try:
                found.append((_text(item.key), float(item.value_json)))
            except ValueError:
                found += numbers(value_of(item.value_json), _text(item.key))
        self.system.sample(at, found)

    def _output_raw(self, offset: int, output: Any) -> None:
        self.raw = True
        self._written(output)

    def _output(self, offset: int, output: Any) -> None:
        if not self.raw:
            self._written(output)

    def _written(self, output: Any) -> None:
        at = _ns(output.timestamp)
        self._seen(at)
        line = _text(output.line)
        if at is not None and "train/loss" not in self.last and _BEGUN.match(line):
            self.tracked.begun(at)
        self.console.add(output.output_type, at, line)

    def _config(self, offset: int, config: Any) -> None:
        for item in config.update:
            path = [_text(part) for part in item.nested_key] or [_text(item.key)]
            into = self.config
            for part in path[:-1]:
                inner = into.setdefault(part, {})
                into = inner if isinstance(inner, dict) else {}
            if path[-1] in into or len(into) < _MOST_SAID:
                into[path[-1]] = value_of(item.value_json)

    def _run(self, offset: int, run: Any) -> None:
        """Several may come: what was not known before is added."""
        self._config(offset, run.config)
        self.start_ns = self.start_ns or _ns(run.start_time)
        self._seen(self.start_ns)
        self.name = self.name or clean(_text(run.display_name))[:MAX_NAME]
        self.system.host = self.system.host or clean(_text(run.host))[:MAX_NAME] or None
        self.again |= run.resumed or run.starting_step > 0 or run.runtime > 0

    def _exit(self, offset: int, end: Any) -> None:
        self.ended = end.exit_code, end.runtime, self.seen_ns
        if end.exit_code:
            line = f"W&B: the process ended with exit code {end.exit_code}"
            self._tell("process_exit", offset, line, self._end_ns(), "error")

    def _preempting(self, offset: int, told: Any) -> None:
        self._tell("preemption", offset, "W&B: the run is marked as preempting", self.seen_ns, "warning")

    def _environment(self, offset: int, told: Any) -> None:
        gpus = [_text(one.name) for one in told.gpu_nvidia[:1]]
        said = {"gpu": _text(told.gpu_type) or "".join(gpus), "gpu_count": told.gpu_count or len(told.gpu_nvidia)}
        self.machine |= {name: value for name, value in said.items() if value}
        if told.tpu.name:
            self.machine["tpu"] = {"name": _text(told.tpu.name), "count": told.tpu.count}

    # what comes of them in the end

    def _seen(self, at: int | None) -> None:
        if at is not None and (self.seen_ns is None or at > self.seen_ns):
            self.seen_ns = at

    def _tell(self, cause: str, offset: int, line: str, at: int | None, severity: str) -> None:
        self.evidence.add(cause, offset, line, 0, self.step, ts_ns=at, host=self.system.host, severity=severity)

    def _end_ns(self) -> int | None:
        """When the run ended: as long after its start as its exit says, and not before what it logged."""
        if self.ended is None:
            return None
        _, seconds, seen = self.ended
        if self.again or self.start_ns is None or seconds <= 0:  # clients of 2021 leave it at 0
            return self.seen_ns
        return max(self.start_ns + seconds * NS_PER_S, seen or 0)

    def _lifecycle(self) -> Iterator[Rows]:
        life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "host", "order", "source")
        if self.start_ns is not None:
            end = None if self.ended is None or self.ended[0] else self._end_ns()
            life.add("job", self.start_ns, end, 0, self.system.host, 0, self.source)
        yield from life.rest()

    def facts(self) -> Iterator[Fact]:
        """Each name once."""
        machine = self.machine or machine_of(self.config)
        found = {fact.name: fact for fact in (*hardware(machine), *facts(self.config))}
        if self.name:
            found.setdefault("job_name", Fact("job_name", self.name))
        if (chips := self._chips()) is not None:
            found.setdefault("chips", Fact("chips", chips, "derived"))
        self.said = {*found}
        yield from found.values()

    def _chips(self) -> int | None:
        """See the head of this file."""
        each, again = (
            whole(self.config.get(f"{n}")) for n in ("per_device_train_batch_size", "gradient_accumulation_steps")
        )
        rate, seconds, steps = (
            self.last.get(f"train/{name}", 0.0) for name in ("train_samples_per_second", "train_runtime", "global_step")
        )
        on = len(self.system.devices)
        if not each or not again or not on or min(rate, seconds, steps, each, again) <= 0:
            return None
        processes = rate * seconds / steps / each / again
        if not isfinite(processes) or not 0.5 < processes < 1e6:
            return None
        count = round(processes)
        sure = abs(processes - count) <= min(0.25, 0.03 * count) and not self.config.get("auto_find_batch_size")
        if not sure or (on != count and 1 not in (on, count)):
            return None
        return max(on, count)

    def beside(self, console: Iterable[Item]) -> Iterator[Item]:
        """What the console tells, without what the history tells too, and the steps of whichever tells them better."""
        steps: list[Rows] = []
        said: list[Lost] = []
        for item in console:
            if isinstance(item, Rows) and item.table == "steps":
                steps.append(item)
            elif isinstance(item, Lost) and item.what.startswith(_OF_STEPS):
                said.append(item)
            elif isinstance(item, Rows) and item.table == "scalars":
                yield Rows("scalars", self._new(item.batch))
            elif not (isinstance(item, Fact) and item.name in self.said):
                yield item
        if steps and self._better(steps):
            yield from (*steps, *said)
        else:
            yield from (*self.steps, *self.tracked.facts(), *self.of_steps.lost())

    def _better(self, steps: list[Rows]) -> bool:
        """Whether the console times more of the steps than the history, or nearly as many in lines of a log."""
        here, there = _timed(self.steps), _timed(steps)
        by_bar = self.tracked.timed and "hf_trainer" in steps[0].batch.column("format").unique().to_pylist()
        return there * _NEARLY > here if by_bar else there >= here * _NEARLY

    def _new(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `scalars` whose name no history has, as Hugging Face's Trainer names them there."""
        names = batch.column("name").to_pylist()
        return batch.filter(pa.array([name is not None and not self._logged(name) for name in names], pa.bool_()))

    def _logged(self, name: str) -> bool:
        evaluated = name.replace("eval_", "eval/", 1) if name.startswith("eval_") else name
        return any(one in self.last for one in (name, f"train/{name}", evaluated))


def _timed(steps: list[Rows]) -> int:
    """Of how many steps it is told how long they took."""
    return sum(rows.batch.num_rows - rows.batch.column("dur_ns").null_count for rows in steps)
