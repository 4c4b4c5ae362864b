"""What can be wrong with a run: the causes that findings are told in, and what is done about each.

A cause is named for what it is, not for who pays: `slow_rank`, not `straggler_wait`. Its cure is told for the framework
that ran where that is known, else in general.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.entries import read_data

ANY = "any"
"""The framework of a cure that holds for all."""


@dataclass(frozen=True)
class Wrong:
    """Something that can be wrong. `effort`: a key of EFFORTS; `cures`: what to do, by framework, `any` among them."""

    name: str
    title: str
    effort: str
    cures: Mapping[str, str]

    def cure(self, frameworks: Iterable[str]) -> str:
        """What to do under the first of these frameworks that has a cure of its own, else in general."""
        return next((self.cures[name] for name in frameworks if name in self.cures), self.cures[ANY])


def parse_cures(data: Mapping[str, Any]) -> dict[str, Wrong]:
    """Causes of the data file by name. Raises ValueError for one that stands twice, is of no effort listed, has no
    general cure, or names a framework that is not listed."""
    found: dict[str, Wrong] = {}
    for raw in data["causes"]:
        wrong = Wrong(**raw)
        strange = set(wrong.cures) - set(data["frameworks"])
        if wrong.name in found or wrong.effort not in data["efforts"] or ANY not in wrong.cures or strange:
            raise ValueError(
                f"the cause {wrong.name!r} stands twice, has no general cure, or one of no effort or framework listed"
            )
        found[wrong.name] = wrong
    return found


_DATA = read_data("cures.json")
EFFORTS: dict[str, str] = _DATA["efforts"]
FRAMEWORKS: dict[str, str] = _DATA["frameworks"]
"""Frameworks by name, with what they are called."""
WRONGS = parse_cures(_DATA)
