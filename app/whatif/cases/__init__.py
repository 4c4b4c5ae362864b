"""Worked cases: questions that teams have asked of published figures, one file each, listed once."""

from app.whatif.cases import cost, disaggregation, memory, percentile
from app.whatif.cases.base import Worked

CASES: tuple[Worked, ...] = (cost, percentile, memory, disaggregation)
