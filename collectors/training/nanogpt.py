"""Output of nanoGPT and of what grew out of it (modded-nanogpt and its records).

nanoGPT prints `iter 10: loss 9.8973, time 1516.37ms, mfu 14.60%`:
    dur_ns      the milliseconds, of this iteration alone. Those of one before which the log tells of an evaluation hold
                that too: it took as long as the iteration printed before it, unknown where there is none
    scalars     `mfu`, a running mean against the peak of an A100, whatever the chip was: no FLOPs are made of it
modded-nanogpt prints `step:126/1480 train_time:29076ms step_avg:250.65ms`:
    dur_ns      what `train_time` grew since the line before over the steps since; the clock stands during validations,
                and is set to zero after some first steps: the line behind that tells the time itself. The first step
                holds compilation
Validations are scalars (eval/loss ...). start_ns is told where something dates the lines. Of what stands in the output
before the steps, the program itself, nothing is taken for a failure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from collectors.base import Item, Source
from collectors.reading.line_prefix import host_prefix
from collectors.reading.textlog import clean, seconds_to_ns, shows
from collectors.training.step_lines import StepLines, Told, steps_since
from collectors.training.unprinted import BETWEEN, printed_every, stood_for

NAME = "nanogpt"
TITLE = "nanoGPT log"
HELP = "Output of nanoGPT and modded-nanogpt: step times, loss, validations."

_NUMBER = r"([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf))"
_ITERATION = re.compile(
    rf"\biter (\d{{1,18}}): loss {_NUMBER}, time (\d{{1,12}}(?:\.\d+)?)ms(?:, mfu {_NUMBER}%)?", re.A
)
_EVALUATED = re.compile(rf"\bstep (\d{{1,18}}): train loss {_NUMBER}, val loss {_NUMBER}", re.ASCII)
_STEP = re.compile(r"(?:^|\s)step:(\d{1,18})/(\d{1,18}) (.{0,400}?)\btrain_time:(\d{1,15})ms(.{0,200})", re.ASCII)
_PAIR = re.compile(r"\b([a-z]\w{0,40}):(-?\d{1,15}(?:\.\d{1,20})?|nan|inf)(?=\s|$)", re.ASCII)
_MEAN = re.compile(r"step_avg:(\d{1,12}(?:\.\d+)?)ms", re.ASCII)
_PARAMETERS = re.compile(r"number of parameters: (\d{1,6}\.\d+)M\b", re.ASCII)
_CHIP = re.compile(r"^\| +\d{1,3} +(NVIDIA \S.{0,60}?) +(?:On|Off) +\|", re.ASCII)
_PEAK_MEMORY = re.compile(
    r"peak memory (?:consumption|allocated): (\d{1,9}) MiB(?: reserved: (\d{1,9}) MiB)?", re.ASCII
)
_SNIFF = re.compile(
    rb"(?m)\biter \d+: loss [-\d.naif]+, time \d+(?:\.\d+)?ms"
    rb"|(?:^|\s)step:\d+/\d+ (?:\w{1,40}:\S{1,30} ){0,6}train_time:\d+ms step_avg:"
)
_PRINTED = re.compile(rb"\biter (\d{1,18}): loss ")
_RULE = "=" * 100  # about the program, which stands before its output
EXPECTED = (
    "lines such as `iter 10: loss 9.9, time 1516.4ms, mfu 14.6%` or `step:12/1480 train_time:499ms step_avg:250ms`"
)
HELD = "an evaluation lies in their time: they took as long as the one printed before"
EVERY = "not each has a line: those between two took the mean since the line before"


def sniff(source: Source) -> float:
    return 0.9 if shows(source, _SNIFF) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, evaluations and the job's settings. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


@dataclass(frozen=True)
class _Shown:
    """How far the clock of training stood at a step, ms."""

    step: int
    ms: int


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.evident = not source.head.startswith(_RULE.encode())
        self.rules = 0
        self.apart = printed_every(source, _PRINTED)
        self.evaluated: int | None = None
        self.usual_ns: int | None = None  # of the iteration printed last that holds no evaluation
        self.shown: dict[str | None, _Shown] = {}
        self.handlers = (
            ("train_time:", self.step),
            ("iter ", self.iteration),
            (": train loss ", self.evaluation),
            (_RULE, self.rule),
            ("number of parameters: ", self.about),
            ("peak memory ", self.about),
            ("NVIDIA ", self.about),
        )

    def iteration(self, offset: int, line: str, whole: bool) -> None:
        match = _ITERATION.search(line)
        if not match or not (whole or line[match.end() :].strip()):
            return
        prefix, step, printed = line[: match.start()], int(match[1]), seconds_to_ns(float(match[3]) / 1e3)
        if (taken := self.taken(offset, prefix, step)) is None:
            return
        name, _, at, place = taken
        held, self.evaluated = self.evaluated == step, None
        took = printed
        if held and printed is not None:
            took = self.usual_ns if self.usual_ns is not None and self.usual_ns < printed else None
            self._paused(at, step, printed, took)
            self.tally.add("iterations", HELD, offset)
        elif printed is not None:
            self.usual_ns = printed
        gap = place.lane.took_ns if place.before is not None else None
        count, each = (1, None) if took is None else stood_for(step, place.before, self.apart, took, gap)
        self.enter(name, place, step, count, at, Told(each, loss=float(match[2])), BETWEEN)
        if match[4] and float(match[4]) >= 0:  # below zero until it was worked out
            self.values(at, step, {"mfu": (float(match[4]), "%")})

    def _paused(self, at: int | None, step: int, printed: int, took: int | None) -> None:
        """An evaluation, with which an iteration begins."""
        if took is None:
            return
        if at is None:
            self.values(None, step, {"eval_runtime": ((printed - took) / 1e9, "s")})
        else:
            self.life.add("eval", at - printed, at - took, self.attempt, step, None, self.order, self.source)
            self.order += 1

    def evaluation(self, offset: int, line: str, whole: bool) -> None:
        if (match := _EVALUATED.search(line)) and (whole or line[match.end() :].strip()):
            self.evaluated = int(match[1])
            at = self.clock.time_ns(line[: match.start()], offset)
            losses = {"eval/train loss": (float(match[2]), None), "eval/loss": (float(match[3]), None)}
            self.values(at, self.evaluated, losses)

    def step(self, offset: int, line: str, whole: bool) -> None:
        match = _STEP.search(line)
        if not match or not (whole or match[5]):
            return
        prefix, step, shown_ms = line[: match.start()], int(match[1]), int(match[4])
        at = self.clock.time_ns(prefix, offset)
        pairs = {name: float(value) for name, value in _PAIR.findall(match[3])}
        self.facts["planned_steps"] = int(match[2])
        evals = {f"eval/{n.removeprefix('val_')}": (v, None) for n, v in pairs.items() if n.startswith("val_")}
        self.values(at, step, evals)
        host = host_prefix(prefix)
        before = self.shown.get(host)
        if step == 0:
            self.begins(prefix, at, 1)
            self.shown[host] = _Shown(0, shown_ms)
        elif before is None or step != before.step or not evals:
            self._trained(
                offset, prefix, _Shown(step, shown_ms), before, _MEAN.search(match[5]), pairs.get("train_loss")
            )

    def _trained(
        self,
        offset: int,
        prefix: str,
        shown: _Shown,
        before: _Shown | None,
        mean: re.Match[str] | None,
        loss: float | None,
    ) -> None:
        """Steps up to one at which the clock is shown, after it stood as it did `before`."""
        if (taken := self.taken(offset, prefix, shown.step)) is None:
            return
        name, _, at, place = taken
        if before is not None and before.step >= shown.step:
            before = None  # the job was started again
        self.shown[host_prefix(prefix)] = shown
        count = steps_since(before.step if before else None, shown.step)
        grown = shown.ms if before is None or shown.ms < before.ms else shown.ms - before.ms
        each: int | None = grown * 10**6 // count
        if (before is None and shown.step > 1) or (before is not None and count > 1 and shown.ms < before.ms):
            each = seconds_to_ns(float(mean[1]) / 1e3) if mean else None  # of an unknown number of steps
        self.enter(name, place, shown.step, count, at, Told(each, loss=loss), EVERY)

    def rule(self, offset: int, line: str, whole: bool) -> None:
        self.rules += 1
        self.evident = self.evident or self.rules > 1

    def about(self, offset: int, line: str, whole: bool) -> None:
        if match := _PARAMETERS.search(line):
            self.facts["parameters"] = float(match[1]) * 1e6
        elif match := _CHIP.search(line):
            self.facts["chip"] = clean(match[1])
        elif match := _PEAK_MEMORY.search(line):
            found = {"peak memory": match[1], "peak memory reserved": match[2]}
            self.values(None, self.last_step, {n: (float(v), "MiB") for n, v in found.items() if v})
