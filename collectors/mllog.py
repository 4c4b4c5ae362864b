"""MLPerf's logs: `:::MLLOG {...}` lines, in any order, behind any prefix, among any other output.

    job                     from the first event to run_stop; open-ended without one
    training_preparation    init_start (the first of many ranks') to init_stop
    eval                    eval_start to eval_stop
    steps                   tracked_stats with train_step_time (without throughput: that is the mean of a block). Where
                            there are none, blocks (block_start to block_stop) whose samples and the global batch give
                            a number of steps: so many rows of the mean time, which holds whatever else was done inside
                            the block (some submissions evaluate there).
    scalars                 eval_accuracy, and every other number of tracked_stats, by time
    facts                   submission_*, run_status, batch, sequence length, accelerators; the model, where the name
                            of the benchmark tells it
Step numbers count from the start of the run, in global batches: logs count samples, tokens or steps, told apart by how
the times between two entries compare with the time of a step.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.evidence import Evidence
from collectors.line_prefix import plain
from collectors.textlog import Buffer, Tally, clean, fits, lines, seconds_to_ns, tail, whole
from errors import InputError

NAME = "mllog"
HELP = "MLPerf training log (:::MLLOG lines): initialisation, steps or blocks, evaluations, result of the submission."

_MARK = ":::MLLOG"
_SNIFF = re.compile(rb':::MLLOG \{"namespace"')
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_POSITION = ("samples_count", "step", "step_num", "epoch_num", "first_epoch_num")  # where an entry says how far it is
_NAMED_MODELS = {"gpt3": "gpt3-175b", "llama31_405b": "llama3.1-405b"}
_COUNTS = {  # what MLPerf calls it: what a run calls it
    "global_batch_size": "global_batch", "max_sequence_length": "sequence_length",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}  # fmt: skip
_TEXTS = ("submission_benchmark", "submission_org", "submission_platform", "submission_division", "submission_status")
_MOST = 2_000_000  # steps, blocks and evaluations of one log
_MOST_STEPS = 100_000  # of one block


def sniff(source: Source) -> float:
    if b"\0" in source.head:
        return 0.0
    return 0.85 if _SNIFF.search(source.head) or _SNIFF.search(tail(source)) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, lifecycle, scalars and facts. Raises InputError where there is no MLLOG line that can be read."""
    log = _Log(source)
    for offset, line, _ in lines(source):
        if _MARK in line:
            log.entry(offset, plain(line))
        elif line:
            log.evidence.see(offset, line)
        yield from log.scalars.full()
    if log.first_ns is None:
        raise InputError(
            "no MLLOG line with a time", where=source.name,
            expected='lines such as `:::MLLOG {"namespace": "", "time_ms": 1744812623767, "key": "run_start", ...}`',
        )  # fmt: skip
    yield from log.scalars.rest()
    yield from log.lifecycle()
    yield from log.steps()
    yield from log.evidence.rest()
    for name, value in log.facts.items():
        yield Fact(name, value)
    yield from log.tally.lost()


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = source.name, Tally()
        self.evidence = Evidence(source, self.tally)
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "source")
        self.facts: dict[str, Any] = {}
        self.first_ns: int | None = None
        self.edges: dict[str, list[tuple[int, int, int | None, int]]] = {"block": [], "eval": []}
        self.timed: list[tuple[int, int, int, float | None]] = []  # end, position, duration, loss
        self.init: list[int | None] = [None, None]
        self.stopped_ns: int | None = None
        self.kept = 0

    def entry(self, offset: int, line: str) -> None:
        start = line.find("{", line.find(_MARK))
        try:
            entry = _DECODER.raw_decode(line, start)[0] if start >= 0 else None
        except (ValueError, RecursionError):
            entry = None
        time_ms = whole(entry.get("time_ms")) if isinstance(entry, dict) else None
        key = entry.get("key") if isinstance(entry, dict) else None
        if time_ms is None or not fits(time_ms * 1_000_000) or not isinstance(key, str):
            self.tally.add("MLLOG lines", "cut off, no JSON, or without a time or a key", offset)
            return
        at = time_ms * 1_000_000
        self.first_ns = at if self.first_ns is None else min(self.first_ns, at)
        about = entry.get("metadata")
        about = about if isinstance(about, dict) else {}
        self._event(key, at, entry.get("value"), about, offset)

    def _event(self, key: str, at: int, value: Any, about: dict, offset: int) -> None:
        position = next((p for name in _POSITION if (p := whole(about.get(name))) is not None), None)
        prefix, _, side = key.rpartition("_")
        if key == "init_start":
            self.init[0] = at if self.init[0] is None else min(self.init[0], at)
        elif key == "init_stop":
            self.init[1] = at if self.init[1] is None else max(self.init[1], at)
        elif key == "run_stop":
            self.stopped_ns = at if self.stopped_ns is None else max(self.stopped_ns, at)
            if isinstance(status := about.get("status"), str):
                self.facts["run_status"] = clean(status)[:100]
        elif prefix in self.edges and side in ("start", "stop"):
            counted = whole(about.get("epoch_count")) or 0
            self._keep()
            self.edges[prefix].append((at, int(side == "start"), position, counted))
        elif key == "tracked_stats" and isinstance(value, dict):
            self._stats(at, value, position)
        elif key == "eval_accuracy" and _number(value):
            self.scalars.add(at, key, float(value), self.name)
        else:
            self._fact(key, value)

    def _keep(self) -> None:
        self.kept += 1
        if self.kept > _MOST:
            raise InputError(f"more than {_MOST:,} steps, blocks and evaluations", where=self.name,
                             expected="the log of one training run")  # fmt: skip

    def _stats(self, at: int, stats: dict, position: int | None) -> None:
        dur_ns = seconds_to_ns(stats.get("train_step_time"))
        if dur_ns is not None and dur_ns >= 0 and position is not None and "throughput" not in stats:
            loss = stats.get("reduced_train_loss", stats.get("loss"))
            self._keep()
            self.timed.append((at, position, dur_ns, float(loss) if _number(loss) else None))
            stats = {k: v for k, v in stats.items() if k not in ("train_step_time", "reduced_train_loss", "loss")}
        for name, value in stats.items():
            if _number(value):
                self.scalars.add(at, f"tracked_stats/{clean(name)[:80]}", float(value), self.name)

    def _fact(self, key: str, value: Any) -> None:
        if key in _TEXTS and isinstance(value, str) and value:
            self.facts[key] = clean(value)[:200]
            if key == "submission_benchmark" and value in _NAMED_MODELS:
                self.facts["model"] = _NAMED_MODELS[value]
        elif key in _COUNTS and (count := whole(value)) and count > 0:
            self.facts[_COUNTS[key]] = count
        elif key in ("number_of_nodes", "accelerators_per_node") and (count := whole(value)) and count > 0:
            self.facts[key] = count
            if "number_of_nodes" in self.facts and "accelerators_per_node" in self.facts:
                self.facts["chips"] = self.facts["number_of_nodes"] * self.facts["accelerators_per_node"]

    def lifecycle(self) -> Iterator[Item]:
        life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "detail", "order", "source")
        status = self.facts.get("run_status")
        detail = None if status is None else json.dumps({"status": status})
        rows = [("job", self.first_ns, self.stopped_ns, None, detail)]
        if self.init[0] is not None:
            rows.append(("training_preparation", *self.init, None, None))
        rows += [("eval", a, b, None, None) for a, b, *_ in self._pairs("eval")]
        for order, (kind, start, end, step, detail) in enumerate(rows):
            life.add(kind, start, end, 0, step, detail, order, self.name)
            yield from life.full()
        yield from life.rest()

    def _pairs(self, kind: str) -> list[tuple[int, int, int | None, int | None, int]]:
        """(start, end, position at the start, at the end, what the start says it will count) of each interval."""
        found, opened = [], None
        for at, is_start, position, counted in sorted(self.edges[kind], key=lambda edge: edge[:2]):
            if is_start and opened is None:
                opened = at, position, counted
            elif not is_start and opened is not None:
                found.append((opened[0], at, opened[1], position, opened[2]))
                opened = None
            else:
                self.tally.add(f"{kind} entries", "a start or a stop without its other side, or told again")
        if opened is not None:
            self.tally.add(f"{kind} entries", "a start or a stop without its other side, or told again")
        return found

    def steps(self) -> Iterator[Item]:
        rows = Buffer(
            "steps", "attempt", "step", "start_ns", "dur_ns", "loss", "order", "logged_ns", "format", "source"
        )
        order = 0
        if self.timed:
            self.timed.sort(key=lambda entry: entry[:2])
            unit = self._unit()
            for end, position, dur_ns, loss in self.timed:
                rows.add(0, position // unit, end - dur_ns, dur_ns, loss, order, end, NAME, self.name)
                order += 1
                yield from rows.full()
        else:
            for start, end, first, last in self._blocks():
                each = (end - start) // (last - first)
                for n in range(last - first):
                    rows.add(0, first + n + 1, start + n * each, each, None, order, None, NAME, self.name)
                    order += 1
                yield from rows.full()
                self.facts["steps_averaged_over"] = max(last - first, self.facts.get("steps_averaged_over", 0))
            if order:
                self.tally.add("steps", "their time is the mean over a block, with whatever else was done in it",
                               count=order)  # fmt: skip
        yield from rows.rest()

    def _unit(self) -> int:
        """What an entry's position counts a step as: 1, or the samples of a global batch."""
        batch = self.facts.get("global_batch", 1)
        for (t0, p0, *_), (t1, p1, dur_ns, _) in zip(self.timed, self.timed[1:], strict=False):
            if p1 > p0 and dur_ns and t1 > t0:
                as_steps, as_samples = (abs((t1 - t0) / dur_ns - (p1 - p0) / unit) for unit in (1, batch))
                return batch if as_samples < as_steps else 1
        return batch if self.timed[0][1] >= batch else 1

    def _blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """(start, end, steps before it, steps after it) of each block whose steps can be counted."""
        batch, length = self.facts.get("global_batch"), self.facts.get("sequence_length", 1)
        for start, end, first, last, counted in self._pairs("block"):
            if counted and first is not None:
                last = first + counted  # the stop repeats where the block began
                unit = batch and batch * length if batch and counted % (batch * length) == 0 else batch
            else:
                unit = batch
            if not unit or first is None or last is None or not 0 < (last - first) // unit <= _MOST_STEPS:
                self.tally.add("blocks", "they do not say how many samples they took: no steps")
            else:
                yield start, end, first // unit, last // unit


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value)
