"""Times of day in a job's history: other time zones, clocks that go back, starts that several tell of."""

import random

import pytest

from analyzers.lost import goodput, interruptions
from analyzers.time import ledger
from analyzers.time.history import history
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.short_jobs import job_of, logs
from tests.analyzers.told_jobs import EPOCH, S, log, tables


def test_a_log_seven_hours_west_is_the_same_attempt_and_its_events_move_with_it():
    takes = job_of((0, 700, 0))
    rng = random.Random(0)
    rows = [*log(rng, takes, "a.log"), *log(rng, takes, "b.log"), *log(rng, takes, "w.log", clock_s=-7 * 3600)]
    here = tables(rows)
    here = MemoryTables(
        {
            "steps": here.arrow("steps").to_pydict(),
            "lifecycle": {
                "kind": ["eval"],
                "start_ns": [EPOCH + (3505 - 7 * 3600) * S],
                "end_ns": [EPOCH + (3525 - 7 * 3600) * S],
                "source": ["w.log"],
            },
        }
    )
    result = ledger.analyze(here, facts_of({"chips": 1}), {})
    assert result.ledger.chip_seconds == pytest.approx(3525, abs=1)
    assert result.ledger.amount("eval") == pytest.approx(20)
    assert any("w.log: its clock is 7 h behind" in note for note in result.notes)


def test_of_two_logs_by_two_clocks_the_goodput_log_s_holds():
    takes = job_of((0, 99, 0))
    rows = tables(log(random.Random(0), takes, "w.log", clock_s=-5.5 * 3600)).arrow("steps").to_pydict()
    for name, values in rows.items():
        more = {
            "step": [t.step for t in takes],
            "start_ns": [EPOCH + round(t.start_s * S) for t in takes],
            "source": ["g.json"] * 100,
            "order": list(range(100)),
        }
        values += more.get(name, [None] * 100)
    past = history(MemoryTables({"steps": rows}), {})
    assert past.rows["start_ns"].iloc[0] == EPOCH
    assert past.shifts == {"w.log": round(5.5 * 3600 * S)}
    assert past.rows["loss"].notna().all()


def test_a_rerun_from_the_beginning_hours_later_is_no_other_time_zone():
    again = job_of((0, 99, 0), (0, 149, 2 * 3600 + 222))
    here = logs((again[:100], "a.log"), (again[100:], "b.log"))
    past = history(here, {})
    assert past.rows["attempt"].nunique() == 2 and int((~past.rows["kept"]).sum()) == 100


def test_events_by_another_clock_are_left_out_and_said():
    here = logs((job_of((0, 99, 0)), "a.log"))
    here = MemoryTables(
        {
            "steps": here.arrow("steps").to_pydict(),
            "lifecycle": {
                "kind": ["job", "job"],
                "start_ns": [EPOCH - 9 * 3600 * S, EPOCH - 8 * 3600 * S],
                "end_ns": [None, None],
                "source": ["events.json"] * 2,
            },
        }
    )
    result = ledger.analyze(here, facts_of({"chips": 1}), {})
    assert result.ledger.chip_seconds == pytest.approx(500, abs=1) and not result.interruptions
    assert any("events.json" in note and "another clock" in note for note in result.notes)


@pytest.mark.parametrize("apart_s", [0.2, 30.0])
def test_starts_that_several_ranks_tell_of_are_one(apart_s):
    takes = job_of((0, 99, 100), (100, 199, 2000))
    here = logs((takes, "a.log"), announced=False).arrow("steps").to_pydict()
    starts = [EPOCH + round((t + r * apart_s) * S) for t in (0, 1900) for r in range(4)]
    life = {"kind": ["job"] * 8, "start_ns": starts, "end_ns": [None] * 8, "source": [f"rank{r}" for r in range(4)] * 2}
    found = interruptions.analyze(MemoryTables({"steps": here, "lifecycle": life}), facts_of({"chips": 1}), {})
    assert found.count == 1 and len(found.attempts) == 2


def test_starts_that_one_input_tells_of_are_each_a_start():
    life = {"kind": ["job"] * 3, "start_ns": [EPOCH + t * S for t in (0, 20, 40)], "end_ns": [None] * 3}
    here = logs((job_of((0, 99, 100)), "a.log")).arrow("steps").to_pydict()
    assert interruptions.analyze(MemoryTables({"steps": here, "lifecycle": life}), facts_of({}), {}).count == 2


def test_a_clock_that_goes_back_takes_no_step_again_and_is_said():
    takes = job_of((0, 49, 4000), (50, 99, 650))
    here = logs((takes, "a.log"), announced=False)
    result = goodput.analyze(here, facts_of({}), {"rules": "exact"})
    assert (result.disruptions, result.goodput_share) == (0, pytest.approx(1, abs=0.01))
    assert any("clock goes back at step 50" in note and "1 h" in note for note in result.notes)
    again = history(
        MemoryTables(
            {
                "steps": {
                    "step": range(100),
                    "order": range(100),
                    "start_ns": [EPOCH + round((t.start_s) * S) for t in takes],
                }
            }
        ),
        {},
    )
    assert again.rows["kept"].all() and any("goes back" in note for note in again.notes)


def test_one_time_far_ahead_is_drawn_in():
    at = [EPOCH + (10 * n + (900_000_000 if n == 30 else 0)) * S for n in range(60)]
    past = history(
        MemoryTables({"steps": {"step": range(60), "order": range(60), "start_ns": at, "dur_ns": [10 * S] * 60}}), {}
    )
    assert past.rows["start_ns"].max() == EPOCH + 590 * S
    assert any("step 30 names a time later" in note for note in past.notes)


def test_times_printed_to_the_second_take_no_step_again():
    at = [EPOCH + round(0.3 * n + 0.3) * S - round((0.31 if n % 3 else 0.29) * S) for n in range(200)]
    past = history(
        MemoryTables(
            {"steps": {"step": range(200), "order": range(200), "start_ns": at, "dur_ns": [round(0.3 * S)] * 200}}
        ),
        {},
    )
    assert past.rows["kept"].all() and past.rows["segment"].max() == 0


def test_a_tracker_that_names_its_host_and_a_log_that_does_not_tell_of_the_same_starts():
    """As W&B and Megatron do: the one from when it was set up, the other from its first dated line on."""
    takes = job_of((0, 99, 200), (60, 149, 1500))
    starts = [EPOCH, EPOCH + 1300 * S]
    told = {
        "kind": ["job"] * 4,
        "start_ns": [*starts, *(at + 130 * S for at in starts)],
        "end_ns": [None] * 4,
        "host": ["n7", "n7", None, None],
        "source": ["one.wandb", "two.wandb", "a.log", "a.log"],
    }
    steps = tables(log(random.Random(0), takes, "a.log")).arrow("steps").to_pydict()
    for rows in (4, 3, 2):  # the log tells of both starts, of the first alone, of none
        life = {name: values[:rows] for name, values in told.items()}
        result = interruptions.analyze(MemoryTables({"steps": steps, "lifecycle": life}), facts_of({"chips": 8}), {})
        assert (result.count, [a["start_ns"] for a in result.to_dict()["attempts"]]) == (1, starts)


def test_a_run_of_a_tracker_that_holds_the_log_of_its_job_was_started_once():
    """W&B's run names its host and when it was set up, the console in it when Megatron was."""
    life = {
        "kind": ["job"] * 2,
        "start_ns": [EPOCH, EPOCH + 2 * S],
        "end_ns": [EPOCH + 810 * S, EPOCH + 800 * S],
        "host": ["n7", None],
        "source": ["one.wandb"] * 2,
    }
    steps = tables(log(random.Random(0), job_of((0, 119, 200)), "one.wandb")).arrow("steps").to_pydict()
    result = interruptions.analyze(MemoryTables({"steps": steps, "lifecycle": life}), facts_of({"chips": 8}), {})
    assert (result.count, [a["start_ns"] for a in result.to_dict()["attempts"]]) == (0, [EPOCH])
