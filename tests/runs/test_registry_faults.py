"""A registry that is damaged, removed, altered or oddly named: what it says, and what is kept."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from errors import InputError
from runs.database import Database
from runs.every_schema import SCHEMAS
from runs.registry import Registry


def test_advice_to_move_the_registry_away_is_given_for_a_damaged_one_alone(tmp_path, monkeypatch):
    path = tmp_path / "registry.db"
    registry = Registry(path)
    registry.note("r", "x")

    def failing(code):
        def connect(*args, **more):
            error = sqlite3.OperationalError("as the disk says")
            error.sqlite_errorcode = code
            raise error

        return connect

    for code in ("FULL", "IOERR", "READONLY", "CANTOPEN", "BUSY", "LOCKED", "NOMEM", "IOERR_WRITE"):
        with monkeypatch.context() as patch, pytest.raises(InputError) as error:
            patch.setattr(sqlite3, "connect", failing(getattr(sqlite3, f"SQLITE_{code}")))
            registry.note("r", "y")
        assert "Move the file away" not in str(error.value)
    assert registry.extras("r").notes == ["x"]
    path.write_bytes(b"hello" * 1000)
    with pytest.raises(InputError, match="it is damaged .*Move the file away"):
        registry.extras("r")


def test_a_registry_that_was_removed_under_a_running_process_is_made_anew(tmp_path):
    registry = Registry(tmp_path / "registry.db")
    registry.path.unlink()
    registry.note("r", "x")
    assert registry.extras("r").notes == ["x"]


def test_the_log_beside_it_may_go_between_a_look_and_the_next(tmp_path, monkeypatch):
    """Who closes last takes SQLite's log away, at any moment of the others' opening."""
    registry = Registry(tmp_path / "registry.db")
    registry.note("r", "x")
    monkeypatch.setattr(Path, "exists", lambda self: True)  # as it was a moment ago
    assert registry.extras("r").notes == ["x"]


def test_a_registry_with_an_odd_name_is_opened(tmp_path):
    (folder := tmp_path / "a?b#c%41").mkdir()
    Registry(folder / "registry.db").note("r", "x")
    assert sorted(p.name for p in folder.iterdir()) == ["registry.db"] and issubclass(Registry, Database)


@pytest.mark.parametrize(
    "damage", ["update notes set text = cast(x'6eff' as text)", "alter table notes rename column text to txet"]
)
def test_a_registry_whose_content_was_altered_is_no_matter_of_trying_again(tmp_path, damage):
    registry = Registry(tmp_path / "registry.db")
    registry.note("abcd1234", "x")
    with sqlite3.connect(registry.path) as db:
        db.execute(damage)
    db.close()
    with pytest.raises(InputError, match="damaged .* Move the file away"):
        registry.extras("abcd1234")


def test_a_registry_whose_own_names_are_no_text_any_more_is_said_to_be_damaged(tmp_path):
    registry = Registry(tmp_path / "registry.db")
    registry.note("abcd1234", "x")
    with sqlite3.connect(registry.path) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    data = registry.path.read_bytes()
    at = data.index(b"tabletags")
    registry.path.write_bytes(data[: at + 6] + b"\xec\xa0" + data[at + 8 :])
    for opened in (lambda: registry.extras("abcd1234"), lambda: Registry(registry.path)):
        with pytest.raises(InputError, match="it is damaged .*Move the file away"):
            opened()


def test_a_registry_whose_store_is_gone_says_that(tmp_path):
    (tmp_path / "store").mkdir()
    book = Registry(tmp_path / "store" / "registry.db")
    book.tag("a", "team", "ml")
    book.path.parent.rename(tmp_path / "away")
    with pytest.raises(InputError, match="the store is gone"):
        book.extras("a")
    with pytest.raises(InputError, match="the store is gone"):
        book.tag("a", "team", "other")
    (tmp_path / "away").rename(book.path.parent)
    assert book.extras("a").tags == {"team": "ml"}


def kept(path):
    """What SQLite says stands there, without what it made of its own accord."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = db.execute("select type, name from sqlite_master where sql is not null and name not like 'sqlite_%'")
        return set(names)


def test_a_book_is_begun_whole_or_not_at_all(tmp_path):
    class Book(Database):
        SCHEMA = "create table if not exists first (a);\ncreate table if not exists second (a, a);\n"

    with pytest.raises(InputError, match="duplicate column"):
        Book(tmp_path / "registry.db")
    assert not kept(tmp_path / "registry.db")


def test_whatever_lacks_of_a_book_is_made_when_it_is_opened_anew(tmp_path):
    book = type("Book", (Database,), {"SCHEMA": "".join(SCHEMAS)})
    path = book(tmp_path / "registry.db").path
    whole = kept(path)
    for kind in ("table", "index", "trigger"):
        gone = next(name for of, name in sorted(whole) if of == kind)
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"drop {kind} {gone}")
        book(path)
        assert kept(path) == whole, gone
