"""Steps put together from marks, lines and profiles; kept, wasted and impossible ones told apart."""

import pytest

from analyzers.time import steps
from analyzers.time.history import history, natural_key
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.worlds import EPOCH, World

S = 1_000_000_000


def lines(source, numbers, dur_s, attempt=0, **columns):
    count = len(numbers)
    return {
        "step": list(numbers),
        "dur_ns": [int(d * S) for d in dur_s],
        "attempt": [attempt] * count,
        "source": [source] * count,
        "order": list(range(count)),
        "tokens_per_s_per_chip": [100.0] * count,
        "model_flops_per_chip": [2e12] * count,
        **columns,
    }


def stacked(*parts):
    names = {n for p in parts for n in p}
    return {n: [v for p in parts for v in p.get(n, [None] * len(p["step"]))] for n in names}


def ask(columns, **facts):
    return steps.analyze(MemoryTables({"steps": columns}), facts_of(facts), {})


def test_figures_are_over_kept_plausible_steps_that_are_not_first():
    columns = lines("a.log", range(6), [45.0, 0.3, 5.0, 6.0, 5.0, 5.0])
    result = ask(columns)
    assert (result.steps, result.median_step_s, result.best_step_s) == (6, 5.0, 5.0)
    assert list(result.rows["implausible"] != "") == [False, True, False, False, False, False]
    assert list(result.rows["first"]) == [True, False, False, False, False, False]
    assert result.tflops_per_s_per_chip == pytest.approx(4 * 2 / 21)
    assert result.tokens_per_s_per_chip == pytest.approx(100)


def test_a_step_beyond_the_peak_is_impossible():
    result = ask(lines("a.log", range(4), [1.0, 1.0, 1.0, 1.0]), peak_flops_per_s=1e12)
    assert set(result.rows["implausible"]) == {"its FLOP/s exceed the chip's peak"}


def test_files_are_attempts_in_natural_order_and_repeated_steps_are_wasted():
    columns = stacked(lines("attempt_10.log", [5, 6], [1, 1]), lines("attempt_2.log", [0, 1, 5, 6, 7], [1] * 5))
    result = ask(columns)
    assert list(result.rows["step"]) == [0, 1, 5, 6, 7, 5, 6]
    assert list(result.rows["attempt"]) == [0, 0, 0, 0, 0, 1, 1]
    assert list(result.rows["kept"]) == [True, True, False, False, False, True, True]


def test_a_log_and_its_metrics_files_are_one_job():
    log = lines("stdout.log", range(7), [9.0, 1.001, 1.002, 1.003, 1.004, 1.005, 1.006], format=["maxtext"] * 7)
    first = lines("metrics_step_000000_to_step_000002.txt", range(3), [9, 1, 1], format=["metrics"] * 3)
    second = lines("metrics_step_000003_to_step_000005.txt", range(3, 6), [1, 1, 1], format=["metrics"] * 3)
    result = ask(stacked(log, first, second))
    assert len(result.rows) == 7
    assert result.rows["kept"].all()
    alone = ask(stacked(first, second))
    assert alone.rows["first"].tolist() == [True] + [False] * 5


def test_lines_lend_their_numbers_to_marks_attempt_by_attempt():
    marks = {"step": [0, 1, 2, 1, 2, 3], "start_ns": [EPOCH + t * S for t in (0, 30, 32, 100, 120, 122)]}
    marks |= {"source": ["goodput.jsonl"] * 6, "order": list(range(6))}
    first = lines("attempt_0.log", [0, 1], [30.0, 2.0], loss=[9.0, 8.0])
    second = lines("attempt_1.log", [1, 2, 3], [20.0, 2.0, 1.5], loss=[7.5, 7.0, 6.0])
    tables = MemoryTables(
        {
            "steps": stacked(marks, first, second),
            "lifecycle": {"kind": ["job", "job"], "start_ns": [EPOCH - S, EPOCH + 90 * S], "end_ns": [None, None]},
        }
    )
    past = history(tables, {})
    assert list(past.rows["attempt"]) == [0, 0, 0, 1, 1, 1]
    assert past.rows["loss"].tolist()[:2] + past.rows["loss"].tolist()[3:] == [9.0, 8.0, 7.5, 7.0, 6.0]
    assert past.rows["loss"].isna().tolist() == [False, False, True, False, False, False]
    assert (past.rows["dur_ns"] / S).tolist()[:2] == [30, 2]
    assert past.rows["dur_ns"].isna().tolist() == [False, False, True, False, False, False]
    assert past.rows["dur_ns"].iloc[-1] == 1.5 * S
    assert past.rows["kept"].tolist() == [True, False, False, True, True, True]


def test_entries_written_late_or_twice_change_nothing():
    at = [EPOCH + t * S for t in (0, 2, 1, 1, 3)]
    past = history(MemoryTables({"steps": {"step": [0, 2, 1, 1, 3], "start_ns": at}}), {})
    assert past.rows["step"].tolist() == [0, 1, 2, 3]
    assert past.rows["segment"].tolist() == [0] * 4


def test_a_profile_alone_gives_the_steps_of_its_first_host():
    result = steps.analyze(World(steps=8).tables(goodput=False), facts_of({}), {})
    assert result.steps == 8
    assert result.median_step_s == pytest.approx(0.077)
    assert len(result.hosts) == 8 * 4
    assert result.tflops_per_s_per_chip is None


def test_no_steps_says_what_would_bring_them():
    with pytest.raises(QuestionError, match="StepTraceAnnotation"):
        ask({})


def test_natural_order():
    assert sorted(["a10", "a9", "b", "10", "9"], key=natural_key) == ["9", "10", "a9", "a10", "b"]


def test_rates_are_averages_over_time():
    rates = {"tokens_per_s_per_chip": [1.0, 100.0, 10.0], "model_flops_per_chip": [1e12, 4e12, 1e12]}
    result = ask(lines("a.log", range(3), [9.0, 2.0, 8.0], **rates))
    assert result.tokens_per_s_per_chip * 10 == pytest.approx(100 * 2 + 10 * 8)
    assert result.tflops_per_s_per_chip * 10 == pytest.approx(4 + 1)


def test_what_of_an_evaluation_reaches_over_the_edge_of_a_step_is_none_of_its_time():
    """Stamps to the second had a step of 2 s end 0.8 s after the evaluation behind it had begun: it took 1.2 s, and a
    usual step was said to take 67 % longer than the best. A save within a step is in its time, as it was."""
    begins = [2.0 * n for n in range(10)] + [139.2 + 2 * n for n in range(10)]
    took = [2.0] * 14 + [5.0] + [2.0] * 5
    begins[15:] = [at + 3 for at in begins[15:]]
    columns = lines("a.log", range(20), took, start_ns=[EPOCH + round(at * S) for at in begins])
    pauses = {
        "kind": ["eval", "checkpoint_save"],
        "start_ns": [EPOCH + round(19.2 * S), EPOCH + round(148.7 * S)],
        "end_ns": [EPOCH + round(139.2 * S) + 300_000_000, EPOCH + round(151.7 * S)],
        "source": ["a.log"] * 2,
    }
    result = steps.analyze(MemoryTables({"steps": columns, "lifecycle": pauses}), {}, {})
    assert (result.median_step_s, result.best_step_s) == (2.0, 2.0)
    assert result.rows["dur_s"].tolist() == [2.0] * 20
