"""Reports that are one JSON or YAML document: read whole within a limit, and looked into without trusting their shape.

YAML is read with the safe loader's plain types only. Aliases are refused: a report has none, and a few lines of them
can stand for gigabytes. Times stay text.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

import numpy as np

from collectors.base import Source
from collectors.reading.textlog import Tally, clean
from collectors.serving.serving_rows import number, statistic
from errors import InputError

JSON_LIMIT = 256 << 20  # bytes; a report with every prompt and answer in it
YAML_LIMIT = 16 << 20
_DEPTH_LIMIT = 100
_DIGITS = 400  # of a whole number in YAML that no float holds
_TIMES = ("ttft", "tpot", "itl", "e2e", "queue", "prefill", "decode", "normalized_tpot")
_BOM = b"\xef\xbb\xbf"
_BRACKETS = re.compile(rb"\s*[\[{]")


def document(
    source: Source,
    what: str,
    *,
    hook: Callable[[dict], Any] | None = None,
    constant: Callable[[str], Any] = lambda _: None,
) -> Any:
    """The one document that a file holds. `what`: what it should be, for messages. `hook`: applied to each JSON object
    when it is complete, innermost first, so that what is not needed does not stay in memory. `constant`: what NaN and
    Infinity, which are no JSON, stand for.

    Raises InputError where it is neither JSON nor YAML, not complete, or too large.
    """
    with source.open() as f:
        raw = f.read(JSON_LIMIT + 1).removeprefix(_BOM)
    if len(raw) > JSON_LIMIT:
        raise InputError(
            f"longer than {JSON_LIMIT:,} bytes",
            where=source.name,
            expected=what,
            advice="Write the report without the text of prompts and answers.",
        )
    if _BRACKETS.match(raw):
        return _json(raw, source, what, hook, constant)
    return _yaml(raw, source, what)


def _json(
    raw: bytes, source: Source, what: str, hook: Callable[[dict], Any] | None, constant: Callable[[str], Any]
) -> Any:
    try:
        return json.loads(raw.decode("utf-8", "replace"), object_hook=hook, parse_constant=constant)
    except json.JSONDecodeError as e:
        cut = "it ends in the middle" if not e.doc[e.pos :].strip() or "Unterminated" in e.msg else f"not JSON ({e})"
        raise InputError(cut, where=source.name, expected=what, advice="Was it written to its end?") from e
    except (ValueError, RecursionError) as e:
        raise InputError(f"not JSON ({type(e).__name__}: {str(e)[:100]})", where=source.name, expected=what) from e


def _yaml(raw: bytes, source: Source, what: str) -> Any:
    import yaml

    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

        def whole(self, node: yaml.ScalarNode) -> float:
            """Numbers to the base of 60 (1:30:00) are made in the square of the time that their digits take."""
            return self.construct_yaml_int(node) if len(node.value) < _DIGITS else inf

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.whole)
    if len(raw) > YAML_LIMIT:
        raise InputError(f"longer than {YAML_LIMIT:,} bytes of YAML", where=source.name, expected=what)
    try:
        depth = 0
        for event in yaml.parse(raw, Loader=Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEPTH_LIMIT:
                shape = "an alias" if isinstance(event, yaml.AliasEvent) else f"more than {_DEPTH_LIMIT} levels"
                raise InputError(f"YAML with {shape}", where=source.name, expected=what)
        return yaml.load(raw, Loader=Loader)  # noqa: S506 - the safe loader, with fewer types
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError) as e:
        raise InputError(f"not YAML ({' '.join(str(e).split())[:160]})", where=source.name, expected=what) from e


def begins(source: Source) -> str:
    """The bracket that a file of JSON begins with, after white space; nothing where it begins with none."""
    match = _BRACKETS.match(source.head.removeprefix(_BOM))
    return match[0][-1:].decode() if match else ""


def part(value: Any, *path: str | int) -> Any:
    """What lies at a path of keys and positions; None as soon as there is no such part."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def text(value: Any, most: int = 200) -> str | None:
    """Text that is not blank, cut to `most` characters, as UTF-8 can hold it; None for anything else."""
    return clean(value.strip()[:most]) or None if isinstance(value, str) else None


def scaled(value: Any, scale: float) -> float | None:
    """A number times `scale`, with the digits that were written: 12.34 ms at 1e-3 is 0.01234."""
    found = number(value)
    return None if found is None else found if scale == 1 else float(f"{found * scale:.15g}")


def whole_ns(values: Any, seconds: float = 1.0) -> np.ndarray | None:
    """A list of finite numbers, each so many `seconds`, as whole ns; None for anything else, an empty list included."""
    if not isinstance(values, list) or not values or not {*map(type, values)} <= {int, float}:
        return None
    try:
        ns = np.array(values, dtype=float) * (seconds * 1e9)
    except OverflowError:
        return None
    return np.rint(ns).astype(np.int64) if bool((np.abs(ns) < 9e18).all()) else None


def distribution(
    metric: str, found: Any, tally: Tally, *, scale: float = 1.0, names: Mapping[str, str] | None = None
) -> dict[tuple[str, str], float]:
    """What a tool summed up of one metric, for `stage_stats`: {(metric, statistic): value times `scale`}.

    `found`: {name of a statistic: number}; anything else (null where nothing was measured) gives nothing. `names`:
    the tool's own names of statistics, before the usual ones. A time below zero is named and left out; where the mean
    or the largest is not above zero, nothing was measured, and all of it is.
    """
    if not isinstance(found, dict):
        return {}
    stats = {}
    for word, raw in found.items():
        which = (names or {}).get(word) or (statistic(word) if isinstance(word, str) else None)
        value = scaled(raw, scale)
        if which is not None and value is not None:
            stats.setdefault((metric, which), value)
    if metric in _TIMES:
        # A median of 0 may well be: tokens that come in one piece have no time between them.
        whole = [value for (_, which), value in stats.items() if which in ("mean", "max")] or [*stats.values()]
        if whole and max(whole) <= 0:
            tally.add(f"statistics of {metric}", "printed as 0 or less: no such time was measured", count=len(stats))
            return {}
        below = [key for key, value in stats.items() if value < 0 and key[1] != "std"]
        if below:
            tally.add(f"statistics of {metric}", "a time below zero", count=len(below))
        stats = {key: value for key, value in stats.items() if key not in below}
    return stats


def merged(parts: Iterable[Mapping[tuple[str, str], float]]) -> dict[tuple[str, str], float]:
    """Statistics of several metrics as one mapping; where one is told twice the first counts."""
    together: dict[tuple[str, str], float] = {}
    for each in parts:
        for key, value in each.items():
            together.setdefault(key, value)
    return together
