"""How long saves took, by hand: the figures whose names say which quantile they are."""

import numpy as np
import pandas as pd
import pytest

from analyzers.lost import checkpoints
from analyzers.lost.saves import Checkpoints, Spread, passed_over_s, spread
from app.questions.checkpoints import words
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.analyzers.stopped_jobs import EPOCH, Attempt, Job, S


def test_each_figure_is_what_its_name_says():
    found = spread(np.array([10.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, np.nan, np.inf]))
    assert (found.count, found.median_s, found.mean_s, found.total_s) == (10, 5.5, 5.5, 55.0)
    assert found.p90_s == pytest.approx(9.1)  # nine tenths of the way from the first to the last of ten
    tail = spread(np.arange(101.0))
    assert (tail.p90_s, tail.median_s) == (90.0, 50.0)
    assert spread(np.array([np.nan])) == Spread(0) and spread(np.zeros(0)).p90_s is None


def test_the_answer_prints_the_ninetieth_percentile():
    columns = Job([Attempt(60)]).columns()
    life = columns["lifecycle"]
    for k in range(101):  # saves of 0 to 100 ms
        row = ("checkpoint_save", EPOCH + (k + 100) * S, EPOCH + (k + 100) * S + k * S // 1000, 0, 1000 + k)
        for name, value in zip(life, row, strict=True):
            life[name].append(value)
    result = checkpoints.analyze(MemoryTables(columns), {}, parse_options(checkpoints.OPTIONS, {}))
    rows = {r[0]: r for r in words.table(result).rows}
    assert rows["a save blocks, 90th percentile"][1:3] == ("90.0 ms", "101")
    assert rows["a save blocks, median"][1] == "50.0 ms"


@pytest.mark.parametrize("behind_s", [0, 70, 8 * 3600])
def test_saves_in_logs_by_other_clocks_that_count_attempts_of_their_own_are_told_once(behind_s):
    """Two starts of a job that saved for 6 s after steps 9 and 29, and 69 and 89: in a log each by one clock, and in
    one log by another. It was told to have saved six times, for 8 s in the mean."""
    steps, life = [], []
    for start, first, count in ((0, 0, 40), (1000, 60, 40)):
        for source, own, off in ((f"{start}.log", 0, 0), ("all.log", int(start > 0), behind_s)):
            now = start - off
            for n in range(first, first + count):
                steps.append((source, own, n, now))
                now += 3
                if n % 20 == 9:
                    life.append((source, own, n, now))
                    now += 6
    life = [("all.log", 0, None, -behind_s), ("all.log", 1, None, 1000 - behind_s), *life]
    kinds = ["job" if n is None else "checkpoint_save" for _, _, n, _ in life]
    ns = {name: [EPOCH + round(t) * S for *_, t in rows] for name, rows in (("steps", steps), ("life", life))}
    tables = MemoryTables(
        {
            "steps": {
                "source": [s for s, *_ in steps],
                "attempt": [a for _, a, _, _ in steps],
                "step": [n for _, _, n, _ in steps],
                "start_ns": ns["steps"],
                "dur_ns": [3 * S] * len(steps),
                "order": list(range(len(steps))),
                "format": ["megatron"] * len(steps),
            },
            "lifecycle": {
                "source": [s for s, *_ in life],
                "kind": kinds,
                "attempt": [a for _, a, _, _ in life],
                "step": [n for _, _, n, _ in life],
                "start_ns": ns["life"],
                "end_ns": [None if k == "job" else at + 6 * S for k, at in zip(kinds, ns["life"], strict=True)],
            },
        }
    )
    result = checkpoints.analyze(tables, {}, parse_options(checkpoints.OPTIONS, {}))
    assert result.saves["step"].tolist() == [9, 29, 69, 89] and result.saves["attempt"].tolist() == [0, 0, 1, 1]
    assert (result.save.count, result.save.mean_s, result.save.total_s) == (4, 6.0, 24.0)
    assert result.saves_s == 24.0 and (result.interval_s, result.interval_steps) == (60.0, 20.0)


def test_saves_of_two_starts_in_a_log_each_are_no_interval():
    """The time between, in which nothing ran, was told as how far apart the job saved."""
    steps = [(f"{k}.log", n + 20 * k, (1000 * k + 3 * n) * S + EPOCH) for k in (0, 1) for n in range(20)]
    tables = MemoryTables(
        {
            "steps": {
                "source": [s for s, *_ in steps],
                "attempt": [0] * 40,
                "step": [n for _, n, _ in steps],
                "start_ns": [at for *_, at in steps],
                "dur_ns": [3 * S] * 40,
                "order": list(range(40)),
            },
            "lifecycle": {
                "source": ["0.log", "1.log"],
                "kind": ["checkpoint_save"] * 2,
                "attempt": [0, 0],
                "step": [19, 39],
                "start_ns": [EPOCH + 60 * S, EPOCH + 1060 * S],
                "end_ns": [EPOCH + 66 * S, EPOCH + 1066 * S],
            },
        }
    )
    result = checkpoints.analyze(tables, {}, parse_options(checkpoints.OPTIONS, {}))
    assert result.save.count == 2 and result.interval_s is None


@pytest.mark.parametrize(("tier", "seconds"), [("all", 3500.0), ("remote", 3500.0), ("local", 0.0)])
def test_a_local_save_that_was_lost_with_its_machine_is_none_that_was_passed_over(tier, seconds):
    """Stopped after step 900 and begun again with 501, of 10 s each, as the last save in remote storage has it; another
    was made after step 850."""
    saves = pd.DataFrame({"step": [500, 850], "tier": ["remote", tier], "end_ns": [5000 * S, 8500 * S]})
    stop = {"last_sign_ns": [9000 * S], "last_step": [900], "resumed_step": [501], "lost_steps": [400]}
    found = passed_over_s(pd.DataFrame({**stop, "wasted_s": [4000.0]}), Checkpoints(saves, 0, saves[:0]))
    assert found.tolist() == [seconds]
