"""Bookmarks and comments on a run's timeline, in the registry beside its notes, with which they go.

`place`: where one stands, as `app/timeline/marks.py` writes and reads it; a text here.
"""

import time
import unicodedata
from dataclasses import dataclass

from errors import InputError, QuestionError
from runs.database import Database
from runs.registry import owner_of
from runs.registry_schema import REGISTRY_SCHEMA

MOST, MOST_TEXT, MOST_PLACE = 500, 2_000, 20_000  # of a run; characters
_NUMBERS = 1 << 63


@dataclass(frozen=True, kw_only=True)
class Mark:
    """`text`: empty for a bookmark; `who`: empty where it was not told."""

    id: int
    text: str
    who: str
    written_ns: int
    place: str


class TimelineBook(Database):
    """Safe for several processes: each change is one transaction."""

    SCHEMA = REGISTRY_SCHEMA

    def marks(self, run_id: str) -> list[Mark]:
        """In the order in which they were written."""
        with self._connect() as db:
            rows = db.execute(
                "select id, text, who, written_ns, place from timeline_marks where run_id = ? order by id",
                (owner_of(db, run_id),),
            )
            return [Mark(id=i, text=text, who=who, written_ns=at, place=place) for i, text, who, at, place in rows]

    def add(self, run_id: str, text: str, place: str, who: str = "") -> int:
        """Returns its number."""
        said = mark_text(text)
        if len(place) > MOST_PLACE:
            raise InputError("a mark on too many rows", expected="fewer rows")
        with self._connect() as db:
            db.execute("begin immediate")
            owner = owner_of(db, run_id)
            if db.execute("select count(*) from timeline_marks where run_id = ?", (owner,)).fetchone()[0] >= MOST:
                raise QuestionError(f"{MOST} marks are kept on this timeline already", advice="Delete one first.")
            added = db.execute(
                "insert into timeline_marks (run_id, text, who, written_ns, place) values (?, ?, ?, ?, ?) returning id",
                (owner, said, who, time.time_ns(), place),
            )
            return int(added.fetchone()[0])

    def delete(self, run_id: str, number: int) -> None:
        """Raises QuestionError where the run has none of that number."""
        with self._connect() as db:
            known = (
                -_NUMBERS <= number < _NUMBERS
                and db.execute(
                    "delete from timeline_marks where id = ? and run_id = ?", (number, owner_of(db, run_id))
                ).rowcount
            )
        if not known:
            raise QuestionError(f"this timeline has no mark {str(number)[:20]}", expected="the number of one it has")


def mark_text(text: str) -> str:
    """As it is kept. Raises InputError for one that is too long or no text."""
    said = text.strip()
    if len(said) > MOST_TEXT:
        raise InputError(f"a comment of {len(said):,} characters", expected=f"at most {MOST_TEXT:,}")
    if "\0" in said or any(unicodedata.category(c) == "Cs" for c in said):
        raise InputError("a comment that is no text", expected="characters without NUL")
    return said
