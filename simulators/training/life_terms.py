"""What lives of a job whose chips fail mean by their names."""

from catalog.terms import Term

TERMS = (
    Term(
        "Goodput of lives",
        "The share of a job's time that becomes kept work, slices that are away counted as lost: the mean of lives in "
        "which failures are drawn one by one, and what nine of ten of them lie between.",
        formula="kept work / length of the job",
        unit="1",
    ),
    Term(
        "Mean time to failure of a chip",
        "Hours between two failures of one chip, its part of host and network included. A job of n chips fails n times "
        "as often.",
        formula="M = H / n",
        unit="h",
    ),
    Term(
        "Elastic training",
        "A failure takes one of K slices away: the job pauses, goes on with the others while the wait lasts, and "
        "pauses again to take the slice in. A pause is as long on any number of chips.",
        formula="missing of the throughput: wait / (M K) while waits are short",
    ),
    Term(
        "Gain of elastic training",
        "Its goodput less that of the same job which waits and restarts the whole at each failure, at the same "
        "interval between saves.",
        formula="goodput (elastic) - goodput (whole)",
        unit="1",
    ),
    Term(
        "Local tier",
        "Frequent saves near the machine, every so many-th to remote storage. Local copies survive a share of the "
        "failures; the others take the job back to its last remote save.",
    ),
    Term(
        "Days, end to end",
        "Tokens over those a day that count: rate of a step times goodput. Its range joins that of the step with the "
        "luck of lives, as independent: squares of both distances, as ratios, add up.",
        formula="tokens / (tokens/s x goodput)",
        unit="d",
    ),
)
