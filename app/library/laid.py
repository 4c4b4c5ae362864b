"""Runs of the library as a fleet has them, out of the columns of the index: no row is made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time_ns

import numpy as np

from analyzers.fleet.columns import Known, objects
from analyzers.fleet.packed import Packed, number_of, packed
from analyzers.fleet.spent import Spent
from app.library.answers import Glimpse
from app.library.columns import Row
from app.library.index import Index
from app.library.remembered import Remembered
from app.library.working import Numbers
from runs.live import Live

_TEXTS = ("name", "kind", "chip", "model", "group", "job")  # empty where there is none
_FLAGS = ("simulated", "pending", "archived", "demo")
_NO_TAGS: Mapping[str, str] = {}
_FOLLOWED = ("following", "failing")
_CHUNK = 1_000  # runs of which is read at a time


def known_of(index: Index, slots: np.ndarray, live: Mapping[str, Live]) -> Known:
    """What is known of the runs in these slots. `live`: by run."""
    flags, run_ids, now_ns = index.flags, index.ids_of(slots), time_ns()
    followed = [(one := live.get(i)) is not None and one.state_at(now_ns) in _FOLLOWED for i in run_ids]
    texts = {name: objects([value or "" for value in index.texts[name].of_slots(slots)]) for name in _TEXTS}
    return Known(
        texts={"run_id": objects(run_ids), **texts, "tags": objects(index.texts["tags"].of_slots(slots, _tags_of))},
        of={
            **{name: flags[name][slots] for name in _FLAGS},
            "damaged": flags["damaged"][slots] | ~flags["readable"][slots],
            "live": np.array(followed, dtype=bool),
            **{name: index.numbers[name][slots] for name in ("chips", "goodput", "mfu")},
            "created_ns": index.created_or_zero(slots),
        },
    )


def _tags_of(value: Sequence[tuple[str, str]] | None) -> Mapping[str, str]:
    return dict(value) if value else _NO_TAGS


class Spending:
    """What the runs of a store spent, packed: of a store of many that is done once of what each of them spent."""

    def __init__(self, remembered: Remembered, numbers: Numbers, made: Callable[[Sequence[str]], Iterable[Row]]):
        self._remembered, self._numbers, self._made = remembered, numbers, made

    def of(self, marks: Mapping[str, int], keep: bool) -> dict[str, Packed]:
        """`marks`: numbers of what they spent, as the index has them. `keep`: for the next process."""
        ids, found = list(marks), dict[str, Packed]()
        for at in range(0, len(ids), _CHUNK):
            some = {i: marks[i] for i in ids[at : at + _CHUNK]}
            kept = self._remembered.spent(some) if keep else {}
            new = {i: packed(Spent.from_json(text)) for i, text in self._texts(some.keys() - kept.keys(), marks)}
            if keep and new:
                self._remembered.keep_spent(new, marks)
            found |= kept | new
        return found

    def _texts(self, run_ids: Iterable[str], marks: Mapping[str, int]) -> Iterable[tuple[str, str]]:
        """What is known of them as text: as it is kept, where that is what the index knows of, else as rows tell it."""
        lacking = set(run_ids)
        glimpses = self._numbers.kept(lacking) if lacking else {}
        for run_id, (_, told) in glimpses.items():
            glimpse = Glimpse.from_json(told)
            if glimpse is not None and number_of(glimpse.spent) == marks[run_id]:
                lacking.discard(run_id)
                yield run_id, glimpse.spent
        yield from ((row.run_id, row.spent) for row in self._made([*lacking]))
