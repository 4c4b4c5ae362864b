"""The run's stragglers: does one rank make the others wait, which, why, since when, and at what cost?"""

from analyzers.ranks.stragglers import StragglersResult
from app import format as fmt
from app.components.answering import answering
from app.components.current import current_run
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.verdict import verdict
from app.questions.asking import ask
from app.questions.stragglers.view import explore, wanted_pair
from app.questions.stragglers.words import VERDICTS
from app.questions.stragglers.words import verdict as stragglers_verdict

INPUTS = ("captures",)
DEFINITIONS = (
    (
        "Waiting",
        "All ranks leave a synchronising collective together, so the shortest duration belongs to the last to "
        "arrive, and what the others took longer is waiting. Only durations are compared, each by its own clock: "
        "clocks that differ change nothing.",
    ),
    ("Late by", "The median wait of the peers (ranks of the same role that it meets) less its own, in a step."),
    (
        "Blame",
        "Second shortest duration of a collective less the shortest, charged to the last to arrive: what would "
        "be saved if only that rank were mended. Where it was kept in another group before, that part is charged to "
        "the rank that waited least there.",
    ),
    (
        "Straggler",
        "Late by more than 2.5 % of the step in at least 60 % of 20 steps, and by more than 3.5 robust "
        "standard deviations (1.4826 MAD of its peers, and half a per cent of the step) on average; until that falls "
        "below 2. Under 5 ranks: late by more than 5 % of the step.",
    ),
    (
        "Confidence",
        "(1 - probability of as many late steps by chance, for any rank and any 20 steps) x (lateness over "
        "three times what durations are good to, at most 1) x (share of its steps that were compared).",
    ),
    (
        "Cost",
        "Chip-seconds that the others waited, up to the margin by which those named came last; of uneven work all "
        "waiting; of a slow network what moving data took beyond the run's own quietest fifth.",
    ),
    (
        "Cause",
        "What a rank did between collectives beyond the median of its peers, by its own clock: computing, other "
        "communication, copies, input, garbage collection, late launches (the device idles within the host's step).",
    ),
    (
        "Clock offset",
        "Median difference of the recorded ends of collectives from those of the others. For display "
        "only: no verdict rests on it.",
    ),
)


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    pair = wanted_pair()
    with answering("Reading who waited for whom", lambda: howto(run, DEFINITIONS, (), INPUTS)):
        result = ask(run, "stragglers", {"compare": ",".join(pair)} if pair else {}, place.registry)
    verdict(stragglers_verdict(result))
    figures_row(figures(result))
    explore(run, result)
    howto(run, DEFINITIONS, result.notes, INPUTS)


def figures(result: StragglersResult) -> list[Figure]:
    """The verdict, the worst lateness, its cost, how far ranks arrive apart, and what was compared."""
    named = result.ranks.iloc[0].to_dict() if len(result.ranks) else None
    sure = f"{fmt.number(named['confidence'], 2)} of 1. {DEFINITIONS[4][1]}" if named else "No rank is named."
    compared = int(result.every["lag_s"].notna().sum())
    return [
        Figure("Verdict", VERDICTS[result.verdict], f"{DEFINITIONS[3][1]} Confidence: {sure}", "derived"),
        Figure("Latest rank is late by", fmt.duration(named["lag_s"] if named else None), DEFINITIONS[1][1], "derived"),
        Figure("Cost", fmt.chip_time(result.cost_chip_seconds), DEFINITIONS[5][1], "derived"),
        Figure(
            "Ranks arrive within",
            fmt.duration(result.apart_s),
            "Median over steps of the longest wait less the shortest.",
            "derived",
        ),
        Figure(
            "Compared",
            f"{fmt.count(compared, 'rank')}, {fmt.count(len(result.steps), 'step')}",
            "Steps whose collectives were captured on all ranks of their groups; the first of each capture may be "
            "cut off and is left out.",
            "measured",
        ),
    ]


if __name__ == "__main__":
    page()
