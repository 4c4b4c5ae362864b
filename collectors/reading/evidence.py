"""Lines of a log that tell why something happened, gathered while a collector reads for something else.

The collector shows every line to `Evidence.see`; those with a cause (`catalog.causes`) become rows of `evidence`. Of
the lines of one attempt with the same cause, the first and the last KEPT stay, since a failing job may repeat one
line without end; the others are counted. The settings that lines tell of become rows of `settings`.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Protocol

from catalog.causes import LINE_LIMIT, cause_of, device_of, host_of, telling
from catalog.settings import gate
from collectors.base import Rows, Source
from collectors.reading.line_prefix import Clock, bare, behind, host_prefix, plain, severity
from collectors.reading.settings import LONGEST, Settings, gated
from collectors.reading.textlog import Buffer, Tally, clean

KEPT = 200
TEXT_LIMIT = 500  # characters of a line that are kept
_HEAD = 200  # characters in which a line says when it was written
_BATCH_LINES, _BATCH_CHARACTERS = 20_000, 1 << 23  # lines judged at once
_OPEN = 256  # causes and attempts of which the last lines are held back
_COUNTED = 10_000  # causes and attempts that are counted: a file that has more of them is no log of a job


class Times(Protocol):
    """A clock of lines."""

    def time_ns(self, before: str, offset: int, /) -> int | None:
        """The time that what stands at a line's begin tells, ns; None where it tells none."""
        ...


class Evidence:
    """Rows of `evidence`, and of `settings`, from the lines of one input. `order` counts the lines shown, from 0."""

    def __init__(self, source: Source, tally: Tally, clock: Times | None = None):
        self._name, self._tally = source.name, tally
        self._clock = clock or Clock(source, tally)
        self._settings = Settings(source, tally)
        self._waiting: list[tuple[int, str, int | None, int | None, str]] = []  # offset, line, attempt, step, near
        self._long: list[int] = []  # which of them are longer than causes are looked for in
        self._characters = self._order = 0
        self._counts: dict[tuple[str, int | None], int] = {}
        self._last: OrderedDict[tuple[str, int | None], deque[tuple]] = OrderedDict()
        self._rows = Buffer(
            "evidence",
            "ts_ns",
            "attempt",
            "step",
            "host",
            "device",
            "cause",
            "severity",
            "text",
            "offset",
            "order",
            "source",
        )

    def see(self, offset: int, line: str, attempt: int | None = 0, step: int | None = None, near: str = "") -> None:
        """Look at a line; `attempt` and `step` are those that it stands in. `near`: a line before it, of whose time it
        is where it tells none itself, as those of a traceback do."""
        if len(line) > LINE_LIMIT:
            if "\r" in line:  # a progress bar, behind which what ended the job may stand
                last = line[line.rindex("\r") + 1 :]
                if len(last) <= LINE_LIMIT:
                    self.see(offset, behind(line, last), attempt, step, near)
            self._long.append(len(self._waiting))
        line = plain(line[:LONGEST])
        self._waiting.append((offset, line, attempt, step, near[:_HEAD]))
        self._order += 1
        self._characters += len(line)
        if len(self._waiting) >= _BATCH_LINES or self._characters >= _BATCH_CHARACTERS:
            self._judge()

    def add(
        self, cause: str, offset: int, line: str, attempt: int | None, step: int | None = None, **told: object
    ) -> None:
        """A line whose cause is known. `told` (ts_ns, host, device, severity) goes before what the line says."""
        self._judge()
        self._take(cause, offset, line, attempt, step, self._order, **told)
        self._order += 1

    def full(self) -> Iterator[Rows]:
        """The batch gathered so far, if it is large enough to be handed on."""
        yield from self._rows.full()

    def rest(self) -> Iterator[Rows]:
        """Whatever is left, at the end of the input."""
        self._judge()
        while self._last:
            self._let_go()
        yield from self._rows.rest()
        yield from self._settings.rest()

    def _judge(self) -> None:
        if not self._waiting:
            return
        lines = [line for _, line, *_ in self._waiting]
        told = {*telling(lines, gate()), *(self._long[i] for i in gated([lines[i] for i in self._long]))}
        first = self._order - len(lines)
        for i in sorted(told):
            offset, line, attempt, step, near = self._waiting[i]
            self._settings.see(line, "".join(lines[i + 1 : i + 2]), offset, attempt, step)
            cause = cause_of(bare(line[:LINE_LIMIT]))
            if cause is not None:
                self._take(cause, offset, line, attempt, step, first + i, near=near)
        self._waiting, self._long, self._characters = [], [], 0

    def _take(
        self, cause: str, offset: int, line: str, attempt: int | None, step: int | None, order: int, **told: object
    ) -> None:
        def known(name: str, otherwise: object) -> object:
            value = told.get(name)
            return otherwise if value is None else value

        head, key = line[:_HEAD], (cause, attempt)
        host = host_of(line) or host_prefix(head)
        row = (
            known("ts_ns", None) or self._clock.time_ns(head, offset) or self._near_ns(told.get("near"), offset),
            attempt,
            step,
            known("host", None if host is None else clean(host)),
            known("device", device_of(line)),
            cause,
            known("severity", severity(line)),
            clean(line[:TEXT_LIMIT]),
            offset,
            order,
            self._name,
        )
        seen = self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._counts) > _COUNTED:
            del self._counts[next(iter(self._counts))]
        if seen <= KEPT:
            self._rows.add(*row)
            return
        last = self._last.setdefault(key, deque())
        last.append(row)
        self._last.move_to_end(key)
        if len(last) > KEPT:
            last.popleft()
            self._tally.add(
                f"lines that tell of {cause}",
                f"of each attempt the first and the last {KEPT} are kept, these lie between",
                offset,
            )
        if len(self._last) > _OPEN:
            self._let_go()

    def _near_ns(self, near: object, offset: int) -> int | None:
        return self._clock.time_ns(near, offset) if isinstance(near, str) and near else None

    def _let_go(self) -> None:
        _, rows = self._last.popitem(last=False)
        for row in rows:
            self._rows.add(*row)
