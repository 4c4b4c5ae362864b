"""Streams laid down by hand: which rows are takes, where an attempt opens, and what is said of what was left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analyzers.time.source_clocks import _to_nearest
from analyzers.time.step_chains import chains
from analyzers.time.step_streams import UNTIMED, Stream
from analyzers.time.step_takes import lines_taken, takes

S = 10**9


def stream(source: str, steps, at_s=None, each_s: float = 10, first_row: int = 0, form: str = "log") -> Stream:
    """Steps of `each_s` one after the other from `at_s` on; without it, without times of day."""
    n = len(steps)
    start = np.full(n, UNTIMED) if at_s is None else np.array([round((at_s + i * each_s) * S) for i in range(n)])
    return Stream(
        source=source,
        host="",
        format=form,
        row=np.arange(first_row, first_row + n),
        place=np.arange(n),
        step=np.array(steps, dtype=np.int64),
        start_ns=start,
        end_ns=start if at_s is None else start + round(each_s * S),
        fresh=np.zeros(n, dtype=bool),
        announced=np.zeros(n, dtype=bool),
        usual_ns=round(each_s * S),
    )


def taken(*told: Stream, took=None, loss=None):
    rows = 1 + max(int(s.row.max()) for s in told)
    nothing = np.full(rows, np.nan)
    return takes(told, nothing if took is None else took, nothing if loss is None else loss)


def test_of_two_hosts_each_step_counts_once_as_the_longer_log_tells_it():
    found = taken(stream("b.log", range(2, 6), 20.3, first_row=100), stream("a.log", range(10), 0))
    assert found.step.tolist() == list(range(10)) and found.row.tolist() == list(range(10))
    assert found.start_ns.tolist() == [10 * n * S for n in range(10)] and found.shifts == {}
    assert found.opens.tolist() == [True] + [False] * 9
    (note,) = found.notes
    assert note.startswith("14 rows of 2 hosts or logs tell of 10 steps taken: each counts once")
    assert note.endswith("; nothing was taken from b.log.")


@pytest.mark.parametrize(("logged", "first_row"), [(10, 100), (9, 0)])
def test_a_log_goes_before_kept_metrics_that_tell_no_more(logged, first_row):
    """It tells of the saves that they take for a part of their steps."""
    kept = stream("events", range(10), 0, each_s=11, form="tensorboard")
    found = taken(kept, stream("z.log", range(logged), 0.2, each_s=11, first_row=100, form="torchtitan"))
    assert found.row[0] == first_row and len(found.row) == 10


@pytest.mark.parametrize("ahead_h", [-7, 8])
def test_a_log_without_a_zone_goes_by_the_clock_of_kept_metrics(ahead_h):
    kept = stream("events", range(30), 0, form="tensorboard")
    log = stream("a.log", range(30), 0.2 + ahead_h * 3600, first_row=100)
    other = stream("b.log", range(30), 0.3 + ahead_h * 3600, first_row=200)
    found = taken(kept, log, other)
    assert {name: round(ns / S / 3600) for name, ns in found.shifts.items()} == {"a.log": -ahead_h, "b.log": -ahead_h}
    assert abs(int(found.start_ns[0])) < S and len(found.row) == 30


def test_what_the_longer_log_lacks_the_other_tells():
    lacks = stream("a.log", [*range(5), *range(8, 15)], 0)
    start = np.array([10 * n * S for n in (*range(5), *range(8, 15))])
    lacks = Stream(**{**vars(lacks), "start_ns": start, "end_ns": start + 10 * S})
    found = taken(lacks, stream("b.log", range(3, 10), 30.5, first_row=100))
    assert found.step.tolist() == list(range(15)) and found.row[5:8].tolist() == [102, 103, 104]
    assert found.opens.sum() == 1 and "nothing was taken" not in found.notes[0]


@pytest.mark.parametrize(("each_s", "pause_s", "opens"), [(10, 100, 1), (10, 101, 2), (2, 60, 1), (2, 61, 2)])
def test_a_log_that_goes_on_after_a_pause_of_a_minute_or_ten_steps_is_of_a_new_start(each_s, pause_s, opens):
    ended = 5 * each_s
    found = taken(stream("a", range(5), 0, each_s), stream("b", range(5, 10), ended + pause_s, each_s, 5))
    assert found.step.tolist() == list(range(10)) and found.opens.sum() == opens and found.notes == ()
    skipped = taken(stream("a", range(5), 0, each_s), stream("b", range(7, 10), ended + pause_s, each_s, 5))
    assert skipped.opens.sum() == 1  # the time of two steps that nobody told of is no pause


def test_steps_taken_again_by_a_later_log_open_an_attempt():
    found = taken(stream("a", range(5), 0), stream("b", range(3, 8), 60, first_row=5))
    assert found.step.tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7]
    assert np.flatnonzero(found.opens).tolist() == [0, 5]


@pytest.mark.parametrize(("timed_steps", "kept"), [(5, "timed"), (4, "untimed")])
def test_logs_without_times_count_where_they_tell_of_more_than_twice_as_many_steps(timed_steps, kept):
    found = taken(stream("t.log", range(timed_steps), 0), stream("u.log", range(10), first_row=50))
    assert len(found.step) == (timed_steps if kept == "timed" else 10)
    why = "no times of day" if kept == "timed" else "times of day but few of the steps"
    left = "u.log" if kept == "timed" else "t.log"
    assert found.notes == (f"{left}: left out, as it carries {why} and other inputs tell of the same job.",)


def test_a_note_names_four_and_counts_the_others():
    parts = [stream(f"u{k}", range(k, k + 2), first_row=50 + 2 * k) for k in range(6)]
    assert taken(stream("t", range(9), 0), *parts).notes[0].startswith("u0, u1, u2, u3 and 2 more: left out, as they c")
    assert taken(stream("t", range(9), 0), *parts[:4]).notes[0].startswith("u0, u1, u2, u3: left out, as they c")


def test_clocks_hours_apart_go_by_that_of_most_and_the_other_is_moved():
    logs = [stream(f"{k}.log", range(20), at_s, first_row=20 * k) for k, at_s in enumerate((0.0, 0.5, -25200.0))]
    found = taken(*logs)
    assert found.step.tolist() == list(range(20)) and found.shifts == {"2.log": pytest.approx(25200 * S, abs=S)}
    assert found.notes[0].startswith("2.log: its clock is 7 h behind that of the others")
    ahead = taken(*logs[:2], stream("2.log", range(20), 25200.0, first_row=40))
    assert ahead.notes[0].startswith("2.log: its clock is 7 h ahead of that of the others")


def test_another_job_s_steps_at_the_same_time_are_left_out():
    found = taken(stream("a", range(30), 0), stream("b", range(500, 520), 5, first_row=30))
    assert found.step.tolist() == list(range(30))
    assert found.notes[0].startswith("b: left out, as at most of its times other inputs tell of other steps")


def measured(one: Stream) -> Stream:
    """The same by who measures each step anew."""
    return replace(one, end_ns=one.end_ns - np.arange(len(one)) % 7)


def test_nor_are_those_of_a_job_whose_steps_another_program_prints():
    """The one that began later is the faster one: for a moment both are at the same step."""
    log = measured(stream("a.log", range(600), 0, each_s=6))
    other = measured(stream("run.wandb", range(900), 700, each_s=4, first_row=600, form="wandb"))
    found = taken(log, other)
    assert found.row.tolist() == list(range(600, 1500)) and found.opens.sum() == 1 and found.shifts == {}
    assert found.notes[0].startswith("a.log: left out, as at most of its times other inputs tell of other steps")
    assert "clock" not in found.notes[0].partition("it is of")[0]


def test_a_mean_over_steps_and_the_save_among_them_tells_of_the_same_job():
    """Steps of a second, each hundred with a save of a minute, by one who knows of it and by one who does not."""
    known = [measured(stream("a.log", range(n, n + 100), 160 * k, 1, n, "torchtitan")) for k, n in enumerate((0, 100))]
    mean = stream("events", range(200), 0, 1.6, first_row=200, form="tensorboard")
    for found in (taken(*known, mean), taken(known[0], mean)):
        assert found.step.tolist() == list(range(200)) and not any("left out" in note for note in found.notes)


def test_without_times_copies_are_left_out_and_others_follow_one_another():
    took = np.full(60, 5.0 * S)
    found = taken(stream("a", range(20)), stream("b", range(20), first_row=20), took=took)
    assert found.row.tolist() == list(range(20)) and found.notes[0].startswith(
        "b: the same steps at the same speed as in a"
    )
    took[20:40] = 6.0 * S  # slower by a fifth: no copy
    found = taken(stream("a", range(20)), stream("b", range(20), first_row=20), took=took)
    assert len(found.step) == 40 and np.flatnonzero(found.opens).tolist() == [0, 20]
    assert "taken one after the other, by their names: a, b." in found.notes[0]
    loss = np.concatenate((np.linspace(9, 5, 20), np.linspace(9, 5, 20) * 1.01, np.zeros(20)))
    assert len(taken(stream("a", range(20)), stream("b", range(20), first_row=20), loss=loss).step) == 40
    loss[20:40] = loss[:20] * 1.0005
    assert len(taken(stream("a", range(20)), stream("b", range(20), first_row=20), loss=loss).step) == 20


def test_rotated_logs_without_times_follow_by_number_and_parts_by_their_steps():
    parts = [stream(name, range(k, k + 10), first_row=10 * k) for k, name in ((2, "log.1"), (0, "log.2"), (4, "log"))]
    assert taken(*parts).row[[0, 10, 20]].tolist() == [0, 20, 40]
    apart = taken(stream("z", range(5)), stream("a", range(7, 10), first_row=5))
    assert apart.step.tolist() == [0, 1, 2, 3, 4, 7, 8, 9] and apart.opens.sum() <= 1
    assert "by their steps: z, a." in apart.notes[0]


@pytest.mark.parametrize(
    "names",
    [
        ("log.3.gz", "log.2.gz", "log.1", "log"),
        ("log.10.gz", "log.9.gz", "log.1.gz", "log.gz"),
        ("train.log-20260303.gz", "train.log-20260304.gz", "train.log-20260305", "train.log"),
        ("log.20260303", "log.20260304", "log.20260305", "log"),
        ("log.2026-03-03", "log.2026-03-04", "log.2026-03-04_17", "log"),
        ("0.log.20260303-050607.gz", "0.log.20260303-150607.gz", "0.log.20260304-000000", "0.log"),
        ("log-1772500000", "log-1772600000", "log-1772700000", "log"),
        ("attempt_8.log", "attempt_9.log.gz", "attempt_10.log", "attempt_11.log.gz"),
        ("20260303.log", "20260304.log", "run.log", "run_2.log"),
    ],
)
def test_logs_without_times_follow_as_their_names_tell_of_their_age(names):
    parts = [stream(name, range(20 * k, 20 * k + 30), first_row=30 * k) for k, name in enumerate(names)]
    found = taken(*(parts[k] for k in (3, 1, 0, 2)))
    assert found.row.tolist() == list(range(120)) and f"by their names: {', '.join(names)}." in found.notes[-1]


def test_a_log_that_goes_on_by_a_clock_put_back_since_is_moved_on_and_so_are_those_after_it():
    """Three parts of a log, rotated every 1,000 s; after the first the clock was put back by an hour. They were left
    out as another job's, and where they were longer two steps were taken at once."""
    last, after = stream("a", range(100), 0), stream("b", range(100, 200), 1003 - 3600, first_row=100)
    more = stream("c", range(200, 300), 2003 - 3600, first_row=200)
    found = taken(more, last, after)
    assert found.step.tolist() == list(range(300)) and found.opens.sum() == 1
    assert np.diff(found.start_ns).max() <= 13 * S and np.diff(found.start_ns).min() >= 10 * S
    assert found.shifts == {"b": 3600 * S, "c": 3600 * S}
    assert sum("with the next step 1 h before the log that it follows ended" in note for note in found.notes) == 2
    by_another = stream("utc", range(300), 7200, first_row=300)
    beside = taken(more, last, after, by_another)
    assert np.diff(beside.start_ns).max() <= 13 * S and beside.step.tolist() == list(range(300))


@pytest.mark.parametrize("at_s", [1003 - 3500, 1003 + 3600])
def test_neither_another_time_back_nor_a_pause_of_an_hour_is_a_clock_put_back(at_s):
    found = taken(stream("a", range(100), 0), stream("b", range(100, 150), at_s, first_row=100))
    assert found.shifts == {}


@pytest.mark.parametrize("slow", ["a.log", "b.log"])
def test_a_step_lasts_as_long_as_on_the_slowest_host_whoever_tells_it(slow):
    fast = "b.log" if slow == "a.log" else "a.log"
    quick = stream(fast, range(10), 0, first_row=100)
    quick = replace(quick, end_ns=quick.start_ns + 9 * S)
    told = sorted([stream(slow, range(10), 0), quick], key=lambda s: s.source)
    assert taken(*told).lasted_ns.tolist() == [10 * S] * 10


def test_no_step_lasts_longer_on_another_host_than_until_the_next_begins():
    late = stream("b.log", range(8), 0.4, first_row=100)
    late = replace(late, end_ns=late.start_ns + 11 * S)
    assert taken(stream("a.log", range(10), 0), late).lasted_ns.tolist() == [10 * S] * 10


def test_of_hosts_that_write_one_log_the_slowest_tells_how_long_a_step_lasts():
    n = 12
    rows = pd.DataFrame(
        {
            "step": [k for k in range(n) for _ in "ab"],
            "start_ns": [10 * k * S for k in range(n) for _ in "ab"],
            "dur_ns": [9 * S, 10 * S] * n,
            "order": range(2 * n),
            "loss": [None] * 2 * n,
            "attempt": [0] * 2 * n,
            "logged_ns": [None] * 2 * n,
            **{name: ["all"] * 2 * n for name in ("source", "format")},
            "host": [None] * 2 * n,
        }
    ).astype({c: "Int64" for c in ("step", "start_ns", "dur_ns", "order", "attempt", "logged_ns")})
    found = lines_taken(rows.astype({"loss": "float64"}))
    assert len(found.row) == n and found.took_ns(np.full(n, 9 * S)).tolist() == [10 * S] * n


def test_parts_of_logs_go_on_nearest_to_where_each_ended():
    """Against looking at every other stream each time."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        told = [
            stream(f"{k}.log", range(first, first + 4), first * 10 + float(rng.integers(-3, 4)) / 2)
            for k, first in enumerate(rng.choice([0, 4, 8, 12], int(rng.integers(2, 14))).tolist())
        ]
        expected, within = [], set()
        for _, first in sorted((int(one.start_ns[0]), k) for k, one in enumerate(told)):
            parts = [] if first in within else [first]
            while parts:
                within.add(parts[-1])
                end, following = int(told[parts[-1]].end_ns[-1]), int(told[parts[-1]].step[-1]) + 1
                near = min(
                    (abs(int(one.start_ns[0]) - end), k)
                    for k, one in enumerate([*told, stream("", [following], 1e9)])
                    if one.step[0] == following and k not in within
                )
                if near[0] > 20 * S:
                    break
                parts.append(near[1])
            expected += [parts] if parts else []
        assert chains(told) == expected


def test_a_step_taken_twice_is_held_against_the_take_nearest_in_time():
    """Against looking at every row of the other input."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        step, other = (rng.integers(0, 6, int(rng.integers(1, 9))) for _ in range(2))
        at, other_at = (rng.integers(-9, 9, len(x)) * S for x in (step, other))
        gaps = [
            [int(b - a) for t, b in zip(other, other_at, strict=True) if t == s] for s, a in zip(step, at, strict=True)
        ]
        expected = [min(g, key=lambda x: (abs(x), x)) for g in gaps if g]
        assert sorted(_to_nearest(step, at, other, other_at).tolist()) == sorted(expected)


def test_of_hundreds_of_logs_each_column_is_taken_out_once(monkeypatch):
    hosts, steps = 200, 5
    rows = pd.DataFrame(
        {
            "step": np.tile(np.arange(steps), hosts),
            "start_ns": np.tile(np.arange(steps) * 10 * S, hosts) + np.repeat(np.arange(hosts), steps),
            "dur_ns": np.full(hosts * steps, 10 * S),
            "order": np.tile(np.arange(steps), hosts),
            "source": np.repeat([f"{h}.log" for h in range(hosts)], steps),
            "host": None,
            "format": "log",
            "attempt": 0,
            "logged_ns": None,
            "loss": 1.0,
        }
    ).astype({"logged_ns": "Int64"})
    taken_out, real = [], pd.Series.to_numpy
    monkeypatch.setattr(pd.Series, "to_numpy", lambda self, *a, **k: taken_out.append(self.name) or real(self, *a, **k))
    assert lines_taken(rows).step.tolist() == list(range(steps))
    assert len(taken_out) < 50
