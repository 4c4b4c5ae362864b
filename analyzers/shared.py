"""What several questions work out of the same tables: once for all of them, as long as the run's files are the same.

What is kept is shared: it is not to be changed.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

from runs.kept import Answers
from runs.tables import Tables, state_of

MOST_BYTES = 96 << 20
T = TypeVar("T")
_kept = Answers(MOST_BYTES)


class Shared:
    """What was worked out of these tables. For one walk over a run: that its files are the same is looked at once."""

    def __init__(self, tables: Tables):
        self._state = state_of(tables)

    def get(self, what: tuple[Hashable, ...], compute: Callable[[], T]) -> T:
        """`what`: its name, and all that it depends on beside the tables."""
        return compute() if self._state is None else _kept.get((self._state, *what), compute)
