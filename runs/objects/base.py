"""What a store asks of the place where its objects lie, and how a place says what is wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

COMING, CLOCK = ".coming", "clock"  # below these lies what has no name of an object yet, and what tells the time
PIECE_BYTES = 8 << 20  # of an object that is fetched: so much is asked for anew where the network stops


class MissingError(Exception):
    """No object has this key."""


class DifferentError(Exception):
    """An object is not what was written: `reason` says in which way."""

    def __init__(self, reason: str):
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Entry:
    """An object in a listing. `modified_s`: when it was written by the clock of the place, in seconds since the
    epoch."""

    key: str
    bytes: int
    modified_s: float


class Objects(Protocol):
    """Objects by key below one address. A key is plain: parts joined by `/`, none of them empty or `..`.

    Each raises MissingError where there is no such object, and InputError in one sentence where the place cannot be
    asked; none says "not there" of a place that is gone.
    """

    @property
    def url(self) -> str:
        """The address, without anything secret in it."""
        ...

    def read(self, key: str, first: int = 0, end: int | None = None) -> bytes:
        """The bytes from `first` up to, and without, `end`."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Write an object unless one has the key, whoever else does so at this moment: of several one is told True,
        and all others False. It is whole or not there."""
        ...

    def put(self, key: str, path: Path) -> None:
        """Write a file as an object. Nobody else writes one of this key, and nobody reads it before it is told of."""
        ...

    def copy(self, key: str, to: str) -> None:
        """Write an object that lies here under another key too, without its bytes coming here. As `put`."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Take objects away; those that are not there are passed over."""
        ...

    def entries(self, below: str) -> Iterator[Entry]:
        """All objects whose keys begin with `below` and a slash, in no particular order."""
        ...
