"""What stands around the text of a log line: its time, the host that wrote it, its severity, terminal colours.

Launchers, container runtimes and collectors of logs put something before each line: a time, a pod, a host, a rank.
`bare` takes it off and `host_prefix` tells whose line it is; both know the same forms, one after another in any order:

    [pod/w-3/train]   kubectl --prefix          2026-03-04T05:06:07.1Z        kubectl --timestamps, ts
    worker-3  |       Docker Compose            2026-..Z stdout F             container runtimes (CRI)
    [default0]:       torchrun                  [2026-03-04 05:06:07]         wrappers of users
    [host-1]:         launchers of users        Mar  4 05:06:07 n3 python[9]: journal, syslog
    host-1:           pdsh, DeepSpeed           3:                            srun --label
    [1,3]<stdout>:    mpirun --tag-output       [3] text                      mpirun -l of MPICH and Intel
    (Trainer pid=77)  Ray, whose processes are no hosts
    (worker1, rank=1, pid=77, ip=10.0.0.5)     SkyPilot; of one node (task, pid=77), which names none
    [2026-03-04 05:06:07] [4242]              loggers, which tell a process by its number in the system
"""

import re
from collections.abc import Iterator
from datetime import date

from collectors.base import HEAD_BYTES, Source
from collectors.reading.summer_time import SummerTime
from collectors.reading.textlog import (
    DATED,
    GLOG,
    MONTHS,
    NS_PER_S,
    NUMBERED,
    WORDED,
    Tally,
    clean,
    moment_ns,
    nearest_year,
    zone_doubt,
)

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SYSLOG_NAMES = "|".join(MONTHS)
_LEADING = re.compile(
    r"\s*\[pod/(?P<pod>[^/\]\s]+)/[^\]\s]*\] ?"
    r"|\s*(?P<compose>[\w.-]+) +\| ?"
    r"|\s*\[(?P<bracket>(?=[^\]]*\d)[A-Za-z][\w.-]{0,79})\]: ?"
    r"|(?=[\w.-]{1,253}+: )"  # as long as a name of a host can be: the next is tried no further than that
    r"(?P<pdsh>[A-Za-z][\w.]*(?:-[\w.]+)*-\d+(?:\.[\w.-]+)?|(?:node|host|worker|trainer|tpu)_?\d+): "
    r"|\s*(?P<task>\d{1,6}): ?"
    rf"|\s*(?:[A-Z][a-z]{{2}} (?:{_SYSLOG_NAMES}) [ \d]\d \d\d:\d\d:\d\d \d{{4}})?"
    r"\[(?:[\w.@-]{1,253}@)?\d{1,9},(?P<tag>\d{1,7})\](?:\[[\w.-]{1,253}:\d{1,9}\])?<std(?:out|err|diag)>: ?"
    r"|\[(?P<process>\d{1,7})\] "
    r"|\s*\((?:[A-Za-z_][\w.:-]{0,99},? )?pid=\d{1,9}(?:, ip=[\w.:-]{1,60})?\) ?"
    r"|\s*\((?P<node>[A-Za-z][\w.-]{0,99}), rank=\d{1,6}, pid=\d{1,9}(?:, ip=[\w.:-]{1,60})?\) ?"
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?!\w))?\]? ?"
    r"(?:std(?:out|err) [FP] )?"
    rf"|(?:{_SYSLOG_NAMES}) [ 0-3]\d \d\d:\d\d:\d\d (?P<syslog>[\w.-]+) [\w./-]+(?:\[\d+\])?: ?",
    re.ASCII,
)
_LOGGERS = re.compile(r"\[\d{4}[-/]|\d{4}[-/]\d\d[-/]\d\d ")  # how loggers begin a date, and no container runtime
_MOST_LEADING = 6  # prefixes before one line
_LONGEST_LEADING = 2_000  # characters of all of them
_RANK = re.compile(r"\[(rank[-_ ]?\d+)", re.ASCII)
_NAMING = ("pod", "compose", "syslog", "node", "pdsh", "bracket", "task", "tag", "process")  # which names a host best
_NAME_DATE = re.compile(r"(?<!\d)(\d{4})([-_.]?)(\d\d)\2(\d\d)(?!\d)", re.ASCII)
_SYSLOG = re.compile(
    rf"(?P<name>{_SYSLOG_NAMES}) (?P<day>[ 0-3]\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))? ",
    re.ASCII,
)
_NO_YEAR = re.compile(  # vLLM's: INFO 03-04 05:06:07
    r"(?<![\d-])(?P<month>\d\d)-(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:\.(?P<fraction>\d{1,9}))?",
    re.ASCII,
)
_SEVERITY = re.compile(
    r"\b(?:(?P<fatal>fatal|critical|emerg|alert|panic)|(?P<error>error|err)|(?P<warning>warning|warn)|(?P<info>info"
    r"|notice|debug|normal))\b|(?:^|\]:)\W*(?P<glog>[IWEF])\d{3,8} \d\d:",
    re.IGNORECASE,
)
_GLOG_SEVERITY = {"I": "info", "W": "warning", "E": "error", "F": "fatal"}
_BACK_NS = 2 * NS_PER_S  # lines of one process may be written a little out of order
_SEVERITY_HEAD = 120  # characters in which a line says how bad it is


def plain(line: str) -> str:
    """The line without terminal colours."""
    return _ANSI.sub("", line) if "\x1b" in line else line


def host_prefix(prefix: str) -> str | None:
    """The host, pod or rank that what stands before a line says wrote it."""
    named = _leading(prefix)[1]
    if named is None and (match := _RANK.search(prefix)):
        named = match[1]
    return clean(named) if named else None


def bare(line: str) -> str:
    """The line without what a launcher, a container runtime or a journal put before it. Indentation stays."""
    return line[_leading(line)[0] :]


def pieces(line: str) -> Iterator[str]:
    """What a line that was drawn anew (progress bars) showed one after the other, each behind a prefix of its own, else
    behind that of the line."""
    first, *others = line.split("\r")
    yield first
    begin = _begin(line) if others else ""
    for other in others:
        yield other if _leading(other)[0] else begin + other


def behind(line: str, other: str) -> str:
    """What a line that was drawn anew showed after this, as `pieces` gives it."""
    return other if _leading(other)[0] else _begin(line) + other


def _begin(line: str) -> str:
    end = _leading(line)[0]
    return line[: end if end <= _LONGEST_LEADING else 0]  # it is copied as often as the line was drawn


def _leading(line: str) -> tuple[int, str | None]:
    """(where the text begins, the name before it that tells best whose it is)."""
    end, found, logged = 0, {}, False
    for _ in range(_MOST_LEADING):
        match = _LEADING.match(line, end)
        if match is None:
            if not end:
                return 0, None
            break
        end = match.end()
        logged |= _LOGGERS.match(match[0]) is not None
        if match.lastgroup and not (logged and match.lastgroup == "process"):
            found.setdefault(match.lastgroup, match[match.lastgroup])
    return end, next((found[kind] for kind in _NAMING if kind in found), None)


def severity(line: str) -> str | None:
    """fatal, error, warning or info, as the head of the line says; None where it does not."""
    match = _SEVERITY.search(line[:_SEVERITY_HEAD])
    if not match:
        return None
    return _GLOG_SEVERITY[match["glog"].upper()] if match["glog"] else match.lastgroup


class Clock:
    """Reads the times of a log's lines. Where they lack the year, it is that of the nearest full date in the log,
    else of a date in the file's name; without either they have no time. What it assumes, `tally` says."""

    def __init__(self, source: Source, tally: Tally):
        self._tally = tally
        self._day = _first_day(source)
        self._latest: tuple[int, int] | None = None  # byte offset and time of the line furthest on
        self.first_ns: int | None = None  # the first time that was read
        self._summer_time = SummerTime()

    @property
    def latest_ns(self) -> int | None:
        """The time of the line furthest on of those that were asked for, ns since the epoch."""
        return self._latest[1] if self._latest else None

    def time_ns(self, prefix: str, offset: int) -> int | None:
        """Time in ns since the epoch that `prefix` names, None where it names none."""
        match = _date_in(prefix)
        if match is None:
            return None
        parts = match.groupdict()
        month, day = self._month_and_day(parts, offset)
        year = int(parts.get("year") or 0) or (nearest_year(month, day, self._day) if self._day else None)
        if not year:
            what = "the lines give month and day but neither the log nor the file's name gives a year"
            self._tally.add("times", what, offset)
            return None
        ns = moment_ns(match, year, month, day)
        if ns is None:
            return None
        if doubt := zone_doubt(match):
            self._tally.add("times", doubt, offset)
        if self._day is None or (day, month, year) != (self._day.day, self._day.month, self._day.year):
            self._day = date(year, month, day)
        if not parts.get("zone"):
            ns = self._summer_time.ns(ns, offset)
            if said := self._summer_time.said:
                self._tally.add("times", said, offset)
        self._follow(offset, ns)
        self.first_ns = ns if self.first_ns is None else self.first_ns
        return ns

    def _month_and_day(self, parts: dict[str, str], offset: int) -> tuple[int, int]:
        if "first" not in parts:
            return int(parts.get("month") or MONTHS[parts["name"]]), int(parts["day"])
        first, then = int(parts["first"]), int(parts["then"])
        if first > 12:
            return then, first
        if then <= 12:
            self._tally.add("times", "their dates were read with the month before the day", offset)
        return first, then

    def _follow(self, offset: int, ns: int) -> None:
        """Say where the clock goes back. What failed is looked for in batches, so lines are not asked for in order."""
        if self._latest is None or offset >= self._latest[0]:
            if self._latest is not None and ns < self._latest[1] - _BACK_NS:
                self._tally.add(
                    "times",
                    "the clock goes back by seconds or more from one line to a later one: it was "
                    "set, or lines of several hosts stand in one file",
                    offset,
                )
            self._latest = offset, ns


def rough_ns(prefix: str) -> int | None:
    """A time by which lines of one log can be compared: of a date without a year as if it were of a leap year."""
    match = _date_in(prefix) or _NO_YEAR.search(prefix)
    if match is None:
        return None
    parts = match.groupdict()
    month = int(parts.get("month") or parts.get("first") or MONTHS[parts["name"]])
    return moment_ns(match, int(parts.get("year") or 0) or 2000, month, int(parts.get("day") or parts["then"]))


def _date_in(prefix: str) -> re.Match | None:
    """The date that a prefix holds: one with a year before one without."""
    if match := DATED.search(prefix) or GLOG.search(prefix):
        return match
    for pattern in (*WORDED, NUMBERED):
        if match := pattern.search(prefix):
            return match
    return _SYSLOG.search(prefix)


def _first_day(source: Source) -> date | None:
    """The day to take a missing year from: the first full date that begins a line, else one in the file's name."""
    for line in source.head[:HEAD_BYTES].decode("utf-8", "replace").splitlines():
        begin = line[:80]
        match = DATED.search(begin) or next((m for pattern in WORDED if (m := pattern.search(begin))), None)
        if match is None:
            continue
        month = int(match.groupdict().get("month") or MONTHS[match["name"]])
        if moment_ns(match, month=month) is not None:
            return date(int(match["year"]), month, int(match["day"]))
    for match in _NAME_DATE.finditer(source.name):
        try:
            day = date(int(match[1]), int(match[3]), int(match[4]))
        except ValueError:
            continue
        if 2015 <= day.year < 2100:  # any other eight digits are a number, not a day
            return day
    return None
