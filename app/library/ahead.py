"""What the first search and the first sort of a process would wait for, worked out before somebody asks. Lists are
answered meanwhile: what was worked out is taken over where its texts are the same by then.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from app.library.coded import Coded, Ranked
from app.library.index import Index, tags_key, text_key
from app.library.joined import Joined
from app.library.search import IN_WORDS, tag_words, text_of

MANY = 10_000  # texts that differ: of fewer nobody waits


def work_ahead(index: Index, held: AbstractContextManager[Any]) -> None:
    """`held`: within it nothing of the index changes, and everybody else waits."""
    for name, of, made in _asked():
        with held:
            text: Coded = index.texts[name]
            values = list(text.values)
        if len(values) > MANY:
            made.prepare(told := [of(value) for value in values])
            with held:
                text.keep(of, values, told, made)
    with held:
        ids = index.folded_ids()
    if len(ids) > MANY:
        (together := Joined()).prepare(ids)
        with held:
            index.keep_joined(ids, together)


def _asked() -> Iterator[tuple[str, Callable[[Any], Any], Ranked | Joined]]:
    """(column, what is made of each of its values, what is made of all)"""
    for name in (*IN_WORDS, "largest_loss"):
        yield name, text_key, Ranked()
        yield name, text_of, Joined()
    yield "tags", tags_key, Ranked()
    yield "tags", tag_words, Joined()
