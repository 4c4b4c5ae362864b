"""Products of the whole numbers that a program holds lists of."""

import math
from collections.abc import Iterable
from itertools import islice

MOST_FACTORS = 1 << 10  # dimensions of a shape, and of whatever else


def prod(values: Iterable[int]) -> int:
    """The product. Raises OverflowError where the factors are more than anything has dimensions: the digits of such a
    product would take the square of the time of reading them."""
    factors = tuple(islice(values, MOST_FACTORS + 1))
    if len(factors) > MOST_FACTORS:
        raise OverflowError(f"more than {MOST_FACTORS:,} dimensions")
    return math.prod(factors)
