"""What the figures of `stragglers` mean."""

from analyzers.ranks.terms import WAITING
from catalog.terms import Term

TERMS = (
    WAITING,
    Term(
        "Late by",
        "The median wait of the peers (ranks of the same role that it meets) less its own, in a step. Where a device "
        "computes while a collective waits, that is no waiting.",
        formula="median wait of the peers - own wait",
        unit="s",
    ),
    Term(
        "Blame",
        "In wall time, over the steps that a rank is named for (over all steps where none is named, and in the "
        "picture of all ranks). Second shortest duration of a collective less the shortest, charged to the last to "
        "arrive: what would be saved if only that rank were mended. Where it was kept in another group before, that "
        "part is charged to the rank that waited least there.",
        formula="second shortest duration - shortest duration",
        unit="s",
    ),
    Term(
        "Gain of mending",
        "What mending a straggler would give back: what the others waited for it and its own excess, in the steps it "
        "is named for; of steps beside them that were not compared, what the job's own step time exceeds a step "
        "without it. From the steps compared alone (low) to each step that was not like the mean of those (high).",
        formula="blame x (others + 1), over its steps",
        unit="chip-seconds",
    ),
    Term(
        "Straggler",
        "Late by more than 2.5 % of the step in at least 60 % of 20 steps, and by more than 3.5 robust "
        "standard deviations (1.4826 MAD of its peers, and half a per cent of the step) on average; until that falls "
        "below 2. Under 5 ranks: late by more than 5 % of the step, beyond what lags scatter, and half of that behind "
        "the next to arrive. In at least 10 steps, their median above 4 standard errors. Or late in 1 of 2 to 10 steps "
        "and not between, at most 0.1 % by chance over all tried. Or last in each of fewer steps, by 3.5 standard "
        "deviations of the others.",
    ),
    Term(
        "Confidence",
        "(1 - probability of as many late steps by chance, for any rank and any 20 steps) x (lateness over "
        "three times what durations are good to, at most 1) x (share of its steps that were compared).",
        formula="(1 - p by chance) x min(1, lateness / (3 x what durations are good to)) x share of steps compared",
        unit="1",
    ),
    Term(
        "Cost",
        "Chip-seconds that the others waited, up to the margin by which those named came last: blame x others; of "
        "uneven work all waiting; of a slow network what moving data took beyond the run's own quietest stretch of a "
        "fifth of its steps.",
        unit="chip-seconds",
    ),
    Term(
        "Cause",
        "What a rank did between collectives beyond the median of its peers, by its own clock: computing, other "
        "communication, copies, input, garbage collection, late launches (the device idles within the host's step).",
        formula="own time - median of its peers",
        unit="s",
    ),
    Term(
        "Clock offset",
        "Median difference of the recorded ends of collectives from those of the others. For display "
        "only: no verdict rests on it.",
        formula="median of (own recorded ends - those of the others)",
        unit="s",
    ),
)
