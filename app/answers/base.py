"""How an answer is put into words: what each module of this folder has.

    NAME             the question's name, as its analyzer has it
    verdict(result)  one plain statement with the number, the largest loss and what it is worth: the head of its page
    table(result)    the rows that `chipledger show` prints below it
"""

from dataclasses import dataclass
from typing import Any, Protocol


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
