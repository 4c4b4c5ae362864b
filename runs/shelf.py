"""The shelf: how a team keeps its runs in order. Stars, archive, groups, notes, renames, searches that are kept, and
who put a run into the bin; in the registry, beside the runs, which never change.

Where a run lies, in `runs/` or in the bin, the store's folders say and nothing here: what is noted of it may lack.
"""

import json
import time
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import InputError, QuestionError
from runs.database import Database, put
from runs.registry import MAX_TEXT, about, owner_of, short_key
from runs.registry_schema import OF_A_RUN, REGISTRY_SCHEMA

NAME_LENGTH, GROUP_LENGTH, QUERY_LENGTH = 200, 100, 2000  # characters
MOST_SEARCHES = 500
_MARK = put("note_marks", "id", "who, edited_ns")
_JOINERS = "\u200c\u200d"  # invisible, but part of how words and pictures are written


@dataclass(frozen=True)
class Place:
    """Where a run stands: `project` and `experiment` are empty where it is in none."""

    starred: bool = False
    archived: bool = False
    project: str = ""
    experiment: str = ""


@dataclass(frozen=True, kw_only=True)
class Note:
    """What somebody wrote of a run, in Markdown as it was typed. `edited_ns`: None where it was never changed."""

    id: int
    text: str
    who: str
    written_ns: int
    edited_ns: int | None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Rename:
    """`name`: None where it was given back the one that it was stored with."""

    name: str | None
    who: str
    written_ns: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search that is kept: what was searched for, which columns were shown, and by which they were sorted."""

    name: str
    query: str
    columns: tuple[str, ...] = ()
    sort: str = ""
    who: str = ""
    written_ns: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "columns": list(self.columns)}


def clean_name(text: str, what: str = "name", most: int = NAME_LENGTH) -> str:
    """A name as it is kept: composed (NFC), without space around it and with one space where there were several.

    Raises InputError where nothing is left, where it is too long, and for characters that nobody sees and that make
    two names look alike or one look like another: control characters and marks that turn the direction of writing.
    """
    hidden = next((c for c in text if _hidden(c)), None)
    if hidden is not None:
        raise InputError(f"a {what} with the invisible character U+{ord(hidden):04X}", expected="characters that show")
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not 1 <= len(name) <= most:
        raise InputError(f"a {what} of {len(name):,} characters", expected=f"1 to {most:,}")
    return name


def _hidden(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cf", "Cs") and not character.isspace() and character not in _JOINERS


def clean_group(text: str) -> tuple[str, str]:
    """(project, experiment) from `project/experiment`, `project`, or nothing. Raises InputError for another form."""
    project, slash, experiment = (part.strip() for part in text.partition("/"))
    if "/" in experiment:
        raise InputError(f"group {text[:80]!r} has more than two levels", expected="project/experiment, or project")
    if slash and not (project and experiment):
        raise InputError(f"group {text[:80]!r} lacks a level", expected="project/experiment, or project")
    named = [
        clean_name(p, what, GROUP_LENGTH) if p else "" for p, what in ((project, "project"), (experiment, "experiment"))
    ]
    return named[0], named[1]


class Shelf(Database):
    """Safe for several processes: each change is one transaction, of all the runs that it is about or of none."""

    SCHEMA = REGISTRY_SCHEMA

    def state(self) -> tuple[int, int]:
        """What tells that anything changed which a list of runs shows: the registry, and how often it did."""
        with self._connect() as db:
            count = int(db.execute("select coalesce(max(count), 0) from changes").fetchone()[0])
            return self._which(db), count

    def touched(self, since: int) -> tuple[int, set[str]]:
        """(the number of the last change of a run's additions, the runs that were changed after that of `since`)."""
        with self._connect() as db:
            rows = db.execute("select id, run_id from touched where id > ?", (since,)).fetchall()
        return max((number for number, _ in rows), default=since), {run_id for _, run_id in rows}

    def notes_touched(self) -> bool:
        """Whether it is noted which runs are touched: not in a file that an earlier version made and that cannot be
        written now."""
        if not isinstance(self.at, Path):
            return True
        with self._connect() as db:
            found = "select count(*) from sqlite_master where type = 'trigger' and name = 'shelved_update_touches'"
            return bool(db.execute(found).fetchone()[0])

    def last_touched(self) -> int:
        with self._connect() as db:
            return int(db.execute("select coalesce(max(id), 0) from touched").fetchone()[0])

    def places(self, owners: Collection[str] | None = None) -> dict[str, Place]:
        """Where runs stand, or some of them, by whose additions they are; a run of which nothing was said is not among
        them."""
        with self._connect() as db:
            rows = about(db, "select run_id, starred, archived, project, experiment from shelved{}", owners)
            return {run_id: Place(bool(s), bool(a), project, experiment) for run_id, s, a, project, experiment in rows}

    def place(self, run_id: str) -> Place:
        with self._connect() as db:
            asked = "select starred, archived, project, experiment from shelved where run_id = ?"
            row = db.execute(asked, (owner_of(db, run_id),)).fetchone()
        return Place(bool(row[0]), bool(row[1]), row[2], row[3]) if row else Place()

    def star(self, run_ids: Iterable[str], on: bool = True) -> None:
        self._set(run_ids, starred=int(on))

    def archive(self, run_ids: Iterable[str], on: bool = True) -> None:
        self._set(run_ids, archived=int(on))

    def group(self, run_ids: Iterable[str], project: str, experiment: str = "") -> None:
        """Put runs into a group; two empty names take them out of theirs. Raises InputError for an experiment of no
        project."""
        if experiment and not project:
            raise InputError(f"experiment {experiment[:80]!r} is of no project", expected="project/experiment")
        self._set(run_ids, project=project, experiment=experiment)

    def _set(self, run_ids: Iterable[str], **columns: int | str) -> None:
        names, given = ", ".join(columns), tuple(columns.values())
        asked = (
            f"insert into shelved (run_id, {names}) values (?{', ?' * len(given)}) on conflict (run_id) do update set "
        )
        asked += ", ".join(f"{name} = excluded.{name}" for name in columns)
        with self._connect() as db:
            for run_id in run_ids:
                db.execute(asked, (owner_of(db, run_id), *given))

    def notes(self, run_id: str) -> list[Note]:
        """The notes of a run, the oldest first."""
        with self._connect() as db:
            rows = db.execute(
                "select n.id, n.text, coalesce(m.who, ''), n.written_ns, m.edited_ns from notes n "
                "left join note_marks m on m.id = n.id where n.run_id = ? order by n.id",
                (owner_of(db, run_id),),
            )
            return [Note(id=i, text=t, who=w, written_ns=at, edited_ns=e) for i, t, w, at, e in rows]

    def add_note(self, run_id: str, text: str, who: str = "") -> int:
        """Returns its number."""
        with self._connect() as db:
            row = (owner_of(db, run_id), time.time_ns(), note_text(text))
            added = "insert into notes (run_id, written_ns, text) values (?, ?, ?) returning id"
            number = int(db.execute(added, row).fetchone()[0])
            db.execute(_MARK, (number, who, None))
        return number

    def edit_note(self, run_id: str, number: int, text: str, who: str = "", was: str | None = None) -> None:
        """`was`: its text as whoever asks has seen it, given where nobody else's may be lost."""
        with self._connect() as db:
            db.execute("begin immediate")
            before = _note(db, owner_of(db, run_id), number)
            if was is not None and was != before:
                raise QuestionError(
                    f"note {number} was edited by another meanwhile; nothing was changed",
                    advice="Look at it again, then edit it.",
                )
            db.execute("update notes set text = ? where id = ?", (note_text(text), number))
            mark = db.execute("select who from note_marks where id = ?", (number,)).fetchone()
            row = (number, who or (mark[0] if mark else ""), time.time_ns())
            db.execute(_MARK, row)

    def delete_note(self, run_id: str, number: int) -> None:
        with self._connect() as db:
            db.execute("begin immediate")
            _note(db, owner_of(db, run_id), number)
            db.execute("delete from notes where id = ?", (number,))
            db.execute("delete from note_marks where id = ?", (number,))

    def renames(self, run_id: str) -> list[Rename]:
        """What a run was called by people, the oldest first."""
        with self._connect() as db:
            asked = "select name, who, written_ns from renames where run_id = ? order by id"
            rows = db.execute(asked, (owner_of(db, run_id),)).fetchall()
        return [Rename(name=name, who=who, written_ns=at) for name, who, at in rows]

    def tag(self, run_ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Set tags of runs, all or none; None takes one away that people set."""
        for key in tags:
            short_key(key, "tag key")
        with self._connect() as db:
            for owner in [owner_of(db, run_id) for run_id in run_ids]:
                for key, value in tags.items():
                    if value is None:
                        db.execute("delete from tags where run_id = ? and key = ?", (owner, key))
                    else:
                        db.execute(put("tags", "run_id, key", "value"), (owner, key, value))

    def searches(self) -> list[Search]:
        with self._connect() as db:
            rows = db.execute(
                "select name, query, columns, sort, who, written_ns from searches order by name"
            ).fetchall()
        return [
            Search(name=n, query=q, columns=tuple(json.loads(c)), sort=s, who=w, written_ns=at)
            for n, q, c, s, w, at in rows
        ]

    def save_search(self, search: Search) -> None:
        """Keep a search under its name, in the place of one of that name."""
        row = (search.name, search.query, json.dumps(search.columns), search.sort, search.who, time.time_ns())
        with self._connect() as db:
            db.execute("begin immediate")
            if (
                db.execute("select count(*) from searches where name != ?", (search.name,)).fetchone()[0]
                >= MOST_SEARCHES
            ):
                raise InputError(f"{MOST_SEARCHES} searches are kept already", advice="Delete one first.")
            db.execute(put("searches", "name", "query, columns, sort, who, written_ns"), row)

    def delete_search(self, name: str) -> None:
        """Raises QuestionError where none of that name is kept."""
        with self._connect() as db:
            if not db.execute("delete from searches where name = ?", (name,)).rowcount:
                raise QuestionError(f"no search {name[:80]!r} is kept", advice="`chipledger searches` lists them.")

    def note_binned(self, run_id: str, name: str, who: str) -> None:
        """Note who put a run into the bin."""
        with self._connect() as db:
            row = (run_id, name, who, time.time_ns())
            db.execute(put("binned", "run_id", "name, who, binned_ns"), row)

    def who_binned(self) -> dict[str, str]:
        """Who put runs into the bin, by run, as far as noted."""
        with self._connect() as db:
            return dict(db.execute("select run_id, who from binned"))

    def when_binned(self) -> dict[str, int]:
        """When runs were put into the bin, or deleted, as far as noted; those that came back may be among them."""
        with self._connect() as db:
            return dict(db.execute("select run_id, binned_ns from binned"))

    def note_restored(self, run_ids: Iterable[str]) -> None:
        with self._connect() as db:
            db.executemany("delete from binned where run_id = ?", [(i,) for i in run_ids])

    def forget(self, run_ids: Sequence[str]) -> None:
        """Take away all that was added to runs that are gone for good. What live runs share stays."""
        rows = [(run_id,) for run_id in run_ids]
        with self._connect() as db:
            marks = "delete from note_marks where id in (select id from notes where run_id = ?)"
            db.executemany(marks, rows)
            for table in (*OF_A_RUN, "stands"):
                db.executemany(f"delete from {table} where run_id = ?", rows)

    def glimpses(self, run_ids: Collection[str] | None = None) -> dict[str, tuple[str, str]]:
        """(what it was worked out from, what it tells) of every run that was looked at, or of some."""
        with self._connect() as db:
            rows = about(db, "select run_id, key, told from glimpses{}", run_ids)
            return {run_id: (key, told) for run_id, key, told in rows}

    def glimpse(self, run_id: str, key: str) -> str | None:
        """What is kept of a run, where it was worked out from this."""
        with self._connect() as db:
            row = db.execute("select told from glimpses where run_id = ? and key = ?", (run_id, key)).fetchone()
        return None if row is None else str(row[0])

    def keep_glimpse(self, run_id: str, key: str, told: str) -> None:
        with self._connect() as db:
            db.execute(put("glimpses", "run_id", "key, told"), (run_id, key, told))


def note_text(text: str) -> str:
    """A note as it is kept: as it was typed. Raises InputError for one that is empty, too long or no text."""
    if not text.strip() or len(text) > MAX_TEXT:
        raise InputError(f"a note of {len(text.strip()) and len(text):,} characters", expected=f"1 to {MAX_TEXT:,}")
    if "\0" in text or any(unicodedata.category(c) == "Cs" for c in text):
        raise InputError("a note that is no text", expected="characters without NUL")
    return text


def _note(db: Any, owner: str, number: int) -> str:
    """The text of a note. Raises QuestionError where the run has none of that number."""
    if not -(1 << 63) <= number < 1 << 63:
        raise QuestionError(f"no note {str(number)[:20]}", advice="`chipledger note RUN` lists them.")
    row = db.execute("select text from notes where id = ? and run_id = ?", (number, owner)).fetchone()
    if row is None:
        raise QuestionError(f"this run has no note {number}", advice="`chipledger note RUN` lists them.")
    return str(row[0])
