"""What a step computes again for its backward pass, beside the FLOPs that a convention counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts, fact
from analyzers.flops.executed import recomputed_share
from catalog.flops import FlopsPerToken
from errors.options import Option
from runs.tables import Tables

REMAT = Option(
    "remat",
    ("none", "selective", "full"),
    None,
    "what is recomputed, where no profile tells; for HFU",
    label="Recomputation",
)
HOLDS_IT = "hardware_full_remat"  # the convention that counts what is computed again


@dataclass(frozen=True)
class Again:
    """`factor`: FLOPs executed for each useful one, None where not known; `basis` of it, and a sentence on HFU."""

    factor: float | None
    basis: str
    said: str


HELD = Again(1.0, "modelled", "The FLOPs counted hold the forward pass done again: HFU equals MFU.")


def computed_again(
    tables: Tables, facts: Facts, options: Mapping[str, Any], counted: FlopsPerToken | None, convention: str
) -> Again:
    """By the policy asked for, else by the profile's programs, else by a stated policy of full recomputation; none
    beside a count that holds it. `counted`: a token's FLOPs by the convention, where a model is known."""
    if convention == HOLDS_IT:
        return HELD
    policy = options["remat"]
    share = recomputed_share(tables) if policy is None else None
    if share is not None and share < 1:
        said = f"HFU adds what the profiled programs recompute: {share * 100:.3g} % of their FLOPs."
        return Again(1 / (1 - share), "derived", said)
    if policy is None and fact(facts, "remat_policy") == "full":
        policy = "full"
    passes = 2 if convention == "lora" else 3  # forward passes that the FLOPs of forward and backward are worth
    if policy == "full":
        more = f"{passes + 1}/{passes}"
        said = f"HFU is modelled: full recomputation does the forward pass again, {more} of the FLOPs."
        return Again((passes + 1) / passes, "modelled", said)
    if policy == "selective" and counted:
        more = counted.attention / passes / counted.total
        return Again(1 + more, "modelled", "HFU is modelled: attention is done again in the backward pass.")
    if policy == "none":
        return Again(1.0, "declared", "Nothing is recomputed, as stated: HFU equals MFU.")
    said = "HFU is not known: no profile with its programs and no remat option tells what is recomputed."
    return Again(None, "", said)


def useful_part(again: Again) -> Again:
    """The same where FLOPs are those executed, so that HFU is known and MFU is what is left of it; where nothing tells
    how much is computed again, all of them count for both."""
    if again.factor is None:
        return Again(1.0, "derived", "What is computed again counts as well, for nothing tells how much it is.")
    if again.factor == 1:
        return again
    part = f"{(1 - 1 / again.factor) * 100:.3g} %"
    how = "the profiled programs compute" if again.basis == "derived" else "the policy has computed"
    return Again(again.factor, again.basis, f"HFU counts all of them; MFU leaves out {part}, which {how} again.")
