"""verl: steps of reinforcement learning (PPO, GRPO, DAPO ...) or of fine-tuning, in two shapes.

Its console prints one line a step, `step:7 - actor/pg_loss:-0.01 - timing_s/gen:12.5 - ...`, and its file logger
(`trainer.logger=[file]`) writes `{"step":7,"data":{"actor/pg_loss":-0.01, ...}}`.

    dur_ns                  timing_s/step (else perf/time_per_step, else train/time(s)), less the validation and the
                            save in it: timers stand in the order in which they ended, so those before timing_s/step
                            were within. Versions of early 2025 print timing/gen ... without a step: the sum of these
                            phases, which come one after the other.
    tokens_per_s_per_chip   perf/throughput, tokens of prompts and answers per second and GPU; over the same time
    loss                    actor/pg_loss, else train/loss
    model_flops_per_chip    null: perf/mfu/actor is of the update alone, and of a peak that no line tells; a step
                            generates and scores as well
    start_ns                where something dates the lines, which are written when a step, its validation and its save
                            have ended: those are laid before it in the order of their timers
    steps_generate          a fact: a phase of generation was timed, so that no rate of tokens tells an MFU
    chips                   perf/total_num_tokens over perf/throughput and seconds, where that is a whole number
All other numbers become `scalars`: the phases of a step in seconds. A line of validations alone is no step. A job that
ended before its first step tells what ended it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite

from collectors.base import Fact, Item, Rows, Source
from collectors.reading.textlog import clean, is_text_log, seconds_to_ns, shows, whole
from collectors.training.step_lines import StepLines, Told
from errors import InputError

NAME = "verl"
TITLE = "verl log"
HELP = (
    "verl console output, or the JSON lines of its file logger: steps of reinforcement learning with the time of each "
    "phase, tokens per second, rewards, what ended the job."
)

_STEP = re.compile(r"(?:^|[\s)\]>|])step:(\d{1,18}) - (?=\S)", re.ASCII)
_NUMBER = re.compile(
    r"(?:np\.\w{1,16}\()?([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,4})?|[-+]?(?:nan|inf))(?=[)(\s]|$)", re.ASCII
)
_TRUTHS = {"True": 1.0, "False": 0.0}
_LONGEST_NAME = 200  # characters
_RESUMED = re.compile(r"Setting global step to (\d{1,18})\b", re.ASCII)
_PLANNED = re.compile(r"Total training steps: (\d{1,15})\s*$", re.ASCII)
_EXPERIMENT = re.compile(r"'experiment_name': '([^']{1,200})'|\btrainer\.experiment_name=([^'\"\s,\]]{1,200})")
_NODES = re.compile(r"\btrainer\.nnodes=(\d{1,6})\b", re.ASCII)
_EACH = re.compile(r"\btrainer\.n_gpus_per_node=(\d{1,4})\b", re.ASCII)
_OTHERS = re.compile(r"(?<!trainer)\.n_gpus_per_node=[1-9]", re.ASCII)  # generation has GPUs of its own
_SNIFF = re.compile(
    rb"(?:^|[\s)\]>m|])step:\d{1,18} - [A-Za-z][\w@().-]{0,60}/[\w/@().-]{1,120}:(?:np\.\w{1,16}\()?-?[\d.naifTF]"
)
_SNIFF_RECORD = re.compile(rb'\s*\{"step": ?\d{1,18}, ?"data": ?\{')
_SNIFF_BEGUN = re.compile(
    rb"\{'actor_rollout_ref': \{'actor'"
    rb"|Error executing job with overrides: \[(?:(?!Error executing job).){0,4000}?\bactor_rollout_ref\."
    rb'|/verl/trainer/main_\w{1,40}\.py", line \d'
)
_LENGTHS = ("length", "ratio", "preempted")  # how names of timers end that are no times
EXPECTED = "lines such as `step:1 - actor/pg_loss:0.01 - timing_s/gen:12.5 - timing_s/step:40.1`"
SUMMED = "no line tells how long they took: the sum of their phases"
NO_TIME = "they tell a step without saying how long it took"
UNDATED = "the log dates nothing: no place in the lifecycle"

STEP_S = ("timing_s/step", "timing/step", "perf/time_per_step", "train/time(s)")
LOSSES = ("actor/pg_loss", "train/loss")
RATE, TOKENS = "perf/throughput", "perf/total_num_tokens"
PAUSES = {"testing": "eval", "save_checkpoint": "checkpoint_save"}  # timers of what is no step: rows of the lifecycle


def sniff(source: Source) -> float:
    if _SNIFF_RECORD.match(source.head.removeprefix(b"\xef\xbb\xbf")):
        return 0.95
    if not is_text_log(source):
        return 0.0
    # A server's lines of the engine that generates stand in it too: surer than those who know these.
    return 0.95 if shows(source, _SNIFF) else 0.93 if _SNIFF_BEGUN.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, their phases and other numbers, validations, saves, what ended the job. Raises InputError where the file
    holds none of them."""
    if _SNIFF_RECORD.match(source.head.removeprefix(b"\xef\xbb\xbf")):
        yield from _Records(source).read(source, 'lines such as `{"step":1,"data":{"timing_s/step":40.1}}`')
    else:
        yield from _Console(source).read(source, EXPECTED)


@dataclass(frozen=True)
class _Times:
    """What timers tell of an iteration, in ns: `took`, of the step alone; `printed`, with the pauses within it;
    `pauses`: (kind, how long), in the order in which they ended; `generating`: whether it had a phase of that."""

    took: int | None
    printed: int | None
    pauses: tuple[tuple[str, int], ...]
    generating: bool
    summed: bool = False


class _Log(StepLines):
    """What both shapes tell."""

    def __init__(self, source: Source):
        super().__init__(source, NAME)

    def told(self, offset: int, prefix: str, step: int, numbers: Mapping[str, float]) -> None:
        """The numbers of an iteration, in the order in which they were written."""
        at = self.clock.time_ns(prefix, offset) if prefix else None
        if not _trained(numbers):
            self.values(at, step, {name: (value, unit_of(name)) for name, value in numbers.items()})
            return
        if (taken := self.taken(offset, prefix, step)) is None:
            return
        name, _, at, place = taken
        times = _times(numbers)
        if times.took is None:
            self.tally.add("steps", NO_TIME, offset)
        elif times.summed:
            self.tally.add("steps", SUMMED, offset)
        rate, loss = _finite(numbers, RATE), next((numbers[n] for n in LOSSES if n in numbers), None)
        self._count_chips(numbers, times.printed)
        if times.generating:
            self.facts["steps_generate"] = True
        if rate and times.took and times.printed:
            rate = rate * times.printed / times.took if rate < 1e15 else None
        ended = self._pauses(offset, at, step, times)
        self.enter(name, place, step, 1, at, Told(times.took, rate, None, loss), ended=ended)
        own = {*STEP_S, *LOSSES, RATE}
        self.values(at, step, {n: (value, unit_of(n)) for n, value in numbers.items() if n not in own})

    def _pauses(self, offset: int, at: int | None, step: int, times: _Times) -> int | None:
        """When the step itself ended: validations and saves lie between that and the line."""
        if not times.pauses or at is None:
            if times.pauses:
                self.tally.add("validations and saves", UNDATED, offset, len(times.pauses))
            return at
        start = ended = at - sum(took for _, took in times.pauses)
        for kind, took in times.pauses:
            self.life.add(kind, start, start + took, self.attempt, step, None, self.order, self.source)
            start += took
            self.order += 1
        return ended

    def _on_chips(self, offset: int, line: str) -> None:
        """They are reckoned from rates, which are rounded: another number is no other start."""

    def _count_chips(self, numbers: Mapping[str, float], printed: int | None) -> None:
        """Devices: tokens of a step over its tokens per second and device. These are printed to three decimals at
        least, so what is no whole number is another count."""
        tokens, rate = _finite(numbers, TOKENS), _finite(numbers, RATE)
        if not tokens or not rate or not printed or min(tokens, rate) <= 0:
            return
        of_one = rate * printed / 1e9
        chips = tokens / of_one if of_one else inf
        if 0.5 < chips < 1e6 and abs(chips - round(chips)) <= min(0.1, 0.005 * chips):
            self.facts["chips"] = round(chips)


class _Records(_Log):
    """The file logger's JSON lines. They are numbers alone: no line tells why something happened."""

    evident = False

    def __init__(self, source: Source):
        super().__init__(source)
        self.handlers = (("", self.record),)

    def record(self, offset: int, line: str, whole_line: bool) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        step, data = (record.get("step"), record.get("data")) if isinstance(record, dict) else (None, None)
        step = whole(step)
        if step is None or step < 0 or not isinstance(data, dict):
            self.tally.add("lines", "they are no JSON object with a whole `step` and `data`", offset)
            return
        numbers, left = {}, 0
        for name, value in data.items():
            if _is_number(value) and len(name) <= _LONGEST_NAME:
                numbers[_name(name)] = float(value)
            elif value is not None:  # what is not finite is written as null
                left += 1
        if left:
            self.tally.add("values", "they are no numbers", offset, left)
        self.told(offset, "", step, numbers)


class _Console(_Log):
    """What the job prints."""

    def __init__(self, source: Source):
        super().__init__(source)
        self.handlers = (
            ("step:", self.step),
            ("Setting global step to", self.resumed),
            ("Total training steps: ", self.planned),
            ("experiment_name", self.overrides),
            ("n_gpus_per_node=", self.overrides),
        )

    def step(self, offset: int, line: str, whole_line: bool) -> None:
        if (match := _STEP.search(line)) is None:
            return
        parts = line[match.end() :].split(" - ")
        if not whole_line and len(parts) > 1:
            parts.pop()  # it may be cut in the middle
        numbers, left = {}, 0
        for part in parts:
            name, value = _pair(part)
            if name and value is not None and len(name) <= _LONGEST_NAME:
                numbers[_name(name)] = value
            else:
                left += 1
        if left:
            self.tally.add(
                "values of step lines", "they are no numbers, or another line was written into them", offset, left
            )
        if numbers:
            self.told(offset, line[: match.start()], int(match[1]), numbers)

    def resumed(self, offset: int, line: str, whole_line: bool) -> None:
        if match := _RESUMED.search(line):
            self._begun(offset, line[: match.start()], int(match[1]) + 1)

    def planned(self, offset: int, line: str, whole_line: bool) -> None:
        if whole_line and (match := _PLANNED.search(line)):
            self.facts["planned_steps"] = int(match[1])
            self._begun(offset, line[: match.start()], None)

    def _begun(self, offset: int, prefix: str, step: int | None) -> None:
        self.begins(prefix, self.clock.time_ns(prefix, offset), step)

    def overrides(self, offset: int, line: str, whole_line: bool) -> None:
        """What the job was started with: the configuration as it was printed, or what was given on its command line."""
        if match := _EXPERIMENT.search(line):
            self.facts["job_name"] = clean(match[1] or match[2])
        nodes, each = _NODES.search(line), _EACH.search(line)
        if nodes and each and not _OTHERS.search(line) and "chips" not in self.facts:
            self.facts["chips"] = int(nodes[1]) * int(each[1])

    def read(self, source: Source, expected: str) -> Iterator[Item]:
        """What is known of the job alone is no answer to anything: one that ended before its first step, where no line
        tells why, is refused."""
        told = False
        for item in super().read(source, expected):
            told |= isinstance(item, Rows)
            if told or not isinstance(item, Fact):
                yield item
        if not told:
            raise InputError(
                "a verl job that came to no step, and no line tells what ended it",
                where=source.name,
                expected=expected,
                advice="Give the output to its end, with what the launcher or the scheduler wrote.",
            )


def _trained(numbers: Mapping[str, float]) -> bool:
    """Whether an iteration trained: else it is a validation before the first step, or behind the last."""
    return any(
        not (name.startswith(("val", "training/")) or name.rpartition("/")[2] in ("testing", "validate"))
        for name in numbers
    )


def _times(numbers: Mapping[str, float]) -> _Times:
    timers = {name.partition("/")[2]: name for name in numbers if name.startswith(("timing_s/", "timing/"))}
    printed = next((ns for n in STEP_S if n in numbers and (ns := _ns(numbers[n]))), None)
    generating = any(n.startswith("gen") for n in timers)
    order = list(numbers)
    end = next((order.index(timers[n]) for n in ("step",) if n in timers), -1)
    pauses = [(PAUSES[n], order.index(name), _ns(numbers[name])) for n, name in timers.items() if n in PAUSES]
    within = sum(took or 0 for _, place, took in pauses if place < end)
    found = tuple((kind, took) for kind, _, took in pauses if took)
    if printed is not None:
        return _Times(printed - within if within < printed else printed, printed, found, generating)
    if not any(name.startswith("timing/") for name in numbers):
        return _Times(None, None, found, generating)
    phases = [_ns(numbers[name]) for n, name in timers.items() if "/" not in n and n not in PAUSES]
    total = sum(took or 0 for took in phases) or None
    return _Times(total, total, found, generating, True)


def _ns(seconds: float) -> int | None:
    """What took no time, or less, was not measured."""
    took = seconds_to_ns(seconds)
    return took if took is not None and took > 0 else None


@lru_cache(maxsize=4096)  # each line has the same names
def _name(text: str) -> str:
    return clean(text.strip())


@lru_cache(maxsize=4096)
def unit_of(name: str) -> str | None:
    """The unit of a number, by its name; memory that verl calls GB is counted in GiB."""
    group, _, rest = name.partition("/")
    if group in ("timing_s", "timing"):
        return None if rest.endswith(_LENGTHS) else "s"
    if group == "timing_per_token_ms":
        return "ms"
    if name.endswith(("_gb", "(GB)")):
        return "GiB"
    return "s" if name in STEP_S else None


def _finite(numbers: Mapping[str, float], name: str) -> float | None:
    value = numbers.get(name)
    return value if value is not None and isfinite(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1e300)


def _pair(part: str) -> tuple[str, float | None]:
    """The name and the value of a piece of a line. Names may hold a colon, and so may what another process wrote
    behind a value."""
    name, _, text = part.partition(":")
    if (value := _value(text)) is None:
        name, _, text = part.rpartition(":")
        value = _value(text)
    return name, value


def _value(text: str) -> float | None:
    """What a value of the console says: a number as Python or NumPy writes it, or a truth."""
    text = text.strip()
    match = _NUMBER.match(text)
    return float(match[1]) if match else _TRUTHS.get(text)
