"""Saves and restores that Orbax tells of between the steps of a MaxText log, in the words of each era."""

import json

import pytest

from collectors.training.orbax_lines import checkpoint
from tests.collectors.test_maxtext import S, log, ns
from tests.collectors.test_maxtext_evals import lined, trained

SAVED = {
    "2024, waited for": ("Finished saving checkpoint in 1.25 seconds to gs://b/r/checkpoints/200.", True),
    "2025": (
        "[process=0] Finished blocking save. Time taken: 1.250000s. Continuing background save to "
        "gs://b/r/checkpoints/200.",
        False,
    ),
    "2026": (
        "[process=0] [async] Finished blocking save in 1.25 seconds. Continuing save @ gs://b/r/checkpoints/200.",
        False,
    ),
    "2026, waited for": ("[process=0] [sync] Finished save in 1.25 seconds @ gs://b/r/checkpoints/200", True),
    "of an item": ("[process=0] [sync] Finished save in 1.25 seconds @ gs://b/r/checkpoints/200/items", True),
    "of the whole call": (
        "{'step': 200, 'event_type': 'save', 'directory': 'gs://b/r/checkpoints', 'synchronous': False, "
        "'wait_for_prev_duration_secs': 7.84e-05, 'checkpointer_blocking_duration_secs': 1.0, "
        "'checkpoint_manager_blocking_duration_secs': 1.25}",
        False,
    ),
}


@pytest.mark.parametrize("era", SAVED)
def test_a_save_takes_what_it_says_before_its_line(tmp_path, era):
    """Nothing was read of saves: 45 s at each of them were steps that something held up that no event names."""
    text, synchronous = SAVED[era]
    told = [(0, trained(199, 2.0)), (3.25, f"I0304 05:06:03.250000 7 x.py:1] {text}"), (4, trained(200, 4.0))]
    [row] = log(tmp_path, lined(*told)).rows["lifecycle"]
    assert (row["kind"], row["step"], row["attempt"], row["host"]) == ("checkpoint_save", 200, 0, None)
    assert (row["start_ns"], row["end_ns"]) == (ns(2026, 3, 4, 5, 6, 2), ns(2026, 3, 4, 5, 6, 3) + S // 4)
    assert json.loads(row["detail"]) == {"directory": "gs://b/r/checkpoints", "synchronous": synchronous}


@pytest.mark.parametrize(
    "text",
    [
        "Finished restoring checkpoint in 2.50 seconds from gs://b/eval/checkpoints/100/items.",
        "[process=0] [sync] Finished load in 2.50 seconds @ gs://b/eval/checkpoints/100",
        "{'step': 100, 'event_type': 'restore', 'directory': 'gs://b/eval/checkpoints', "
        "'checkpoint_manager_duration_secs': 2.5}",
    ],
)
def test_a_restore_belongs_to_the_start_that_it_is_for(tmp_path, text):
    told = [(0, trained(149, 2.0)), (5, "restoring from this run's directory step 100"), (8, text)]
    told.append((20, trained(101, 9.0)))
    [row] = log(tmp_path, lined(*told)).rows["lifecycle"]
    assert (row["kind"], row["step"], row["attempt"]) == ("checkpoint_restore", 100, 1)
    assert row["end_ns"] - row["start_ns"] == 2.5 * S
    assert json.loads(row["detail"]) == {"directory": "gs://b/eval/checkpoints"}


@pytest.mark.parametrize(
    "text",
    [
        "[process=0] [async] Finished save (blocking + background) in 30.00 seconds @ gs://b/checkpoints/200",
        "Finished async_save (blocking + background). Time taken: 30.000000s. directory=gs://b/checkpoints/200",
        "Finished saving checkpoint (finalized tmp dir) to `gs://b/checkpoints/200`.",
        "[process=0][thread=MainThread][step=0] Finished synchronous save.",
        "{'step': 200, 'event_type': 'save', 'checkpoint_manager_blocking_duration_secs': None}",
    ],
)
def test_what_goes_on_in_the_background_or_tells_no_time_holds_up_nobody(text):
    assert checkpoint(text) is None


def test_a_wait_that_is_told_with_an_exponent_is_no_wait_of_seconds():
    said = checkpoint("{'step': 0, 'event_type': 'save', 'checkpoint_manager_blocking_duration_secs': 7.84e-05}")
    assert said is not None
    assert said.dur_ns == 78_400


def test_a_save_without_a_time_of_day_is_told_as_lost(tmp_path):
    text = "completed step: 1, seconds: 2.000, loss: 2.000\nFinished save in 1.25 seconds @ gs://b/checkpoints/1\n"
    assert "saves and restores" in log(tmp_path, text).reasons()
