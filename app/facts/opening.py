"""What a fact would open: questions are asked of the beginning of the run's tables, with and without it.

Which figures an answer holds rests on what kinds of rows there are, not on how many; so a run of any size takes as long
as a small one. A fact opens what is told with it and not without; one that opens nothing alone opens what is told only
together with others that are missing too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.facts.guesses import guesses
from app.facts.kinds import Declarable
from app.facts.settled import settled
from app.questions import question
from app.questions.asking import price_of
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors.options import parse_options
from runs.registry import PRICE
from runs.run import FactValue, Run
from runs.tables import ParquetTables, Where

ROWS = 1_000  # of each table that are looked at


@dataclass(frozen=True)
class Figure:
    """Something that an answer may tell. `by`: facts that may open it, the others are not tried. `tells`: whether this
    answer does. `worth`: it is reason enough to ask before the run is shown."""

    name: str
    question: str
    by: tuple[str, ...]
    tells: Callable[[Any], bool]
    worth: bool = True


_PEAK = ("chip", "peak_flops_per_s")
_WORK = ("model", "seq", "global_batch", "chips")
FIGURES: tuple[Figure, ...] = (
    Figure("MFU", "mfu", (*_PEAK, *_WORK), lambda r: r.mfu is not None),
    Figure("useful maths", "ledger", _PEAK, lambda r: r.ledger.find("useful_maths") is not None),
    Figure("roofline", "roofline", _PEAK, lambda r: True),
    Figure("FLOPs of a token", "mfu", _WORK, lambda r: r.flops_per_token is not None, worth=False),
    Figure("KV cache", "kv_cache", ("model", "seq"), lambda r: True, worth=False),
    Figure("what it cost", "ledger", (PRICE,), lambda r: r.ledger.usd is not None, worth=False),
)
LEDGER = Figure("a ledger", "ledger", (), lambda r: True)
COUNTS_CHIPS = ("findings", "ledger", "goodput", "load")  # questions whose amounts rest on the number of chips
HELD = "chip-hours of all chips"  # told where the number of chips is known
WORTH = {HELD, *(f.name for f in FIGURES if f.worth)}


def figures_of(question_name: str) -> set[str]:
    """What may lack on the page of a question."""
    of = {"findings": ("ledger", "mfu"), "compiled": ()}.get(question_name, (question_name,))
    return {f.name for f in FIGURES if f.question in of} | ({HELD} if question_name in COUNTS_CHIPS else set())


def opens(run: Run, lacking: Sequence[Declarable], place: Workspace) -> dict[str, tuple[str, ...]]:
    """What each of these facts would open, by name; those that open nothing are not among them."""
    tried, price = {f.name: _tried(run, f) for f in lacking}, price_of(run, place.registry)
    untold = [f for f in FIGURES if any(name in tried for name in f.by)]
    untold = [f for f in untold if not _tells(f, run, {}, price)]
    found: dict[str, list[str]] = {name: [] for name in tried}
    if "chips" in found and not run.manifest.fact("chips") and _tells(LEDGER, run, {}, price):
        found["chips"].append(HELD)
    for figure in untold:
        by = [name for name in figure.by if name in tried]
        alone = [name for name in by if _tells(figure, run, {name: tried[name]}, price)]
        for name in alone or _together(figure, run, {name: tried[name] for name in by}, price):
            found[name].append(figure.name)
    return {name: tuple(told) for name, told in found.items() if told}


def _together(figure: Figure, run: Run, tried: Mapping[str, Any], price: float | None) -> list[str]:
    """The facts without each of which the figure is not told, where all of them open it."""
    if len(tried) < 2 or not _tells(figure, run, tried, price):
        return []
    needed = dict(tried)
    for name in tried:  # of two that open the same, such as a chip and its peak, the first stays
        rest = {n: v for n, v in needed.items() if n != name}
        if _tells(figure, run, rest, price):
            needed = rest
    return list(needed)


def _tried(run: Run, kind: Declarable) -> Any:
    return next((g.value for g in guesses(run, kind.name)), kind.tried)


def _tells(figure: Figure, run: Run, more: Mapping[str, Any], price: float | None) -> bool:
    """Whether the figure is told of the run with these facts besides its own."""
    price = more.get(PRICE, price)
    said = {n: FactValue(v, "declared", "tried") for n, v in more.items() if n != PRICE}
    other = run.told(settled(run, replace(run.said, facts={**run.said.facts, **said}))) if said else run
    key = (*run.writing, figure.question, price, repr(sorted(said.items(), key=lambda s: s[0])))
    try:
        answer = _kept(_Asked(other, figure.question, price, key))
    except InputError:  # damaged, or in the bin just now: not kept, for it may be brought back
        return False
    return answer is not None and figure.tells(answer)


@dataclass(frozen=True)
class _Asked:
    """A question about a run at a price. Two are the same by `key`."""

    run: Run
    question: str
    price: float | None
    key: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=500)
def _kept(asked: _Asked) -> Any:
    tables = _beginning(asked.run.folder, asked.run.written.created_ns)
    return _answer(question(asked.question), asked.run, tables, asked.price)


def _answer(of: Any, run: Run, tables: "Beginning", price: float | None) -> Any:
    """None where there is none. Raises InputError where the run cannot be read."""
    if not of.tells_of(run):
        return None
    options = parse_options(of.options, {})
    if PRICE in options:
        options[PRICE] = price
    try:
        return of.analyze(tables, run.manifest.facts, options)
    except QuestionError:
        return None


@lru_cache(maxsize=8)
def _beginning(folder: Path, created_ns: int) -> "Beginning":
    return Beginning(Run(folder).tables)


class Beginning:
    """The first rows of each table of a run, each table read once."""

    def __init__(self, tables: ParquetTables):
        self._tables = tables
        self._read = dict[str, pa.Table]()
        self.state = (*tables.state, ROWS)

    def rows(self, name: str) -> int:
        return self._of(name).num_rows

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        rows = self._of(name)
        if where is not None:
            triples: list[Any] = [tuple(w) for w in where]
            rows = rows.filter(pq.filters_to_expression(triples))
        return rows if columns is None else rows.select(columns)

    def _of(self, name: str) -> pa.Table:
        if name not in self._read:
            self._read[name] = self._tables.first(name, ROWS)
        return self._read[name]
