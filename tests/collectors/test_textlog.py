"""Exact times, zones and dates of every form; row buffers; the tally; what a text log is."""

import gzip
import random
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import HEAD_BYTES, LINE_LIMIT_BYTES
from collectors.reading import textlog
from collectors.reading.textlog import (
    DATED,
    MONTHS,
    NUMBERED,
    WORDED,
    ZONES_S,
    Buffer,
    Tally,
    clean,
    digits,
    fits,
    is_text_log,
    lines,
    mentions,
    moment_ns,
    nearest_year,
    seconds_to_ns,
    shows,
    tail,
    whole,
    zone_doubt,
)
from errors import InputError
from tests.collectors.reading import source_of

S = 10**9
NOON = int(datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC).timestamp())


def at(text):
    return moment_ns(DATED.search(text))


@pytest.mark.parametrize(
    ("zone", "ahead_minutes"),
    [
        ("", 0),
        ("Z", 0),
        (" UTC", 0),
        (" GMT", 0),
        ("+00:00", 0),
        ("+05", 300),
        ("+05:30", 330),
        ("+0530", 330),
        (" +0545", 345),
        ("-03:30", -210),
        ("-0930", -570),
        ("-08", -480),
        (" PST", -480),
        (" PDT", -420),
        (" CET", 60),
        (" CEST", 120),
        (" JST", 540),
        (" EST", -300),
        (" EDT", -240),
        (" ACST", 570),
    ],
)
def test_zones_move_the_time_by_hours_and_minutes(zone, ahead_minutes):
    assert at(f"2026-03-04 12:00:00{zone} text") == (NOON - ahead_minutes * 60) * S
    assert at(f"2026-03-04T12:00:00.250{zone}: text") == (NOON - ahead_minutes * 60) * S + S // 4


@given(st.integers(0, 14), st.integers(0, 59), st.sampled_from("+-"), st.sampled_from(["", ":"]))
def test_any_zone_of_hours_and_minutes(hours, minutes, sign, colon):
    text = f"2026-03-04T12:00:00.000000001{sign}{hours:02d}{colon}{minutes:02d}"
    assert moment_ns(DATED.fullmatch(text)) == int(datetime.fromisoformat(text).timestamp()) * S + 1


@pytest.mark.parametrize("text", ["12:00:00 -1", "12:00:00 -10.5 ms", "12:00:00 PSTN", "12:00:00 - 05", "12:00:00 +99"])
def test_what_is_no_zone(text):
    match = DATED.search(f"2026-03-04 {text}")
    assert match["zone"] is None and moment_ns(match) == NOON * S


@pytest.mark.parametrize(
    ("zone", "doubt"),
    [
        ("", "no time zone"),
        (" PST", None),
        ("+05", None),
        ("Z", None),
        (" CST", "CST, which means different hours"),
        (" IST", "IST, which means different hours"),
    ],
)
def test_what_a_zone_leaves_in_doubt(zone, doubt):
    found = zone_doubt(DATED.search(f"2026-03-04 12:00:00{zone} text"))
    assert found is None if doubt is None else doubt in found and found.endswith("read as UTC")


def test_zones_are_within_a_day_of_utc():
    assert all(-12 * 3600 <= offset <= 14 * 3600 and offset % 1800 == 0 for offset in ZONES_S.values())


PLACES = {  # where the tz database has a zone of that offset: in January, in July
    "Europe/Lisbon": ("WET", "WEST"),
    "Europe/Paris": ("CET", "CEST"),
    "Europe/Berlin": ("MET", "MEST"),
    "Europe/Helsinki": ("EET", "EEST"),
    "Europe/Moscow": ("MSK", "MSK"),
    "Asia/Tokyo": ("JST", "JST"),
    "Asia/Seoul": ("KST", "KST"),
    "Asia/Hong_Kong": ("HKT", "HKT"),
    "Asia/Singapore": ("SGT", "SGT"),
    "Australia/Perth": ("AWST", "AWST"),
    "Australia/Sydney": ("AEDT", "AEST"),
    "Australia/Adelaide": ("ACDT", "ACST"),
    "Pacific/Auckland": ("NZDT", "NZST"),
    "America/New_York": ("EST", "EDT"),
    "America/Chicago": (None, "CDT"),  # CST is a name of several
    "America/Denver": ("MST", "MDT"),
    "America/Los_Angeles": ("PST", "PDT"),
    "America/Anchorage": ("AKST", "AKDT"),
    "Pacific/Honolulu": ("HST", "HST"),
}


def test_zones_are_ahead_of_utc_as_the_tz_database_has_them():
    found = dict.fromkeys(("Z", "UTC", "UT", "GMT"), 0.0)
    for place, names in PLACES.items():
        for month, name in zip((1, 7), names, strict=True):
            if name:
                found[name] = datetime(2026, month, 15, tzinfo=ZoneInfo(place)).utcoffset().total_seconds()
    assert found == ZONES_S


@pytest.mark.parametrize("zone", ["CST", "IST", "BST"])
def test_a_zone_of_several_meanings_is_read_as_utc(zone):
    assert at(f"2026-03-04 12:00:00 {zone} text") == NOON * S


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("12:30:00 AM", 0),
        ("01:30:00 AM", 1),
        ("11:30:00 a.m.", 11),
        ("12:30:00 PM", 12),
        ("01:30:00 p.m.", 13),
        ("11:30:00PM", 23),
        ("13:30:00 PM", 13),  # counted to 24 all the same
        ("13:30:00 AM", 13),
        ("23:30:00", 23),
    ],
)
def test_hours_of_half_a_day(text, hour):
    day = int(datetime(2026, 3, 4, tzinfo=UTC).timestamp())
    assert at(f"2026-03-04 {text} step") == (day + hour * 3600 + 1800) * S


def test_months_by_name():
    assert {date(2026, month, 1).ctime()[4:7]: month for month in range(1, 13)} == MONTHS


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("9" * 18, 10**18 - 1), ("1" * 19, None), ("12a", None), ("-1", None), ("\u0663", None), ("", None)],
)
def test_digits_alone_are_a_number(text, number):
    assert digits(text) == number


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("[Wed Mar  4 12:00:00 2026] NVRM: Xid", 0),
        ("Wed Mar 4 12:00:01 UTC 2026", 1),
        ("Wed Mar  4 04:00:02 PST 2026", 2),
        ("Mar 4, 2026 12:00:03", 3),
        ("March 04 2026 12:00:04.000", 4),
        ("Wed, 04 Mar 2026 13:00:05 +0100", 5),
        ('[04/Mar/2026:12:00:06 +0000] "GET"', 6),
        ("04-Mar-2026 12:00:07", 7),
    ],
)
def test_dates_whose_month_is_a_word(text, second):
    match = next(m for pattern in WORDED if (m := pattern.search(text)))
    assert moment_ns(match, month=textlog.MONTHS[match["name"]]) == (NOON + second) * S


def test_dates_of_slashes():
    assert at("2026/03/04 12:00:00 [error]") == NOON * S and at("20260304 12:00:00") == NOON * S
    match = NUMBERED.search("03/04/2026 12:00:00 - INFO - step")
    assert moment_ns(match, month=int(match["first"]), day=int(match["then"])) == NOON * S


@pytest.mark.parametrize("text", ["2026-02-30 12:00:00", "2026-13-01 12:00:00", "2026-03-04 25:00:00"])
def test_what_is_no_time(text):
    assert at(text) is None


@given(st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1)))
def test_times_are_exact(moment):
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0") + "123"
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000 + 123
    assert moment_ns(DATED.search(text)) == expected


@given(st.floats(-9e9, 9e9) | st.floats(-1e-6, 1e-6))
def test_seconds_to_the_nearest_ns(seconds):
    assert abs(seconds_to_ns(seconds) - Fraction(seconds) * S) <= Fraction(1, 2)


def test_half_a_ns_and_more_is_a_whole_one():
    assert [seconds_to_ns(x) for x in (0.4e-9, 0.6e-9, -0.6e-9, 1, 2.5)] == [0, 1, -1, S, 5 * S // 2]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 10**400, "1", True, None])
def test_seconds_that_are_none(value):
    assert seconds_to_ns(value) is None


def test_whole_numbers():
    assert (whole(3), whole(3.0), whole(3.5), whole(True), whole("3"), whole(1e300)) == (3, 3, None, None, None, None)
    assert fits((1 << 63) - 1) and not fits(1 << 63)


def test_the_nearest_year():
    assert nearest_year(12, 31, date(2026, 1, 2)) == 2025 and nearest_year(1, 1, date(2026, 12, 30)) == 2027
    assert nearest_year(2, 29, date(2025, 3, 1)) == 2024 and nearest_year(2, 30, date(2025, 3, 1)) is None


def test_lone_surrogates_become_question_marks():
    assert clean("a\ud800b") == "a?b"


def test_rows_come_in_batches(monkeypatch):
    monkeypatch.setattr(textlog, "BATCH_ROWS", 2)
    buffer = Buffer("scalars", "step", "name")
    buffer.add(1, "a")
    assert list(buffer.full()) == []
    buffer.add(2, "b")
    (rows,) = buffer.full()
    assert rows.table == "scalars" and rows.batch.column("step").to_pylist() == [1, 2] and list(buffer.rest()) == []


def test_the_tally_keeps_the_first_place():
    tally = Tally()
    tally.add("lines", "cut off", 7)
    tally.add("lines", "cut off", 9, count=1_000)
    ((what, reason, offset),) = [(lost.what, lost.reason, lost.offset) for lost in tally.lost()]
    assert (what, reason, offset) == ("lines (1,001)", "cut off", 7)


@pytest.mark.parametrize(
    ("text", "is_log"),
    [
        ("[default0]: x\n", True),
        ("<frozen runpy>:128: RuntimeWarning\n", True),
        ("{'a': 1}\n", True),
        ("[2026-03-04 12:00:00] x\n", True),
        ('{"a": 1}\n', False),
        ("[\n  {\n", False),
        ("<?xml", False),
        ("a\0b", False),
    ],
)
def test_what_may_be_a_log(tmp_path, text, is_log):
    assert is_text_log(source_of(tmp_path, text)) is is_log


def test_head_and_tail(tmp_path):
    source = source_of(tmp_path, "x\n" * 100_000 + "here")
    assert shows(source, re.compile(rb"here")) and tail(source).endswith(b"here") and b"here" not in source.head
    assert tail(source_of(tmp_path, gzip.compress(b"here"))) == b""


def test_the_tail_is_the_last_bytes_and_of_a_short_file_all_of_it(tmp_path):
    assert tail(source_of(tmp_path, b"here")) == b"here"
    data = bytes(range(1, 251)) * 300
    assert tail(source_of(tmp_path, data)) == data[len(data) - HEAD_BYTES :]


def test_what_is_no_text_log_shows_nothing(tmp_path):
    assert not shows(source_of(tmp_path, '{"a": "here"}'), re.compile(rb"here"))
    assert not shows(source_of(tmp_path, "there is nothing\n"), re.compile(rb"here it is"))


@pytest.mark.parametrize("packed", [False, True])
def test_what_any_line_of_a_large_file_mentions(tmp_path, packed):
    """Across the places where the file is read on, in the middle, and not where the word alone stands."""

    def told(middle: bytes) -> bool:
        room = 1 << 22  # read at once
        data = b"x\n" * (room // 2 - 5) + middle + b"x\n" * (room // 2)
        source = source_of(tmp_path, gzip.compress(data, 1) if packed else data)
        return mentions(source, b"preempted", re.compile(rb"\d preempted: \w+"))

    assert told(b"step 7 preempted: seq\n")
    assert not told(b"nothing was preempted here\n") and not told(b"step 7 was there\n")


def test_what_breaks_off_mentions_what_was_read_before(tmp_path):
    whole = gzip.compress(bytes(random.Random(1).randbytes(1 << 20)))
    assert not mentions(source_of(tmp_path, whole[: len(whole) // 2]), b"no such word", re.compile(rb"no such word"))


def test_lines_and_their_places(tmp_path):
    assert list(lines(source_of(tmp_path, b"a\r\n\nb\xff"))) == [(0, "a", True), (3, "", True), (4, "b\ufffd", False)]


def test_a_line_without_an_end(tmp_path):
    source = source_of(tmp_path, "")
    with source.path.open("wb") as f:
        f.truncate(LINE_LIMIT_BYTES + 1)
    with pytest.raises(InputError, match="a line longer than"):
        next(lines(source))
