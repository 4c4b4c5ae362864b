"""A chip of one's own: a small JSON file with the numbers that the catalogue has of its chips.

    {"name": "Card X", "like": "RTX PRO 6000 Workstation", "bf16_flops_per_s": 4e14, "hbm_bytes": 96e9,
     "hbm_bytes_per_s": 1.6e12, "usd_per_chip_hour": 1.2}

or a list of such. `like` names a chip of the catalogue whose numbers stand for those that the file leaves out; without
it the three rates and sizes above must be there. Numbers have the names and units of `catalog.chips.UNITS`.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from catalog.chips import UNITS, Chip, chips
from catalog.chips import chip as find_chip
from catalog.entries import Number
from errors import QuestionError
from errors.numbers import Number as Bound
from errors.shapes import is_list, is_object

NEEDED = ("bf16_flops_per_s", "hbm_bytes", "hbm_bytes_per_s")
WORDS = ("name", "like", "vendor", "memory", "scaleup")
PRICE = "usd_per_chip_hour"
MOST_CHARACTERS, MOST_CHIPS, LONGEST_NAME = 100_000, 20, 60
POSITIVE = Bound(0, 1e24, above=True)
FROM_ZERO = Bound(0, 1e24)


@dataclass(frozen=True)
class OwnChip:
    """The chip, and its price per hour where the file states one."""

    chip: Chip
    usd_per_chip_hour: float | None


def own_chips(text: str, where: str = "the chip file") -> tuple[OwnChip, ...]:
    """The chips of such a file. Raises QuestionError, saying what is wrong, where it is none."""
    if len(text) > MOST_CHARACTERS:
        raise QuestionError(f"{len(text):,} characters", where=where, expected=f"at most {MOST_CHARACTERS:,}")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise QuestionError(f"no JSON ({str(e)[:80]})", where=where, expected="the numbers of a chip by name") from e
    each = said if is_list(said) else [said]
    if not 1 <= len(each) <= MOST_CHIPS:
        raise QuestionError(f"{len(each)} chips", where=where, expected=f"1 to {MOST_CHIPS}")
    return tuple(_chip(raw, where) for raw in each)


def _chip(raw: object, where: str) -> OwnChip:
    if not is_object(raw):
        raise QuestionError("not an object", where=where, expected="an object with the numbers of a chip")
    if unknown := [k for k in raw if k not in (*WORDS, PRICE, *UNITS)]:
        raise QuestionError(
            f"nothing of a chip is called {unknown[0][:40]!r}",
            where=where,
            expected="one of " + ", ".join((*WORDS, PRICE, *UNITS)),
        )
    for key in (k for k in WORDS if k in raw):
        if not isinstance(raw[key], str) or not 0 < len(raw[key].strip()) <= LONGEST_NAME:
            what = f"{key} {str(raw[key])[:40]!r}"
            raise QuestionError(what, where=where, expected=f"1 to {LONGEST_NAME} characters")
    name = raw.get("name", "").strip()
    if not name or "," in name or "=" in name:
        raise QuestionError(f"name {name!r}", where=where, expected="a name without commas and equals signs")
    if name in chips():
        raise QuestionError(f"the catalogue has a chip called {name}", where=where, expected="a name of its own")
    base = find_chip(raw["like"]) if "like" in raw else None
    numbers = {k: replace(n, mark="declared", note=f"as {base.name}") for k, n in base.numbers.items()} if base else {}
    for key in raw:
        if key in UNITS:
            bound = POSITIVE if key in NEEDED else FROM_ZERO
            value = bound.read(raw[key], f"{where}, {key}:")
            numbers[key] = Number(value=value, unit=UNITS[key][0], source=where, mark="declared")
    if "hbm_bytes" in raw and "hbm_usable_bytes" not in raw:
        numbers.pop("hbm_usable_bytes", None)
    if missing := [k for k in NEEDED if k not in numbers or numbers[k].value is None]:
        raise QuestionError(
            f"{name} has no {missing[0]}",
            where=where,
            expected=UNITS[missing[0]][1],
            advice='Or name a chip of the catalogue that it is like: "like".',
        )
    price = POSITIVE.read(raw[PRICE], f"{where}, {PRICE}:") if PRICE in raw else None
    text: dict[str, Any] = {
        k: raw.get(k) or (getattr(base, k) if base else "not known") for k in ("vendor", "memory", "scaleup")
    }
    notes = (f"Numbers are those of {where}" + (f", the rest those of {base.name}." if base else "."),)
    return OwnChip(Chip(name=name, aliases=(), numbers=numbers, notes=notes, price_suggestion=None, **text), price)
