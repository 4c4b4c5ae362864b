"""What the comparison of two jobs, A and B, means by its names."""

from analyzers.difference.step_time import ALPHA, FAR, FLOOR, LEAST_STEPS, STALL_DEVIATIONS, STALL_SHARE, STALLS_SHARE
from catalog.terms import Term

TERMS = (
    Term(
        "Change of a step",
        "By how much a settled step takes longer in B than in A, on average, without the pauses in it that the job "
        "recorded (saves, evaluations, custom events).",
        formula="B / A - 1",
        unit="1",
    ),
    Term(
        "Settled steps",
        "Steps that were kept, less the first of each attempt, those before the pace settled, those that cannot be "
        "true, those that a profiler watched where enough others are known, and stalls: longer than the median by "
        f"{STALL_DEVIATIONS:g} robust deviations and by {STALL_SHARE:.0%} of it. Where they are more than "
        f"{STALLS_SHARE:.0%} of the steps of either, stalls count as steps of both. How many were set apart is told. "
        "Accounts are those of profiled steps.",
        unit="steps",
    ),
    Term(
        "Range of a change",
        "Steps hang together, so that n are worth fewer than n: the variance of the mean is the largest that blocks of "
        "any length show, or that the correlation of neighbours makes of it. The range holds the truth in "
        f"{1 - ALPHA:.1%} of comparisons; a change whose range holds 0, or below {FLOOR:.1%}, is not told. Under "
        f"{LEAST_STEPS} settled steps a change is told only where every step of the one is longer by {FAR:.0%} than "
        "every step of the other.",
        unit="1",
        source="Welch 1947 (degrees of freedom), Marriott and Pope 1954 (correlation of short series)",
    ),
    Term(
        "Could be seen",
        "The least change that 95 of 100 pairs with this scatter and so many steps would show.",
        unit="1",
    ),
    Term(
        "Account of a step",
        "What an account of the ledger takes of a settled step on a chip, where profiles show it; B less A. All "
        "accounts sum to the step.",
        unit="s",
    ),
    Term(
        "Explained",
        "The part of the change of a step that accounts tell, which say what the time went to.",
        formula="1 - |change - sum of the changes of accounts| / |change|",
        unit="1",
    ),
    Term(
        "Operation of both",
        "Operations are matched by what they are: of compiled programs by their content and place, of traces by name "
        "without its number, kind, place in the model and shape. What is left is gone (in A alone) or new "
        "(in B alone).",
    ),
    Term(
        "Because",
        "The one setting known to differ that can move the account which changed most; where several can, all of them "
        "are named as such. Without one, what programs and collectives of both show: other operations or bytes, "
        "or the same.",
    ),
    Term(
        "Beside a compiler's bound",
        "A step that ran, beside the least that a compiler's program needs on its chip: account by account, its range "
        "that of the measured steps alone.",
    ),
)
