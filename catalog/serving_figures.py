"""Published figures of serving, each with its source: what the worked cases are held against."""

from dataclasses import dataclass
from functools import cache

from catalog.entries import read_data

FILE = "serving_cases.json"


@dataclass(frozen=True)
class Figure:
    """One number as it was published. `basis`: measured, or modelled where an estimator or plain arithmetic gave it."""

    value: float
    unit: str
    source: str
    basis: str


@cache
def figures() -> dict[str, Figure]:
    """Every figure by its name, such as `rtx.tpot_s.mean`."""
    data = read_data(FILE)
    return {
        name: Figure(float(raw["value"]), raw["unit"], data["sources"][raw["source"]], raw["basis"])
        for name, raw in data["figures"].items()
    }
