"""The registry: what may change about a run (name, facts that people declared, notes, tags, price, where its inputs
lie), in SQLite beside the store.

Runs themselves are never changed; the registry can be lost and only these additions go with it.
"""

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errors import InputError, QuestionError
from errors.numbers import USD
from runs.database import Connection, Database, put
from runs.registry_schema import REGISTRY_SCHEMA
from runs.run import FactValue, Said

MAX_TEXT = 10_000  # characters of a note or a tag value: a remark, not a file
MAX_KEY = 500  # of the name of a tag or a fact: what an index can hold, whatever its letters
PRICE = "usd_per_chip_hour"  # a fact that is kept as the run's price, so that there is one of it
HISTORY = 1_000  # declarations that are told of a run, the newest first
TAGS, NOTES = "select run_id, key, value from tags{} order by key", "select run_id, text from notes{} order by id"
PRICES, STANDS = "select run_id, usd_per_chip_hour from prices{}", "select run_id, stands_for from stands{}"
NAMES, DECLARED = "select run_id, name from names{}", "select run_id, key, value, who, written_ns from declared{}"
EARLIER = """select distinct run_id, name from renames as one where name is not null and id > coalesce(
    (select max(id) from renames where run_id = one.run_id and name is null), 0){}"""  # since the stored name held last
TOGETHER = 100  # runs that one statement asks about
FEW = 1_000  # runs that are asked about by name; of more all is read


@dataclass(frozen=True)
class Declaration:
    """One fact that a person said of a run, and when; of a fact that was taken back the value is None."""

    key: str
    value: Any
    who: str
    written_ns: int


@dataclass(frozen=True)
class Extras:
    """What people added to a run."""

    tags: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    usd_per_chip_hour: float | None = None


class Registry(Database):
    """What people added to runs, and where the files lie that runs were made from."""

    SCHEMA = REGISTRY_SCHEMA

    def extras(self, run_id: str) -> Extras:
        return self.all_extras([run_id])[run_id]

    def all_extras(self, run_ids: list[str]) -> dict[str, Extras]:
        """Additions to these runs, in four queries for each hundred of them."""
        wanted = set(run_ids)
        stands = self.standing(wanted)
        added = self.added({stands.get(i, i) for i in wanted})
        return {i: added.get(stands.get(i, i)) or Extras() for i in wanted}

    def added(self, owners: Collection[str] | None = None) -> dict[str, Extras]:
        """Additions to all runs, or to some, by whose they are; a run without any is not among them."""
        tags: dict[str, dict[str, str]] = {}
        notes: dict[str, list[str]] = {}
        with self._connect() as db:
            for run_id, key, value in about(db, TAGS, owners):
                tags.setdefault(run_id, {})[key] = value
            for run_id, text in about(db, NOTES, owners):
                notes.setdefault(run_id, []).append(text)
            prices = dict(about(db, PRICES, owners))
        return {i: Extras(tags.get(i, {}), notes.get(i, []), prices.get(i)) for i in {*tags, *notes, *prices}}

    def standing(self, run_ids: Collection[str] | None = None) -> dict[str, str]:
        """Of every run that shares another's additions, or of some, whose."""
        with self._connect() as db:
            return dict(about(db, STANDS, run_ids))

    def said(self, run_ids: Sequence[str] | None = None) -> dict[str, Said]:
        """What people said of these runs, or of all, by run: names, and facts as declared by whom and when. A run of
        which nothing was said is not among them."""
        names: dict[str, str] = {}
        facts: dict[str, dict[str, FactValue]] = {}
        earlier: dict[str, set[str]] = {}
        with self._connect() as db:
            stands = dict(about(db, STANDS, run_ids))
            owners = None if run_ids is None else {stands.get(i, i) for i in run_ids}
            for run_id, name in about(db, NAMES, owners):
                names[run_id] = name
            for run_id, key, value, who, ns in about(db, DECLARED, owners):
                facts.setdefault(run_id, {})[key] = FactValue(json.loads(value), "declared", declared_by(who, ns))
            for run_id, name in about(db, EARLIER, owners, "and"):
                earlier.setdefault(run_id, set()).add(name)
        owned = {
            owner: Said(names.get(owner, ""), facts.get(owner, {}), frozenset(earlier.get(owner, ())))
            for owner in names.keys() | facts.keys() | earlier.keys()
        }
        wanted = {*owned, *stands} if run_ids is None else set(run_ids)
        return {i: owned[o] for i in wanted if (o := stands.get(i, i)) in owned}

    def rename(self, run_id: str, name: str | None, who: str = "", was: str | None = None, stored: str = "") -> None:
        """Call a run otherwise from now on; None: as it was stored. `was`: the name that whoever asks has seen, given
        where nobody else's may be lost: raises QuestionError where it is called otherwise by now (`stored`: its name
        where nobody said another)."""
        with self._connect() as db:
            db.execute("begin immediate")  # the name that is looked at is the one that is replaced
            owner, now = owner_of(db, run_id), time.time_ns()
            found = db.execute("select name, who from names where run_id = ?", (owner,)).fetchone()
            called, by = found or (stored, "")
            if was is not None and was != called:
                raise QuestionError(
                    f"the run is called {called[:80]!r} by now{f', as {by} said' if by else ''}; nothing was changed",
                    advice="Look at it again, then rename it.",
                )
            if name is None:
                db.execute("delete from names where run_id = ?", (owner,))
            else:
                db.execute(put("names", "run_id", "name, who, written_ns"), (owner, name, who, now))
            row = (owner, name, who, now)
            db.execute("insert into renames (run_id, name, who, written_ns) values (?, ?, ?, ?)", row)

    def declare(self, run_id: str, facts: Mapping[str, Any], who: str = "") -> None:
        """Keep facts that a person said of a run, all or none; None takes back what was said of that name. Each is
        noted in the history, which nothing shortens."""
        for key in facts:
            short_key(key, "fact's name")
        with self._connect() as db:
            owner, now = owner_of(db, run_id), time.time_ns()
            for key, value in facts.items():
                _declare(db, owner, Declaration(key, value, who, now))

    def declarations(self, run_id: str) -> list[Declaration]:
        """All that was said of a run, the newest first."""
        with self._connect() as db:
            rows = db.execute(
                "select key, value, who, written_ns from declared_log where run_id = ? order by id desc limit ?",
                (owner_of(db, run_id), HISTORY),
            )
            return [Declaration(k, None if v is None else json.loads(v), who, ns) for k, v, who, ns in rows]

    def stand_for(self, run_id: str, owner: str) -> None:
        """Let a run share the additions of `owner`: the snapshots of a live run have theirs in common.

        What was added to the run itself before stays hidden while it stands for another.
        """
        with self._connect() as db:
            db.execute(put("stands", "run_id", "stands_for"), (run_id, owner))

    def owners(self, run_ids: Iterable[str]) -> dict[str, str]:
        """Whose additions runs have: each its own, or those of the live run that it is a snapshot of."""
        wanted = set(run_ids)
        stands = self.standing(wanted)
        return {run_id: stands.get(run_id, run_id) for run_id in wanted}

    def forget(self, run_id: str) -> None:
        """A run that shared another's additions is gone. The additions stay with their owner."""
        with self._connect() as db:
            db.execute("delete from stands where run_id = ?", (run_id,))

    def tag(self, run_id: str, key: str, value: str | None) -> None:
        """Set a tag; None removes it."""
        key = short_key(key.strip(), "tag key")
        if "=" in key:
            raise InputError(f"tag {key[:80]!r} has a = in its name", expected="key=value, with the first = after it")
        with self._connect() as db:
            run_id = owner_of(db, run_id)
            if value is None:
                db.execute("delete from tags where run_id = ? and key = ?", (run_id, key))
            else:
                db.execute(put("tags", "run_id, key", "value"), (run_id, key, _short(value, "tag")))

    def note(self, run_id: str, text: str) -> None:
        with self._connect() as db:
            db.execute(
                "insert into notes (run_id, written_ns, text) values (?, ?, ?)",
                (owner_of(db, run_id), time.time_ns(), _short(text.strip(), "note")),
            )

    def price(self, run_id: str, usd_per_chip_hour: float | None, who: str = "") -> None:
        """Set the price of a chip-hour in dollars for this run; None removes it."""
        if usd_per_chip_hour is not None and not USD.low <= usd_per_chip_hour <= USD.high:
            raise InputError(f"{usd_per_chip_hour} is no price of a chip-hour", expected=f"dollars: {USD.expected}")
        self.declare(run_id, {PRICE: usd_per_chip_hour}, who)

    def remember_files(self, files: Iterable[tuple[str, Path, int]]) -> None:
        """Note where input files lie: (SHA-256 in hex, path, bytes) of each. The newest place of a content counts."""
        with self._connect() as db:
            db.executemany(put("files", "sha256", "path, bytes"), [(h, str(p), n) for h, p, n in files])

    def files_below(self, folder: Path) -> set[str]:
        """Contents (SHA-256 in hex) of the remembered files that lie below a folder."""
        with self._connect() as db:
            start = f"{folder}/"
            rows = db.execute("select sha256 from files where substr(path, 1, ?) = ?", (len(start), start))
            return {digest for (digest,) in rows}

    def find_file(self, digest: str) -> Path | None:
        """Where a file of this content lies, if it is still there unchanged: its size and its hash are compared."""
        with self._connect() as db:
            row = db.execute("select path, bytes from files where sha256 = ?", (digest,)).fetchone()
        if row is None:
            return None
        path = Path(row[0])
        try:
            same = path.stat().st_size == row[1] and sha256(path) == digest
        except OSError:
            return None
        return path if same else None


def about(db: Connection, asked: str, run_ids: Collection[str] | None, word: str = "where") -> Iterator[Any]:
    """Rows of these runs, or of all; the rows of one run in the order asked for. `asked` has {} where the runs belong,
    after `word`. Few are asked for by name: whoever looks at one run reads not what was said of a million."""
    if run_ids is None or len(run_ids) > FEW:
        yield from db.execute(asked.format(""))
        return
    ids = list(run_ids)
    if len(ids) == 1:
        yield from db.execute(of_one(asked, word), ids)
        return
    marks = ", ".join("?" * TOGETHER)
    for at in range(0, len(ids), TOGETHER):
        some = ids[at : at + TOGETHER]  # filled up with the last: one text, which a server prepares once
        yield from db.execute(asked.format(f" {word} run_id in ({marks})"), some + some[-1:] * (TOGETHER - len(some)))


def of_one(asked: str, word: str = "where") -> str:
    return asked.format(f" {word} run_id = ?")


def owner_of(db: Connection, run_id: str) -> str:
    """Whose additions a run's are: its own, or those of the live run that it is a snapshot of."""
    row = db.execute("select stands_for from stands where run_id = ?", (run_id,)).fetchone()
    return row[0] if row else run_id


def _declare(db: Connection, owner: str, said: Declaration) -> None:
    """Keep one fact where it belongs, and note it."""
    value = None if said.value is None else json.dumps(said.value)
    note = (owner, said.key, value, said.who, said.written_ns)
    db.execute("insert into declared_log (run_id, key, value, who, written_ns) values (?, ?, ?, ?, ?)", note)
    if said.key == PRICE and said.value is None:
        db.execute("delete from prices where run_id = ?", (owner,))
    elif said.key == PRICE:
        db.execute(put("prices", "run_id", "usd_per_chip_hour, written_ns"), (owner, said.value, said.written_ns))
    elif said.value is None:
        db.execute("delete from declared where run_id = ? and key = ?", (owner, said.key))
    else:
        db.execute(put("declared", "run_id, key", "value, who, written_ns"), note)


def declared_by(who: str, written_ns: int) -> str:
    """The source of a fact that a person said: who and when, as far as known."""
    day = time.strftime("%Y-%m-%d", time.gmtime(written_ns / 1e9))
    return f"said by {who}, {day}" if who else f"said on {day}"


def sha256(path: Path) -> str:
    """The hash of a file's content, in hex. Raises OSError where it cannot be read."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def short_key(text: str, what: str) -> str:
    """Raises InputError for one that an index cannot hold."""
    return _short(text, what, MAX_KEY)


def _short(text: str, what: str, most: int = MAX_TEXT) -> str:
    if not text or len(text) > most:
        raise InputError(f"a {what} of {len(text)} characters", expected=f"1 to {most:,}")
    return text
