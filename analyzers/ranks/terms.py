"""What several questions about ranks mean alike."""

from catalog.terms import Term

WAITING = Term(
    "Waiting",
    "All ranks leave a synchronising collective together, so the shortest duration belongs to the last to "
    "arrive, and what the others took longer is waiting. Only durations are compared, each by its own clock: "
    "clocks that differ change nothing.",
    formula="duration - the shortest duration among its peers",
    unit="s",
)
