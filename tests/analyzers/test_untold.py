"""Steps whose start no entry tells: of a job whose entries were lost in part."""

import numpy as np
import pytest

from analyzers.lost import goodput
from analyzers.time import ledger, steps
from analyzers.time.history import history
from errors.options import parse_options
from runs.run import FactValue
from runs.tables import MemoryTables
from tests.analyzers.load_tests import EPOCH_NS, ask

S = 10**9
FACTS = {"chip": FactValue("TPU v5p", "declared", "test"), "chips": FactValue(8, "declared", "test")}


def job(kept, took=None, numbers=None) -> MemoryTables:
    """Marks of 60 steps of 20 s, of which only some are there."""
    took = np.full(60, 20.0) if took is None else np.asarray(took, dtype=float)
    start = EPOCH_NS + (np.concatenate(([0.0], np.cumsum(took)[:-1])) * S).astype(np.int64)
    numbers = np.arange(len(took)) if numbers is None else np.asarray(numbers)
    end = int(start[-1]) + int(took[-1] * S)
    return MemoryTables(
        {
            "steps": {
                "step": numbers[kept].tolist(),
                "start_ns": start[kept].tolist(),
                "order": list(range(len(kept))),
                "source": ["entries"] * len(kept),
            },
            "lifecycle": {
                "kind": ["job"],
                "start_ns": [EPOCH_NS - S],
                "end_ns": [end],
                "order": [0],
                "source": ["entries"],
            },
        }
    )


def some(lost) -> np.ndarray:
    return np.array([n for n in range(60) if n not in lost])


@pytest.mark.parametrize("lost", [[30], [7, 8, 9], list(range(3, 59, 7)), [5, 20, 21, 58]], ids=str)
def test_a_job_whose_entries_were_lost_took_the_steps_that_it_took(lost):
    whole, part = (history(job(k), FACTS) for k in (some(set()), some(lost)))
    for column in ("step", "start_ns", "dur_ns", "segment", "first", "kept"):
        assert part.rows[column].tolist() == whole.rows[column].tolist(), column
    assert any(f"{len(lost)} step" in note and "even part" in note for note in part.notes)
    assert not any("even part" in note for note in whole.notes)


def test_no_figure_of_it_is_another():
    for question in (ledger, goodput, steps):
        one, two = (ask(question, job(k), {"chips": 8}).to_dict() for k in (some(set()), some({7, 8, 30})))
        for told in (one, two):  # the library goes by entries alone
            told.pop("notes"), told.pop("differences", None)
        assert one == two


def test_time_that_is_not_theirs_stays_with_the_step_before():
    took = np.full(60, 20.0)
    took[29] = 500.0  # something happened, and the entry of the next step was lost too
    past = history(job(some({30}), took), FACTS)
    assert 30 not in past.rows["step"].tolist()
    assert int(past.rows.loc[past.rows["step"] == 29, "dur_ns"].iloc[0]) == 520 * S


def test_entries_of_every_tenth_step_alone_tell_of_no_other():
    past = history(job(np.arange(0, 60, 10)), FACTS)
    assert past.rows["step"].tolist() == list(range(0, 60, 10))


def test_a_restart_is_no_gap():
    numbers = np.concatenate((np.arange(30), np.arange(25, 55)))
    past = history(job(np.arange(60), numbers=numbers), FACTS)
    assert len(past.rows) == 60 and not any("even part" in note for note in past.notes)


def logged(kept, took=None, numbers=None) -> MemoryTables:
    """The same as lines of a log, which tell how long each step took."""
    took = np.full(60, 20.0) if took is None else np.asarray(took, dtype=float)
    start = EPOCH_NS + (np.concatenate(([0.0], np.cumsum(took)[:-1])) * S).astype(np.int64)
    numbers = np.arange(len(took)) if numbers is None else np.asarray(numbers)
    columns = {"step": numbers, "start_ns": start, "dur_ns": (took * S).astype(np.int64)}
    told = {name: column[kept].tolist() for name, column in columns.items()}
    return MemoryTables({"steps": told | {"order": list(range(len(kept))), "source": ["log"] * len(kept)}})


@pytest.mark.parametrize("lost", [[30], [7, 8, 9], list(range(3, 59, 7)), list(range(20, 30))], ids=str)
def test_a_log_of_which_lines_were_lost_tells_of_the_steps_that_were_taken(lost):
    whole, part = (history(logged(k), FACTS) for k in (some(set()), some(lost)))
    for column in ("step", "start_ns", "dur_ns", "segment", "first", "kept"):
        assert part.rows[column].tolist() == whole.rows[column].tolist(), column
    assert [f"{len(lost)} step" in note for note in part.notes] == [True] and not whole.notes
    one, two = (ask(goodput, logged(k), {"chips": 8}).to_dict() for k in (some(set()), some(lost)))
    assert one["productive_s"] == two["productive_s"] == 1200 and two["badput_s"]["other"] == 0


def test_steps_without_a_line_trained_what_the_others_did():
    """Of a log that lost a fifth of its lines MFU told 40 %, and the ledger 32 % of useful maths."""
    for lost in (set(), set(range(10, 22))):
        count = 60 - len(lost)
        columns = logged(some(lost)).arrow("steps").to_pydict()
        columns["model_flops_per_chip"] = [0.4 * 459e12 * 20] * count
        found = ledger.analyze(MemoryTables({"steps": columns}), FACTS, parse_options(ledger.OPTIONS, {})).ledger
        useful = found.find("useful_maths")
        assert useful is not None and useful.chip_seconds == pytest.approx(0.4 * 8 * 1200)
        assert found.account.chip_seconds == pytest.approx(8 * 1200)


def test_lines_that_are_lost_around_an_evaluation_leave_it_one():
    """Five steps before it, of 20 s as it, and five behind."""
    took = np.append(np.full(60, 20.0), 20.0)
    lost = np.isin(np.arange(61), np.arange(20, 31))  # of which the sixth was the evaluation
    numbers = np.where(np.arange(61) > 25, np.arange(61) - 1, np.arange(61))
    columns = logged(np.flatnonzero(~lost), took, numbers).arrow("steps").to_pydict()
    begun = EPOCH_NS + 25 * 20 * S
    told = MemoryTables(
        {"steps": columns, "lifecycle": {"kind": ["eval"], "start_ns": [begun], "end_ns": [begun + 20 * S]}}
    )
    assert len(history(told, FACTS).rows) == 50
    found = ledger.analyze(told, FACTS, parse_options(ledger.OPTIONS, {})).ledger.find("eval")
    assert found is not None and found.chip_seconds == 8 * 20


def test_what_a_log_lacks_beside_a_pause_behind_a_restart_or_between_every_tenth_step_is_not_made_up():
    paused = np.full(60, 20.0)
    paused[30] = 900.0
    again = [*range(40), *range(30, 50)]  # after step 39 it went back to 30, of which no line tells
    for told in (
        logged(some({30}), paused),
        logged(some({40}), numbers=again),
        logged(np.arange(0, 60, 10)),
    ):
        found = history(told, FACTS)
        assert len(found.rows) == told.rows("steps") and not any("even part" in note for note in found.notes)


@pytest.mark.parametrize("told", [job, logged])
def test_numbers_that_are_far_apart_take_no_room_for_all_between_them(told):
    """Between two steps of a nanosecond there is time for two thousand million: a row for each would take 16 GB."""
    took = np.full(61, 1e-9)
    took[30] = 2.0
    numbers = np.concatenate((np.arange(31), 2_000_000_000 + np.arange(30)))
    steps_told = told(np.delete(np.arange(61), 30), took, numbers)
    assert len(history(steps_told, FACTS).rows) == 60
