"""The `name: number` pieces between bars of which Megatron's lines are made."""

import re
from math import isfinite

NUMBER = re.compile(r"\s*+([-+]?(?:\d++(?:\.\d*+)?(?:e[-+]?\d+)?|nan|inf))", re.ASCII | re.IGNORECASE)
_FIELD_NAME = re.compile(r"[A-Za-z][\w /()%.+-]{0,79}", re.ASCII)


def fields_of(text: str, cut_off: bool) -> dict[str, float]:
    """The `name: number` pieces of a line; the last is left out where the file ends in the middle of it."""
    fields = {}
    parts = text.split("|")
    for part in parts[:-1] if cut_off else parts:
        name, found, value = part.rpartition(":")
        number = NUMBER.match(value)
        name = name.strip()
        if found and number and _FIELD_NAME.fullmatch(name):
            fields[name] = float(number[1])
    return fields


def first(fields: dict[str, float], names: tuple[str, ...], finite: bool = True) -> float | None:
    """The first of `names` that is there; None where none is, or where it is no finite number."""
    value = next((fields[name] for name in names if name in fields), None)
    return value if value is not None and (isfinite(value) or not finite) else None
