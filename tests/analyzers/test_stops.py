"""Stops of jobs laid down by hand, second by second: what each lost, when it was back, and how it ended."""

from collections.abc import Sequence

import pandas as pd
import pytest

from analyzers.lost.stops import Stops, stops
from analyzers.time.calendar import calendar
from analyzers.time.history import history
from runs.tables import MemoryTables
from tests.analyzers.stopped_jobs import COMPILE_S, EPOCH, INIT_S, STEP_S, Attempt, Job, S


def at(second: float) -> int:
    return EPOCH + round(second * S)


def told(*attempts: tuple[float, Sequence[int]], events=(), timed=True, each_s=10) -> Stops:
    """Stops of a job whose log tells of attempts, each (second of its first step, step numbers), of steps of 10 s.
    `events`: (kind, start, end), seconds."""
    rows = [(k, n, begun + i * each_s) for k, (begun, numbers) in enumerate(attempts) for i, n in enumerate(numbers)]
    steps = {
        "attempt": [k for k, _, _ in rows],
        "step": [n for _, n, _ in rows],
        "start_ns": [at(t) if timed else None for _, _, t in rows],
        "dur_ns": [each_s * S] * len(rows),
        "order": list(range(len(rows))),
        "source": ["train.log"] * len(rows),
    }
    life = {
        "kind": [kind for kind, _, _ in events],
        "start_ns": [at(start) for _, start, _ in events],
        "end_ns": [None if end is None else at(end) for _, _, end in events],
    }
    here = MemoryTables({"steps": steps, "lifecycle": life})
    past = history(here, {})
    return stops(here, past, calendar(here, past))


def column(found: Stops, name: str) -> list:
    return [None if pd.isna(value) else value for value in found.rows[name]]


def seconds(found: Stops, name: str) -> list:
    return [None if value is None else (value - EPOCH) / S for value in column(found, name)]


def test_a_restart_whose_first_step_begins_with_it():
    events = [("job", 0, None), ("job", 200, 260)]
    found = told((0, [0, 1, 2, 3, 4]), (200, [3, 4, 5, 6, 7, 8]), events=events)
    assert (found.usual_s, found.finished, column(found, "kind")) == (10.0, True, ["restart"])
    assert seconds(found, "begun_ns") == [0] and seconds(found, "last_sign_ns") == [50]
    assert seconds(found, "restart_ns") == [200] and seconds(found, "back_ns") == [220]
    assert (column(found, "last_step"), column(found, "resumed_step")) == ([4], [3])
    assert (column(found, "lost_steps"), column(found, "wasted_s")) == ([2], [20.0])
    assert (column(found, "down_s"), column(found, "startup_s")) == ([150.0], [0.0])


def test_starting_up_ends_with_the_first_step_and_its_parts_are_its_sum():
    """A custom event of 3 s before the first step, one in the second step, one in the fifth."""
    events = [("job", 0, None), ("job", 200, 300), ("custom", 201, 204), ("custom", 222, 224), ("custom", 252, 255)]
    found = told((0, [0, 1, 2]), (210, [2, 3, 4, 5, 6, 7]), events=events)
    assert column(found, "custom_s") == [3.0]
    assert column(found, "other_s") == [7.0] and column(found, "startup_s") == [10.0]


def test_a_job_that_died_in_its_first_step_is_back_at_its_second():
    found = told((0, [0]), (100, [0, 1, 2, 3]), events=[("job", 0, None), ("job", 100, 140)])
    assert (column(found, "last_step"), column(found, "resumed_step")) == ([0], [0])
    assert (column(found, "lost_steps"), column(found, "wasted_s")) == ([1], [10.0])
    assert seconds(found, "back_ns") == [110]


def test_a_job_that_never_came_further_is_not_back():
    found = told((0, [0, 1, 2, 3, 4]), (100, [2, 3]), events=[("job", 0, None), ("job", 100, 120)])
    assert column(found, "back_ns") == [None] and column(found, "lost_steps") == [3]


def test_starts_without_a_step_have_none_before_or_after_them():
    events = [("job", -100, None), ("job", 0, None), ("job", 100, None), ("training_preparation", 100, 105)]
    found = told((0, [5, 6, 7]), events=[*events, ("job", 200, 230)])
    assert column(found, "last_step") == [None, 7, 7] and column(found, "resumed_step") == [5, None, None]


def test_a_step_is_lost_to_the_stop_after_which_it_was_taken_again():
    """The first restart loses nothing; the second goes back past it."""
    events = [("job", 0, None), ("job", 200, None), ("job", 400, 500)]
    found = told((0, range(10)), (200, range(10, 15)), (400, range(5, 15)), events=events)
    assert column(found, "lost_steps") == [0, 10] and column(found, "wasted_s") == [0.0, 100.0]
    assert seconds(found, "back_ns") == [200, None]


def test_what_a_rerun_of_a_finished_job_takes_again_no_stop_lost():
    events = [("job", 0, None), ("job", 100, 130), ("job", 1000, 1060)]
    found = told((0, [0, 1, 2]), (100, [2, 3, 4]), (1000, range(6)), events=events)
    assert column(found, "lost_steps") == [1] and column(found, "wasted_s") == [10.0]


def test_steps_taken_again_without_a_start_are_a_rollback_and_by_a_new_attempt_a_restart():
    found = told((0, [0, 1, 2, 3]), (60, [2, 3, 4]), events=[("job", 0, 90)])
    assert column(found, "kind") == ["restart"] and seconds(found, "last_sign_ns") == [40]
    assert seconds(found, "restart_ns") == [60] and column(found, "down_s") == [20.0]
    found = told((0, [0, 1, 2, 3, 2, 3, 4]), events=[("job", 0, 70)])
    assert column(found, "kind") == ["rollback"] and column(found, "lost_steps") == [2]
    assert seconds(found, "last_sign_ns") == [40] and column(found, "down_s") == [0.0]


def test_slices_lost_one_after_the_other_are_one_stop():
    times = [(30, 35), (36, 40), (130, 135), (136, 140)]
    lost = [("elastic_slice_down", start, end) for start, end in times]
    found = told((0, [0, 1, 2]), (100, [3, 4, 5]), (150, [6, 7]), events=[("job", 0, 170), *lost])
    elastic = found.rows[found.rows["kind"] == "elastic"]
    assert [(t - EPOCH) / S for t in elastic["last_sign_ns"]] == [30, 130]
    assert [(t - EPOCH) / S for t in elastic["restart_ns"]] == [100, 150]
    assert elastic["elastic_slice_down_s"].tolist() == [0.0, 0.0]  # down until steps were taken again
    assert list(found.rows.index) == list(range(len(found.rows)))


def test_slices_lost_are_back_with_the_next_start_and_with_none_they_are_no_stop():
    lost = ("elastic_slice_down", 30, 40)
    found = told((0, [0, 1, 2]), (100, [3, 4]), events=[("job", 0, None), lost, ("job", 90, 120)])
    elastic = found.rows[found.rows["kind"] == "elastic"]
    assert [(t - EPOCH) / S for t in elastic["restart_ns"]] == [90]
    assert told((0, [0, 1, 2]), events=[("job", 0, 60), lost]).rows.empty


def test_a_record_that_begins_with_slices_lost():
    found = told((20, [0, 1, 2]), events=[("elastic_slice_down", 0, 10)])
    assert column(found, "kind")[0] == "elastic" and seconds(found, "last_sign_ns")[0] == 0
    assert column(found, "attempt")[0] == 0 and seconds(found, "begun_ns")[0] == 0


def test_stops_of_several_kinds_are_in_order_of_time():
    lost = ("elastic_slice_down", 20, 30)
    found = told((0, [0, 1]), (40, [2, 3]), (200, [3, 4, 5]), events=[("job", 0, 230), lost])
    assert column(found, "kind") == ["elastic", "restart", "restart"] and list(found.rows.index) == [0, 1, 2]
    assert seconds(found, "begun_ns") == [0, 0, 40] and column(found, "attempt") == [0, 0, 1]


def test_no_second_is_down_for_slices_lost_and_for_the_restart_that_followed():
    """Slices are lost at 30 s, the last sign of it is at 40 s, and the job is started again at 90 s."""
    events = [("job", 0, None), ("elastic_slice_down", 30, 40), ("job", 90, 120)]
    found = told((0, [0, 1, 2]), (90, [3, 4, 5]), events=events)
    assert column(found, "kind") == ["elastic", "restart"]
    assert column(found, "down_s") == [10.0, 50.0] and column(found, "startup_s") == [0.0, 0.0]


@pytest.mark.parametrize("restarts", [0, 1])
def test_the_end_of_a_record_that_does_not_say_that_the_job_was_done(restarts):
    job = Job([*[Attempt(5, lost=2)] * restarts, Attempt(6)], end=False)
    here = job.tables()
    past = history(here, {})
    found = stops(here, past, calendar(here, past))
    assert not found.finished and column(found, "kind") == ["restart"] * restarts + ["final"]
    end = found.rows.iloc[-1]
    assert (end["attempt"], end["begun_ns"], end["last_sign_ns"]) == (restarts, job.begun[-1], job.last_sign[-1])
    assert (end["lost_steps"], end["wasted_s"], end["last_step"]) == (0, 0.0, job.reached[-1])
    assert end[["restart_ns", "back_ns", "resumed_step", "down_s"]].isna().all()
    assert list(found.rows.index) == list(range(restarts + 1))
    if restarts:
        assert column(found, "startup_s") == [float(INIT_S + COMPILE_S - STEP_S), None]
        assert column(found, "restart_ns") == [job.begun[1], None]


def test_the_end_of_a_record_without_a_step_has_no_last_step():
    found = told(events=[("job", 0, None), ("training_preparation", 5, 20)])
    assert found.usual_s is None and column(found, "last_step") == [None] and seconds(found, "last_sign_ns") == [20]


def test_without_times_of_day_stops_are_told_by_steps_alone():
    found = told((0, [0, 1, 2, 3, 2, 3, 4]), (0, [4]), (0, [1, 2, 3]), timed=False)
    assert not found.finished and found.usual_s == 10.0
    assert column(found, "kind") == ["rollback", "restart", "restart"]
    assert column(found, "attempt") == [0, 0, 1]
    assert (column(found, "last_step"), column(found, "resumed_step")) == ([3, 4, 4], [2, 4, 1])
    # the third lost what was left: step 1, steps 2 and 3 as taken again, and 4 as taken again
    assert column(found, "lost_steps") == [2, 1, 4] and column(found, "wasted_s") == [20.0, 10.0, 40.0]
    assert column(found, "down_s") == [None] * 3 and column(found, "restart_ns") == [None] * 3
