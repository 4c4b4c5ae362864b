"""How an answer is put into words: what each module of this folder has.

NAME             the question's name, as its analyzer has it
verdict(result)  one plain statement with the number, the largest loss and what it is worth: the head of its page
table(result)    the rows that `chipledger show` prints below it
"""

from dataclasses import dataclass
from typing import Any, Protocol

UNNAMED = "configured model"  # what the catalogue calls a configuration that carries no name


def model_name(name: str) -> str:
    """A model's name within a sentence; of one that a run describes by its dimensions without a name, whose it is."""
    return "the run's model" if name == UNNAMED else name


def sentence(text: str) -> str:
    """The text as a sentence begins: `more than 99 %` becomes `More than 99 %`."""
    return text[:1].upper() + text[1:]


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
