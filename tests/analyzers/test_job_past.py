"""Steps and calendar of a stored run: worked out once, the same as worked out anew, and never after a file changed."""

import numpy as np
import pandas as pd
import pytest

from analyzers.time.calendar import calendar
from analyzers.time.history import history
from analyzers.time.job_past import job_past, steps_taken
from errors import InputError
from runs.kept import Answers
from runs.run import FactValue
from runs.store import Store
from runs.tables import MemoryTables, RowsOf
from tests.app import made_runs


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_questions_of_one_run_share_its_steps_and_calendar(store):
    run = made_runs.interrupted(store)
    past, days = job_past(run.tables, run.manifest.facts)
    again, later = job_past(store.find(run.run_id).tables, dict(run.manifest.facts))
    assert again.jobs is past.jobs and later.painting is days.painting
    assert steps_taken(run.tables, run.manifest.facts).jobs is past.jobs


def test_what_is_shared_is_what_would_be_worked_out_anew(store):
    run = made_runs.interrupted(store)
    known = run.manifest.facts
    middle = made_runs.START_NS + 1_000 * made_runs.S
    faster = {**known, "peak_flops_per_s": FactValue(1.0, "declared", "test")}
    for facts, now_ns in ((known, None), (known, middle), (faster, None), (known, None)):
        past, days = job_past(run.tables, facts, now_ns)
        anew = history(run.tables, facts, now_ns)
        pd.testing.assert_frame_equal(past.rows, anew.rows)
        pd.testing.assert_frame_equal(days.steps, calendar(run.tables, anew, now_ns).steps)
    whole = len(job_past(run.tables, known)[0].rows)
    assert len(job_past(run.tables, known, middle)[0].rows) < whole == 260


def test_who_changes_the_rows_changes_only_his_own(store):
    run = made_runs.interrupted(store)
    past, days = job_past(run.tables, run.manifest.facts)
    past.rows["step"], days.steps["kept"] = 7, False
    past.rows.loc[0, "dur_ns"] = 1
    again, later = job_past(run.tables, run.manifest.facts)
    assert again.rows["step"].nunique() > 200 and later.steps["kept"].any() and again.rows["dur_ns"][0] != 1


def test_a_table_that_was_damaged_meanwhile_is_still_refused(store):
    run = made_runs.interrupted(store)
    job_past(run.tables, run.manifest.facts)
    path = run.tables.path("steps")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"steps\.parquet"):
        job_past(run.tables, run.manifest.facts)
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        job_past(run.tables, run.manifest.facts)


def test_tables_in_memory_are_never_taken_for_others():
    tables = MemoryTables({"steps": {"step": [0, 1], "start_ns": [0, 5], "dur_ns": [5, 5]}})
    assert job_past(tables, {})[0].jobs is job_past(tables, {})[0].jobs
    assert job_past(tables, {})[0].rows is not job_past(tables, {})[0].rows
    other = MemoryTables({"steps": {"step": [0], "start_ns": [0], "dur_ns": [5]}})
    assert len(steps_taken(tables, {}).rows) == 2 and len(steps_taken(other, {}).rows) == 1
    some = RowsOf(tables, "steps", np.array([1]))
    assert len(steps_taken(some, {}).rows) == 1 and len(steps_taken(tables, {}).rows) == 2


def test_a_calendar_weighs_what_its_painting_holds(store):
    run = made_runs.interrupted(store)
    _, days = job_past(run.tables, run.manifest.facts)
    answers = Answers(1 << 30)
    answers.get("days", lambda: days)
    held = sum(array.nbytes for array in vars(days.painting).values() if isinstance(array, np.ndarray))
    assert answers._bytes["days"] >= held + days.steps.memory_usage().sum() > held > 0
