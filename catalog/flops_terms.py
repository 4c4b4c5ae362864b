"""What the conventions of counting FLOPs mean. `mfu` and `flops` tell them alike."""

from catalog.flops import CONVENTIONS
from catalog.terms import Term

CONVENTION_TERMS = tuple(
    Term(f"Convention: {c.title}", f"{c.formula}. Used by: {c.used_by}.", unit="FLOPs per token") for c in CONVENTIONS
)
TERMS = (
    Term(
        "FLOPs per token",
        "Floating-point operations of one token, forward and backward pass, in sequences of a stated length: an "
        "addition and a multiplication are two. How many depends on the convention.",
        formula="projections + feed-forward + output + attention + what else the convention counts",
        unit="FLOPs per token",
    ),
    Term(
        "Weights met",
        "The weights that a token is multiplied with: of experts those that it visits; of the embedding the output "
        "alone, since looking a row up multiplies nothing.",
        unit="weights",
    ),
    Term(
        "Earlier tokens seen",
        "How many tokens a token attends to, on average over a causal sequence of T tokens. Pairs count as areas, as "
        "the field does.",
        formula="full: T / 2; sliding window of W: W - W^2 / (2 T); chunks of C: the sum of chunk^2 / 2, over T",
        unit="tokens",
    ),
    *CONVENTION_TERMS,
)
