"""What the text collectors share: exact times, row buffers, and the tally of what was passed over."""

import contextlib
import os
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from math import isfinite

from collectors.base import HEAD_BYTES, LINE_LIMIT_BYTES, Lost, Rows, Source
from errors import InputError
from runs.schema import SCHEMAS

NS_PER_S = 1_000_000_000
BATCH_ROWS = 50_000
HOLE = b"\0" * 8  # so many zeros or more are no characters: nothing was written there
_PIECE_BYTES = 1 << 22
_NO_LOG = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[{\]]|<(?:[?!]|html|svg|\w+>\s*<))")
_INT64_LIMIT = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)

# Seconds ahead of UTC of the names of zones that mean one offset wherever they are used (RFC 5322, tz database).
ZONES_S: dict[str, int] = {
    name: round(hours * 3600)
    for name, hours in dict(
        Z=0,
        UTC=0,
        UT=0,
        GMT=0,
        WET=0,
        WEST=1,
        CET=1,
        CEST=2,
        MET=1,
        MEST=2,
        EET=2,
        EEST=3,
        MSK=3,
        JST=9,
        KST=9,
        HKT=8,
        SGT=8,
        AWST=8,
        AEST=10,
        AEDT=11,
        ACST=9.5,
        ACDT=10.5,
        NZST=12,
        NZDT=13,
        EST=-5,
        EDT=-4,
        CDT=-5,
        MST=-7,
        MDT=-6,
        PST=-8,
        PDT=-7,
        AKST=-9,
        AKDT=-8,
        HST=-10,
    ).items()
}
# Names that several places use for different offsets: China and Chicago, India and Israel, Britain and Bangladesh ...
_SHARED_ZONES = ("CST", "IST", "BST", "AST", "ADT", "AMT", "ECT", "GST", "PKT", "SST", "WIB", "WST")
_ZONE = rf"(?P<zone>{'|'.join((*ZONES_S, *_SHARED_ZONES))}|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)(?!\w|[.:]\d)"
_TIME = (
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9})\d*)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\b)?"
)

DATED = re.compile(
    r"(?<!\d)(?P<year>\d{4})(?P<dash>[-/]?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)[T ]" + _TIME + rf"(?:\s?{_ZONE})?",
    re.ASCII,
)
MONTHS = dict(Jan=1, Feb=2, Mar=3, Apr=4, May=5, Jun=6, Jul=7, Aug=8, Sep=9, Oct=10, Nov=11, Dec=12)
_NAME = rf"(?P<name>{'|'.join(MONTHS)})[a-z]{{0,6}}"
WORDED = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (  # dates with a year whose month is a word, or that can be read in one way only
        rf"\b{_NAME} +(?P<day>\d{{1,2}}) {_TIME}(?: {_ZONE})? (?P<year>\d{{4}})(?!\d)",  # dmesg -T, ctime, date
        rf"\b{_NAME} +(?P<day>\d{{1,2}}),? (?P<year>\d{{4}})(?:,| @)? {_TIME}(?:\s?{_ZONE})?",  # with @: Kibana
        rf"(?<![\d.])(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{{4}}),? {_TIME}(?:\s?{_ZONE})?",  # 04.03.2026
        rf"(?<!\d)(?P<day>\d{{1,2}})[ /-]{_NAME}[ /-](?P<year>\d{{4}})[ :]{_TIME}(?:\s?{_ZONE})?",  # mail, web servers
    )
)
NUMBERED = re.compile(rf"(?<!\d)(?P<first>\d\d)/(?P<then>\d\d)/(?P<year>\d{{4}}),? {_TIME}(?:\s?{_ZONE})?", re.ASCII)
GLOG = re.compile(  # PyTorch's C++ writes months below ten with one digit: [rank0]:[E321 02:07:08.408271257 ...
    r"(?<!\w)[IWEF](?P<year>\d{4})?(?P<month>\d\d|\d)(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?\s",
    re.ASCII,
)


def fits(value: int) -> bool:
    """Whether a whole number fits a signed 64-bit column."""
    return -_INT64_LIMIT < value < _INT64_LIMIT


def within_64_bits(value: int) -> int | None:
    """The number; None where a signed 64-bit column cannot hold it."""
    return value if fits(value) else None


def whole(value: object) -> int | None:
    """A JSON number as a whole number (3 and 3.0 are 3); None for anything else or what 64 bits cannot hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (isfinite(value) and value.is_integer()):
        return None
    return int(value) if fits(int(value)) else None


def digits(text: str) -> int | None:
    """A whole number written in digits alone, if 64 bits hold it."""
    return int(text) if len(text) < 19 and text.isascii() and text.isdigit() else None


def seconds_to_ns(seconds: object) -> int | None:
    """Seconds to the nearest ns, from the number's exact binary value; None for no finite number or over 64 bits."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not fits_seconds(seconds):
        return None
    numerator, denominator = seconds.as_integer_ratio()
    ns = (2 * numerator * NS_PER_S + denominator) // (2 * denominator)
    return within_64_bits(ns)


def fits_seconds(seconds: float) -> bool:
    """Whether a number of seconds is finite and can fit 64 bits as ns; keeps huge integers out of arithmetic."""
    return -1e10 < seconds < 1e10


def moment_ns(match: re.Match, year: int | None = None, month: int | None = None, day: int | None = None) -> int | None:
    """Time of a match with groups as those of DATED, ns since the epoch, None if it is no time; without a zone, or with
    one that `zone_doubt` names, it is read as UTC. `year`, `month`, `day`: where the match gives no numbers of them."""
    parts = match.groupdict()
    try:
        moment = datetime(
            year or int(parts["year"]),
            month or int(parts.get("month") or MONTHS[parts["name"]]),
            day or int(parts["day"]),
            _hour(parts),
            int(parts["minute"]),
            int(parts["second"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    ns = (moment - _EPOCH) // _SECOND * NS_PER_S + int((parts["fraction"] or "0").ljust(9, "0"))
    ns -= _zone_s(parts.get("zone") or "Z") * NS_PER_S
    return ns if fits(ns) else None


def _hour(parts: dict[str, str | None]) -> int:
    """The hour of the day; 12 AM is midnight, 12 PM noon. What names a half of the day past 12 counts to 24 anyway."""
    hour, half = int(parts["hour"] or 0), parts.get("half")
    return hour if not half or hour > 12 else hour % 12 + 12 * (half in "pP")


def _zone_s(zone: str) -> int:
    """Seconds that a zone is ahead of UTC: a name, or a sign and hours with or without minutes."""
    if zone[0] not in "+-":
        return ZONES_S.get(zone, 0)
    offset = int(zone[1:3]) * 3600 + (int(zone[-2:]) * 60 if len(zone) > 3 else 0)
    return offset if zone[0] == "+" else -offset


def zone_doubt(match: re.Match) -> str | None:
    """Why the zone of a match that `moment_ns` reads is an assumption, in words; None where the match names it."""
    zone = match["zone"] if "zone" in match.re.groupindex else None
    if not zone:
        return "they name no time zone and were read as UTC"
    if zone[0] in "+-" or zone in ZONES_S:
        return None
    return f"they name the time zone {zone}, which means different hours in different places, and were read as UTC"


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


def is_text_log(source: Source) -> bool:
    """Whether a file may be a log in plain lines: what begins as JSON or XML, or holds a zero, is none."""
    return b"\0" not in source.head and not _NO_LOG.match(source.head)


def shows(source: Source, pattern: re.Pattern[bytes]) -> bool:
    """Whether the beginning or the end of a text log has it."""
    return is_text_log(source) and bool(pattern.search(source.head) or pattern.search(tail(source)))


def mentions(source: Source, word: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether a line of the whole file has `pattern`, which holds `word`: a search of the bytes, at the speed of the
    disk, for what decides how all rows are read. What cannot be read is left to the reading to tell."""
    before = b""
    with contextlib.suppress(OSError, EOFError, zlib.error, InputError), source.open() as f:
        while piece := f.read(_PIECE_BYTES):
            if word in (text := before + piece) and pattern.search(text):
                return True
            before = text[-HEAD_BYTES:]
    return False


def tail(source: Source) -> bytes:
    """The last HEAD_BYTES of a file, for a sniff that its head left in doubt; nothing of one that is packed."""
    with contextlib.suppress(OSError):
        if not source.gzipped:
            with source.content.open("rb") as f:
                f.seek(max(0, f.seek(0, os.SEEK_END) - HEAD_BYTES))
                return f.read(HEAD_BYTES)
    return b""


def lines(source: Source) -> Iterator[tuple[int, str, bool]]:
    """(byte offset, line without its end, whether it had one) for each line: the last may be cut off. Of a line with a
    hole in it what stands behind it.

    Raises InputError for a line longer than LINE_LIMIT_BYTES.
    """
    with source.as_far() as f:
        offset = 0
        while raw := f.readline(LINE_LIMIT_BYTES):
            whole = raw.endswith(b"\n")
            if not whole and len(raw) == LINE_LIMIT_BYTES:
                raise InputError(
                    f"a line longer than {LINE_LIMIT_BYTES:,} bytes at byte {offset:,}",
                    where=source.name,
                    expected="a text log with a line per record",
                )
            behind = raw.rindex(HOLE) + len(HOLE) if 0 in raw and HOLE in raw else 0
            text = raw[behind:] if behind else raw
            yield offset + behind, text.decode("utf-8", "replace").rstrip("\r\n"), whole
            offset += len(raw)
