"""DeepSpeed's standard output: a line for one step in so many, and beside it how many samples a second it takes.

    dur_ns      the mean since the line before, where a step of the line's `CurrSamplesPerSec` (its last step alone, of
                a batch that the log tells) is near to it; else as long as that one: an evaluation lay between. Where no
                batch is told the time between the lines
    start_ns    from the line's own time, which is when the step ended
A step that an overflow of FP16 skipped took its time like any other. Lines of several engines (an actor, a critic) that
name the same step tell of one. Frameworks that print step lines of their own are read by theirs.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.textlog import is_text_log, seconds_to_ns, shows
from collectors.training.step_lines import StepLines, Told, steps_since
from collectors.training.unprinted import BETWEEN, printed_every, stood_for

NAME = "deepspeed"
TITLE = "DeepSpeed log"
HELP = (
    "DeepSpeed training log (standard output, steps_per_print): step times, samples per second, skipped steps, memory."
)

_STEP = re.compile(
    r"\[Rank \d{1,7}\] step=(\d{1,18}), skipped=(\d{1,18}), lr=\[(?:(\d+(?:\.\d*)?(?:e[-+]?\d+)?)[,\]])?", re.ASCII
)
_TIMED = re.compile(
    r"(?:global_step=|\b\d+/)(\d{1,18}), "
    r"(?:RunningAvgSamplesPerSec=[-+.\denaif]+, )?(?:Curr)?SamplesPerSec=([-+.\de]+)",
    re.ASCII,
)
_MEMORY = re.compile(r"\b(MemAllocated|MaxMemAllocated)=(\d{1,9}(?:\.\d+)?)GB", re.ASCII)
_BATCH = re.compile(r"\btrain_batch_size[ .:=\"']+(\d{1,12})\b", re.ASCII)
_WORLD = re.compile(r"\bworld_size[ .:=]+(\d{1,9})\b", re.ASCII)
_EXITED = re.compile(r"\[launch\.py:\d{1,5}:main\] Process \d{1,9} exits successfully", re.ASCII)
_NUMBER = re.compile(rb"\[Rank \d+\] step=(\d{1,18}), skipped=")
_SNIFF = re.compile(rb"\[Rank \d+\] step=\d+, skipped=\d+, lr=\[|\bRunningAvgSamplesPerSec=[\d.]+, CurrSamplesPerSec=")
_OTHERS = re.compile(rb"elapsed time per iteration|train_step_timing in s|-- arguments --")
EXPECTED = "lines such as `[Rank 0] step=10, skipped=0, lr=[9.6e-06], mom=[(0.9, 0.95)]`"


def sniff(source: Source) -> float:
    """Not where a framework that is built on it, such as Megatron's, prints step lines of its own."""
    mine = is_text_log(source) and _SNIFF.search(source.head)
    return 0.7 if mine and not shows(source, _OTHERS) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps and what stands beside them. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.stride = printed_every(source, _NUMBER)
        self.rate: tuple[int, float] | None = None  # step, its samples per second: some print it before the step's line
        self.waiting: tuple | None = None  # the last step line, until its rate has come
        self.handlers = (
            ("] step=", self.step),
            ("SamplesPerSec=", self.timed),
            ("train_batch_size", self.settings),
            ("world_size", self.settings),
            ("exits successfully", self.exited),
        )

    def ended(self) -> None:
        self._settle()

    def step(self, offset: int, line: str, whole: bool) -> None:
        if not (match := _STEP.search(line)):
            return
        step = int(match[1])
        if (taken := self.taken(offset, line[: match.start()], step)) is None:
            return
        self._settle()
        name, _, at, place = taken
        self.waiting = (name, place, step, at, place.lane.took_ns if place.before is not None else None)
        told = {"skipped": match[2], "lr": match[3]}
        self.values(at, step, {name: (float(value), None) for name, value in told.items() if value})

    def exited(self, offset: int, line: str, whole: bool) -> None:
        """Its launcher says of each process of a host that it has ended."""
        if match := _EXITED.search(line):
            self._settle()
            self.done(line[: match.start()], offset)

    def timed(self, offset: int, line: str, whole: bool) -> None:
        if not whole or not (match := _TIMED.search(line)):
            return
        try:
            rate = int(match[1]), float(match[2])
        except ValueError:
            return
        if self.waiting and self.waiting[2] != rate[0]:
            self._settle()  # its own stood before it
        self.rate = rate
        found = {name: (float(value), "GB") for name, value in _MEMORY.findall(line)}
        self.values(self.waiting[3] if self.waiting else None, rate[0], found)
        if self.waiting:
            self._settle()

    def settings(self, offset: int, line: str, whole: bool) -> None:
        for pattern, name in ((_BATCH, "global_batch"), (_WORLD, "chips")):
            if whole and (match := pattern.search(line)) and int(match[1]):
                self.facts[name] = int(match[1])

    def _settle(self) -> None:
        """Enter the step line that waits for its rate."""
        if self.waiting is None:
            return
        name, place, step, at, gap = self.waiting
        self.waiting = None
        batch, rate = self.facts.get("global_batch"), self.rate[1] if self.rate and self.rate[0] == step else None
        alone = seconds_to_ns(batch / rate) if isinstance(batch, int) and rate and rate > 0 else None
        if alone:
            count, each = stood_for(step, place.before, self.stride, alone, gap)
        else:
            count = steps_since(place.before, step)
            each = gap // count if gap is not None and gap > 0 else None
        self.enter(name, place, step, count, at, Told(each), BETWEEN)
        if rate is not None:
            self.values(at, step, {"samples per second": (rate, None)})
