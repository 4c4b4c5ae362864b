"""Training jobs whose history is known, and how their hosts told of it: files, clocks, names and rows in any order.

Nothing here knows how an analyzer works. A job is attempts of steps, each at a known time; a telling is the rows that
collectors would bring of the logs that hosts wrote of them.
"""

import random
from dataclasses import dataclass, field

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000
S = 1_000_000_000


@dataclass(frozen=True)
class Take:
    attempt: int
    step: int
    start_s: float
    dur_s: float

    @property
    def end_s(self) -> float:
        return self.start_s + self.dur_s


@dataclass
class TrueJob:
    """Attempts with their steps; the first step of each compiles. `repeats`: each restart takes steps again."""

    rng: random.Random
    attempts: int
    step_s: float
    repeats: bool = False
    takes: list[Take] = field(default_factory=list)

    def __post_init__(self) -> None:
        now, step = 0.0, 0
        for k in range(self.attempts):
            count = self.rng.randint(25, 60)
            for n in range(count):
                dur = self.step_s * (self.rng.uniform(0.9, 1.1) + (4 if n == 0 else 0))
                self.takes.append(Take(k, step + n, now, dur))
                now += dur
            step += count - self.rng.choice([*([] if self.repeats else [0, 0, 1]), 3, 10, count])
            now += max(300.0, 30 * self.step_s) + self.rng.uniform(0, 4000)

    @property
    def last_steps(self) -> list[int]:
        return [max(t.step for t in self.takes if t.attempt == k) for k in range(self.attempts)]

    @property
    def first_steps(self) -> list[int]:
        return [min(t.step for t in self.takes if t.attempt == k) for k in range(self.attempts)]

    @property
    def kept(self) -> list[tuple[int, int]]:
        """(attempt, step) of the takes that no later attempt took again."""
        begun = self.first_steps
        return [(t.attempt, t.step) for t in self.takes if all(t.step < b for b in begun[t.attempt + 1 :])]

    @property
    def held_s(self) -> float:
        return self.takes[-1].end_s - self.takes[0].start_s


@dataclass(frozen=True)
class Row:
    """A line of a log: a take as a host saw it."""

    take: Take
    host: str | None
    source: str
    order: int
    attempt: int | None
    start_s: float | None
    dur_s: float


def written(takes: list[Take], announced: bool) -> list[int]:
    """The attempt of each line by a collector: it grows where the number drops, or where a restart is announced."""
    out, attempt = [], 0
    for n, take in enumerate(takes):
        if n and (take.step < takes[n - 1].step or (announced and take.attempt != takes[n - 1].attempt)):
            attempt += 1
        out.append(attempt)
    return out


def log(
    rng: random.Random,
    takes: list[Take],
    source: str,
    host: str | None = None,
    *,
    clock_s: float = 0.0,
    jitter_s: float = 0.0,
    timed: bool = True,
    announced: bool = True,
) -> list[Row]:
    """One host's lines of these takes, in one file."""
    attempts = written(takes, announced)
    rows = []
    for n, (take, attempt) in enumerate(zip(takes, attempts, strict=True)):
        late = rng.uniform(0, jitter_s)
        start = take.start_s + clock_s + late if timed else None
        rows.append(Row(take, host, source, n, attempt, start, take.dur_s * rng.uniform(0.995, 1.0)))
    return rows


def tables(rows: list[Row], form: str = "maxtext") -> MemoryTables:
    at = [None if r.start_s is None else EPOCH + round(r.start_s * S) for r in rows]
    took = [round(r.dur_s * S) for r in rows]
    return MemoryTables(
        {
            "steps": {
                "step": [r.take.step for r in rows],
                "attempt": [r.attempt for r in rows],
                "host": [r.host for r in rows],
                "source": [r.source for r in rows],
                "order": [r.order for r in rows],
                "start_ns": at,
                "dur_ns": took,
                "logged_ns": [None if a is None else a + d for a, d in zip(at, took, strict=True)],
                "loss": [round(10 / (1 + r.take.step), 4) for r in rows],
                "format": [form] * len(rows),
                "model_flops_per_chip": [1e12] * len(rows),
            }
        }
    )


def renumbered(rows: list[Row]) -> list[Row]:
    """Rows of one file with places as they stand, and the attempts that a collector makes of them without hosts."""
    attempts = written([r.take for r in rows], announced=False)
    return [
        Row(r.take, None, rows[0].source, n, a, r.start_s, r.dur_s)
        for n, (r, a) in enumerate(zip(rows, attempts, strict=True))
    ]
