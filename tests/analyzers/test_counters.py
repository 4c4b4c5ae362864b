"""Counters that fall when their process starts again."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.serving.counters import increase, increments, resets


@pytest.mark.parametrize(
    ("values", "grown", "fell"),
    [
        ([1, 4, 9], 8.0, 0),
        ([5, 9, 2, 3], 4 + 2 + 1, 1),
        ([5, 0, 0], 0.0, 1),
        ([7, 7], 0.0, 0),
        ([], None, 0),
        ([3], None, 0),
        ([None, 3, None, 5, None], 2.0, 0),
        ([9, None, 2], 2.0, 1),
    ],
)
def test_increase(values, grown, fell):
    assert increase(values) == grown and resets(values) == fell
    assert increase(pd.Series(values, dtype="Int64")) == grown


def test_increments_stand_where_the_sample_is():
    np.testing.assert_array_equal(increments([2, None, 5, 1]), [np.nan, np.nan, 3, 1])


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=8), min_size=1, max_size=4))
def test_lives_of_a_process_add_up(lives):
    """Each life counts from 0 upwards; what is seen of it at its samples is what it grew by."""
    samples, truth = [], 0
    for number, steps in enumerate(lives):
        life = np.cumsum(steps)
        if number and life[0] >= samples[-1]:
            truth -= samples[-1]  # a restart that nobody could see: taken for growth from where the last life ended
        truth += int(life[-1]) - (int(life[0]) if not number else 0)
        samples += life.tolist()
    assert (increase(samples) or 0) == truth
