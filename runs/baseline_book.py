"""Baselines: names that lead to the run that others are held against, and all that each ever led to. In the registry.

Only moves are kept, one a row; what a name leads to is the run of its last move. So nothing that is accepted or taken
away is lost, and who did it and why stands beside.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from errors import InputError, QuestionError
from errors.nearest import did_you_mean
from runs.database import Connection, Database
from runs.naming import elsewhere
from runs.shelf import clean_name

_SCHEMA = """
create table if not exists baseline_moves (id integer primary key, name text not null, run_id text,
    run_name text not null, who text not null, why text not null, written_ns integer not null);
create index if not exists baseline_moves_by_name on baseline_moves (name, id);
"""
_LAST = "select max(id) from baseline_moves group by name"
_COLUMNS = "name, run_id, run_name, who, why, written_ns"
MOST, MOST_MOVES = 500, 1_000  # baselines; moves that are told of one, the newest first
NAME_LENGTH, WHY_LENGTH = 100, 2_000  # characters


@dataclass(frozen=True)
class Move:
    """A name was led to a run: which one, what that was called then, by whom, when and why. `run_id` None: the name
    was taken away."""

    name: str
    run_id: str | None
    run_name: str
    who: str
    why: str
    written_ns: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class BaselineBook(Database):
    """Baselines. Safe for several processes: each move is one transaction."""

    SCHEMA = _SCHEMA

    def set(self, name: str, run_id: str, run_name: str, *, who: str = "", why: str = "") -> Move:
        """Give a run a name. The same again changes nothing. Raises QuestionError where the name leads to another."""
        name, why = clean_baseline(name), clean_why(why)
        with self._connect() as db:
            db.execute("begin immediate")  # the name that is looked at is the one that is led on
            now = _standing(db, name)
            if now is not None and now.run_id != run_id:
                raise QuestionError(
                    f"baseline {name[:80]!r} leads to {now.run_name[:80]} ({str(now.run_id)[:12]}) already",
                    expected="a name that is free",
                    advice="`chipledger baseline accept` moves it and keeps the former.",
                )
            if now is None and db.execute(f"select count(*) from ({_LAST}) as kept").fetchone()[0] >= MOST:
                raise QuestionError(f"{MOST} baselines are kept already", advice="Remove one that nobody needs.")
            return now or _moved(db, Move(name, run_id, run_name, who, why, time.time_ns()))

    def accept(self, name: str, run_id: str, run_name: str, *, who: str = "", why: str = "") -> tuple[Move, Move]:
        """Lead a name to another run. Returns what it led to and what it leads to; they are one where it led there
        already. Raises QuestionError where there is no such baseline."""
        name, why = clean_baseline(name), clean_why(why)
        with self._connect() as db:
            db.execute("begin immediate")
            now = _known(db, name)
            if now.run_id == run_id:
                return now, now
            return now, _moved(db, Move(name, run_id, run_name, who, why, time.time_ns()))

    def remove(self, name: str, *, who: str = "", why: str = "") -> Move:
        """Take a name away; what it led to stays told. Returns what it led to. Raises QuestionError where there is no
        such baseline."""
        name, why = clean_baseline(name), clean_why(why)
        with self._connect() as db:
            db.execute("begin immediate")
            now = _known(db, name)
            _moved(db, Move(name, None, now.run_name, who, why, time.time_ns()))
            return now

    def of(self, name: str) -> Move | None:
        """What a name leads to; None where it is none."""
        with self._connect() as db:
            return _standing(db, name)

    def known(self, name: str) -> Move:
        """What a name leads to. Raises QuestionError where it is none."""
        with self._connect() as db:
            return _known(db, name)

    def standing(self) -> list[Move]:
        """All baselines, by name."""
        with self._connect() as db:
            return _all(db)

    def history(self, name: str) -> list[Move]:
        """All that a name ever led to, newest first, also of one that was taken away; empty where there was none."""
        asked = f"select {_COLUMNS} from baseline_moves where name = ? order by id desc limit ?"
        with self._connect() as db:
            return [Move(*row) for row in db.execute(asked, (name, MOST_MOVES))]


def clean_baseline(text: str) -> str:
    """A baseline's name as it is kept. Raises InputError for one that would lead elsewhere."""
    name = clean_name(text, "baseline's name", NAME_LENGTH)
    if word := elsewhere(name):
        raise InputError(f"a baseline's name that begins with {word}", expected="a name without it, such as main")
    return name


def clean_why(text: str) -> str:
    """Why it is done, on one line; it may be empty."""
    return clean_name(text, "reason", WHY_LENGTH) if text.strip() else ""


def _standing(db: Connection, name: str) -> Move | None:
    asked = f"select {_COLUMNS} from baseline_moves where name = ? order by id desc limit 1"
    row = db.execute(asked, (name,)).fetchone()
    return None if row is None or row[1] is None else Move(*row)


def _known(db: Connection, name: str) -> Move:
    found = _standing(db, name)
    if found is None:
        raise unknown_baseline(name, [m.name for m in _all(db)])
    return found


def unknown_baseline(name: str, names: Sequence[str]) -> QuestionError:
    """There is no such baseline: those that there are."""
    listed = ", ".join(names[:20]) or "none yet"
    advice = did_you_mean(name, names) or "`chipledger baseline set NAME RUN` makes one."
    return QuestionError(f"no baseline {name[:80]!r}", expected=listed, advice=advice)


def _all(db: Connection) -> list[Move]:
    asked = f"select {_COLUMNS} from baseline_moves where id in ({_LAST}) and run_id is not null order by name"
    return [Move(*row) for row in db.execute(asked)]


def _moved(db: Connection, move: Move) -> Move:
    row = tuple(vars(move).values())
    db.execute(f"insert into baseline_moves ({_COLUMNS}) values (?, ?, ?, ?, ?, ?)", row)
    return move
