"""Who sees which run: a run is for members of the groups that it belongs to, and for all who are signed in where it
belongs to none. In the registry; the snapshots of a live run have theirs in common.

    <store>/shared.mark     as it stands in the registry, from the first group on: a registry in its place is another

Groups here are groups of people, as whoever signs people in names them; projects and experiments, into which runs are
sorted, hide nothing.
"""

import hashlib
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from errors import InputError, QuestionError
from runs.database import At, Connection, Database
from runs.durable import write_whole, writing
from runs.registry import about, owner_of
from runs.registry_schema import REGISTRY_SCHEMA
from runs.shelf import clean_name

NAME_LENGTH, MOST = 100, 50  # characters of a group's name, groups of a run
MARK = "shared.mark"
_TEAMS = "select team from shared where run_id = ?"
_KEPT = 256  # sets of groups for which it is known what they hide

Groups = frozenset[str]
NONE: Groups = frozenset()


class ShareBook(Database):
    """Groups of runs. Safe for several processes: each change is one transaction."""

    SCHEMA = REGISTRY_SCHEMA

    def __init__(self, at: At, store: Path | None = None):
        """`store`: its folder, where the registry is no file in it."""
        super().__init__(at)
        self._mark = (store or self.path.parent) / MARK
        self._hidden: dict[Groups, tuple[tuple[int, int], Groups]] = {}

    def hidden(self, groups: Groups) -> Groups:
        """Runs, by id, and live runs, by address, that members of these groups do not see. The same object as long as
        nothing of it changed.

        Raises InputError where this is not the registry in which groups were said: else all would see all.
        """
        with self._connect() as db:
            self._check(db)
            count = int(db.execute("select coalesce(max(count), 0) from changes").fetchone()[0])
            state, kept = (self._which(db), count), self._hidden.get(groups)
            if kept and kept[0] == state:
                return kept[1]
            shared = _by_run(db.execute("select run_id, team from shared"))
            stands = dict(db.execute("select run_id, stands_for from stands"))
        closed = {run_id for run_id, teams in shared.items() if not teams & groups}
        standing = {run_id for run_id, owner in stands.items() if owner in closed}
        found = frozenset(closed - stands.keys() | standing)
        if kept and kept[1] == found:
            found = kept[1]
        if len(self._hidden) >= _KEPT:
            self._hidden = {}
        self._hidden[groups] = state, found
        return found

    def _check(self, db: Connection) -> None:
        try:
            marked = self._mark.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError):
            marked = ""
        row = db.execute("select mark from share_mark").fetchone()
        if row is None or row[0] != marked:
            raise InputError(
                "the registry is not the one in which was said who sees which run",
                where=self.name,
                advice=f"Bring it back from a backup. Where it is lost for good, take {self._mark.name} away beside "
                "it: then all who are signed in see every run.",
            )

    def _marked(self, db: Connection, mark: str = "") -> str:
        """What tells this registry from another: `mark`, where it has none yet."""
        db.execute("insert into share_mark values (1, ?) on conflict do nothing", (mark or secrets.token_hex(16),))
        return str(db.execute("select mark from share_mark").fetchone()[0])

    def _keep_mark(self, mark: str) -> None:
        if not self._mark.exists():  # another registry's stays: a person has to say that it is lost
            with writing(self._mark):
                write_whole(self._mark, mark)

    def all(self, owners: Collection[str] | None = None) -> Mapping[str, Groups]:
        """Groups of each run that belongs to any, or of some, by whose additions the run has."""
        with self._connect() as db:
            return _by_run(about(db, "select run_id, team from shared{}", owners))

    def of(self, run_id: str) -> Groups:
        """Groups of a run, or of a live run by its address; empty where all see it."""
        with self._connect() as db:
            rows = db.execute(_TEAMS, (owner_of(db, run_id),))
            return frozenset(team for (team,) in rows)

    def known(self) -> list[str]:
        """All groups that a run belongs to, by name."""
        with self._connect() as db:
            return [team for (team,) in db.execute("select distinct team from shared order by team")]

    def share(self, run_ids: Iterable[str], groups: Iterable[str], who: str = "", mark: str = "") -> None:
        """From now on runs belong to these groups and to no other; to none: all see them. `mark`: of another registry,
        which may come into the place of this one with its runs; it counts where nothing was ever shared here."""
        teams, now = sorted(set(groups)), time.time_ns()
        with self._connect() as db:
            db.execute("begin immediate")
            for owner in {owner_of(db, run_id) for run_id in run_ids}:
                db.execute("delete from shared where run_id = ?", (owner,))
                rows = [(owner, team, who, now) for team in teams]
                db.executemany("insert into shared values (?, ?, ?, ?)", rows)
            mark = self._marked(db, mark)
        if teams:
            self._keep_mark(mark)

    def share_as(self, book: "ShareBook", run_id: str) -> None:
        """Have a run that is about to come here belong to the groups of people that it belongs to by another book.
        Raises InputError where that is not the registry in which groups were said."""
        with book._connect() as db:
            book._check(db)
            teams = [team for (team,) in db.execute(_TEAMS, (owner_of(db, run_id),))]
            kept = db.execute("select mark from share_mark").fetchone()  # only read: it may lie where nobody may write
        if teams:
            self.share([run_id], teams, mark=str(kept[0]) if kept else "")

    def add(self, run_id: str, group: str, who: str = "") -> None:
        """Let a run belong to one group more."""
        with self._connect() as db:
            row = (owner_of(db, run_id), group, who, time.time_ns())
            db.execute("insert into shared values (?, ?, ?, ?) on conflict do nothing", row)
            mark = self._marked(db)
        self._keep_mark(mark)

    def usual(self, who: str) -> str:
        """The group for which a person usually adds runs; empty where they add them for all."""
        with self._connect() as db:
            row = db.execute("select team from usual_teams where who = ?", (who,)).fetchone()
        return str(row[0]) if row else ""

    def set_usual(self, who: str, group: str) -> None:
        """Empty: for all."""
        with self._connect() as db:
            db.execute("delete from usual_teams where who = ?", (who,))
            if group:
                db.execute("insert into usual_teams values (?, ?)", (who, group))


def _by_run(rows: Iterable[tuple[str, str]]) -> dict[str, Groups]:
    found: dict[str, set[str]] = {}
    for run_id, team in rows:
        found.setdefault(run_id, set()).add(team)
    return {run_id: frozenset(teams) for run_id, teams in found.items()}


def clean_team(text: str) -> str:
    """The name of a group of people as it is kept. Raises InputError for what cannot be one."""
    return clean_name(text, "group's name", NAME_LENGTH)


def clean_teams(texts: Iterable[str]) -> list[str]:
    """Each once, in order of their names."""
    found = sorted({clean_team(text) for text in texts})
    if len(found) > MOST:
        raise QuestionError(f"{len(found)} groups", expected=f"at most {MOST}")
    return found


@dataclass(frozen=True)
class Audience:
    """For whom an input is read: the members of `group`; empty: all who are signed in; None: nobody said.

    The same input is one run among those who see it: it is found again where all whom it is read for see it. One that
    only others see stays theirs, unseen, and what is read now becomes a run of its own.
    """

    book: ShareBook
    group: str | None = None
    who: str = ""

    def candidates(self, run_id: str) -> Iterator[str]:
        """Under which ids a run of this input may stand, the surest first, beside its own."""
        groups = (self.group,) if self.group is not None else ("", *self.book.known())  # who sees all finds it anywhere
        yield from (name for group in groups for name in _ids_for(run_id, group))

    def sees(self, run_id: str) -> bool:
        """Whether all whom it is read for see a run."""
        if self.group is None:
            return True
        groups = self.book.of(run_id)
        return not groups or self.group in groups

    def new_id(self, run_id: str, taken: bool) -> str:
        """The id of a run that is not there yet: none that another had whom others see, for what is kept of that one
        would be told. `taken`: a run has that which follows from the input alone."""
        if self.group is None:
            return run_id
        plain = () if self.group or taken else (run_id,)
        names = (*plain, *_ids_for(run_id, self.group))
        return next((n for n in names if not (seen := self.book.of(n)) or self.group in seen), names[-1])

    def begin(self, run_id: str) -> None:
        """Have the run hidden from others before it is there."""
        if self.group:
            self.book.add(run_id, self.group, self.who)


def _ids_for(run_id: str, group: str) -> tuple[str, str]:
    """Ids of a run that is read for a group: the second where somebody else had the first."""
    first = for_group(run_id, group)
    return first, for_group(first, group)


def for_group(run_id: str, group: str) -> str:
    """The id of a run that is read for a group, from the one that follows from the input alone."""
    return hashlib.sha256(f"{run_id}\0{group}".encode("utf-8", "backslashreplace")).hexdigest()[:16]
