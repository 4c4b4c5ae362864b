"""A request to record jobs that run, from the page or the API: only where whoever started the server allowed it.

A request names addresses as the server lists them. What is dialled is the operator's own record of that name: none of
the words of a request reaches a connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.capture import options as capturing
from app.capture.addresses import MOST, Address, among_allowed
from app.capture.options import DURATION, SERVER_MOST_S, SERVER_MOST_STEPS, STEPS, Asked
from app.capture.together import checked
from app.serve.ingesting import flag
from errors import InputError
from errors.numbers import Number
from errors.options import Option

ADDRESSES = "addresses"
LIMITED = {
    DURATION: replace(DURATION, kind=Number(0.05, SERVER_MOST_S)),
    STEPS: replace(STEPS, kind=Number(1, SERVER_MOST_STEPS, whole=True)),
}
REQUEST: tuple[Option, ...] = tuple(LIMITED.get(o, o) for o in capturing.OPTIONS if not o.local)
_OPTIONS = {o.name: o for o in REQUEST}


def capture_arguments(given: Mapping[str, Any], known: Sequence[Address]) -> list[str]:
    """The command's arguments from the fields of a request; null and "" count as not given. Raises InputError and
    QuestionError for fields that are not understood and what cannot be captured."""
    for name in given:
        if name != ADDRESSES and name not in _OPTIONS:
            allowed = ", ".join((ADDRESSES, *_OPTIONS))
            raise InputError(f"no field {str(name)[:40]!r} here", expected=f"one of {allowed}")
    where = _where(given.get(ADDRESSES), known)
    said = {name: given[name] for name in _OPTIONS if given.get(name) not in (None, "")}
    words = [flag(_OPTIONS[name], value) for name, value in said.items()]
    lasts = {name: _OPTIONS[name].parse(said[name]) for name in ("duration_s", "steps") if name in said}
    checked(Asked(**lasts), where)
    return [*filter(None, words), "--", *map(str, where)]


def _where(given: Any, known: Sequence[Address]) -> tuple[Address, ...]:
    if not isinstance(given, list) or not 0 < len(given) <= MOST or not all(isinstance(g, str) for g in given):
        raise InputError(
            f"{ADDRESSES!r} is not understood", where="request", expected="a list of those at GET /api/capture"
        )
    return among_allowed(given, known)
