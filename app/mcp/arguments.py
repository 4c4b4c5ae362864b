"""What a tool is given: JSON, checked in the words in which parameters of an address are."""

from collections.abc import Iterable
from typing import Any

from errors import QuestionError
from errors.options import Option

Pairs = list[tuple[str, str]]
OPTIONS = "options"  # the argument that holds what one of several things is asked
MOST_DIGITS = 30
_SHOWN = 80  # characters of what is refused


def as_pairs(given: Any, called: str) -> Pairs:
    """An object as the parameters of an address: null is not given, a list is its name again for each of its entries.

    Raises QuestionError for what is no object, and for a value that is none of text, number, true and false.
    """
    if given is None:
        return []
    if not isinstance(given, dict):
        raise QuestionError(f"{called} {_shown(given)}", expected="an object of names and values")
    found: Pairs = []
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        found += [(str(name), _text(v, str(name))) for v in values if v is not None]
    return found


def need(given: Iterable[tuple[str, str]], options: Iterable[Option], names: Iterable[str]) -> None:
    """Raises QuestionError where one of these names was not given."""
    present = {name.replace("-", "_") for name, text in given if text.strip()}
    helps = {o.name: o.help for o in options}
    for name in names:
        if name not in present:
            raise QuestionError(f"no {name!r} is given", expected=helps[name])


def _text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**MOST_DIGITS else f"a number of more than {MOST_DIGITS} digits"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 10**MOST_DIGITS else repr(value)
    if not isinstance(value, str):
        raise QuestionError(f"{name[:_SHOWN]!r} is {_shown(value)}", expected="text, a number, true or false")
    if "\0" in value or not _encodes(value):
        raise QuestionError(f"{name[:_SHOWN]!r} holds characters that no text has", expected="text")
    return value


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _shown(value: Any) -> str:
    kind = {dict: "an object", list: "a list", str: "text"}.get(type(value))
    return kind or str(value)[:_SHOWN]
