"""The JSON Schema of what a tool takes, made of the records of its options."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.mcp.arguments import OPTIONS
from app.mcp.base import CUT, Tool
from errors.numbers import Number
from errors.options import Option

UNBOUNDED = 1e30  # as `Number` has it
MOST_NAMED = 3  # owners of an option that are named one by one


def schema(tool: Tool) -> dict[str, Any]:
    """What may be given to a tool. What it refuses beyond that it refuses in a sentence."""
    properties = {o.name: of_option(o) for o in tool.options}
    if tool.choices is not None:
        properties[OPTIONS] = {
            "type": "object",
            "description": "options of what is asked, each with who takes it",
            "properties": _shared(tool.choices),
            "additionalProperties": False,
        }
    properties |= {o.name: of_option(o) for o in CUT}
    return {
        "type": "object",
        "properties": properties,
        "required": list(tool.needed),
        "additionalProperties": False,
    }


def of_option(option: Option) -> dict[str, Any]:
    """What one option may be: its kind, bounds, choices, default and meaning."""
    one = _kind(option)
    if option.several:
        one = {"type": "array", "items": one}
    if option.default not in (None, "", ()):
        one["default"] = option.default
    said = option.help if not option.unit or option.unit in option.help else f"{option.help} ({option.unit})"
    expected = "" if "type" not in one or _kind(option) != {"type": "string"} else option.expected
    return one | {"description": f"{said}; {expected}" if expected else said}


def _kind(option: Option) -> dict[str, Any]:
    if isinstance(option.kind, tuple):
        return {"type": "string", "enum": list(option.kind)}
    if option.switch:
        return {"type": "boolean"}
    if isinstance(option.kind, Number):
        return _number(option.kind)
    return {"type": "string"}


def _number(kind: Number) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "integer" if kind.whole else "number"}
    if kind.low > -UNBOUNDED:
        found["exclusiveMinimum" if kind.above else "minimum"] = _short(kind.low)
    if kind.high < UNBOUNDED:
        found["maximum"] = _short(kind.high)
    return found


def _short(bound: float) -> float:
    """As JSON writes it shortest: 1, 0.5, 1e+24."""
    return int(bound) if float(bound).is_integer() and len(str(int(bound))) <= len(repr(float(bound))) else bound


def _shared(choices: Mapping[str, Iterable[Option]]) -> dict[str, Any]:
    """The options of several questions by name. Where two mean different things by one name both are told, and where
    they take different things, either is taken."""
    found: dict[str, list[tuple[dict[str, Any], dict[str, list[str]]]]] = {}
    for owner, options in choices.items():
        for option in options:
            kind = of_option(option)
            meaning, known = kind.pop("description"), found.setdefault(option.name, [])
            meanings = next((m for k, m in known if k == kind), None)
            if meanings is None:
                meanings = {}
                known.append((kind, meanings))
            meanings.setdefault(meaning, []).append(owner)
    return {name: _either([k | {"description": _said(m)} for k, m in known]) for name, known in found.items()}


def _said(meanings: Mapping[str, list[str]]) -> str:
    return " | ".join(f"{_named(owners)}: {meaning}" for meaning, owners in meanings.items())


def _named(owners: list[str]) -> str:
    return ", ".join(owners[:MOST_NAMED]) + (", ..." if len(owners) > MOST_NAMED else "")


def _either(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
