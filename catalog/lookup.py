"""Finding an entry by any of its usual names, and saying what was probably meant when there is none."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from errors import QuestionError

SHOWN_CHARACTERS = 60  # of a name in an error; difflib also slows down on long ones


def key(name: str) -> str:
    """The form in which names are compared: lower case, without spaces and punctuation.

    A separator between two digits stays, as one dot, because it carries meaning there: `Qwen3-14B` is not
    `Qwen3.1-4B`, but `llama-3.1-8b` is `Llama 3.1 8B`.
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    text = re.sub(r"(?<=[0-9])[^a-z0-9]+(?=[0-9])", ".", text)
    return re.sub(r"(?<![0-9])\.|\.(?![0-9])|[^a-z0-9.]", "", text)


@dataclass(frozen=True, kw_only=True)
class Ambiguity:
    """A name that several entries could claim: which ones, and why it does not settle the question."""

    name: str
    may_be: tuple[str, ...]
    why: str


class Index:
    """Entry names by alias. Aliases match whole, never by prefix: `v5` is not `v5e`.

    Raises ValueError where one alias would lead to two entries: the data files are ours.
    """

    def __init__(self, kind: str, names: Mapping[str, Iterable[str]], ambiguities: Iterable[Ambiguity] = ()):
        self.kind = kind
        self.names = tuple(names)
        self.spelled: dict[str, str] = {}  # key -> the alias as it is usually written
        self._entry: dict[str, str] = {}
        self._ambiguity = {key(a.name): a for a in ambiguities}
        for entry, aliases in names.items():
            for alias in (entry, *aliases):
                k = key(alias)
                if not k:
                    raise ValueError(f"{entry}: the alias {alias!r} has no letter or digit")
                if self._entry.setdefault(k, entry) != entry:
                    raise ValueError(f"the alias {alias!r} leads to both {self._entry[k]} and {entry}")
                self.spelled.setdefault(k, alias)
        if both := sorted(set(self._ambiguity) & set(self._entry)):
            raise ValueError(f"both an alias and ambiguous: {', '.join(both)}")

    def get(self, name: object) -> str | None:
        """The entry called `name`, or None. Raises QuestionError where the name fits several."""
        k = key(name) if isinstance(name, str) else ""
        if found := self._ambiguity.get(k):
            raise QuestionError(
                f"{shown(name)} does not say which {self.kind} is meant: {found.why}",
                expected=" or ".join(found.may_be),
                advice=self.how_to_list(),
            )
        return self._entry.get(k)

    def find(self, name: object) -> str:
        """The entry called `name`. Raises QuestionError, with the nearest names, where there is none."""
        if entry := self.get(name):
            return entry
        near = " or ".join(self.nearest(name))
        raise QuestionError(
            f"no {self.kind} is called {shown(name)}",
            advice=f"Did you mean {near}? {self.how_to_list()}" if near else self.how_to_list(),
        )

    def nearest(self, name: object, count: int = 3) -> list[str]:
        """Up to `count` entries whose aliases look most like `name`, best first."""
        k = key(name)[:SHOWN_CHARACTERS] if isinstance(name, str) else ""
        close = get_close_matches(k, self._entry, n=4 * count, cutoff=0.6) if k else []
        return list(dict.fromkeys(self._entry[c] for c in close))[:count]

    def how_to_list(self) -> str:
        return f"`chipledger catalog {self.kind}s` lists them all"


def shown(name: object) -> str:
    """`name` as an error shows it: quoted, and cut where it is long."""
    text = repr(name)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
