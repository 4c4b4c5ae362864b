"""How large a batch may be before more of it no longer saves steps: the critical batch size, as a band.

To one loss a batch of B tokens takes (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training")

    tokens = D_min (1 + B / B_crit)        steps = S_min (1 + B_crit / B)

so that at B_crit twice the tokens of a small batch are needed, and at a fifth of it a fifth more. B_crit, in tokens, of
a language model that is trained on D tokens, by what was measured:

    Zhang et al. 2024      5 x 512 x 22.91 (D / 10^6)^0.47    85 M to 1.2 B parameters; their batch costs a fifth more
    Bergsma et al. 2025    2,048 x 0.0471 D^0.462             111 M to 3.3 B parameters
    Merrill et al. 2025    5 x 4,096 x 4,096                  1 B and 7 B parameters, past 600 B tokens: it grows no
                                                              further; the largest batch without a loss that is 0.01
                                                              higher, taken as one that costs a fifth more

The first two found no dependence on the number of parameters. The band is from the least to the most of those that
hold at D, and as much further as their grids of batches were coarse, a factor of sqrt 2 either way.

Not known: models of more than 7 B parameters, with experts, on other data or with another optimiser than Adam; how far
a batch that grows during the run goes; and D is that of the plan, not of small batches. Gradient noise, by which
McCandlish et al. estimate B_crit, was found orders of magnitude below what larger batches bear (Merrill et al.), so
nothing of it is taken. The coefficients of the first two are from their papers' abstracts and figures as recalled; the
two agree within a fifth from 10^10 to 2 x 10^13 tokens, though models, data and method differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

COSTS_A_FIFTH = 5.0  # B_crit over the batch that costs a fifth more tokens: 1 + 1 / 5
COARSE = math.sqrt(2)  # batches were tried in doublings
PLATEAU_FROM_TOKENS = 6e11


@dataclass(frozen=True)
class Estimate:
    """B_crit in tokens by one source."""

    source: str
    formula: str
    tokens: float


@dataclass(frozen=True)
class Band:
    """Between which batches, in tokens, the critical one lies, and by whom."""

    low: float
    high: float
    estimates: tuple[Estimate, ...]

    def more_tokens(self, batch_tokens: float) -> tuple[float, float]:
        """The least and the most share of tokens more than small batches take to the same loss: B / B_crit."""
        return batch_tokens / self.high, batch_tokens / self.low

    def place(self, batch_tokens: float) -> str:
        """`below`, `within` or `beyond` the band."""
        return "below" if batch_tokens < self.low else "beyond" if batch_tokens > self.high else "within"

    def largest(self, more: float) -> tuple[float, float]:
        """The batches that cost so large a share more tokens, by either end of the band."""
        return more * self.low, more * self.high


def critical_batch(tokens: float) -> Band:
    """The band for a job of so many tokens, above 0."""
    found = (
        Estimate(
            "Zhang et al. 2024, arXiv 2410.21676",
            "5 x 512 x 22.91 (D / 10^6)^0.47",
            COSTS_A_FIFTH * 512 * 22.91 * (tokens / 1e6) ** 0.47,
        ),
        Estimate(
            "Bergsma et al. 2025, arXiv 2505.13738",
            "2,048 x 0.0471 D^0.462",
            2048 * 0.0471 * tokens**0.462,
        ),
        *(
            ()
            if tokens < PLATEAU_FROM_TOKENS
            else (Estimate("Merrill et al. 2025, arXiv 2505.23971", "5 x 4,096 x 4,096", COSTS_A_FIFTH * 4096 * 4096),)
        ),
    )
    return _band(found)


def _band(estimates: Sequence[Estimate]) -> Band:
    sizes = [e.tokens for e in estimates]
    return Band(min(sizes) / COARSE, max(sizes) * COARSE, tuple(estimates))
