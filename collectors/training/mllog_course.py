"""The course of a run from the entries of an MLPerf log: its starts, its intervals, and the steps it took.

A log may hold several starts: a job that was put into the queue again writes on in the same file. A start begins with
the first entry behind the last work of the one before, where `init_start` comes again after `run_start`, or `run_start`
after work. Entries are sorted by their times first: many ranks write into one file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from collectors.reading.textlog import NS_PER_S, Tally

DONE = ("block_stop", "eval_start", "eval_stop", "step", "progress", "run_stop")  # tells that work was done
WORK = ("run_start", "block_start", *DONE)
RANKS = {  # entries of one millisecond in the order in which they must have happened
    "block_stop": 0,
    "eval_stop": 0,
    "init_start": 1,
    "init_stop": 1,
    "other": 1,
    "run_start": 2,
    "step": 3,
    "progress": 3,
    "block_start": 4,
    "eval_start": 4,
    "run_stop": 5,
}
MOST_STEPS = 100_000  # of one block
_EPOCHS = ("epoch_num", "first_epoch_num")


@dataclass(frozen=True, slots=True)
class Event:
    """An entry. `position`: how far it says the run is, in what `counts` counts; `counted`: how much its block takes;
    `dur_ns`: of one step, in the mean where it tells of several; `samples_per_s`: the throughput that it prints."""

    at: int
    kind: str
    position: float | None = None
    counts: str = ""
    counted: float = 0.0
    dur_ns: int | None = None
    samples_per_s: float | None = None
    loss: float | None = None
    status: str | None = None


@dataclass(frozen=True)
class Interval:
    """A block or an evaluation; `last`: the position at its end."""

    start: int
    end: int
    first: float | None
    last: float | None
    counts: str
    counted: float


@dataclass(frozen=True)
class Steps:
    """Steps `first` + 1 to `last`, from `start` to `end`, all of the same time; one step, where that was timed."""

    first: int
    last: int
    start: int
    end: int
    loss: float | None = None
    logged: int | None = None


@dataclass
class Start:
    """One start of the job."""

    events: list[Event] = field(default_factory=list)

    @property
    def begin(self) -> int:
        return self.events[0].at

    def _times(self, kind: str) -> list[int]:
        return [event.at for event in self.events if event.kind == kind]

    @property
    def stop(self) -> Event | None:
        return next((event for event in reversed(self.events) if event.kind == "run_stop"), None)

    @property
    def end(self) -> int | None:
        return self.stop.at if self.stop else None

    @property
    def ranks(self) -> int:
        return len(self._times("init_start"))

    @property
    def preparation(self) -> tuple[int, int | None] | None:
        begun, done = self._times("init_start"), self._times("init_stop")
        return (begun[0], done[-1] if done else None) if begun else None

    def intervals(self, kind: str, tally: Tally) -> list[Interval]:
        """Each start with the next stop. A block that the end of this start cut off ends with its last progress."""
        found, opened = [], None
        for event in self.events:
            if event.kind == f"{kind}_start" and opened is None:
                opened = event
            elif event.kind == f"{kind}_stop" and opened is not None:
                found.append(_interval(opened, event))
                opened = None
            elif event.kind in (f"{kind}_start", f"{kind}_stop"):
                tally.add(f"{kind} entries", "a start or a stop without its other side, or told again")
        if opened is not None:
            further = [e for e in self.events if e.at > opened.at and _beyond(e, opened.position, opened.counts)]
            if kind == "block" and further:
                found.append(_interval(opened, further[-1]))
            tally.add(f"{kind} entries", "a start or a stop without its other side, or told again")
        return found

    def position_after(self, block: Interval) -> float | None:
        """The first position told behind a block's end that is further than its beginning."""
        behind = (e.position for e in self.events if e.at >= block.end and _beyond(e, block.first, block.counts))
        return next(behind, None)

    def within(self, block: Interval, kind: str) -> list[Event]:
        return [e for e in self.events if e.kind == kind and block.start < e.at <= block.end + NS_PER_S]


def _interval(opened: Event, closed: Event) -> Interval:
    return Interval(opened.at, closed.at, opened.position, closed.position, opened.counts, opened.counted)


def _beyond(event: Event, position: float | None, counts: str) -> bool:
    return event.position is not None and event.counts == counts and position is not None and event.position > position


def starts(events: Iterable[Event]) -> list[Start]:
    """The starts of the job that the entries tell of, in order of time."""
    found: list[Start] = [Start()]
    quiet: list[Event] = []  # since the last work: they belong to the next start, if there is one
    running = worked = False
    for event in sorted(events, key=lambda event: (event.at, RANKS[event.kind])):
        if (event.kind == "init_start" and running) or (event.kind == "run_start" and worked):
            found.append(Start())
            running = worked = False
        if event.kind in WORK and (running or event.kind != "progress"):  # a warm-up prints statistics too
            found[-1].events += [*quiet, event]
            quiet = []
            running, worked = True, worked or event.kind in DONE
        else:
            quiet.append(event)
    found[-1].events += quiet
    return [start for start in found if start.events]


def timed_steps(start: Start, batch: int) -> Iterator[Steps]:
    """The steps of which each was timed."""
    timed = [event for event in start.events if event.kind == "step"]
    unit = _unit_of_timed(timed, batch)
    for event in sorted(timed, key=lambda event: (event.at, event.position)):
        assert event.position is not None and event.dur_ns is not None, "a step tells both"
        number = int(event.position // unit)
        yield Steps(number - 1, number, event.at - event.dur_ns, event.at, event.loss, event.at)


def _unit_of_timed(timed: list[Event], batch: int) -> int:
    """What an entry's position counts a step as: 1, or the samples of a global batch."""
    for one, other in zip(timed, timed[1:], strict=False):
        assert one.position is not None and other.position is not None, "a step tells where it is"
        if other.position > one.position and other.dur_ns and other.at > one.at:
            gap, grown = (other.at - one.at) / other.dur_ns, other.position - one.position
            return batch if abs(gap - grown / batch) < abs(gap - grown) else 1
    return batch if timed and (timed[0].position or 0) >= batch else 1


def block_steps(start: Start, facts: Mapping[str, Any], epochs: bool, tally: Tally) -> Iterator[Steps]:
    """The steps of each block whose number can be told; they share its time."""
    for block in start.intervals("block", tally):
        found = _steps_of_block(start, block, facts, epochs)
        if found is None or not 0 < found[1] - found[0] <= MOST_STEPS:
            tally.add("blocks", "they do not say how many samples they took: no steps")
        else:
            yield Steps(*found, block.start, block.end)


def _steps_of_block(start: Start, block: Interval, facts: Mapping[str, Any], epochs: bool) -> tuple[int, int] | None:
    """(steps before it, steps after it)."""
    batch, length, first = facts.get("global_batch"), facts.get("sequence_length", 1), block.first
    if first is None:
        return None
    last = first + block.counted if block.counted else block.last
    if last is None or last <= first:  # the stop repeats where the block began
        last = start.position_after(block)
    unit: float | None = batch
    if epochs and block.counts in _EPOCHS:
        epoch = batch / facts["train_samples"]
        return None if last is None else (round(first / epoch), round(last / epoch))
    elif block.counted and batch and block.counted % (batch * length) == 0:
        unit = batch * length
    elif block.counts in ("step", "step_num") and batch and last is not None:
        unit = _unit_of_steps(start, block, last, batch)
    if unit and last is not None:
        return int(first // unit), int(last // unit)
    took = _steps_by_rate(start, block, batch)
    return None if not took or not unit else (int(first // unit), int(first // unit) + took)


def _unit_of_steps(start: Start, block: Interval, last: float, batch: int) -> int:
    """What a position that calls itself a step counts: steps, or samples where the printed throughput says so."""
    rates = [e.samples_per_s for e in start.within(block, "progress") if e.samples_per_s]
    if rates:
        samples = rates[-1] * (block.end - block.start) / NS_PER_S
        grown = last - (block.first or 0)
        return batch if abs(grown - samples) < abs(grown * batch - samples) else 1
    return batch if last % batch == 0 and (block.first or 0) % batch == 0 else 1


def _steps_by_rate(start: Start, block: Interval, batch: int | None) -> int | None:
    """How many steps a block took by the mean time of a step, or the throughput, that was printed at its end."""
    for event in reversed(start.within(block, "progress")):
        if event.dur_ns:
            return round((block.end - block.start) / event.dur_ns)
        if event.samples_per_s and batch:
            return round(event.samples_per_s * (block.end - block.start) / NS_PER_S / batch)
    return None
