"""Logs in local time without a zone, in the nights in which clocks are changed."""

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from collectors.reading.line_prefix import Clock
from collectors.reading.textlog import Tally
from collectors.serving import vllm_log
from collectors.training import megatron
from tests.collectors.reading import read, source_of

S = 10**9
HOUR = 3600
AUTUMN, SPRING = (int(datetime(2026, *day, tzinfo=UTC).timestamp()) for day in ((10, 25, 1), (3, 29, 1)))
BERLIN = ZoneInfo("Europe/Berlin")


def local(at, zone=BERLIN, form="%Y-%m-%d %H:%M:%S"):
    return datetime.fromtimestamp(at, zone).strftime(form)


def ahead(at, zone=BERLIN):
    """What such a clock shows more than UTC."""
    return int(datetime.fromtimestamp(at, zone).replace(tzinfo=UTC).timestamp()) - at


def clocked(tmp_path, stamps, offsets=None):
    tally = Tally()
    clock = Clock(source_of(tmp_path, ""), tally)
    times = [clock.time_ns(f"[{stamp}] ", offset) for offset, stamp in offsets or enumerate(stamps)]
    return [t // S for t in times if t is not None], "; ".join(f"{lost.what}: {lost.reason}" for lost in tally.lost())


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", AUTUMN),
        ("Europe/London", AUTUMN),
        ("Europe/Helsinki", AUTUMN),
        ("America/Los_Angeles", int(datetime(2026, 11, 1, 9, tzinfo=UTC).timestamp())),
        ("Australia/Sydney", int(datetime(2026, 4, 4, 16, tzinfo=UTC).timestamp())),
        ("Europe/Berlin", SPRING),
        ("America/New_York", int(datetime(2026, 3, 8, 7, tzinfo=UTC).timestamp())),
    ],
)
def test_the_clock_goes_on_as_it_began(tmp_path, zone, change):
    zone = ZoneInfo(zone)
    true = [change + t for t in range(-2 * HOUR, 4 * HOUR, 47)]
    times, said = clocked(tmp_path, [local(t, zone) for t in true])
    assert times == [t + ahead(true[0], zone) for t in true]
    assert "summer time" in said and "goes back" not in said


def test_lines_of_hosts_in_turns_and_one_behind_the_other(tmp_path):
    draw = random.Random(3)
    one = [AUTUMN + t for t in range(-2 * HOUR, 2 * HOUR, 20)]
    true = sorted(one + [t + 1 for t in one], key=lambda t: t + draw.uniform(-15, 15)) + [t + 2 for t in one]
    times, _ = clocked(tmp_path, [local(t) for t in true])
    assert times == [t + ahead(one[0]) for t in true]


def test_lines_asked_for_later_stand_where_they_are(tmp_path):
    true = [AUTUMN + t for t in range(-2 * HOUR, 2 * HOUR, 10)]
    first = [(i, local(t)) for i, t in enumerate(true) if i % 7 == 0]
    late = [(i, local(t)) for i, t in enumerate(true) if i % 7]
    late.sort(key=lambda line: line[0] % 5)
    late = [line for line in late if line[0] < first[-1][0]]
    times, _ = clocked(tmp_path, [], first + late)
    assert times == [true[i] + ahead(true[0]) for i, _ in first + late]


@pytest.mark.parametrize(
    "stamps",
    [
        ["2026-10-24 02:59:50", "2026-10-24 02:00:05", "2026-10-24 03:10:00"],  # a Saturday: the clock was set
        ["2026-10-25 12:59:50", "2026-10-25 12:00:05", "2026-10-25 13:10:00"],  # by day
        ["2026-10-25 02:59:50", "2026-10-25 02:50:05", "2026-10-25 03:10:00"],  # not by an hour
        ["2026-10-25 02:59:50Z", "2026-10-25 02:00:05Z", "2026-10-25 03:10:00Z"],  # a zone that has no summer
        ["2026-03-29 01:20:00", "2026-03-29 03:20:00"],  # a pause
    ],
)
def test_other_clocks_are_read_as_they_stand(tmp_path, stamps):
    times, said = clocked(tmp_path, stamps)
    assert times == [int(datetime.fromisoformat(s.removesuffix("Z") + "+00:00").timestamp()) for s in stamps]
    assert "summer time" not in said


def test_all_that_a_megatron_log_dates_goes_on(tmp_path):
    """Steps, saves, what failed and the job's end: the steps were laid on, and the rest lay an hour before them."""
    true = [AUTUMN + t for t in range(-1000, 1000, 100)]
    text = f"[before the start of training step] datetime: {local(true[0] - 100)} \n"
    for n, at in enumerate(true):
        text += (
            f" [{local(at)}] iteration {n + 1:8d}/  100 | consumed samples: 4 | elapsed time per iteration (ms): "
            "90000.0 | learning rate: 1.0E-04 | global batch size: 4 | lm loss: 2.5E+00 |\n"
            f" [{local(at + 1)}] saving checkpoint at iteration {n + 1:7d} to /x in torch format\n"
            "    save-checkpoint ................................: (5000.00, 6000.00)\n"
        )
    end = true[-1] + 10
    text += f"[{local(end)}] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    text += f"[after training is done] datetime: {local(end)} \n"
    found = read(megatron, source_of(tmp_path, text))
    more = ahead(true[0])
    assert found.column("steps", "logged_ns") == [(t + more) * S for t in true]
    kinds, starts, ends = (found.column("lifecycle", c) for c in ("kind", "start_ns", "end_ns"))
    saved = [s for k, s in zip(kinds, starts, strict=True) if k == "checkpoint_save"]
    assert saved == [(t + 1 + more) * S for t in true]
    assert [e for k, e in zip(kinds, ends, strict=True) if k == "job"] == [(end + more) * S]
    assert found.column("evidence", "ts_ns") == [(end + more) * S]


def test_samples_of_an_engine_go_on(tmp_path):
    true = [AUTUMN + t for t in range(-600, 600, 10)]
    line = "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 3 reqs, Waiting: 1"
    text = "".join(
        f"INFO {local(t, form='%m-%d %H:%M:%S')} [loggers.py:259] Engine 000: {line} reqs, GPU KV cache usage: 12.3%\n"
        for t in true
    )
    found = read(vllm_log, source_of(tmp_path, text, "server-2026-10-25.log"))
    assert found.column("engine", "ts_ns") == [(t + ahead(true[0])) * S for t in true]
