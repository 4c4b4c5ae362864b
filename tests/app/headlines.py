"""What holds of every verdict, whatever it is of: it takes two lines, and its sentences read as sentences."""

import re
from collections.abc import Collection

from app.words import MOST, Verdict

_WORD = re.compile(r"[a-z]+[,:;]?$")  # of a plain word: names hold a digit, a dot or a stroke
NEVER = ("what Python writes for nothing", "an exponent", "a zero below zero", "a key in place of words")
_WRONG = {
    "what Python writes for nothing": re.compile(r"\bNone\b(?! of)|\bnan\b|\binf\b"),
    "an exponent": re.compile(r"(?<![\w.])\d+(\.\d+)?e[-+]?\d+\b"),
    "a zero below zero": re.compile(r"(?<![\w.)])[-−]0(\.0+)?(?![\d.\w])"),
    "a key in place of words": re.compile(r"\w_per_s\b"),
    "digits that are not parted": re.compile(r"(?<![\w.,:/#@-])\d{5,}(?![\w-])"),
    "an empty place": re.compile(r"  | [.,;:](?!\w)|(?<!\.)\.\.(?!\.)"),
}


def faults(verdict: str, names: Collection[str] = ()) -> list[str]:
    """What is wrong with a verdict and with what follows it; empty where nothing is. `names`: words that a sentence may
    begin with as they are, of operations and modules."""
    said = verdict.said if isinstance(verdict, Verdict) else (verdict,)
    rest = verdict.rest if isinstance(verdict, Verdict) else ()
    found = [f"{len(verdict)} characters"] if len(verdict) > MOST else []
    for text in (*said, *rest):
        found += [f"{what}: {text!r}" for what in amiss(text, names)]
    return found


def unread(cell: str) -> list[str]:
    """What nobody reads in a cell of a table, or in any text that a page draws."""
    return [what for what in NEVER if _WRONG[what].search(cell)]


def jumbled(note: str) -> list[str]:
    """What nobody reads in a note; it may name options as they are written."""
    return [what for what in (*NEVER[:3], "digits that are not parted") if _WRONG[what].search(note)]


def amiss(text: str, names: Collection[str] = ()) -> list[str]:
    """What is wrong with one sentence."""
    found = [what for what, pattern in _WRONG.items() if pattern.search(text)]
    first = text.split(" ", 1)[0]
    if _WORD.match(first) and first not in names:
        found.append("begins small")
    if not text.endswith("."):
        found.append("no full stop")
    return found
