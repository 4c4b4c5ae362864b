"""The clock of a serving engine's log, whose lines name month and day and no year.

The year is that of a full date in the log's head or in the file's name; without one, times count from the start of the
unknown year.
"""

import re
from datetime import date

from collectors.base import Source
from collectors.reading.line_prefix import plain
from collectors.reading.summer_time import SummerTime
from collectors.reading.textlog import DATED, NS_PER_S, Tally, moment_ns, nearest_year, zone_doubt

_SHORT_DATE = re.compile(
    r"(?<![\d-])(?P<month>\d\d)-(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<fraction>\d{1,9}))?"
)
_HALF_YEAR_NS = 183 * 86_400 * NS_PER_S
_LEAP_NS = 2 * 365 * 86_400 * NS_PER_S  # where 1972 begins: a leap year stands in for one that is not known


class EngineClock:
    """Times of lines that name month and day. Years follow on one another where the calendar starts anew."""

    def __init__(self, source: Source, tally: Tally):
        self._tally, self._hint, self._last, self._shift = tally, _a_day(source), None, 0
        self._seen: tuple[str, int | None] = ("", None)  # the last time as written, and read
        self._summer_time = SummerTime()
        self.yearless = False

    def time_ns(self, before: str, offset: int) -> int | None:
        """Time in ns that the text before a message names; None where it names none."""
        if match := DATED.search(before):
            if doubt := zone_doubt(match):
                self._tally.add("times", doubt, offset)
            ns = moment_ns(match)
            return ns if ns is None or match["zone"] else self._onward(ns, offset)
        matches = list(_SHORT_DATE.finditer(before[-200:]))
        if not matches:
            return None
        match = matches[-1]  # the one next to the message
        if match[0] == self._seen[0]:  # most lines of an engine share their second with the line before
            return self._seen[1]
        self._seen = match[0], self._read(match, offset)
        return self._seen[1]

    def _read(self, match: re.Match, offset: int) -> int | None:
        month, day = int(match["month"]), int(match["day"])
        if self._hint is None:
            return self._without_year(match, month, offset)
        try:
            year = nearest_year(month, day, self._hint)
        except ValueError:
            return None
        if year is None or (ns := moment_ns(match, year)) is None:
            return None
        self._hint = date(year, month, day)
        self._tally.add("times", "they name no time zone and were read as UTC", offset)
        return self._onward(ns, offset)

    def _onward(self, ns: int, offset: int) -> int:
        ns = self._summer_time.ns(ns, offset)
        if said := self._summer_time.said:
            self._tally.add("times", said, offset)
        return ns

    def _without_year(self, match: re.Match, month: int, offset: int) -> int | None:
        ns = moment_ns(match, 1972, month)
        if ns is None:
            return None
        ns = ns - _LEAP_NS + self._shift
        if self._last is not None and ns < self._last - _HALF_YEAR_NS:
            self._shift += 366 * 86_400 * NS_PER_S
            ns += 366 * 86_400 * NS_PER_S
        self._last, self.yearless = ns, True
        self._tally.add(
            "times",
            "the lines give month and day, and nothing gives the year: they count from its start "
            "(a date such as 2026-04-24 in the file's name would tell)",
            offset,
        )
        return ns


def _a_day(source: Source) -> date | None:
    """A full date at the beginning of a line of the log's head, or in the file's name."""
    for line in source.head.decode("utf-8", "replace").splitlines():
        if (match := DATED.search(plain(line)[:80])) and moment_ns(match) is not None:
            return date(int(match["year"]), int(match["month"]), int(match["day"]))
    for match in re.finditer(r"(?<!\d)(20\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)", source.name, re.ASCII):
        try:
            return date(int(match[1]), int(match[3]), int(match[4]))
        except ValueError:
            continue
    return None
