"""What the figures of `interruptions` mean."""

from catalog.terms import Term

TERMS = (
    Term(
        "Interruption",
        "A start of the job after an attempt that did not end by itself, or an end that a log tells of. "
        "Maintenance and what people stopped count as planned; everything else, unknown included, as unplanned.",
    ),
    Term(
        "Time lost",
        "From the last sign of life to the next start, as far as chips were held; then starting up through the "
        "first step, less a usual step; and the steps to be taken again, what they took the first time.",
        unit="s",
    ),
    Term("Noticed", "The last line that tells of a failure after the last sign of life, before the next start."),
    Term("Back where it was", "From the last sign of life to the first step that had not been taken before.", unit="s"),
    Term(
        "Which line tells why",
        "Of the lines near the last sign of life (three usual steps, from two minutes to half an "
        "hour) up to the next start: one that names a cause before a symptom, at the end before earlier, an error "
        "before a warning, the first before its cascade.",
    ),
    Term(
        "Certain, likely, guess, unknown",
        "An error at the end names it and none names another family within five "
        "seconds; a weaker line names it; only symptoms were logged; no line.",
    ),
    Term(
        "Mean time between interruptions",
        "Time held over their number, with the exact Poisson interval (Garwood).",
        formula="time held / interruptions",
        unit="s",
        source="F. Garwood, Fiducial limits for the Poisson distribution, 1936, for the interval",
    ),
    Term(
        "Host that fails too often",
        "More failures of hardware, network, storage or by hanging than a Poisson count of "
        "the mean over all hosts allows, at 5 % after Holm's correction for looking at all of them.",
        source="S. Holm, A simple sequentially rejective multiple test procedure, 1979",
    ),
    Term(
        "Per 1,000 node-days",
        "Unplanned interruptions over hosts times days held.",
        formula="1000 x unplanned interruptions / (hosts x days held)",
        unit="per 1,000 node-days",
    ),
)
