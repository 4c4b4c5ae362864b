"""Which start of the job the step lines of a log belong to.

A step number that drops tells of a restart, unless the lines are of several hosts, mixed into one file without saying
whose they are: then each host's numbers rise on their own. `Lanes` tells the two apart by what comes next: a host goes
on where it was, a job that was started again does not come back to where it had been.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from collectors.base import Rows
from collectors.reading.textlog import Buffer

LAG_LINES = 8  # lines of steps by which one host's output may lag behind another's; and until a restart is certain
MOST_LANES = 1024  # hosts in one file
COARSE_NS = 2 * 10**9  # times are often printed to the second


@dataclass
class Start:
    """A start of the job. Its number may yet turn out to be that of the one before."""

    number: int


@dataclass(slots=True, eq=False)
class Lane:
    """Step numbers that rise: of one host, or of the whole job. `at`: the time of its last line; `took_ns`: between its
    last two; None where not known."""

    last: int
    at: int | None = None
    took_ns: int | None = None


@dataclass(slots=True)
class Taken:
    """Where a step line belongs. `before`: the lane's step before it, None where that is not known."""

    start: Start
    lane: Lane
    before: int | None


@dataclass
class Lanes:
    """The lanes of lines that name one host, or none. `stride`: from one printed step to the next."""

    start: Start = field(default_factory=lambda: Start(0))
    now: list[Lane] = field(default_factory=list)
    stride: int = 1
    _doubted: list[tuple[Start, list[Lane]]] = field(default_factory=list)  # restarts not certain yet, lanes before
    _ends: dict[int, int] = field(default_factory=dict)  # where lanes before these end: the first in `_doubted` of each
    _since: int = 0

    @property
    def attempt(self) -> int:
        return self.start.number

    def restart(self) -> None:
        """The log says that the job was started again."""
        self.start = Start(self.attempt + 1)
        self.now = []
        self._certain()

    def take(self, step: int, at: int | None = None, dur_ns: int | None = None) -> Taken:
        """Enter the next step line. `at`: its time, `dur_ns`: how long it says that a step took, where it has these."""
        if len(self.now) == 1 and not self._doubted and step > self.now[0].last:  # nearly every line of every log
            taken = self._go_on(self.now[0], step)
        else:
            taken = self._among(step, at, dur_ns)
        lane = taken.lane
        lane.took_ns = None if at is None or lane.at is None else at - lane.at
        lane.at = at
        return taken

    def _among(self, step: int, at: int | None, dur_ns: int | None) -> Taken:
        """Enter a line where several hosts may have written, or a restart may have been."""
        if self._doubted:
            self._doubt(step)
        if not self.now:
            return self._open(step)
        top = max(self.now, key=lambda lane: lane.last)
        if step > top.last:
            return self._go_on(top, step)
        for lane in self.now:
            if self._goes_on(lane, step):
                return self._go_on(lane, step)
        if (
            step == top.last
            and len(self.now) < MOST_LANES
            and not much_later(top.at, at, dur_ns if top.took_ns is None else top.took_ns)
        ):  # another host's
            return self._open(step, step - self.stride)
        before, self._since = self.now, 0
        self.now, self.start = [], Start(self.attempt + 1)
        if len(self._doubted) >= MOST_LANES:  # as in a file that begins with its last step: no host comes back so late
            self._certain(MOST_LANES // 2, len(self._doubted))
        self._doubted.append((self.start, before))
        self._end(len(self._doubted) - 1)
        return self._open(step)

    def _goes_on(self, lane: Lane, step: int) -> bool:
        return lane.last + self.stride == step

    def _open(self, step: int, before: int | None = None) -> Taken:
        lane = Lane(step)
        self.now.append(lane)
        return Taken(self.start, lane, before)

    def _go_on(self, lane: Lane, step: int) -> Taken:
        before = lane.last
        lane.last, self.stride = step, step - before
        if len(self.now) > 1:
            self.now = [other for other in self.now if step - other.last <= LAG_LINES * self.stride]
        return Taken(self.start, lane, before)

    def _doubt(self, step: int) -> None:
        """Whether what looked like restarts was other hosts' lines."""
        self._since += 1
        back = self._ends.get(step - self.stride)
        if back is not None and not any(self._goes_on(lane, step) for lane in self.now):
            number = self._doubted[back][0].number - 1
            lanes = list[Lane]()
            for start, before in reversed(self._doubted[back:]):
                start.number = number
                lanes += before
            self.now = [*lanes, *self.now][-MOST_LANES:]
            self._certain(0, back)
        elif self._since >= LAG_LINES:
            self._certain()

    def _certain(self, first: int = 0, last: int = 0) -> None:
        """Of the restarts only those from `first` to before `last` are in doubt still."""
        self._doubted, self._ends = self._doubted[first:last], {}
        for n in range(len(self._doubted)):
            self._end(n)

    def _end(self, n: int) -> None:
        for lane in self._doubted[n][1]:
            self._ends.setdefault(lane.last, n)


def highest(known: int, before: int, lanes: Lanes, hosts: Iterable[Lanes]) -> int:
    """The attempt of a log of many hosts: the highest of any, which was `known` before a line of one was entered, whose
    attempt was `before`. All are looked through only where that was the highest, and no restart after all."""
    if lanes.attempt >= known:
        return lanes.attempt
    return known if before < known else max(one.attempt for one in hosts)


def much_later(before: int | None, at: int | None, took_ns: int | None) -> bool:
    """Whether a line of the same step came so long after another that no host beside that one's can have written it,
    nor one host twice: hosts end a step together, within the time that a step takes. False where that is not known."""
    if before is None or at is None or took_ns is None:
        return False
    return at - before > max(COARSE_NS, took_ns)


STEP_COLUMNS = (  # what a log of step lines tells of a step
    "step",
    "host",
    "start_ns",
    "dur_ns",
    "tokens_per_s_per_chip",
    "model_flops_per_chip",
    "loss",
    "order",
    "logged_ns",
    "format",
    "source",
)


class StepRows(Buffer):
    """Rows of `steps`, each with its Start, which becomes the attempt when rows are handed on."""

    def __init__(self, *columns: str):
        super().__init__("steps", "attempt", *columns)

    def rest(self) -> Iterator[Rows]:
        self.rows = [(start.number, *others) for start, *others in self.rows]
        yield from super().rest()
