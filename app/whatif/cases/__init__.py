"""Worked cases: questions that teams have asked of published figures, one file each, listed once."""

import functools

from app.whatif.cases import cost, disaggregation, memory, percentile
from app.whatif.cases.base import Case, Worked

CASES: tuple[Worked, ...] = (cost, percentile, memory, disaggregation)


@functools.cache
def worked(name: str) -> Case:
    """The case of that name, worked through once for all who ask: nothing of it can be varied.

    Raises StopIteration for a name that none has.
    """
    return next(c for c in CASES if name == c.NAME).answer()
