"""chipledger.json: what the files themselves cannot say, written by a person and put beside them.

    {"name": "tuned", "chip": "v5e", "chips": 256, "model": "llama2-7b", "usd_per_chip_hour": 1.2}

All of it is declared: it wins over what a log says, and loses to an option on the command line.
"""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.textlog import clean
from errors import InputError
from errors.numbers import CHIPS
from runs.naming import ELSEWHERE, elsewhere
from runs.run import KINDS
from runs.shelf import clean_name

NAME = "sidecar"
TITLE = "chipledger.json"
HELP = "chipledger.json beside the other files: chip, number of chips, model, price and other things that no log says."

FILE_NAME = "chipledger.json"
_LIMIT = 1 << 20  # bytes; a page of facts, not a data file
_TEXT_LIMIT = 10_000  # characters


def _text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _TEXT_LIMIT


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30 and isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and CHIPS.low <= value <= CHIPS.high


def _named(value: Any, allowed: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(_text(k) and allowed(v) for k, v in value.items())


_Check = tuple[str, Callable[[Any], bool]]
KEYS: dict[str, _Check] = {
    "name": (
        f"text that does not begin with {' or '.join(ELSEWHERE)}",
        lambda v: _text(v) and not elsewhere(v.strip()),
    ),
    "kind": (f"one of {', '.join(KINDS)}", lambda v: isinstance(v, str) and v in KINDS),
    "chip": ('text, such as "v5e"', _text),
    "chips": ("a whole number of chips, 1 or more", _count),
    "model": (
        "a model's name, or an object of its dimensions",
        lambda v: _text(v) or (_named(v, lambda d: _number(d) or _text(d) or isinstance(d, bool)) and bool(v)),
    ),
    "precision": ('text, such as "bf16"', _text),
    "topology": ('text, such as "4x4x8"', _text),
    "parallelism": (
        'text, or an object of axes and sizes such as {"data": 4, "model": 4}',
        lambda v: _text(v) or _named(v, _count),
    ),
    "usd_per_chip_hour": ("a number of US dollars, 0 or more", lambda v: _number(v) and v >= 0),
    "peak_flops_per_s": ("a number of FLOP/s of one chip, above 0", lambda v: _number(v) and v > 0),
    "peak_basis": ("text: where that peak comes from", _text),
    "simulated": ("true or false", lambda v: isinstance(v, bool)),
    "note": ("text", _text),
    "tags": (
        "an object of text by text, with names without =",
        lambda v: _named(v, _text) and not any("=" in name for name in v),
    ),
}


def sniff(source: Source) -> float:
    return 1.0 if source.name.replace("\\", "/").rpartition("/")[2] == FILE_NAME else 0.0


def read(source: Source) -> Iterator[Item]:
    """One declared fact a key. Raises InputError for anything but an object of known keys with values of their type."""
    with source.open() as f:
        raw = f.read(_LIMIT + 1)
    if len(raw) > _LIMIT:
        raise InputError(f"longer than {_LIMIT:,} bytes", where=source.name, expected="a few facts as JSON")
    try:
        facts = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once)
    except InputError as e:
        raise InputError(e.what, where=source.name, advice=e.advice) from e
    except (ValueError, RecursionError) as e:
        raise InputError(f"not JSON ({e})", where=source.name, expected='an object such as {"chip": "v5e"}') from e
    if not isinstance(facts, dict):
        raise InputError("not a JSON object", where=source.name, expected='an object such as {"chip": "v5e"}')
    for key, value in facts.items():
        check(key, value, source.name)
    for key, value in facts.items():
        if value is not None:
            kept = run_name(value, source.name) if key == "name" else _clean(value)
            yield Fact(key, kept, basis="declared")


def run_name(text: str, where: str) -> str:
    """A run's name as it is kept, by the rule that renaming it goes by. Raises InputError."""
    try:
        return clean_name(text)
    except InputError as e:
        raise InputError(e.what, where=where, expected=e.expected) from e


def check(key: str, value: Any, where: str) -> None:
    """Raises InputError, with advice where a spelling is near, for a key that is unknown or a value not of its type.

    None is of every type: written down as not known.
    """
    if key not in KEYS:
        raise InputError(
            f"unknown key {key[:100]!r}", where=where, expected=f"one of {', '.join(KEYS)}", advice=_nearest(key, KEYS)
        )
    expected, allowed = KEYS[key]
    if value is not None and not allowed(value):
        shown = {dict: "an object", list: "a list"}.get(type(value)) or repr(value)[:100]
        advice = _nearest(value, KINDS) if key == "kind" and isinstance(value, str) else ""
        raise InputError(f"{key} is {shown}", where=where, expected=expected, advice=advice)
    if key == "name" and value is not None:
        run_name(value, where)


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word[:100], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        twice = Counter(k for k, _ in pairs).most_common(1)[0][0]
        raise InputError(f"the key {twice[:100]!r} stands there twice", advice="Keep one of them.")
    return seen


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    return {clean(k): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value
