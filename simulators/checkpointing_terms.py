"""What a plan for checkpoints means by its names."""

from catalog.terms import Term

TERMS = (
    Term(
        "Modelled goodput",
        "The share of time that becomes kept work: τ e^(−(C−b)/M) / ((M + D) e^(R/M) (e^((τ+b)/M) − 1)), "
        "with work between saves τ, a save safe after C of which b blocks, mean time to failure M, restart R, wait D "
        "(Daly, 2006, extended by D and by saves in the background).",
        formula="τ e^(−(C−b)/M) / ((M + D) e^(R/M) (e^((τ+b)/M) − 1))",
        unit="1",
        source="J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006",
    ),
    Term(
        "Young",
        "√(2bM): the best interval to first order.",
        formula="√(2bM)",
        unit="s",
        source="J. W. Young, A first order approximation to the optimum checkpoint interval, 1974",
    ),
    Term(
        "Daly",
        "√(2bM) (1 + √(b/2M)/3 + (b/2M)/9) − b: to higher order.",
        formula="√(2bM) (1 + √(b/2M)/3 + (b/2M)/9) − b where b < 2M, else M",
        unit="s",
        source="J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006",
    ),
    Term(
        "Best",
        "The greatest goodput by the exact formula: M (1 + W(−e^(−1−b/M))), W Lambert's function.",
        formula="M (1 + W(−e^(−1−b/M))), at least C − b",
        unit="s",
    ),
    Term(
        "Mean time to failure",
        "Time at risk by failures; its interval is Garwood's, exact for Poisson counts.",
        formula="time at risk / failures",
        unit="s",
    ),
    Term(
        "Given back",
        "Goodput with a cure less goodput without, by the same model, times the time it speaks of: kept "
        "steps, saves, steps taken again and restarts. The range covers the interval of the mean time to failure and "
        "that of the assumption. Cures overlap: two save the same second only once, so they must not be added up.",
        formula="(goodput with the cure - goodput without) x time",
        unit="s",
    ),
)
