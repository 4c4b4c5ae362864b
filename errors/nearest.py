"""What was probably meant by a name that does not exist."""

import difflib
from collections.abc import Iterable

_COMPARED = 100  # characters: difflib slows down on long names
_CUTOFF = 0.6  # difflib's own: 1 is the same word, 0 has nothing in common


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Up to `count` known names that look most like this one, best first; upper and lower case count alike."""
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name[:_COMPARED].casefold(), name)
    near = difflib.get_close_matches(word[:_COMPARED].casefold(), folded, n=count, cutoff=_CUTOFF)
    return [folded[name] for name in near]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`Did you mean 'ledger'?`, or nothing where no known name looks like it."""
    near = nearest(word, known)
    return f"Did you mean {near[0]!r}?" if near else ""
