"""Layouts of a chip and a number of them, kept: prices, tokens, goodput and limits change nothing of them."""

from collections.abc import Mapping
from functools import lru_cache

from catalog.chips import Chip
from catalog.models import Model
from simulators.training.machine import Machine, machine
from simulators.training.plan import Found, plan

KEPT = 1024  # numbers of chips of a question: some 15 MB


def planned(
    wanted: Model,
    one: Chip,
    number: int,
    batch: int,
    seq: int,
    *,
    precision: str,
    fixed: Mapping[str, int],
    remat: str,
    most: int,
) -> Found:
    """As `simulators.training.plan.plan`, computed once for what is asked alike: model and machine count by what they
    are, not by their names."""
    key = (wanted, _Same(one), machine(one, precision), number, batch, seq, precision, tuple(sorted(fixed.items())))
    return _plan(*key, remat, most)


class _Same:
    """A chip by its name, for a cache: its numbers are those of the machine beside it."""

    def __init__(self, chip: Chip):
        self.chip = chip

    def __hash__(self) -> int:
        return hash(self.chip.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.chip.name == self.chip.name


@lru_cache(maxsize=KEPT)
def _plan(
    wanted: Model,
    one: _Same,
    on: Machine,
    number: int,
    batch: int,
    seq: int,
    precision: str,
    fixed: tuple[tuple[str, int], ...],
    remat: str,
    most: int,
) -> Found:
    return plan(wanted, one.chip, number, batch, seq, precision=precision, fixed=dict(fixed), remat=remat, most=most)


def forget() -> None:
    """Whatever was swept, for who times it."""
    _plan.cache_clear()
