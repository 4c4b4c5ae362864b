"""A request to ingest an upload, or files by address: fields as `chipledger ingest` has options, so that neither takes
what the other does not. Anything else is refused: a chip that is dropped silently makes another ledger."""

from collections.abc import Mapping
from typing import Any

from app.ingest_options import AUDIENCE, OPTIONS
from collectors.own import sidecar
from errors import InputError, QuestionError
from errors.numbers import Number
from errors.options import Option

UPLOAD, ADDRESS, TAGS = "upload_id", "address", "tags"
_WHERE = "request"


def fields() -> dict[str, Option]:
    """Options of the command that a request may give, by name."""
    return {o.name: o for o in OPTIONS if not o.local}


def ingest_arguments(asked: Mapping[str, Any]) -> list[str]:
    """The options of the command from the fields of a request; null and "" count as not given. Raises InputError."""
    known = fields()
    allowed = (UPLOAD, ADDRESS, TAGS, *known)
    for name in asked:
        if name not in allowed:
            raise InputError(f"no field {str(name)[:40]!r} here", expected=f"one of {', '.join(allowed)}")
    given = {name: asked[name] for name in known if asked.get(name) not in (None, "")}
    words = [flag(known[name], value) for name, value in given.items()]
    return [*filter(None, words), *(f"--tag={key}={value}" for key, value in _tags(asked.get(TAGS)).items())]


def without_audience(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request but those that say who sees the run: `app.sharing.flags` reads these."""
    return {name: value for name, value in asked.items() if name not in {option.name for option in AUDIENCE}}


def line(value: Any, name: str) -> str:
    """One line of text, as it may stand on a command line. Raises InputError for anything else."""
    if not isinstance(value, str) or not value.isprintable():
        raise InputError(f"{name!r} is not understood", where=_WHERE, expected="a text of one line")
    return value.strip()


def flag(option: Option, value: Any) -> str:
    """The word of the command line for a field of a request. Raises InputError, by the bounds that the option has."""
    name = option.name
    if option.switch:
        if not isinstance(value, bool):
            raise InputError(f"{name!r} is not understood", where=_WHERE, expected=option.expected)
        return option.flag if value else ""
    if not isinstance(option.kind, Number):
        value = line(value, name)
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if name in sidecar.KEYS:
        sidecar.check(name, value, _WHERE)
    try:
        option.parse(value)
    except QuestionError as e:
        raise InputError(f"{name!r} is not understood", where=_WHERE, expected=e.expected) from e
    return f"{option.flag}={value}"


def _tags(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InputError("tags is not understood", where=_WHERE, expected="an object of texts")
    tags: dict[str, str] = {}
    for key, value in given.items():
        name = line(key, TAGS)
        if name in tags:  # but for spaces around it
            raise InputError(f"tag {name[:40]!r} is given twice", where=_WHERE, expected="once")
        tags[name] = line(value, TAGS)
    sidecar.check(TAGS, tags, _WHERE)
    return tags
