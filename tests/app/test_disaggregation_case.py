"""The verdict of the disaggregation case says no more than its own range does."""

import pytest

from app.whatif.cases.disaggregation import _verdict
from simulators.serving.disaggregated import Comparison
from simulators.serving.objectives import Capacity

NO_SPLIT = Comparison(Capacity(1.0), None, None, (), 0.0, 1.0)


@pytest.mark.parametrize(
    ("ratios", "begins", "ends"),
    [
        ([1.18, 1.18, 1.26], "Don't: ", "The estimator agrees: 1.59 times."),
        ([0.97, 0.97, 2.05], "Our model cannot tell: ", "The estimator's 1.59 times lies within that."),
        ([0.97, 0.9, 1.2], "Our model cannot tell: ", "The estimator's 1.59 times lies beyond that."),
        ([0.9, 0.8, 0.95], "Do, by our model: ", "The estimator disagrees: 1.59 times."),
        ([1.01, 1.0, 1.01], "It makes no difference: ", "The estimator agrees: 1.59 times."),
    ],
)
def test_a_range_on_both_sides_of_one_decides_nothing(ratios, begins, ends):
    said = _verdict(1.59, ratios, NO_SPLIT)
    assert said.startswith(begins) and said.endswith(ends)
