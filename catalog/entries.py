"""What every kind of catalogue entry is made of: numbers that say where they come from, and the data files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

MARKS: dict[str, str] = {
    "published": "the maker says so, in its documentation, data sheet, paper, configuration file or code",
    "derived": "computed from published figures, or measured; the note or the source says how",
    "inferred": "reasoned from other facts, never printed by the maker",
    "secondary": "from someone else's copy, or from memory of the maker's document; not checked against it",
    "declared": "given by whoever asks, in a file of their own",
    "unverified": "a suggestion that nobody could check (prices only); never used unless a person says so",
}

Value = int | float | str | bool | None


@dataclass(frozen=True, kw_only=True)
class Number:
    """One figure of an entry. `value` None means that it is not known; a note then says why.

    `unit` is fixed by the key under which the number stands; `mark` is one of MARKS.
    """

    value: Value
    unit: str
    source: str
    mark: str
    note: str = ""

    @property
    def figure(self) -> int | float | None:
        """The value of what is counted or measured. Raises ValueError for a text, which is a defect of the data."""
        if isinstance(self.value, str):
            raise ValueError(f"{self.value!r} is no number")
        return self.value

    def as_json(self) -> dict[str, Value]:
        return asdict(self)


def read_data(name: str) -> dict[str, Any]:
    """The data file `name` of this package."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def parse_numbers(
    entry: str, raw: dict[str, Any], units: dict[str, tuple[str, str]], sources: dict[str, str]
) -> dict[str, Number]:
    """The numbers of one entry of a data file, with the unit of each key and the full text of each source.

    Raises ValueError for a key without a unit, a source that is not listed or a mark that does not exist:
    the data files are ours, so a mistake in them is a defect.
    """
    numbers: dict[str, Number] = {}
    for key, fields in raw.items():
        if key not in units:
            raise ValueError(f"{entry}: no unit is known for the number {key!r}")
        if fields["source"] not in sources:
            raise ValueError(f"{entry}: {key}: source {fields['source']!r} is not listed")
        if fields["mark"] not in MARKS:
            raise ValueError(f"{entry}: {key}: mark {fields['mark']!r} does not exist")
        numbers[key] = Number(
            value=fields["value"],
            unit=units[key][0],
            source=sources[fields["source"]],
            mark=fields["mark"],
            note=fields.get("note", ""),
        )
    return numbers


def rows_of(entry: str, numbers: dict[str, Number], meanings: dict[str, str]) -> list[dict[str, Value]]:
    """One flat row for each number, for tables: entry, key, meaning, value, unit, source, mark, note."""
    return [
        {"entry": entry, "key": key, "meaning": meanings.get(key, ""), **number.as_json()}
        for key, number in numbers.items()
    ]
