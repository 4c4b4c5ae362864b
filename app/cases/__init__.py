"""Worked cases: questions that teams have asked of published figures, one file each, listed once."""

from app.cases import cost, disaggregation, memory, percentile
from app.cases.base import Worked

CASES: tuple[Worked, ...] = (cost, percentile, memory, disaggregation)
