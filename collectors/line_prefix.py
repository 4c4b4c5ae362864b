"""What stands around the text of a log line: its time, the host that wrote it, its severity, terminal colours."""

import re
from datetime import date

from collectors.base import Source
from collectors.textlog import DATED, GLOG, Tally, clean, moment_ns, nearest_year

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HOST = re.compile(r"^\s*\[pod/([^/\]\s]+)/|^\s*([\w.-]+) +\| |\[(rank[-_ ]?\d+)|^\s*(\d{1,6}): ", re.ASCII)
_NAME_DATE = re.compile(r"(?<!\d)(\d{4})([-_.]?)(\d\d)\2(\d\d)(?!\d)", re.ASCII)
_SYSLOG = re.compile(
    r"(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?P<day>[ 0-3]\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))? ",
    re.ASCII,
)
_MONTHS = dict(Jan=1, Feb=2, Mar=3, Apr=4, May=5, Jun=6, Jul=7, Aug=8, Sep=9, Oct=10, Nov=11, Dec=12)
_SEVERITY = re.compile(
    r"\b(?:(?P<fatal>fatal|critical|emerg|alert|panic)|(?P<error>error|err)|(?P<warning>warning|warn)|(?P<info>info"
    r"|notice|debug|normal))\b|^\W*(?P<glog>[IWEF])\d{4,8} \d\d:",
    re.IGNORECASE,
)
_GLOG_SEVERITY = {"I": "info", "W": "warning", "E": "error", "F": "fatal"}
_SEVERITY_HEAD = 120  # characters in which a line says how bad it is


def plain(line: str) -> str:
    """The line without terminal colours."""
    return _ANSI.sub("", line) if "\x1b" in line else line


def host_prefix(prefix: str) -> str | None:
    """The host, pod or rank that a prefix of kubectl, Docker Compose, torchrun or srun says wrote the line."""
    match = _HOST.search(prefix)
    return clean(match[match.lastindex]) if match else None


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

    def time_ns(self, prefix: str, offset: int) -> int | None:
        """Time in ns since the epoch that `prefix` names, None where it names none."""
        if match := DATED.search(prefix):
            year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
        elif match := GLOG.search(prefix) or _SYSLOG.search(prefix):
            parts = match.groupdict()
            month, day = int(parts.get("month") or _MONTHS[parts["name"]]), int(parts["day"])
            year = int(parts.get("year") or 0) or (nearest_year(month, day, self._day) if self._day else None)
            if not year:
                what = "the lines give month and day but neither the log nor the file's name gives a year"
                self._tally.add("times", what, offset)
                return None
        else:
            return None
        ns = moment_ns(match, year, month)
        if ns is None:
            return None
        if not match.groupdict().get("zone"):
            self._tally.add("times", "they name no time zone and were read as UTC", offset)
        self._day = date(year, month, day)
        return ns


def _first_day(source: Source) -> date | None:
    """The day to take a missing year from: the first full date that begins a line, else one in the file's name."""
    for line in source.head.decode("utf-8", "replace").splitlines():
        if (match := DATED.search(line[:80])) and moment_ns(match) is not None:
            return date(int(match["year"]), int(match["month"]), int(match["day"]))
    for match in _NAME_DATE.finditer(source.name):
        try:
            day = date(int(match[1]), int(match[3]), int(match[4]))
        except ValueError:
            continue
        if 2015 <= day.year < 2100:  # any other eight digits are a number, not a day
            return day
    return None
