"""How an answer is put into words: what each module of this folder has.

NAME             the question's name, as its analyzer has it
verdict(result)  one plain statement with the number, the largest loss and what it is worth: the head of its page.
                 It takes two lines at most (`headline`)
table(result)    the rows that `chipledger show` prints below it
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

MOST = 220  # characters of a verdict: two lines of a page of usual width
NAME = 40  # characters of a name within a sentence; whole names stand in tables
CUT = "…"
UNNAMED = "configured model"  # what the catalogue calls a configuration that carries no name


def model_name(name: str) -> str:
    """A model's name within a sentence; of one that a run describes by its dimensions without a name, whose it is."""
    return "the run's model" if name == UNNAMED else name


def sentence(text: str) -> str:
    """The text as a sentence begins: `more than 99 %` becomes `More than 99 %`."""
    return text[:1].upper() + text[1:]


def short(name: object, most: int = NAME) -> str:
    """A name within a sentence: one that is longer is cut in the middle, since names differ at both ends."""
    text = str(name)
    if len(text) <= most:
        return text
    begin = (most - len(CUT) + 1) // 2
    return f"{text[:begin]}{CUT}{text[len(text) - (most - len(CUT) - begin) :]}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class Verdict(str):
    """The sentences of a verdict that fit its two lines, as one text.

    said   these sentences
    rest   those that follow: a page tells them below its pictures, a terminal on the next line
    """

    said: tuple[str, ...]
    rest: tuple[str, ...]

    def __new__(cls, said: Sequence[str], rest: Sequence[str] = ()) -> Self:
        made = super().__new__(cls, " ".join(said))
        made.said, made.rest = tuple(said), tuple(rest)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """A copy is made of the sentences, not of the text."""
        return self.said, self.rest

    @property
    def whole(self) -> str:
        """All that is said, the rest too."""
        return " ".join((*self.said, *self.rest))


def headline(*sentences: str) -> Verdict:
    """A verdict of sentences, the most important first: as many of them as fit. Empty ones are none."""
    texts = [text.strip() for text in sentences if text.strip()]
    room, fit = MOST, 0
    while fit < len(texts) and (room := room - len(texts[fit]) - (fit > 0)) >= 0:
        fit += 1
    if texts and not fit:  # a sentence of names without end: its middle is told with the rest
        return Verdict([short(texts[0], MOST)], texts)
    return Verdict(texts[:fit], texts[fit:])


def rest_of(verdict: str) -> tuple[str, ...]:
    """What a verdict has no room for; of a plain text nothing."""
    return verdict.rest if isinstance(verdict, Verdict) else ()


@dataclass(frozen=True)
class Table:
    """Rows of text for a terminal; `right`: columns that are aligned to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


class Answer(Protocol):
    NAME: str

    def verdict(self, result: Any) -> str: ...

    def table(self, result: Any) -> Table: ...
