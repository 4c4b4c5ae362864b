"""How long saves took, by hand: the figures whose names say which quantile they are."""

import numpy as np
import pytest

from analyzers.lost import checkpoints
from analyzers.lost.saves import Spread, spread
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
