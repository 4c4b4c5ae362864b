"""The Pareto front of plans: those that no other beats or equals in both days and dollars."""

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether each (days, dollars) is on the front: no other is at most as long and as dear, and one of it less.

    Of points that are equal all are on it. One pass in order of days; NaN must not be among them.
    """
    on = [False] * len(points)
    least = float("inf")  # dollars, of all that take fewer days
    at, order = 0, sorted(range(len(points)), key=points.__getitem__)
    while at < len(order):
        days, usd = points[order[at]]  # the cheapest of those that take as long
        while at < len(order) and points[order[at]][0] == days:
            on[order[at]] = points[order[at]][1] == usd and usd < least
            at += 1
        least = min(least, usd)
    return on
