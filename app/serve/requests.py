"""What a request holds: a small object of JSON, each name once."""

import json
from typing import Any

from starlette.requests import Request

from errors import InputError
from errors.nearest import did_you_mean

BODY_BYTES = 1 << 18  # of a JSON request: the longest note escaped, ten thousand runs by name; files go another way
DIGITS = 400  # of a whole number: more than any number that 64 bits hold, with or without a fraction


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a request. Raises InputError for a name that stands there twice: either value might be meant."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{name[:40]!r} is given twice", where="request", expected="once")
        found[name] = value
    return found


def _whole(text: str) -> int:
    """Raises InputError for a number that nothing could hold, before Python refuses it in words of its own."""
    if len(text) > DIGITS:
        raise InputError(f"a number of {len(text):,} digits", where="request", expected=f"at most {DIGITS}")
    return int(text)


async def json_object(request: Request, *, or_nothing: bool = False) -> dict[str, Any]:
    """The object of a request; empty where `or_nothing` comes. Raises InputError."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise InputError(f"a request of more than {BODY_BYTES:,} bytes", expected="a small JSON object")
    if or_nothing and not body:
        return {}
    try:
        asked = json.loads(body, object_pairs_hook=_each_once, parse_int=_whole)
    except (ValueError, RecursionError) as e:
        why = "nested too deeply" if isinstance(e, RecursionError) else e
        raise InputError(f"the request is no JSON ({why})") from e
    if not isinstance(asked, dict):
        raise InputError("the request is no JSON object")
    _whole_text(asked)
    return asked


def _whole_text(asked: dict[str, Any]) -> None:
    """Raises InputError for half of a surrogate pair: JSON can say one, and nothing that is kept or answered can."""
    try:
        json.dumps(asked, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        half = ord(e.object[e.start])
        raise InputError(f"half a character, U+{half:04X}", where="request", expected="whole characters") from e
    except RecursionError as e:
        raise InputError("the request is no JSON (nested too deeply)") from e


def only(asked: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """The same object. Raises InputError where it has a field that nothing reads."""
    for name in asked:
        if name not in known:
            advice = did_you_mean(name, known)
            raise InputError(f"no field {name[:40]!r} here", expected=f"one of {', '.join(known)}", advice=advice)
    return asked
