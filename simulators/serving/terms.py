"""What a plan for serving means by its names."""

from catalog.terms import Term

TERMS = (
    Term(
        "Reckoned",
        "By plain arithmetic: the largest batch that seats, cache and objectives allow. It knows no queue.",
    ),
    Term("Simulated", "An engine with continuous batching, served more and more requests until an objective breaks."),
    Term(
        "Replica",
        "The chips that run one batch together; replicas are added until they bear the traffic.",
        unit="chips",
    ),
    Term(
        "Tips at",
        "The price of its chip, per hour, at which a setup would cost as much as the best.",
        formula="price of the best setup per hour / chips of this one",
        unit="USD per chip-hour",
    ),
)
