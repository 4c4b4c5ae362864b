"""torchtitan's standard output: a line for one step in so many, as each rank prints it.

    dur_ns                  the mean since the line before: tokens of a step and device over `tps`, where the log tells
                            the batch, the sequence and the mesh; else the time between the lines. What a save took that
                            the trainer waited for is taken off, but of `tps` where a validation behind it, from which
                            on that is counted anew, has left it out. Of the first line no longer than since training
                            began.
    tokens_per_s_per_chip   `tps`: tokens per second and device, of which the saves are taken off too
    model_flops_per_chip    `tflops` times the mean, else `mfu` times the peak that the log names
    start_ns                from the line's own time, which is when the step ended
    job                     from the line that names the job as its first rank was started, to that which says that the
                            training was completed; without an end where no line says so
Steps between two lines took the mean as well. `validate step` is told as scalars.

Forks that print pairs (`step=10 global_avg_loss=6.88 throughput(tps)=268.1 end_to_end(s)=27.49 ...`) tell the time
since the line before over the steps from one line to the next as a rule, whatever it was: of step 10 behind step 1 over
ten. It is multiplied by these again. Their lines may be dated to the second.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite

from collectors.base import Item, Source
from collectors.reading.attempts import Taken
from collectors.reading.line_prefix import host_prefix
from collectors.reading.textlog import NS_PER_S, is_text_log, seconds_to_ns
from collectors.training.step_lines import Host, StepLines, Told, steps_since

Value = tuple[float, str | None]  # with its unit

NAME = "torchtitan"
TITLE = "torchtitan log"
HELP = "torchtitan training log (standard output): step times, throughput, loss, memory, checkpoints, mesh and batch."

_STEP = re.compile(r"(validate )?step: +(\d{1,18}) +(loss: .*)", re.ASCII)
_FIELD = re.compile(
    r"([A-Za-z][\w/]{0,79}): +(-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|-?inf|nan)(GiB|%)?(?:\((\d+(?:\.\d+)?)%\))?(?=\s|$)",
    re.ASCII,
)
_PAIRED = re.compile(r"\bstep=(\d{1,18}) (?=global_avg_loss=)", re.ASCII)
_PAIR = re.compile(
    r"([A-Za-z]\w{0,79})(?:\((\w{1,12}|%)\))?=(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?|-?inf|nan)(?=\s|$)", re.ASCII
)
_PRINTED = re.compile(rb"\bstep=(\d{1,18}) global_avg_loss=")
_BEGINS = re.compile(r"Training starts at step (\d{1,18})(?!\d)", re.ASCII)
_SAVED = re.compile(r"Finished saving the checkpoint.{0,60}? ?in (\d+(?:\.\d+)?) seconds", re.ASCII)
_LOADED = re.compile(r"Finished loading the checkpoint.{0,60}? in (\d+(?:\.\d+)?) seconds", re.ASCII)
_NUMBERS = {  # what the log calls it: what a run calls it
    re.compile(r"\blocal batch size (\d{1,12})\b", re.ASCII): "per_device_batch_size",
    re.compile(r"\bglobal batch size (\d{1,12})\b", re.ASCII): "global_batch",
    re.compile(r"\bgradient accumulation steps (\d{1,9})\b", re.ASCII): "gradient_accumulation_steps",
    re.compile(r"\bsequence length (\d{1,12})\b", re.ASCII): "sequence_length",
    re.compile(r"\btotal steps (\d{1,15})\b", re.ASCII): "planned_steps",
}
_TOKENS = re.compile(r"\b(\d{1,15}) tokens per train step\b", re.ASCII)
_MESH = re.compile(r"Building (?:\d-D )?device mesh with (?:parallelism: ([\w=, ]+)|(\[[\w', ]+\]), (\[[\d, ]+\]))")
_AXES = {"pp": "pipeline", "tp": "tensor", "cp": "context", "ep": "expert"}  # what is no data parallelism
_BESIDE = ("ep", "etp")  # axes that share the devices of others
_MODEL = re.compile(r"Model (\S{1,60}) (\S{1,60}) size: ([\d,]{1,24}) total parameters")
_CHIP = re.compile(r"\b(?:CUDA|GPU|XPU|HPU) capacity: (.{1,80}?) with [\d.]+GiB memory")
_PEAK = re.compile(r"Peak FLOPS used for computing MFU: (\d\.\d+e\+\d+)")
_STARTED = "Starting job: "
_COMPLETED = " - Training completed"
_SPREAD_NS = 60 * NS_PER_S  # ranks that stand in one log without a name print the same line within this time
_SNIFF = re.compile(rb"(?<!validate )step: *\d+(?:\s|\x1b\[\d+m){2,8}loss: {1,3}-?[\dni].{0,200}?tps: *[\d,]+")
_SNIFF_TITLE = re.compile(rb"(?m)^(?:\[\w+\]:|\d+: )?\[titan\] \d{4}-\d\d-\d\d \d\d:")
_OWN = ("loss", "tps", "tflops")
_NAMES = {"global_avg_loss": "loss", "throughput": "tps"}
EXPECTED = "lines such as `step: 10  loss: 3.25  memory: 9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%`"
EVERY = "not each has a line: those between two took the mean since the line before"


def sniff(source: Source) -> float:
    if not is_text_log(source):
        return 0.0
    if _SNIFF.search(source.head) or _PRINTED.search(source.head):
        return 0.9
    return 0.8 if _SNIFF_TITLE.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, saves, other numbers and what the log tells of the job. Raises InputError where it holds none of them."""
    yield from _Log(source).read(source, EXPECTED)


@dataclass
class _Pause:
    """A save or a restore: its end (None: not dated), the step before it, and how long it was told to last, ns."""

    end: int | None
    step: int | None
    took: int


@dataclass
class _Job:
    """One start of the job: when it was, when and in which attempt the job was done, whether it came to train, and when
    who told of it."""

    start: int | None = None
    end: int | None = None
    attempt: int = 0
    trains: bool = False
    told: dict[str | None, int] = field(default_factory=dict)


class _Log(StepLines):
    def __init__(self, source: Source):
        super().__init__(source, NAME)
        self.peak: float | None = None
        self.tokens: int | None = None  # of a step, over all devices
        self.pauses: dict[tuple[str, str | None], _Pause] = {}  # the last of each kind, by host and of all
        self.restores: list[tuple[int, int]] = []  # that wait to hear for which attempt
        self.validated: int | None = None
        self.jobs: list[_Job] = []
        self.near: dict[int, _Job] = {}  # the last that was started in each _SPREAD_NS
        self.apart = _lines_apart(source.head)
        self.handlers = (
            ("step: ", self.step),
            ("global_avg_loss=", self.paired),
            ("Training starts at step", self.begin),
            ("inished saving the checkpoint", self.saved),
            ("inished loading the checkpoint", self.loaded),
            ("Trainer is initialized with", self.settings),
            ("device mesh with", self.mesh),
            (" total parameters", self.model),
            (" capacity: ", self.chip),
            ("Peak FLOPS", self.chip),
            (_STARTED, self.started),
            (_COMPLETED, self.completed),
        )

    def step(self, offset: int, line: str, whole: bool) -> None:
        if not (match := _STEP.search(line)):
            return
        prefix, step, fields = line[: match.start()], int(match[2]), _fields(match[3], whole)
        if match[1]:
            self._validated(offset, prefix, step, fields)
            return
        if not fields or (taken := self.taken(offset, prefix, step)) is None:
            return
        self._training()
        self._restored()
        self._entered(*taken, step, fields)

    def paired(self, offset: int, line: str, whole: bool) -> None:
        if not (match := _PAIRED.search(line)):
            return
        fields = _pairs(line[match.end() :], whole)
        if fields and (taken := self.taken(offset, line[: match.start()], int(match[1]))) is not None:
            self._entered(*taken, int(match[1]), fields)

    def _entered(
        self, name: str | None, host: Host, at: int | None, place: Taken, step: int, fields: dict[str, Value]
    ) -> None:
        before = place.before if place.before is not None else host.begun_step and host.begun_step - 1
        count = steps_since(before, step)
        told = self._told(host, at, place.lane.took_ns if place.before is not None else None, count, fields)
        self.enter(name, place, step, count, at, told, EVERY)
        self.values(at, step, {n: v for n, v in fields.items() if n not in _OWN})
        host.begun_ns, host.paused_ns, host.apart_ns = None, 0, 0

    def _validated(self, offset: int, prefix: str, step: int, fields: dict[str, Value]) -> None:
        """From a validation on `tps` is counted anew. All ranks tell of it."""
        host = self.hosts[host_prefix(prefix)]
        host.apart_ns, host.paused_ns = host.apart_ns + host.paused_ns, 0
        if step != self.validated:
            self.values(self.clock.time_ns(prefix, offset), step, {f"eval/{n}": v for n, v in fields.items()})
        self.validated = step

    def _told(self, host: Host, at: int | None, gap: int | None, count: int, fields: dict) -> Told:
        """Of `count` steps whose line was written at `at`, `gap` ns behind the one before."""
        rate, loss = (fields[n][0] if n in fields else None for n in ("tps", "loss"))
        chips = self.facts.get("chips")
        mean = self.tokens / chips / rate if self.tokens and isinstance(chips, int) and rate else None  # as printed, s
        paired = mean is None and self.apart and "end_to_end" in fields
        if paired:
            mean = fields["end_to_end"][0] * self.apart / count
        took = gap if gap is not None else at - host.begun_ns if at is not None and host.begun_ns is not None else None
        printed = None if mean is None else seconds_to_ns(mean * count)
        if paired and took and printed and abs(took - printed) <= NS_PER_S:
            took = printed
        whole = min((ns for ns in (took, printed) if ns is not None and ns > 0), default=None)
        if mean is None and gap is not None and whole:
            mean = whole / count / 1e9
        each = None if whole is None else whole // count
        paused = host.paused_ns + (host.apart_ns if whole != printed else 0)
        if each and 0 < paused < (whole or 0):
            each = ((whole or 0) - paused) // count
        tokens = rate if rate is None or not each or mean is None else rate * mean * 1e9 / each
        return Told(each, tokens, self._flops(fields, mean), loss)

    def _flops(self, fields: dict, mean: float | None) -> float | None:
        """FLOPs of a step and device, whose mean time in seconds this is."""
        if "tflops" in fields:
            rate = fields["tflops"][0] * 1e12
        elif self.peak and "mfu" in fields:
            rate = fields["mfu"][0] / 100 * self.peak
        else:
            return None
        return rate * mean if mean and rate > 0 and isfinite(rate) else None

    def begin(self, offset: int, line: str, whole: bool) -> None:
        if match := _BEGINS.search(line):
            prefix = line[: match.start()]
            self.begins(prefix, self.clock.time_ns(prefix, offset), int(match[1]))
            self._training()
            self._restored()
            self.settings(offset, line, whole)

    def saved(self, offset: int, line: str, whole: bool) -> None:
        if (found := self._pause("save", _SAVED.search(line), offset, line)) is not None:
            self.life.add("checkpoint_save", *found, self.attempt, self.last_step, None, self.order, self.source)
            self.order += 1

    def loaded(self, offset: int, line: str, whole: bool) -> None:
        if (found := self._pause("restore", _LOADED.search(line), offset, line)) is not None:
            self.restores.append(found)

    def _restored(self) -> None:
        """Enter what was restored, now that it is known for which attempt."""
        for found in self.restores:
            self.life.add("checkpoint_restore", *found, self.attempt, None, None, self.order, self.source)
            self.order += 1
        self.restores = []

    def started(self, offset: int, line: str, whole: bool) -> None:
        """Each rank tells of it, and those of a start that failed before its first step tell of it once more."""
        prefix = line[: line.index(_STARTED)]
        name, at = host_prefix(prefix), self.clock.time_ns(prefix, offset)
        if at is None:
            return
        job = self._told_by_others(name, at)
        if job is None:
            job = self.jobs[-1] if self.jobs else None
            if job is None or job.trains or at - job.told.get(name, at) > _SPREAD_NS:
                job = self.near[at // _SPREAD_NS] = _Job(at)
                self.jobs.append(job)
        job.told[name] = at

    def _told_by_others(self, name: str | None, at: int) -> _Job | None:
        """The start that other hosts told of at this time, however far the log has come: their lines may stand one
        host behind the other."""
        nearest = (self.near.get(at // _SPREAD_NS + n) for n in (0, -1, 1))
        return next((job for job in nearest if job and name not in job.told and _near(job.start, at)), None)

    def completed(self, offset: int, line: str, whole: bool) -> None:
        if (at := self.clock.time_ns(line[: line.index(_COMPLETED)], offset)) is not None:
            job = self._training()
            if job.end is not None and self.attempt > job.attempt:  # one behind it, of whose start no line tells
                job = _Job(trains=True)
                self.jobs.append(job)
            job.end, job.attempt = at, self.attempt

    def _training(self) -> _Job:
        """The start of the job that trains now; of a log whose beginning is not there one that nothing tells of."""
        if not self.jobs:
            self.jobs.append(_Job())
        self.jobs[-1].trains = True
        return self.jobs[-1]

    def ended(self) -> None:
        self._restored()
        if any(job.trains for job in self.jobs):  # of a log that never trained nothing is told
            for attempt, job in enumerate(self.jobs):
                if job.start is not None or job.end is not None:
                    self.life.add("job", job.start, job.end, attempt, None, None, self.order, self.source)
                    self.order += 1

    def _pause(self, what: str, match: re.Match | None, offset: int, line: str) -> tuple[int, int] | None:
        """(start, end) of what the trainer waited for; None where nothing dates it, or another rank told of it."""
        took = seconds_to_ns(float(match[1])) if match else None
        if match is None or took is None:
            return None
        prefix = line[: match.start()]
        name, at = host_prefix(prefix), self.clock.time_ns(prefix, offset)
        more = self._longer((what, name or ""), at, took)
        if what == "save":
            self.hosts[name].paused_ns += more
        if at is None:
            self.tally.add("saves and restores", "the log dates nothing: no place in the lifecycle", offset)
            return None
        return (at - took, at) if self._longer((what, None), at, took) == took else None

    def _longer(self, key: tuple[str, str | None], at: int | None, took: int) -> int:
        """By how much a pause is longer than what was told of it before, by other ranks; ns."""
        before = self.pauses.get(key)
        if before is None:
            same = False
        elif at is None or before.end is None:
            same = before.step == self.last_step
        else:
            same = at - took < before.end
        if before is None or not same:
            self.pauses[key] = _Pause(at, self.last_step, took)
            return took
        more = max(took - before.took, 0)
        before.took += more
        return more

    def settings(self, offset: int, line: str, whole: bool) -> None:
        for pattern, name in _NUMBERS.items():
            if (match := pattern.search(line)) and whole:
                self.facts[name] = int(match[1])
        batch, length = self.facts.get("global_batch"), self.facts.get("sequence_length")
        if match := _TOKENS.search(line):
            self.tokens = int(match[1])
        elif isinstance(batch, int) and isinstance(length, int):
            self.tokens = batch * length

    def mesh(self, offset: int, line: str, whole: bool) -> None:
        if not whole or not (match := _MESH.search(line)):
            return
        if match[1]:
            pairs = [part.strip().split("=") for part in match[1].split(",")]
        else:
            pairs = list(zip(re.findall(r"\w+", match[2]), re.findall(r"\d+", match[3]), strict=False))
        sizes = {p[0]: int(p[1]) for p in pairs if len(p) == 2 and p[1].isdigit() and 0 < int(p[1]) < 1 << 20}
        chips, data = 1, 1
        for axis, size in sizes.items():
            chips *= 1 if axis in _BESIDE else size
            data *= size if axis not in _AXES and axis not in _BESIDE else 1
        axes = {"data": data, **{_AXES[axis]: size for axis, size in sizes.items() if axis in _AXES}}
        if sizes:
            self.facts["chips"] = chips
        if axes := {axis: size for axis, size in axes.items() if size > 1}:
            self.facts["parallelism"] = axes

    def model(self, offset: int, line: str, whole: bool) -> None:
        if (match := _MODEL.search(line)) and (digits := match[3].replace(",", "")).isdigit():
            self.facts["parameters"] = float(digits)

    def chip(self, offset: int, line: str, whole: bool) -> None:
        if match := _CHIP.search(line):
            self.facts["chip"] = match[1]
        elif match := _PEAK.search(line):
            self.peak = float(match[1])


def _near(start: int | None, at: int) -> bool:
    return start is not None and abs(at - start) <= _SPREAD_NS


def _lines_apart(head: bytes) -> int | None:
    """How many steps lie from one line of pairs to the next as a rule; the first step has a line of its own."""
    printed = [int(n) for n in _PRINTED.findall(head)]
    apart = Counter(b if a == 1 else b - a for a, b in pairwise(printed) if b > a)
    return apart.most_common(1)[0][0] if apart else None


def _pairs(text: str, whole: bool) -> dict[str, Value]:
    """The pairs of a line by the names that other lines have, with their units; the last is left out where the file
    ends in it."""
    found: dict[str, Value] = {}
    for match in _PAIR.finditer(text):
        if not whole and match.end() == len(text):
            break
        name = _NAMES.get(match[1], match[1])
        unit = match[2] if match[2] in ("s", "%", "GiB") else None
        found[f"{name} share" if unit == "%" and name in found else name] = float(match[3]), unit
    return found


def _fields(text: str, whole: bool) -> dict[str, Value]:
    """The `name: value` pairs of a step line with their units; the last is left out where the file ends in it."""
    found: dict[str, Value] = {}
    for match in _FIELD.finditer(text):
        if not whole and match.end() == len(text) and match[3] != "%":
            break
        found[match[1]] = float(match[2].replace(",", "")), match[3]
        if match[4]:
            found[f"{match[1]} share"] = float(match[4]), "%"
    return found
