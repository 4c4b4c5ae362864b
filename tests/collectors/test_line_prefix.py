"""What launchers, runtimes and journals put before a line: whose it is, when it was written, and the line without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.reading.line_prefix import Clock, bare, host_prefix, pieces
from collectors.reading.textlog import Tally
from tests.collectors.reading import source_of

S = 10**9
T = 1_772_625_600 * S  # 2026-03-04 12:00:00 UTC
PREFIXES = [
    ("[default0]:", "default0"),
    ("[trainer3]: ", "trainer3"),
    ("[rank7]: ", "rank7"),
    ("[host-1]:", "host-1"),
    ("[host-1]: ", "host-1"),
    ("worker-0 | ", "worker-0"),
    ("app_1  | ", "app_1"),
    ("[pod/w-3/train] ", "w-3"),
    ("0: ", "0"),
    (" 12: ", "12"),
    ("worker-1: ", "worker-1"),
    ("ip-10-0-0-1: ", "ip-10-0-0-1"),
    ("node17: ", "node17"),
    ("2026-03-04T12:00:00Z ", None),
    ("2026-03-04T12:00:00.123456789Z stdout F ", None),
    ("2026-03-04 12:00:00 ", None),
    ("[2026-03-04 12:00:00,123] ", None),
    ("2026-03-04T12:00:00+05:30 ", None),
    ("", None),
    ("Mar  4 12:00:00 n3 python[99]: ", "n3"),
    ("[pod/w-3/train] 2026-03-04T12:00:00Z ", "w-3"),
    ("2026-03-04T12:00:00Z [default0]:", "default0"),
    ("[pod/w-3/train] [default0]:", "w-3"),
    ("[1,3]<stdout>:", "3"),
    ("[1,3]<stderr>: ", "3"),
    ("Wed Mar  4 12:00:00 2026[1,3]<stdout>:", "3"),
    ("[prterun-n1-4711@1,3]<stdout>: ", "3"),
    ("[job@1,3][n1:4711]<stdout>: ", "3"),
    ("[3] ", "3"),
    ("[3] [2026-03-04 12:00:00,123] ", "3"),
    ("2026-03-04T12:00:00.1Z stdout F [3] ", "3"),
    ("[pod/w-3/train] 2026-03-04T12:00:00Z [3] ", "w-3"),
    ("[2026-03-04 12:00:00 +0000] [4242] ", None),
    ("2026-03-04 12:00:00,123 [4242] ", None),
    ("worker-1: 2026/03/04 12:00:00 [4242] ", "worker-1"),
    ("[pod/launcher-x/mpi] [1,3]<stdout>:", "launcher-x"),
    ("(TrainWorker pid=4711) ", None),
    ("(TrainWorker pid=4711, ip=10.0.0.5) ", None),
    ("(pid=4711) ", None),
    ("(pretraining, pid=4711) ", None),
    ("(head, rank=0, pid=4711) ", "head"),
    ("(worker1, rank=1, pid=4711, ip=10.0.0.5) ", "worker1"),
    ("(worker1, rank=1, pid=4711, ip=10.0.0.5) [rank8]: ", "worker1"),
]


@pytest.mark.parametrize(("prefix", "host"), PREFIXES)
def test_prefixes(prefix, host):
    line = f"{prefix}  hidden_size ................. 4096"
    assert bare(line).strip() == "hidden_size ................. 4096"
    assert host_prefix(prefix) == host


@pytest.mark.parametrize(
    "line",
    [
        "[after megatron is initialized] datetime: 2026-03-04 12:00:00",
        "ValueError: no",
        "  num_layers ... 2",
        " iteration 10/ 100 | elapsed",
        "[INFO] text",
        "[Rank 3] Watchdog",
        "Config param steps: 3",
        "time (ms) | x",
        "[1,3] text",
        "[3]text",
        "(see pid=x) text",
        "(a b pid=3) text",
    ],
)
def test_lines_without_a_prefix_stay(line):
    assert bare(line) == line and host_prefix(line) is None


@given(st.text())
def test_any_text(text):
    assert text.endswith(bare(text))
    host_prefix(text)


def clocked(folder, *prefixes, name="input"):
    tally = Tally()
    clock = Clock(source_of(folder, "\n".join(prefixes), name), tally)
    times = [clock.time_ns(prefix, n) for n, prefix in enumerate(prefixes)]
    return times, "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("[Wed Mar  4 12:00:00 2026] ", "name no time zone"),
        ("Wed Mar  4 04:00:00 PST 2026 ", ""),
        ("2026-03-04 17:00:00+05 ", ""),
        ("2026-03-04 12:00:00 CST ", "CST, which means"),
        ("03/04/2026 12:00:00 - INFO ", "month before the day"),
        ("2026/03/04 12:00:00 ", "no time zone"),
        ("[04/Mar/2026:13:00:00 +0100] ", ""),
    ],
)
def test_times_with_a_year(tmp_path, prefix, said):
    times, reasons = clocked(tmp_path, prefix)
    assert times == [T] and (said in reasons if said else reasons == "")


def test_days_that_are_no_months(tmp_path):
    assert clocked(tmp_path, "24/03/2026 12:00:00 ")[0] == [T + 20 * 86_400 * S]


def test_a_year_from_a_date_in_words(tmp_path):
    times, _ = clocked(tmp_path, "Wed Mar  4 12:00:00 UTC 2026", "I0304 12:00:01.000000 1 a.py:1] ")
    assert times == [T, T + S]


def test_months_below_ten_in_one_digit_as_pytorch_writes_them(tmp_path):
    times, _ = clocked(tmp_path, "2026-03-04T12:00:00Z ", "[rank0]:[E304 12:00:01.000000000 ProcessGroupNCCL.cpp:6")
    assert times == [T, T + S]
    assert clocked(tmp_path, "2026-11-05 ", "[rank0]:[E1105 12:00:01.5 ", "[rank0]:[E5 12:00:01.5 ")[0][2] is None


def test_a_clock_that_goes_back_is_said(tmp_path):
    stamps = [f"2026-03-04T1{hour}:00:00Z " for hour in (1, 2, 1, 2)]
    times, reasons = clocked(tmp_path, *stamps)
    assert times == [T - 3600 * S, T, T - 3600 * S, T] and "times (1): the clock goes back" in reasons
    assert clocked(tmp_path, "2026-03-04T12:00:00Z ", "2026-03-04T11:59:59Z ")[1] == ""


def test_lines_asked_for_out_of_order_are_no_clock_that_goes_back(tmp_path):
    tally = Tally()
    clock = Clock(source_of(tmp_path, ""), tally)
    clock.time_ns("2026-03-04T12:00:00Z ", 500)
    clock.time_ns("2026-03-04T11:00:00Z ", 100)
    assert list(tally.lost()) == []


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2026-03-04 12:05:06 AM", 0),
        ("03/04/2026, 11:05:06 AM", 11),
        ("Mar 04, 2026, 12:05:06 PM", 12),
        ("2026-03-04 01:05:06 PM UTC", 13),
        ("03/04/2026 11:05:06 p.m.", 23),
        ("04.03.2026 07:05:06", 7),
    ],
)
def test_halves_of_a_day_and_dates_with_points(tmp_path, written, hour):
    clock = Clock(source_of(tmp_path, "x"), Tally())
    assert clock.time_ns(f"[{written}] ", 0) == (1_772_582_400 + hour * 3600 + 5 * 60 + 6) * 10**9


def test_what_a_bar_overwrote_stands_behind_the_prefix_of_the_line():
    assert list(pieces("[pod/w/t] 2026-03-04T05:06:07Z 10%|#\r20%|##\rstep")) == [
        "[pod/w/t] 2026-03-04T05:06:07Z 10%|#",
        "[pod/w/t] 2026-03-04T05:06:07Z 20%|##",
        "[pod/w/t] 2026-03-04T05:06:07Z step",
    ]
    assert list(pieces("2026-03-04T05:06:07Z a\r2026-03-04T05:06:08Z b"))[1] == "2026-03-04T05:06:08Z b"
