"""Events from columns of numbers, as the reader of PyTorch's traces takes them, whatever file the columns come from."""

from collections.abc import Callable, Sequence

import numpy as np

from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch, Stats, new_batch, new_stats
from collectors.device.kineto.kinds import BARE
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE
from collectors.device.ranges import Range, range_of
from collectors.reading.sqlite import NULL

LONGEST_NS = 1 << 61  # a time beyond it is none
_MOST_RANGES = 1 << 16  # texts of ranges that are remembered


class Maker:
    """Makes batches, and keeps what they share: `texts`, how many events there were, what ranges told."""

    def __init__(self, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        self._words: dict[tuple[str, int], int] = {}
        self._ranges: dict[str, tuple[Range, int]] = {}  # by text: what it tells, number of the name
        self._names_of: dict[str, int] = {}
        self._row = 0

    def timed(self, cat: str, start: np.ndarray, end: np.ndarray) -> Batch:
        """Whole events from start to end; a row without an end has no duration."""
        made = new_batch(len(start))
        made.ordinal[:] = np.arange(self._row, self._row + len(start))
        self._row += len(start)
        made.phase[:] = ord("X")
        made.cat[:] = self.text(cat)
        made.name[:] = made.pid[:] = made.tid[:] = -1
        made.ts[:] = np.where(start == NULL, NONE, start)
        known = (start != NULL) & (end != NULL) & (np.abs(start) < LONGEST_NS) & (np.abs(end) < LONGEST_NS)
        made.dur[:] = np.where(known, np.where(known, end, 0) - np.where(known, start, 0), NONE)
        made.args[:] = NONE
        return made

    def text(self, text: str) -> int:
        """Number of a text."""
        return self.texts.of(escaped(text))

    def texts_of(self, kind: str, values: np.ndarray, named: Callable[[int], str]) -> np.ndarray:
        """Numbers of the texts of whole numbers; `kind`: what tells one way of naming them from another."""
        unique, inverse = np.unique(values, return_inverse=True)
        found = []
        for value in unique.tolist():
            if (kind, value) not in self._words:
                self._words[kind, value] = self.text(named(value))
            found.append(self._words[kind, value])
        return np.array(found, np.int64)[inverse] if found else np.zeros(0, np.int64)

    def amounts(self, made: Batch, name: str, amount: np.ndarray | None) -> Stats:
        """An argument of events that tell one: NULL, and what lies below 0, is none."""
        if amount is None:
            return new_stats(0)
        some = np.flatnonzero((amount != NULL) & (amount >= 0))
        stats = new_stats(len(some))
        stats.event[:], stats.name[:] = made.ordinal[some], self.texts.of(name)
        stats.kind[:], stats.value[:] = columns.INT, amount[some]
        return stats

    def ranged(self, made: Batch, texts: Sequence[str]) -> None:
        """Names ranges by their texts, and gives those that tell more what they tell: steps, operators."""
        known = [self._range(text) for text in texts]
        made.name[:] = [name for _, name in known]
        operator, annotation = self.text("cpu_op"), self.text("user_annotation")
        for i, (what, _) in enumerate(known):
            if what.step is not None and made.phase[i] != ord("i"):  # a mark has no duration: it is no step
                made.name[i], made.cat[i] = self._step(what.step), annotation
            elif what.operator:
                made.cat[i] = operator
                made.args[i, columns.SEQUENCE] = NONE if what.sequence is None else what.sequence
                made.args[i, columns.DIMS] = self.texts.of(what.sizes) if what.sizes else NONE

    def _range(self, text: str) -> tuple[Range, int]:
        """What a range's text tells, and the number of its name; of texts that recur each is looked at once."""
        found = self._ranges.get(text)
        if found is None:
            what = range_of(text)
            found = what, self._name(what.name)
            if not what.operator and len(self._ranges) < _MOST_RANGES:  # those of operators are numbered
                self._ranges[text] = found
        return found

    def _name(self, name: str) -> int:
        if name not in self._names_of and len(self._names_of) < _MOST_RANGES:
            self._names_of[name] = self.text(name)
        return self._names_of[name] if name in self._names_of else self.text(name)

    def _step(self, number: int) -> int:
        return self.text("ProfilerStep" if number == BARE else f"ProfilerStep#{number}")

    def names(self, kind: str, rows: int) -> Batch:
        """Room for names of threads or processes; pid, tid and the argument are the caller's."""
        made = new_batch(rows)
        made.phase[:], made.name[:], made.cat[:] = ord("M"), self.text(kind), -1
        made.args[:] = NONE
        return made


def escaped(text: str) -> str:
    """A text as JSON writes it, as `Texts` keeps those of a trace."""
    return text.replace("\\", "\\\\").replace('"', '\\"') if "\\" in text else text
