"""MLPerf's logs: `:::MLLOG {...}` lines, in any order, behind any prefix, among any other output.

    attempt                 a start of the job: a log of a job that was queued again holds several, see `mllog_course`
    job                     from the first event of a start to its run_stop; open-ended without one
    training_preparation    init_start (the first of many ranks') to init_stop
    eval                    eval_start to eval_stop, of evaluations begun before run_stop: those begun later were done
                            offline, which is said, and are no part of the run
    steps                   tracked_stats with train_step_time (without throughput: that is the mean of a block). Where
                            there are none, blocks (block_start to block_stop) whose samples and the global batch give
                            a number of steps: so many rows of the mean time, which holds whatever else was done inside
                            the block (some submissions evaluate there). Where the stop repeats where the block began,
                            the next entry that is further tells; a block that the end of the log cuts off ends with
                            its last progress.
    scalars                 eval_accuracy, and every other number of tracked_stats, by time
    facts                   submission_*, run_status, batch, sequence length, accelerators; the model, where the name
                            of the benchmark tells it, and the sequence length that the benchmark prescribes
Step numbers count from the start of the run, in global batches: logs count samples, tokens, epochs or steps, told apart
by how the times between two entries compare with the time of a step. Where batch, sequence length and chips are told,
tokens_per_s_per_chip is batch times length over the step's time and the chips.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, TypeGuard

from collectors.base import Fact, Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.line_prefix import plain
from collectors.reading.textlog import Buffer, Tally, clean, fits, lines, seconds_to_ns, shows, whole
from collectors.training.mllog_course import RANKS, Event, Start, Steps, block_steps, starts, timed_steps
from errors import InputError

NAME = "mllog"
TITLE = "MLPerf training log"
HELP = "MLPerf training log (:::MLLOG lines): initialisation, steps or blocks, evaluations, result of the submission."

_MARK = ":::MLLOG"
_SNIFF = re.compile(rb':::MLLOG \{"namespace"')
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_POSITION = ("samples_count", "step", "step_num", "epoch_num", "first_epoch_num")  # where an entry says how far it is
_NAMED_MODELS = {"gpt3": "gpt3-175b", "llama31_405b": "llama3.1-405b", "llama31_8b": "llama3.1-8b"}
_LENGTHS = {"gpt3": 2048, "llama31_405b": 8192, "llama31_8b": 8192, "llama2_70b_lora": 8192}  # by MLPerf's rules
_NODES = re.compile(r"(\d{1,6}) ?x", re.ASCII)  # how a platform's name begins
_COUNTS = {  # what MLPerf calls it: what a run calls it
    "global_batch_size": "global_batch",
    "max_sequence_length": "sequence_length",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
_TEXTS = ("submission_benchmark", "submission_org", "submission_platform", "submission_division", "submission_status")
_MOST = 2_000_000  # entries of one log


def sniff(source: Source) -> float:
    return 0.85 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, lifecycle, scalars and facts. Raises InputError where there is no MLLOG line that can be read."""
    log = _Log(source)
    for offset, line, _ in lines(source):
        if _MARK in line:
            log.entry(offset, plain(line))
        elif line:
            log.evidence.see(offset, line, log.attempt)
        yield from log.scalars.full()
    if not log.events:
        raise InputError(
            "no MLLOG line with a time",
            where=source.name,
            expected='lines such as `:::MLLOG {"namespace": "", "time_ms": 1744812623767, "key": "run_start", ...}`',
        )
    yield from log.scalars.rest()
    found = starts(log.events)
    log.conclude(found)
    yield from log.lifecycle(found)
    yield from log.steps(found)
    yield from log.evidence.rest()
    for name, value in log.facts.items():
        yield Fact(name, value, log.bases.get(name, "measured"))
    yield from log.tally.lost()


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = source.name, Tally()
        self.evidence = Evidence(source, self.tally)
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "source")
        self.facts: dict[str, Any] = {}
        self.bases: dict[str, str] = {}
        self.events: list[Event] = []
        self.attempt, self.running = 0, False  # as far as the lines have come
        self.train_samples: int | None = None
        self.judged = 0  # values of eval_accuracy

    def entry(self, offset: int, line: str) -> None:
        start = line.find("{", line.find(_MARK))
        try:
            entry = _DECODER.raw_decode(line, start)[0] if start >= 0 else None
        except (ValueError, RecursionError):
            entry = None
        entry = entry if isinstance(entry, dict) else {}
        time_ms, key = whole(entry.get("time_ms")), entry.get("key")
        if time_ms is None or not fits(time_ms * 1_000_000) or not isinstance(key, str):
            self.tally.add("MLLOG lines", "cut off, no JSON, or without a time or a key", offset)
            return
        about = entry.get("metadata")
        self._event(key, time_ms * 1_000_000, entry.get("value"), about if isinstance(about, dict) else {})

    def _event(self, key: str, at: int, value: Any, about: dict) -> None:
        counts = next((name for name in _POSITION if _position(about.get(name))), "")
        position = float(about[counts]) if counts else None
        told: dict[str, Any] = {"position": position, "counts": counts}
        kind = key if key in RANKS else "progress" if counts and key != "eval_accuracy" else "other"
        self._follow(key)
        if key == "run_stop" and isinstance(status := about.get("status"), str):
            told["status"] = clean(status)[:100]
        elif key == "block_start" and _number(about.get("epoch_count")):
            told["counted"] = float(about["epoch_count"])
        elif key == "tracked_stats" and isinstance(value, dict):
            kind = self._stats(at, value, told)
        elif key == "eval_accuracy" and _number(value):
            self.judged += 1
            self.scalars.add(at, key, float(value), self.name)
        else:
            self._fact(key, value)
        if len(self.events) >= _MOST:
            raise InputError(f"more than {_MOST:,} entries", where=self.name, expected="the log of one training run")
        self.events.append(Event(at, kind, **told))

    def _follow(self, key: str) -> None:
        """Which start of the job other lines, which have no time, stand in."""
        if key == "init_start" and self.running:
            self.attempt += 1
        self.running = key == "run_start" or (self.running and key != "init_start")

    def _stats(self, at: int, stats: dict, told: dict[str, Any]) -> str:
        """What kind of event statistics are; what they tell of the steps goes into `told`."""
        dur_ns, kind = seconds_to_ns(stats.get("train_step_time")), "progress" if told["counts"] else "other"
        if dur_ns is not None and dur_ns >= 0:
            told["dur_ns"] = dur_ns
            kind = "progress"
        if _number(stats.get("throughput")):
            told["samples_per_s"] = float(stats["throughput"])
            kind = "progress"
        elif kind == "progress" and told["counts"] and "dur_ns" in told:
            kind, loss = "step", stats.get("reduced_train_loss", stats.get("loss"))
            told["loss"] = float(loss) if _number(loss) else None
            stats = {k: v for k, v in stats.items() if k not in ("train_step_time", "reduced_train_loss", "loss")}
        for name, value in stats.items():
            if _number(value):
                self.scalars.add(at, f"tracked_stats/{clean(name)[:80]}", float(value), self.name)
        return kind

    def _fact(self, key: str, value: Any) -> None:
        if key in _TEXTS and isinstance(value, str) and value:
            self.facts[key] = clean(value)[:200]
            if key == "submission_benchmark" and value in _NAMED_MODELS:
                self.facts["model"] = _NAMED_MODELS[value]
        elif key in _COUNTS and (count := whole(value)) and count > 0:
            self.facts[_COUNTS[key]] = count
        elif key == "train_samples" and (count := whole(value)) and count > 0:
            self.train_samples = count
        elif key in ("number_of_nodes", "accelerators_per_node") and (count := whole(value)) and count > 0:
            self.facts[key] = count
            if "number_of_nodes" in self.facts and "accelerators_per_node" in self.facts:
                self.facts["chips"] = self.facts["number_of_nodes"] * self.facts["accelerators_per_node"]

    def conclude(self, found: list[Start]) -> None:
        """Facts that follow from all entries."""
        status = next((s.stop.status for s in reversed(found) if s.stop and s.stop.status), None)
        if status is not None:
            self.facts["run_status"] = status
        if "sequence_length" not in self.facts and (length := _LENGTHS.get(self.facts.get("submission_benchmark", ""))):
            self.facts["sequence_length"], self.bases["sequence_length"] = length, "published"
        nodes = _NODES.match(self.facts.get("submission_platform", ""))
        ranks = max(start.ranks for start in found)
        if "chips" not in self.facts and nodes and ranks > int(nodes[1]) > 0 and ranks % int(nodes[1]) == 0:
            self.facts["chips"], self.bases["chips"] = ranks, "derived"  # each rank says when it starts

    def lifecycle(self, found: list[Start]) -> Iterator[Item]:
        life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "detail", "order", "source")
        rows, evaluations = [], 0
        for attempt, start in enumerate(found):
            detail = json.dumps({"status": start.stop.status}) if start.stop and start.stop.status else None
            rows.append(("job", start.begin, start.end, attempt, None, detail))
            if start.preparation is not None:
                rows.append(("training_preparation", *start.preparation, attempt, None, None))
            for one in start.intervals("eval", self.tally):
                evaluations += 1
                if start.end is not None and one.start >= start.end:
                    self.tally.add("evaluations", "done offline, after run_stop: no part of the run")
                else:
                    rows.append(("eval", one.start, one.end, attempt, None, None))
        if self.judged and not evaluations:
            self.tally.add(
                "evaluations",
                "results without a start and a stop: done offline, or inside the blocks, whose time then holds them",
                count=self.judged,
            )
        for order, row in enumerate(rows):
            life.add(*row, order, self.name)
            yield from life.full()
        yield from life.rest()

    def steps(self, found: list[Start]) -> Iterator[Item]:
        rows = Buffer(
            "steps",
            "attempt",
            "step",
            "start_ns",
            "dur_ns",
            "tokens_per_s_per_chip",
            "loss",
            "order",
            "logged_ns",
            "format",
            "source",
        )
        order = averaged = 0
        for attempt, start in enumerate(found):
            for some in self._steps_of(start):
                count = some.last - some.first
                each = (some.end - some.start) // count
                for n in range(count):
                    rows.add(
                        attempt,
                        some.first + n + 1,
                        some.start + n * each,
                        each,
                        self._tokens_per_s(each),
                        some.loss,
                        order,
                        some.logged,
                        NAME,
                        self.name,
                    )
                    order += 1
                if some.logged is None:
                    averaged += count
                    self.facts["steps_averaged_over"] = max(count, self.facts.get("steps_averaged_over", 0))
                yield from rows.full()
        if averaged:
            self.tally.add(
                "steps", "their time is the mean over a block, with whatever else was done in it", count=averaged
            )
        yield from rows.rest()

    def _steps_of(self, start: Start) -> Iterator[Steps]:
        if any(event.kind == "step" for event in self.events):
            return timed_steps(start, self.facts.get("global_batch", 1))
        known = dict(self.facts, train_samples=self.train_samples) if self.train_samples else self.facts
        return block_steps(start, known, self._counts_epochs(), self.tally)

    def _counts_epochs(self) -> bool:
        """Whether positions that are called epochs are epochs: many submissions count samples or tokens there."""
        batch = self.facts.get("global_batch")
        positions = [e.position for e in self.events if e.position is not None and "epoch" in e.counts]
        return bool(batch and self.train_samples and positions and max(positions) < batch <= self.train_samples)

    def _tokens_per_s(self, dur_ns: int) -> float | None:
        batch, length, chips = (self.facts.get(name) for name in ("global_batch", "sequence_length", "chips"))
        return batch * length / chips / (dur_ns / 1e9) if batch and length and chips and dur_ns else None


def _position(value: Any) -> bool:
    """A count of steps or samples is a number from 0 on that a float holds exactly."""
    return _number(value) and 0 <= value < 1 << 53


def _number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value)
