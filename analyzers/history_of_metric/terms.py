"""What the history of a metric means by its names."""

from analyzers.history_of_metric.change_points import ALPHA, FLOOR, LEAST, SHORTEST
from catalog.terms import Term

TERMS = (
    Term(
        "Changed for good",
        f"The metric keeps another level from one run on: {SHORTEST} runs or more before it and after it, "
        f"{100 * FLOOR:g} % (of what is a share itself, {100 * FLOOR:g} points) or more, and with less than "
        f"{100 * ALPHA:g} % left to chance anywhere in the series, after what neighbours share is taken off, and by "
        "how often the same runs in another order show as much. "
        f"Of fewer than {LEAST} runs nothing is told.",
        formula="level after / level before - 1; of what is a share itself, level after - level before",
        unit="1",
    ),
    Term(
        "Metrics of settled steps",
        "The mean of settled steps, and MFU and tokens/s at that mean: what is told from chance by their scatter. The "
        "pages of a run tell its usual step, MFU and tokens/s over all usual steps, stalls and those that a profiler "
        "watched among them.",
    ),
    Term(
        "Level of a metric",
        "The mean of the runs between two changes, a run far from its four neighbours counted no further than three "
        "deviations from them; of what is no share, the mean of logarithms.",
    ),
    Term(
        "Range of a run",
        "Between which its mean lies by the scatter of its own settled steps, of 20 steps or more. Goodput, shares of "
        "the ledger and requests have none of their own: the runs beside it tell the scatter. Of exposed communication "
        "and waiting for stragglers it is from what is known to be theirs to that with all collectives that were not "
        "compared across ranks: a change that lies within is not told.",
    ),
    Term(
        "Drift",
        "No single place where it changed is sure, and all the same the first third of the runs and the last differ, "
        "the way that a sure slope goes.",
    ),
)
