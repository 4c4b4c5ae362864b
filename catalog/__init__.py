"""Chips, TPU slices and models as data: every number with its unit, its source and how far it can be trusted.

`chip(name)`, `slice_(name)` and `model(name)` find an entry by any usual name and raise QuestionError, with the
nearest names, where there is none. `entry` and `as_rows` serve the tables and `chipledger catalog`.
"""

from typing import Any

from catalog.chips import Chip, chip, chips
from catalog.entries import MARKS, Number, Value
from catalog.models import Model, Parameters, model, models, parameters
from catalog.slices import Slice, SliceFamily, families, family, slice_
from errors import QuestionError

KINDS = ("chips", "models", "slices")


def entry(kind: str, name: str) -> dict[str, Any]:
    """What `chipledger catalog KIND NAME --json` prints. Raises QuestionError for an unknown kind or name.

    A slice may be named by its accelerator type (v5p-128) or by anything that names its chip (v5p, ct5lp).
    """
    found = _find(kind, name)
    return found.as_json()


def as_rows(kind: str, name: str | None = None) -> list[dict[str, Value]]:
    """One row for each number of one entry, or of all of a kind: entry, key, meaning, value, unit, source, mark, note.

    Raises QuestionError for an unknown kind or name.
    """
    if name is None:
        return [row for e in _all(kind).values() for row in e.rows()]
    found = _find(kind, name)
    return (families()[found.family] if isinstance(found, Slice) else found).rows()


def _all(kind: str) -> dict[str, Chip] | dict[str, Model] | dict[str, SliceFamily]:
    tables = {"chips": chips, "models": models, "slices": families}
    if kind not in tables:
        raise QuestionError(f"the catalogue has no {kind!r}", expected="chips, models or slices")
    return tables[kind]()


def _find(kind: str, name: str) -> Chip | Model | SliceFamily | Slice:
    entries = _all(kind)
    if kind == "chips":
        return chip(name)
    if kind == "models":
        return model(name)
    try:
        return slice_(name)
    except QuestionError as no_slice:
        try:
            return entries[chip(name).name]
        except (QuestionError, KeyError):
            raise no_slice from None


__all__ = [
    "KINDS",
    "MARKS",
    "Chip",
    "Model",
    "Number",
    "Parameters",
    "Slice",
    "SliceFamily",
    "as_rows",
    "chip",
    "chips",
    "entry",
    "families",
    "family",
    "model",
    "models",
    "parameters",
    "slice_",
]
