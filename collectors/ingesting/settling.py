"""One value for each fact of a run, of all that its files say."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from collectors.ingesting.chip_facts import most_chips
from collectors.reading.textlog import clean
from runs.run import FactValue

SEATS = "max_num_seqs"
_BASES = ("declared", "measured", "derived", "published")  # whose word counts first


def settled(facts: Mapping[str, Sequence[FactValue]]) -> dict[str, FactValue]:
    """Declared before measured before derived before published, then the first file's; of chips the most."""
    return {name: _best(name, values) for name, values in facts.items()}


def contradictions(facts: Mapping[str, Sequence[FactValue]], given: Collection[str]) -> Iterator[str]:
    """A sentence for each fact of which files say different things; not where an option says it."""
    for name, values in facts.items():
        best = _best(name, values)
        other = next((v for v in values if v.basis == best.basis and v.value != best.value), None)
        if other is not None and name not in given:
            which = "larger" if name == "chips" and best.basis != "declared" else "first"
            which += " counts, but for replicas that the others are of" if name == SEATS else " counts"
            said = f"{best.source} says {best.value!r}, {other.source} says {other.value!r}"
            yield f"{name}: {said}; the {which}"


def seats_by_input(facts: Mapping[str, Sequence[FactValue]]) -> dict[str, FactValue]:
    """The fact `max_num_seqs_by_input`, {input: how many requests its server may run at once}, where inputs of one
    basis say different things; else nothing. Of an input that says several the first counts."""
    values = facts.get(SEATS, ())
    best = _best(SEATS, values) if values else None
    told: dict[str, Any] = {}
    for value in values:
        if best is not None and value.basis == best.basis and isinstance(value.value, int):
            told.setdefault(clean(value.source), value.value)
    if best is None or len(set(told.values())) < 2:
        return {}
    return {f"{SEATS}_by_input": FactValue(told, best.basis, f"{len(told):,} inputs")}


def held(value: Any) -> bool:
    """Whether the whole numbers of a fact fit 64 bits: JSON's may have any number of digits."""
    if isinstance(value, dict | list | tuple):
        return all(map(held, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


def _best(name: str, values: Sequence[FactValue]) -> FactValue:
    return most_chips(values) if name == "chips" else min(values, key=lambda fact: _BASES.index(fact.basis))
