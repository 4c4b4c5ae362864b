"""What tokens cost, and at which prices two machines cost the same."""

from errors import QuestionError


def usd_per_million_tokens(tokens_per_s: float, chips: float, usd_per_chip_hour: float) -> float:
    """Dollars of chip time for a million tokens: chips x price / 3600 / tokens per second x 10^6."""
    if tokens_per_s <= 0:
        raise QuestionError(f"{tokens_per_s} tokens per second", expected="more than 0")
    return chips * usd_per_chip_hour / 3600 / tokens_per_s * 1e6


def break_even(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The price of a chip of `other`, by that of `one`, at which both give tokens at the same cost.

    Each is (tokens per second, chips): the ratio of their tokens per second and chip. Below it `other` is the cheaper.
    """
    for tokens_per_s, chips in (one, other):
        if tokens_per_s <= 0 or chips <= 0:
            raise QuestionError(f"{tokens_per_s} tokens per second on {chips} chips", expected="more than 0 of both")
    return (other[0] / other[1]) / (one[0] / one[1])
