"""The Pareto front of days and dollars, against every pair compared with every other."""

from hypothesis import given
from hypothesis import strategies as st

from simulators.training.front import front

POINTS = st.lists(st.tuples(st.integers(1, 12).map(float), st.integers(1, 12).map(float)), max_size=40)


def beaten(one, points):
    return any(a <= one[0] and b <= one[1] and (a, b) != one for a, b in points)


@given(POINTS)
def test_on_the_front_is_what_no_other_beats(points):
    assert front(points) == [not beaten(p, points) for p in points]


@given(POINTS, st.floats(0.1, 10), st.floats(0.1, 10))
def test_units_change_nothing_and_order_neither(points, days, usd):
    assert front([(a * days, b * usd) for a, b in points]) == front(points)
    assert front(points[::-1]) == front(points)[::-1]


def test_equal_points_are_on_it_together():
    assert front([(1.0, 2.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)]) == [True, True, True, False] and front([]) == []
