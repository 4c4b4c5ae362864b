"""A log that is read line by line: who reads a line, by what it holds, and what comes of all of them."""

from collections.abc import Callable, Iterator

from collectors.base import Fact, Item, Source
from collectors.reading.attempts import STEP_COLUMNS, StepRows
from collectors.reading.evidence import Evidence
from collectors.reading.job_ran import JobRan
from collectors.reading.line_prefix import Clock, pieces, plain
from collectors.reading.textlog import Buffer, Tally, lines
from errors import InputError

Handler = Callable[[int, str, bool], None]  # byte offset, line (a piece of one that was drawn anew), whether it ended


class HandledLines:
    """`handlers`: what a line holds, and who reads it; the first that fits does, so the frequent and the telling ones
    come first. `life`: rows of `lifecycle` with the `columns` that a format tells. `facts`: what the log says of the
    run; where it says something twice, the last word. `attempt`, `last_step`: how far it has come. `evident`: whether
    its lines may tell why something happened."""

    evident = True

    def __init__(self, source: Source, *columns: str):
        self.source = source.name
        self.tally = Tally()
        self.clock = Clock(source, self.tally)
        self.evidence = Evidence(source, self.tally, self.clock)
        self.ran = JobRan(self.clock)
        self.handlers: tuple[tuple[str, Handler], ...] = ()
        self.facts: dict[str, object] = {}
        self._chips = 0
        self.order = self.attempt = 0
        self.last_step: int | None = None
        self.steps = StepRows(*STEP_COLUMNS)
        self.life = Buffer("lifecycle", *columns)
        self.scalars = Buffer("scalars", "ts_ns", "step", "name", "value", "unit", "source")

    def read(self, source: Source, expected: str) -> Iterator[Item]:
        """Raises InputError, saying what was `expected`, where the log tells of nothing."""
        empty = True
        for offset, line, whole in lines(source):
            if not line:
                continue
            if self.evident:
                self.evidence.see(offset, line, self.attempt, self.last_step)
            for needle, handle in self.handlers:
                if needle in line:
                    for piece in pieces(plain(line)):
                        handle(offset, piece, whole)
                    break
            else:
                continue
            self._on_chips(offset, line)
            for item in self._batches(full_only=True):
                empty = False
                yield item
        self.ended()
        for item in (*self._batches(), *self._said()):
            empty = False
            yield item
        if empty:
            raise InputError("no training step in it", where=source.name, expected=expected)
        yield from self.tally.lost()

    def ended(self) -> None:
        """The log has come to its end: what waited for another line is entered."""

    def _on_chips(self, offset: int, line: str) -> None:
        """A line was read that may have told of how many chips there are."""
        chips = self.facts.get("chips")
        if isinstance(chips, int) and chips != self._chips:
            self._chips = chips
            self.ran.says(chips, self.order, offset, line)

    def _said(self) -> Iterator[Fact]:
        """What the log says of the run; of several numbers of chips the largest."""
        if counts := self.ran.counts:
            self.facts["chips"] = max(counts)
        yield from (Fact(name, value) for name, value in self.facts.items())
        yield from self.ran.facts()

    def _batches(self, full_only: bool = False) -> Iterator[Item]:
        for buffer in (self.steps, self.life, self.scalars, self.evidence):
            yield from buffer.full() if full_only else buffer.rest()
