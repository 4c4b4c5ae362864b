"""Where in a model an operation belongs, as `ops.scope` spells it: names from the outermost in, joined by `/`."""

from collections.abc import Iterable

MOST_LEVELS = 64  # what lies deeper counts to the last of them
MOST_LETTERS = 200  # of one name
_SLASH, _WRITTEN = "/", "%2F"  # a slash within a name is none between names


def path_of(names: Iterable[str]) -> str | None:
    """A path of names; None where there are none."""
    kept = [name.replace(_SLASH, _WRITTEN)[:MOST_LETTERS] for name in names if name]
    return _SLASH.join(kept[:MOST_LEVELS]) or None


def names_of(path: str) -> list[str]:
    """The names of a path, as they were before they were joined."""
    return [name.replace(_WRITTEN, _SLASH) for name in path.split(_SLASH)[:MOST_LEVELS] if name]
