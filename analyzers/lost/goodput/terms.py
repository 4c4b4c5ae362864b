"""What the figures of `goodput` mean by the exact rules: the headings of the ledger's calendar, and steps."""

from analyzers.lost.goodput.buckets import ASYNC, HEADING
from catalog.terms import Term
from runs.accounts import ACCOUNTS

TOTAL, PRODUCTIVE = "total", "productive"  # what is no bucket of badput
SOURCE = "buckets of ml-goodput-measurement"
BUCKET_TERMS: dict[str, Term] = {
    PRODUCTIVE: Term(
        "Goodput",
        "Time in steps whose result was kept, less every recorded pause in them.",
        formula="time in kept steps / time held",
        unit="1",
    ),
    TOTAL: Term(
        "Time held",
        "Time for which the job held its chips: from each start to its end, or, interrupted, to its next start.",
        unit="s",
    ),
    **{
        bucket: Term(f"Badput: {ACCOUNTS[account].title.lower()}", ACCOUNTS[account].meaning, unit="s", source=SOURCE)
        for bucket, account in HEADING.items()
    },
    ASYNC: Term(
        "Data loading inside steps",
        "Fetches inside steps. No badput: the device may work meanwhile; a profile tells what it waited for.",
        unit="s",
        source=SOURCE,
    ),
}
IDEAL_STEP = Term(
    "Ideal step",
    "A step less the pauses recorded in it. Ideal: the mean of steps within 3 MAD of the median. A spike is longer "
    "than its neighbours' median by 6 MAD, and by 5 % at least.",
    formula="mean of steps with |step - median| <= 3 MAD",
    unit="s",
)
DISRUPTIONS = Term(
    "Disruptions",
    "How often training stopped without the job being done: attempts that were interrupted, and steps taken again "
    "inside one.",
)
TERMS = (*BUCKET_TERMS.values(), IDEAL_STEP, DISRUPTIONS)
