"""An answer cut to so many bytes of JSON: what is left out is told, and how to get it.

What is small stays whole. Of an object that is too large each value gets a like share, and what the smaller ones do not
need goes to the larger; of a list the first entries stay.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from errors import QuestionError

LEAST_SHARE = 32  # bytes that a value of an object gets: any number fits
MOST_NOTES = 12
NOTE_BYTES = 100  # of one of them, about
MOST_NAMED = 12  # parts that a refusal names
HOW = "Ask again with `part`, and `start` to go on in a long one, or with more `tokens`; links lead to all of it."

Note = dict[str, Any]


def text(value: Any) -> str:
    """As JSON without spaces. Raises ValueError for a number that is not finite: a defect."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def size(value: Any, most: int) -> int:
    """Bytes of its JSON; counting ends once there are more than `most`."""
    if isinstance(value, Mapping):
        total = 2
        for key, held in value.items():
            total += len(text(str(key)).encode()) + 2 + size(held, most - total)
            if total > most:
                break
        return total
    if isinstance(value, list | tuple):
        total = 2
        for held in value:
            total += 1 + size(held, most - total)
            if total > most:
                break
        return total
    return len(text(value).encode())


def part(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to. Raises QuestionError where it leads nowhere."""
    if pointer and not pointer.startswith("/"):
        raise QuestionError(f"part {pointer[:80]!r}", expected="a JSON pointer, such as /steps or /steps/0")
    before = ""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isascii() and key.isdigit() and int(key[:12]) < len(value):
            value = value[int(key[:12])]
        else:
            raise QuestionError(f"the answer has no part {pointer[:80]!r}", expected=_parts(value, before))
        before = _below(before, key)
    return value


def rest(value: Any, start: int) -> Any:
    """The entries of a list or an object from that number on. Raises QuestionError where there are not so many."""
    if not start:
        return value
    if not isinstance(value, Mapping | list | tuple) or start >= len(value):
        entries = len(value) if isinstance(value, Mapping | list | tuple) else 0
        raise QuestionError(f"start {start}, but that part has {entries:,} entries", expected="less than that, or none")
    return dict(list(value.items())[start:]) if isinstance(value, Mapping) else list(value[start:])


def fit(value: Any, most: int, at: str = "", start: int = 0) -> tuple[Any, list[Note]]:
    """The value in at most so many bytes, and a note on each part of which something was left out.

    `at`: its JSON pointer; `start`: how many of its entries stood before it.
    """
    if size(value, most) <= most:
        return value, []
    if isinstance(value, Mapping):
        shares = _shares(value, most)
        return _object(value, shares, at) if shares and not start else _first(value, most, at, start)
    if isinstance(value, list | tuple):
        return _first(value, most, at, start)
    return _shorter(value, most, at) if isinstance(value, str) else (None, [{"part": at}])


def _below(at: str, key: Any) -> str:
    return f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _parts(value: Any, at: str) -> str:
    """Which parts there are instead."""
    if isinstance(value, Mapping):
        names = [_below(at, key) for key in value]
        return f"one of {', '.join(names[:MOST_NAMED])}{' ...' if len(names) > MOST_NAMED else ''}"
    entries = len(value) if isinstance(value, list | tuple) else 0
    return f"{at}/0 to {at}/{entries - 1}" if entries else f"nothing below {at!r}"


def _shares(value: Mapping[str, Any], most: int) -> dict[str, int]:
    """Bytes for each value of an object, or nothing where there are too many for any to be told."""
    left = most - 2
    for key in value:
        left -= len(text(str(key)).encode()) + 2
        if left < LEAST_SHARE * len(value):
            return {}
    sizes = sorted((size(held, left), key) for key, held in value.items())
    shares: dict[str, int] = {}
    for i, (needed, key) in enumerate(sizes):
        shares[key] = min(needed, left // (len(sizes) - i))
        left -= shares[key]
    return shares


def _object(value: Mapping[str, Any], shares: Mapping[str, int], at: str) -> tuple[Any, list[Note]]:
    found: dict[str, Any] = {}
    notes: list[Note] = []
    for key, held in value.items():
        found[key], more = fit(held, shares[key], _below(at, key))
        notes += more
    return found, notes


def _first(value: Mapping[str, Any] | Sequence[Any], most: int, at: str, start: int) -> tuple[Any, list[Note]]:
    """The first entries of a list, or of an object of too many; where not even one fits, a part of it."""
    keyed = isinstance(value, Mapping)
    entries = list(value.items()) if isinstance(value, Mapping) else list(enumerate(value))
    kept: list[tuple[Any, Any]] = []
    notes: list[Note] = []
    left = most - 2
    for key, held in entries:
        ahead = len(text(str(key)).encode()) + 2 if keyed else 1
        needed = size(held, left) + ahead
        if needed <= left:
            kept.append((key, held))
            left -= needed
            continue
        if not kept and left - ahead >= LEAST_SHARE:
            told, notes = fit(held, left - ahead, _below(at, key if keyed else start))
            kept.append((key, told))
        break
    notes = [{"part": at, "from": start, "shown": len(kept), "of": start + len(entries)}, *notes]
    return (dict(kept) if keyed else [held for _, held in kept]), notes


def _shorter(value: str, most: int, at: str) -> tuple[str, list[Note]]:
    kept = value.encode()[: max(most - 5, 0)].decode(errors="ignore")
    while kept and len(text(kept).encode()) > most - 3:
        kept = kept[: len(kept) * 3 // 4]
    return f"{kept}…", [{"part": at, "shown_characters": len(kept), "of": len(value)}]
