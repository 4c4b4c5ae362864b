"""MaxText standard output, of every era.

A step line is `completed step: N` followed by at least one `name: number`. What it brings:

    dur_ns                  seconds, printed to the millisecond, less an evaluation that they include
    model_flops_per_chip    TFLOP/s/device * 1e12 * seconds: the job's own convention, as coarse as those milliseconds
    tokens_per_s_per_chip   Tokens/s/device
    logged_ns               the line's own time, where it has a full date. A glog date lacks the year: it is taken from
                            a full date in the log or in the file's name (the nearest one), else the time stays null.
    start_ns                logged_ns less the duration; late by the moment the job takes to print a step after its end;
                            of steps that are printed behind the evaluation after them, before it (`maxtext_evals`)
    attempt                 grows where the step number drops (unless the lines are of hosts mixed in one file, see
                            `attempts`), or where a restart is announced between two steps
An evaluation takes what its steps say, else the time since the step before it, or since its own first line.
What Orbax saves and restores takes what its lines say (`orbax_lines`), until they were written.
Every other `name: number` becomes a row of `scalars`, lines that tell why something failed rows of `evidence`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

from collectors.base import Item, Source
from collectors.reading.attempts import Lanes, much_later
from collectors.reading.line_prefix import host_prefix
from collectors.reading.textlog import fits, is_text_log, seconds_to_ns
from collectors.training import orbax_lines
from collectors.training.handled_lines import HandledLines
from collectors.training.maxtext_config import Config
from collectors.training.maxtext_evals import Evaluating, Evaluation
from collectors.training.step_fields import NUMBER

NAME = "maxtext"
TITLE = "MaxText log"
HELP = "MaxText training log (standard output, kubectl logs): step times, throughput, loss, restarts, saves, setup."

_STEP = re.compile(r"completed (?:profiler activation/deactivation )?step: *(\d{1,19})(?!\d)(.*)", re.ASCII)
_BELOW_ZERO = re.compile(r"completed step: *-\d")
_EVAL = re.compile(
    r"(?:Completed eval after train step|eval metrics after step:?|average loss after step\W)\s*(\d{1,18})(?!\d):?(.*)",
    re.ASCII,
)
_EVAL_STEP = re.compile(r"Completed eval step:? *\d+(?:, seconds: *(\d{1,9}\.\d{3}))?", re.ASCII)
_RESTART = re.compile(
    r"Slice down event|Scale up requested\. Retrying|New slice available\. Retrying|Elastic attempt \d+ out of"
    r"|Restoring checkpoint from|restoring from this run's directory"
)
_CONFIG = re.compile(r"Config param (\w+): *(.*)")
_PLAIN_FACT = re.compile(
    r"Num_devices: (?P<devices>\d{1,9}),"
    r"|number parameters: (?P<parameters_billion>\d{1,9}\.\d{1,9}) billion"
    r"|TFRT (?P<chip>TPU v\w+(?: lite| pod)?)",
    re.ASCII,
)
_FIELD_NAME = re.compile(r"[A-Za-z][\w /()%.+-]{0,79}", re.ASCII)
_COMPLETE_END = re.compile(r"(?:\.\d{3,}|nan|inf|%)\W*$", re.ASCII | re.IGNORECASE)
_END = 200  # characters in which a line shows whether it is complete
_SNIFF_STEP = re.compile(rb"completed step: *\d+, (?:seconds|TFLOP|loss)")
_SNIFF_CONFIG = re.compile(rb"Config param (?:model_name|per_device_batch_size|max_target_length|ici_\w{1,40}): ")

EXPECTED = "lines such as `completed step: 7, seconds: 1.234, TFLOP/s/device: 180.000, ...`"
_OWN_COLUMNS = {"seconds", "TFLOP/s/device", "TFLOP/s", "Tokens/s/device", "loss"}


def sniff(source: Source) -> float:
    if not is_text_log(source):
        return 0.0
    if _SNIFF_STEP.search(source.head):
        return 0.9
    return 0.8 if _SNIFF_CONFIG.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, evaluations, other metrics and configuration. Raises InputError where the log holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


@dataclass
class _Host:
    """How far one host's log has come, or that of several that name themselves nowhere. `reached`: the highest step of
    this attempt, `reached_ns`: when the first of them printed it."""

    lanes: Lanes = field(default_factory=Lanes)
    reached: int | None = None
    reached_ns: int | None = None
    last_step: int | None = None
    last_text: str = ""
    last_ns: int | None = None
    last_dur_ns: int | None = None
    evaluating: Evaluating = field(default_factory=Evaluating)


class _Log(HandledLines):
    def __init__(self, source: Source):
        columns = ("kind", "start_ns", "end_ns", "attempt", "step", "host", "logged_ns", "detail", "order", "source")
        super().__init__(source, *columns)
        self.hosts: dict[str | None, _Host] = defaultdict(_Host)
        self.config = Config()
        self.handlers = (
            ("completed ", self.step),
            ("Config param ", self.config_line),
            *((needle, self.checkpoint) for needle in orbax_lines.NEEDLES),
            ("eval", self.evaluation),
            ("estor", self.restart),
            ("Retrying", self.restart),
            ("Elastic attempt", self.restart),
            ("Num_devices: ", self.plain_fact),
            ("number parameters: ", self.plain_fact),
            ("TFRT TPU ", self.plain_fact),
        )

    def ended(self) -> None:
        for host_name, host in self.hosts.items():
            self.enter(host_name, host)
        self.facts |= self.config.facts

    def step(self, offset: int, line: str, whole: bool) -> None:
        match = _STEP.search(line)
        if not match:
            if _BELOW_ZERO.search(line):
                self.tally.add("step lines", "their step is below zero: refused", offset)
            return
        step, tail = int(match[1]), match[2].strip()
        fields = _fields(tail, ":", cut_off=not (whole or _COMPLETE_END.search(tail[-_END:])))
        if not fields or not fits(step):
            self.tally.add("step lines", "they name a step but give no number for it", offset)
            return
        prefix = line[: match.start()]
        host_name = host_prefix(prefix)
        host = self.hosts[host_name]
        at = self.clock.time_ns(prefix, offset)
        seconds = fields.get("seconds", -1.0)
        duration = seconds_to_ns(seconds) if seconds >= 0 else None
        again = step == host.last_step and tail == host.last_text
        if again and not much_later(host.last_ns, at, duration):
            host.lanes.take(step, at, duration)  # another host's perhaps, which goes on from there
            self.tally.add("step lines", "each repeats the line before it word for word", offset)
            return
        before = host.lanes.attempt
        taken = host.lanes.take(step, at, duration)
        if host.lanes.attempt > before:
            self.enter(host_name, host)
            host.reached = None
        if host.reached is None or step > host.reached:
            host.evaluating.end(None)  # its end was never written, or its last steps are other hosts' of the one before
            host.reached, host.reached_ns = step, at
        start, took = None if at is None or duration is None else at - duration, duration
        if (ended := host.evaluating.ended) is not None and at is not None and duration is not None:
            start, took = ended.placed(step, at, duration)
            if step > ended.after:
                self.enter(host_name, host)
        host.last_step, host.last_text, host.last_ns, host.last_dur_ns = step, tail, at, duration
        self.attempt, self.last_step = host.lanes.attempt, step

        tflops = fields.get("TFLOP/s/device", fields.get("TFLOP/s"))
        flops = tflops * 1e12 * seconds if tflops is not None and duration else None  # printed 0.000: not known
        tokens = _finite(fields.get("Tokens/s/device"))
        if took and duration and took < duration:
            tokens = tokens and tokens * duration / took
        self.steps.add(
            taken.start,
            step,
            host_name,
            start,
            took,
            tokens,
            _finite(flops),
            fields.get("loss"),
            self.order,
            at,
            NAME,
            self.source,
        )
        self.order += 1
        for name, value in fields.items():
            if name not in _OWN_COLUMNS:
                self.scalars.add(at, step, name, value, None, self.source)

    def evaluation(self, offset: int, line: str, whole: bool) -> None:
        if match := _EVAL_STEP.search(line):
            prefix = line[: match.start()]
            at = self.clock.time_ns(prefix, offset)
            host = self.hosts[host_prefix(prefix)]
            trained = host.reached_ns if host.reached is not None else None
            host.evaluating.step(at, seconds_to_ns(float(match[1] or 0)) or 0, trained)
            return
        match = _EVAL.search(line)
        if not match:
            return
        prefix, step, tail = line[: match.start()], int(match[1]), match[2].strip()
        host_name = host_prefix(prefix)
        host = self.hosts[host_name]
        at = self.clock.time_ns(prefix, offset)
        duration, start = host.evaluating.end(at)
        for name, value in _fields(tail, "=", cut_off=not (whole or _COMPLETE_END.search(tail[-_END:]))).items():
            self.scalars.add(at, step, f"eval/{name.removeprefix('eval_')}", value, None, self.source)
        if duration:
            self.scalars.add(at, step, "eval/seconds", duration / 1e9, "s", self.source)
        if at is None:
            self.tally.add("evaluations", "the log gives no time for them: no place in the lifecycle", offset)
            return
        if (ended := host.evaluating.ended) is not None and ended.is_told_again(step, at, host.last_dur_ns):
            ended.goes_on_to(at, host.last_dur_ns)
            return
        self.enter(host_name, host)
        since = host.reached_ns if host.reached is not None and host.reached < step else None
        attempt, usual_ns = host.lanes.attempt, host.last_dur_ns
        host.evaluating.ended = Evaluation(step, start, at, since, attempt, self.order, usual_ns)
        self.order += 1

    def enter(self, host_name: str | None, host: _Host) -> None:
        """Enter the evaluation that a host has done, once: all lines that tell when it began have been read."""
        if (one := host.evaluating.ended) is not None and not one.entered:
            self.life.add(
                "eval", one.start, one.end, one.attempt, one.after, host_name, one.end, None, one.order, self.source
            )
            one.entered = True

    def checkpoint(self, offset: int, line: str, whole: bool) -> None:
        if not whole or (found := orbax_lines.checkpoint(line)) is None:
            return
        prefix = line[: found.before]
        host_name, at = host_prefix(prefix), self.clock.time_ns(prefix, offset)
        if at is None:
            self.tally.add("saves and restores", "the log gives no time for them: no place in the lifecycle", offset)
            return
        attempt = self.hosts[host_name].lanes.attempt
        self.life.add(
            found.kind, at - found.dur_ns, at, attempt, found.step, host_name, at, found.detail, self.order, self.source
        )
        self.order += 1

    def restart(self, offset: int, line: str, whole: bool) -> None:
        if match := _RESTART.search(line):
            host_name = host_prefix(line[: match.start()])
            host = self.hosts[host_name]
            if host.last_step is not None:
                self.enter(host_name, host)
                host.lanes.restart()
                host.evaluating = Evaluating()
                self.attempt, host.last_step, host.reached = host.lanes.attempt, None, None

    def config_line(self, offset: int, line: str, whole: bool) -> None:
        match = _CONFIG.search(line)
        if not match or not whole:  # cut off, perhaps in the middle of the value
            return
        self.config.say(match[1], match[2])

    def plain_fact(self, offset: int, line: str, whole: bool) -> None:
        match = _PLAIN_FACT.search(line)
        if not match:
            return
        if match["devices"]:
            self.facts["devices"] = int(match["devices"])
        elif match["parameters_billion"]:
            self.facts["parameters"] = float(match["parameters_billion"]) * 1e9
        else:
            self.facts["chip"] = match["chip"]


def _fields(tail: str, colon: str, cut_off: bool) -> dict[str, float]:
    """The `name: number` pairs of a line; the last is left out where the file ends in the middle of it."""
    fields = {}
    parts = tail.split(",")
    for part in parts[:-1] if cut_off else parts:
        name, found, text = part.partition(colon)
        number = NUMBER.match(text)
        name = name.strip()
        if found and number and _FIELD_NAME.fullmatch(name):
            fields[name] = float(number[1])
    return fields


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
