"""The runs that whoever asks sees, as slots of the index: what is searched, counted and sorted, kept as long as it is
the same."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from app.library.columns import Column, Row
from app.library.index import Index
from app.library.search import Query

MOST_FOUND = 16  # searches with their order that are kept
LONGEST = 2_000_000  # runs that they found together

Slots = np.ndarray


@dataclass
class View:
    """What is searched, in its order, and what is told of all of it, whatever is found."""

    index: Index = field(repr=False)
    slots: Slots
    archived: int
    damaged: Mapping[str, str]

    @cached_property
    def pending(self) -> list[str]:
        return self.index.ids_of(self.slots[self.index.flags["pending"][self.slots]])

    @cached_property
    def facets(self) -> Mapping[str, Mapping[str, int]]:
        return self.index.facets(self.slots)


class Seen:
    """Of one state of the index, to be asked while that stays. `rows`: what the table keeps of all of it."""

    def __init__(self, index: Index, hidden: frozenset[str]):
        self.version = index.version
        self._index = index
        order = index.order()
        self.slots = order[index.seen(hidden)[order]] if hidden else order
        self.rows: Sequence[Row] | None = None
        self._views: dict[tuple[bool, bool], View] = {}
        self._found: OrderedDict[tuple[object, ...], Slots] = OrderedDict()

    def view(self, archived: bool, demo: bool) -> View:
        """`archived`, `demo`: with these."""
        if (archived, demo) not in self._views:
            flags, slots = self._index.flags, self.slots
            left_out = np.zeros(len(slots), dtype=bool)
            left_out |= False if archived else flags["archived"][slots]
            left_out |= False if demo else flags["demo"][slots]
            damaged = slots[flags["damaged"][slots]]
            problems = [self._index.texts["problem"].at(slot) for slot in damaged]
            self._views[archived, demo] = View(
                index=self._index,
                slots=slots[~left_out] if left_out.any() else slots,
                archived=int(flags["archived"][slots].sum()),
                damaged=dict(zip(self._index.ids_of(damaged), problems, strict=True)),
            )
        return self._views[archived, demo]

    def found(self, asked: Query, view: View, column: Column, sort: str, newest: str) -> Slots:
        """What a search finds, in the order asked for. `newest`: the order that the slots have."""
        key = (asked.terms, id(view), sort)
        if key not in self._found:
            found = self._index.matching(asked, view.slots) if asked.tests else view.slots
            if sort != newest:
                found = self._index.sorted(found, column, sort.startswith("-"))
            self._found[key] = found
            while len(self._found) > MOST_FOUND or sum(map(len, self._found.values())) > LONGEST:
                if len(self._found) == 1:
                    break
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return self._found[key]
