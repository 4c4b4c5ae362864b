"""What readers of step lines share: logs in which each step, or one in so many, has a line with its numbers.

Lines of several hosts are told apart by what stands before them; several processes of one host that print a step each
are entered once. A restart is told by the step number, or announced by the log. A step ends when its line is written.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collectors.base import Source
from collectors.reading.attempts import COARSE_NS, Lane, Lanes, Taken, highest
from collectors.reading.line_prefix import host_prefix
from collectors.reading.textlog import fits
from collectors.training.handled_lines import HandledLines
from collectors.training.unprinted import MOST, laid_around

NO_LOSSES: Mapping[int, float] = {}
NO_TIMES: Mapping[int, int | None] = {}


@dataclass(frozen=True)
class Told:
    """What a line tells of a step, and of those since the line before: `each_ns`, how long one took; `tokens_per_s` and
    `flops` (of a step, by the job's own count), both of a chip; the last step's `loss`."""

    each_ns: int | None
    tokens_per_s: float | None = None
    flops: float | None = None
    loss: float | None = None


@dataclass
class Host:
    """How far one host's log has come. `begun_ns`, `begun_step`: when an attempt began to train, with which step;
    `paused_ns`: saves since the last step line, or since the clock of its mean began anew behind one; `apart_ns`: those
    before that, which are in the time between the lines alone."""

    lanes: Lanes = field(default_factory=Lanes)
    begun_ns: int | None = None
    begun_step: int | None = None
    paused_ns: int = 0
    apart_ns: int = 0


class StepLines(HandledLines):
    """A log of steps that one format prints."""

    def __init__(self, source: Source, name: str):
        super().__init__(source, "kind", "start_ns", "end_ns", "attempt", "step", "host", "order", "source")
        self.format = name
        self.hosts: dict[str | None, Host] = defaultdict(Host)

    def taken(self, offset: int, prefix: str, step: int) -> tuple[str | None, Host, int | None, Taken] | None:
        """(name of the host, host, time of the line, where the step belongs); None for one that was entered already."""
        if not fits(step):
            self.tally.add("step lines", "they name a step but give no number for it", offset)
            return None
        name = host_prefix(prefix)
        host, at = self.hosts[name], self.clock.time_ns(prefix, offset)
        before = host.lanes.attempt
        for lane in host.lanes.now:
            if lane.last == step and _together(lane, at):
                self.tally.add("step lines", "other processes of a host printed it too: it is entered once", offset)
                return None
            if lane.last == step:
                host.lanes.restart()
                break
        taken = host.lanes.take(step, at)
        if host.lanes.attempt > before:
            host.begun_ns = host.begun_step = None
            host.paused_ns = host.apart_ns = 0
        self.attempt = highest(self.attempt, before, host.lanes, (one.lanes for one in self.hosts.values()))
        self.last_step = step
        return name, host, at, taken

    def begins(self, prefix: str, at: int | None, step: int | None) -> None:
        """The log says that training begins, with this step: a restart, where steps were taken before."""
        host = self.hosts[host_prefix(prefix)]
        if host.lanes.now:
            host.lanes.restart()
            self.attempt = max(self.attempt, host.lanes.attempt)
        host.begun_ns, host.begun_step, host.paused_ns, host.apart_ns = at, step, 0, 0

    def done(self, prefix: str, offset: int) -> None:
        """The log says, behind `prefix`, that the job has come to its end by itself."""
        if (at := self.clock.time_ns(prefix, offset)) is not None:
            self.life.add("job", None, at, self.attempt, self.last_step, None, self.order, self.source)
            self.order += 1

    def enter(
        self,
        name: str | None,
        taken: Taken,
        step: int,
        count: int,
        at: int | None,
        told: Told,
        every: str = "",
        losses: Mapping[int, float] = NO_LOSSES,
        ended: int | None = None,
        around: Sequence[tuple[int, int]] = (),
        own: Mapping[int, int | None] = NO_TIMES,
    ) -> None:
        """Rows of the `count` steps up to `step`, whose line was written at `at`. `every`: how the time of several is
        known. `losses`: of those before the last, where they are known. `ended`: when the last ended, where that was
        before its line. `around`: pauses between them (start, end), ns since the epoch. `own`: how long single ones
        took that took longer than the others."""
        end = at if ended is None else ended
        numbers = range(step - count + 1, step + 1)
        took = [own.get(n, told.each_ns) for n in numbers]
        known = [ns for ns in took if ns is not None]
        laid = laid_around(end, known, around) if end is not None and len(known) == count else None
        for k, n in enumerate(numbers):
            last = n == step
            row = (taken.start, n, name, None if laid is None else laid[k], took[k], told.tokens_per_s, told.flops)
            loss = told.loss if last and told.loss is not None else losses.get(n)
            self.steps.add(*row, loss, self.order, at if last else None, self.format, self.source)
            self.order += 1
        if count > 1:
            self.tally.add("steps", every, count=count)

    def values(self, at: int | None, step: int | None, found: Mapping[str, tuple[float, str | None]]) -> None:
        """Other numbers of a line, by name: (value, unit)."""
        for name, (value, unit) in found.items():
            self.scalars.add(at, step, name, value, unit, self.source)


def _together(lane: Lane, at: int | None) -> bool:
    """Whether processes of one host may have written both lines of a step: within the time that one takes, or with no
    times that tell otherwise."""
    return lane.at is None or at is None or abs(at - lane.at) <= max(COARSE_NS, lane.took_ns or 0)


def steps_since(before: int | None, step: int) -> int:
    """Of how many steps a line tells that stands behind that of step `before`; of the first line of a log: one."""
    return step - before if before is not None and 1 <= step - before <= MOST else 1
