"""On how many chips a training job ran, and when: it may be started again on fewer, or on more. Ingest counts the mean
over its time."""

from collections.abc import Iterator
from itertools import pairwise

from collectors.base import Fact
from collectors.reading.line_prefix import Clock

NAME = "job_ran"  # of a fact that ingest takes in, and no run keeps
SCHEDULER = "by_scheduler"  # in it, where a scheduler tells it, whose clock may be that of another zone
MOST = 10_000  # starts of a job in one log


class JobRan:
    """What a log says at each start of its job. A number that is said before any step was taken since the one before is
    of the same start: of these the largest counts, as of several logs."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._said: list[tuple[int, int | None]] = []  # chips, and from when on, ns since the epoch
        self._steps = 0

    @property
    def counts(self) -> list[int]:
        """The different numbers, from the smallest on."""
        return sorted({chips for chips, _ in self._said})

    def says(self, chips: int, steps: int, offset: int, line: str) -> None:
        """A line, at a byte `offset`, by which the job has so many chips; `steps`: rows of steps entered before it."""
        before = self._said[-1] if self._said else None
        if before is None or (steps > self._steps and chips != before[0] and len(self._said) < MOST):
            at = self._clock.time_ns(line, offset)
            self._said.append((chips, self._clock.latest_ns if at is None else at))
        elif steps == self._steps:
            self._said[-1] = max(chips, before[0]), before[1]
        self._steps = steps

    def facts(self) -> Iterator[Fact]:
        """One for each number, in their order; none where the log carries no times."""
        first, last = self._clock.first_ns, self._clock.latest_ns
        if first is None or last is None:
            return
        begins = [(chips, first if at is None else at) for chips, at in self._said]
        for (chips, at), (_, until) in pairwise([*begins, (0, last)]):
            if until > at:
                yield Fact(NAME, {"chips": chips, "first_ns": at, "last_ns": until}, "derived")
