"""nanotron's standard output: a line for one iteration in so many, its numbers to three figures (1.05M, 12.3K).

    dur_ns                  time_per_iteration_ms, until 2025 elapsed_time_per_iteration_ms: of this iteration alone.
                            Those between two lines took the mean since the line before, where the lines are dated and
                            no pause shows, else as long as the printed one
    tokens_per_s_per_chip   tokens_per_sec_per_gpu
    model_flops_per_chip    model_tflops_per_gpu * 1e12 * the printed time
    loss                    lm_loss
    start_ns                from the line's own time, which is when the iteration ended
    chips                   tokens_per_sec over tokens_per_sec_per_gpu, where the figures of all lines leave one whole
                            number
Other numbers of a line become scalars.
"""

import re
from collections.abc import Iterator
from math import floor, isfinite, log10, nan

from collectors.base import Item, Source
from collectors.reading.textlog import seconds_to_ns, shows
from collectors.training.step_lines import StepLines, Told
from collectors.training.unprinted import BETWEEN, printed_every, stood_for

NAME = "nanotron"
TITLE = "nanotron log"
HELP = "nanotron training log (standard output): iteration times, tokens per second, TFLOP/s, loss, the batch."

_STEP = re.compile(r"\biteration: (\d{1,18}) / (\d{1,18}) \| (.*)", re.ASCII)
_FIELD = re.compile(
    r"([A-Za-z][\w/]{0,79}): ([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf))([KMGBTP]?)(?=\s*(?:\||$))", re.ASCII
)
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
_TIMES = ("time_per_iteration_ms", "elapsed_time_per_iteration_ms")
_RATE, _ALL, _TFLOPS, _LOSS = "tokens_per_sec_per_gpu", "tokens_per_sec", "model_tflops_per_gpu", "lm_loss"
_OWN = {*_TIMES, _RATE, _TFLOPS, _LOSS}
_BATCH = re.compile(
    r"\bmbs: (\d{1,9}) \| grad_accum: (\d{1,9}) \|.{0,80}? sequence_length: (\d{1,12}) "
    r"\| global_batch_size: (\d{1,12}) ",
    re.ASCII,
)
_PARAMETERS = re.compile(r"Total number of parameters: (\d{1,6}(?:\.\d+)?)([KMGBT]) \(", re.ASCII)
_SNIFF = re.compile(rb"\biteration: \d+ / \d+ \| consumed_tokens: ")
_PRINTED = re.compile(rb"\biteration: (\d{1,18}) / \d")
EXPECTED = "lines such as `iteration: 5 / 100 | consumed_tokens: 1.05M | time_per_iteration_ms: 12.3K | ...`"
NO_TIME = "they name an iteration but give no time for it"
ROUNDED = "printed to three figures"


def sniff(source: Source) -> float:
    return 0.9 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, other numbers and the batch. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.apart = printed_every(source, _PRINTED)
        self.chips = (1.0, 1e7)  # at least and at most, by what all lines so far leave
        self.handlers = (("iteration: ", self.step), ("mbs: ", self.batch), ("Total number of par", self.parameters))

    def step(self, offset: int, line: str, whole: bool) -> None:
        if (match := _STEP.search(line)) is None:
            return
        prefix, step, fields = line[: match.start()], int(match[1]), _fields(match[3], whole)
        ms = next((fields[name] for name in _TIMES if name in fields), None)
        printed = None if ms is None or ms < 0 else seconds_to_ns(ms / 1e3)
        if printed is None:
            self.tally.add("step lines", NO_TIME, offset)
            return
        if (taken := self.taken(offset, prefix, step)) is None:
            return
        name, _, at, place = taken
        self.facts["planned_steps"] = int(match[2])
        self._count_chips(fields)
        gap = place.lane.took_ns if place.before is not None else None
        count, each = stood_for(step, place.before, self.apart, printed, gap)
        rate = fields.get(_TFLOPS, 0.0) * 1e12
        flops = rate * printed / 1e9 if rate > 0 and isfinite(rate) else None
        tokens = one if isfinite(one := fields.get(_RATE, nan)) else None
        self.enter(name, place, step, count, at, Told(each, tokens, flops, fields.get(_LOSS)), BETWEEN)
        self.tally.add("times and rates of steps", ROUNDED, offset)
        self.values(at, step, {n: (value, None) for n, value in fields.items() if n not in _OWN})

    def _count_chips(self, fields: dict[str, float]) -> None:
        """What is left of how many chips there are by the rates of all of them and of one."""
        among, one = fields.get(_ALL, 0.0), fields.get(_RATE, 0.0)
        if not (0 < among < 1e18 and 0 < one < 1e18):
            return
        off, off_one = _half(among), _half(one)
        least, most = self.chips
        self.chips = max(least, (among - off) / (one + off_one)), min(most, (among + off) / (one - off_one))

    def ended(self) -> None:
        least, most = self.chips
        if max(least, most) < 1e7 and floor(most) == floor(least - 1e-9) + 1:
            self.facts["chips"] = floor(most)

    def batch(self, offset: int, line: str, whole: bool) -> None:
        if match := _BATCH.search(line):
            names = ("micro_batch", "gradient_accumulation_steps", "sequence_length", "global_batch")
            self.facts |= {name: int(match[n]) for n, name in enumerate(names, 1)}

    def parameters(self, offset: int, line: str, whole: bool) -> None:
        if match := _PARAMETERS.search(line):
            self.facts["parameters"] = float(match[1]) * _SCALES[match[2]]


def _half(value: float) -> float:
    """Half of the last of three figures."""
    return 0.5 * 10.0 ** (floor(log10(value)) - 2)


def _fields(text: str, whole: bool) -> dict[str, float]:
    """The `name: number` pieces between bars; the last is left out where the file ends in it."""
    found = {}
    for match in _FIELD.finditer(text):
        if whole or match.end() < len(text):
            found[match[1]] = float(match[2]) * _SCALES[match[3]]
    return found
