"""Hosts whose lines are mixed are no restarts, restarts are; whichever lines lag, repeat or are missing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.reading.attempts import LAG_LINES, Lanes


def attempts(*numbers):
    """The attempt of each line, as it is known at the end."""
    lanes = Lanes()
    starts = [lanes.take(n).start for n in numbers]
    return [start.number for start in starts]


def mixed(hosts, steps, lag, seed, first=0, stride=1):
    """Lines of hosts that take the same steps, each up to `lag` lines behind once all have printed their first."""
    chance = random.Random(seed)
    out = [first] * hosts
    left = [list(range(first + stride, first + steps * stride, stride)) for _ in range(hosts)]
    while any(left):
        most = max(len(one) for one in left)
        host = chance.choice([one for one in left if one and (len(one) == most or most - len(one) < lag)])
        out.append(host.pop(0))
    return out


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 2, 3], [0, 0, 0, 0]),
        ([0, 0, 1, 1, 2, 2], [0] * 6),
        ([0, 1, 0, 2, 1, 3, 2], [0] * 7),
        ([0, 1, 2, 0, 3, 1, 4, 2], [0] * 8),
        ([10, 20, 30, 10, 40, 20], [0] * 6),
        ([5, 6, 7, 5, 6, 7, 8], [0, 0, 0, 1, 1, 1, 1]),
        ([5, 6, 7, 2, 3], [0, 0, 0, 1, 1]),
        ([3, 3, 4], [0, 0, 0]),
        ([7, 7, 8, 8, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]),
        ([4, 5, 3, 4, 2, 3], [0, 0, 1, 1, 2, 2]),
    ],
)
def test_lines(numbers, expected):
    assert attempts(*numbers) == expected


def test_a_step_reached_again_long_after_is_a_restart_still():
    numbers = [*range(20), *range(15, 40)]
    assert attempts(*numbers) == [0] * 20 + [1] * 25


@pytest.mark.parametrize("hosts", [2, 4])
@pytest.mark.parametrize("stride", [1, 10])
def test_mixed_hosts_are_one_start(hosts, stride):
    for seed in range(20):
        numbers = mixed(hosts, 60, 3, seed, first=100, stride=stride)
        assert set(attempts(*numbers)) == {0}


def test_mixed_hosts_that_restart_together():
    for seed in range(20):
        numbers = mixed(2, 30, 2, seed, 100) + mixed(2, 30, 2, seed, 110)
        assert attempts(*numbers) == [0] * 60 + [1] * 60


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30), st.data())
def test_one_host_restarts_where_its_steps_drop(lengths, data):
    numbers, expected, at = [], [], 1000
    for attempt, length in enumerate(lengths):
        numbers += range(at, at + length + LAG_LINES + 1)
        expected += [attempt] * (length + LAG_LINES + 1)
        at = data.draw(st.integers(max(0, numbers[-1] - 2000), numbers[-1] - 1))
    assert attempts(*numbers) == expected


def test_said_restarts():
    lanes = Lanes()
    lanes.take(5)
    lanes.restart()
    assert lanes.take(6).start.number == 1 and lanes.take(7).before == 6


def test_a_restart_at_the_number_printed_last_is_told_by_its_time():
    ns = 10**9
    lanes = Lanes()
    found = [lanes.take(step, at * ns).start.number for step, at in ((10, 50), (20, 100), (20, 240), (30, 290))]
    assert found == [0, 0, 1, 1]
    lanes = Lanes()  # two hosts, whose clocks differ by a second
    lines = [(step, at + late) for step, at in ((10, 50), (20, 100), (30, 150)) for late in (0, 1)]
    assert {lanes.take(step, at * ns).start.number for step, at in lines} == {0}


def test_a_job_that_dies_after_its_first_step_each_time_was_started_as_often():
    ns = 10**9
    lanes = Lanes()
    assert [lanes.take(0, at * ns, 35 * ns).start.number for at in range(0, 3000, 600)] == [0, 1, 2, 3, 4]
    lanes = Lanes()  # hosts that end their first step within the time that it took
    assert {lanes.take(0, at * ns, 35 * ns).start.number for at in range(0, 30, 5)} == {0}


def test_a_host_comes_back_behind_very_many_drops():
    falling = [2 * n for n in range(400, 100, -1)]
    assert attempts(*falling, 701)[-3:] == [50, 50, 50]  # as the host whose line was 700
    assert set(attempts(*falling, 801)) == {0}
