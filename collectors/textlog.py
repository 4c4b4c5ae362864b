"""What the text collectors share: exact times, row buffers, and the tally of what was passed over."""

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from math import isfinite

from collectors.base import HEAD_BYTES, LINE_LIMIT_BYTES, Lost, Rows, Source
from errors import InputError
from runs.schema import SCHEMAS

NS_PER_S = 1_000_000_000
BATCH_ROWS = 50_000
_INT64_LIMIT = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)

DATED = re.compile(
    r"(?<!\d)(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)[T ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9})\d*)?"
    r"(?:\s?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)(?!\w))?",
    re.ASCII,
)
GLOG = re.compile(
    r"(?<!\w)[IWEF](?P<year>\d{4})?(?P<month>\d\d)(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?\s",
    re.ASCII,
)


def fits(value: int) -> bool:
    """Whether a whole number fits a signed 64-bit column."""
    return -_INT64_LIMIT < value < _INT64_LIMIT


def whole(value: object) -> int | None:
    """A JSON number as a whole number (3 and 3.0 are 3); None for anything else or what 64 bits cannot hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (isfinite(value) and value.is_integer()):
        return None
    return int(value) if fits(int(value)) else None


def seconds_to_ns(seconds: object) -> int | None:
    """Seconds to the nearest ns, from the number's exact binary value; None for no finite number or over 64 bits."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not fits_seconds(seconds):
        return None
    numerator, denominator = seconds.as_integer_ratio()
    ns = (2 * numerator * NS_PER_S + denominator) // (2 * denominator)
    return ns if fits(ns) else None


def fits_seconds(seconds: float) -> bool:
    """Whether a number of seconds is finite and can fit 64 bits as ns; keeps huge integers out of arithmetic."""
    return -1e10 < seconds < 1e10


def moment_ns(match: re.Match, year: int | None = None, month: int | None = None) -> int | None:
    """Time of a match with groups as those of DATED, ns since the epoch; without a zone it is read as UTC. None if it
    is no time. `year`, `month`: where the match does not give them as numbers."""
    parts = match.groupdict()
    try:
        moment = datetime(
            year or int(parts["year"]), month or int(parts["month"]), int(parts["day"]),
            int(parts["hour"]), int(parts["minute"]), int(parts["second"]), tzinfo=UTC,
        )  # fmt: skip
    except ValueError:
        return None
    ns = (moment - _EPOCH) // _SECOND * NS_PER_S + int((parts["fraction"] or "0").ljust(9, "0"))
    zone = parts.get("zone") or "Z"
    if zone[0] in "+-":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        ns -= (offset if zone[0] == "+" else -offset) * NS_PER_S
    return ns if fits(ns) else None


def nearest_year(month: int, day: int, hint: date) -> int | None:
    """The year that puts month and day closest to `hint`; None where no such day exists."""
    best = None
    for year in (hint.year, hint.year - 1, hint.year + 1):
        try:
            distance = abs((date(year, month, day) - hint).days)
        except ValueError:
            continue
        if best is None or distance < best[0]:
            best = distance, year
    return best[1] if best else None


def clean(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates (broken JSON escapes, odd file names) become `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Buffer:
    """Rows of one table in the given columns, handed on in batches so that memory stays bounded."""

    def __init__(self, table: str, *columns: str):
        self.table, self.columns = table, columns
        self.rows: list[tuple] = []

    def add(self, *values: object) -> None:
        self.rows.append(values)

    def full(self) -> Iterator[Rows]:
        """The batch gathered so far, if it has BATCH_ROWS rows."""
        if len(self.rows) >= BATCH_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[Rows]:
        """Whatever is gathered, if anything."""
        if self.rows:
            columns = dict(zip(self.columns, zip(*self.rows, strict=True), strict=True))
            self.rows = []
            yield Rows(self.table, SCHEMAS[self.table].batch(columns))


class Tally:
    """Counts what was passed over, by what and why, with the first place of each."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list] = {}

    def add(self, what: str, reason: str, offset: int | None = None, count: int = 1) -> None:
        entry = self._counts.setdefault((what, reason), [0, offset])
        entry[0] += count

    def lost(self) -> Iterator[Lost]:
        """One Lost for each reason, saying how many; its offset is that of the first."""
        for (what, reason), (count, offset) in self._counts.items():
            yield Lost(f"{what} ({count:,})", reason, offset)


def shows(source: Source, pattern: re.Pattern[bytes]) -> bool:
    """Whether the beginning or the end of a text log has it; what begins as JSON or XML, or holds a zero, is none."""
    if b"\0" in source.head or source.head.lstrip()[:1] in (b"{", b"<"):
        return False
    return bool(pattern.search(source.head) or pattern.search(tail(source)))


def tail(source: Source) -> bytes:
    """The last HEAD_BYTES of a file, for a sniff that its head left in doubt; nothing of one that is packed."""
    with contextlib.suppress(OSError):
        if not source.gzipped:
            with source.path.open("rb") as f:
                f.seek(max(0, f.seek(0, os.SEEK_END) - HEAD_BYTES))
                return f.read(HEAD_BYTES)
    return b""


def lines(source: Source) -> Iterator[tuple[int, str, bool]]:
    """(byte offset, line without its end, whether it had one) for each line: the last may be cut off.

    Raises InputError for a line longer than LINE_LIMIT_BYTES.
    """
    with source.open() as f:
        offset = 0
        while raw := f.readline(LINE_LIMIT_BYTES):
            whole = raw.endswith(b"\n")
            if not whole and len(raw) == LINE_LIMIT_BYTES:
                raise InputError(
                    f"a line longer than {LINE_LIMIT_BYTES:,} bytes at byte {offset:,}", where=source.name,
                    expected="a text log with a line per record",
                )  # fmt: skip
            yield offset, raw.decode("utf-8", "replace").rstrip("\r\n"), whole
            offset += len(raw)
