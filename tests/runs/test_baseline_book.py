"""Baselines in the registry: what a name leads to is its last move, and no move is lost."""

import sqlite3
import threading

import pytest

from errors import ChipledgerError, QuestionError
from runs.baseline_book import BaselineBook
from runs.registry import Registry
from tests.runs.test_registry_of_earlier_version import EARLIER


@pytest.fixture
def book(registry_at):
    return BaselineBook(registry_at)


def test_a_name_leads_where_it_was_last_led_and_tells_all_before(book):
    book.set("main", "aa", "first", who="ann", why="to begin with")
    before, now = book.accept("main", "bb", "second", who="bob")
    assert (before.run_id, now.run_id, book.of("main").run_id) == ("aa", "bb", "bb")
    book.remove("main", who="eve", why="of no use")
    assert book.of("main") is None and book.standing() == []
    book.set("main", "cc", "third")
    told = [(m.run_id, m.run_name, m.who, m.why) for m in book.history("main")]
    assert told == [
        ("cc", "third", "", ""),
        (None, "second", "eve", "of no use"),
        ("bb", "second", "bob", ""),
        ("aa", "first", "ann", "to begin with"),
    ]
    assert [m.name for m in book.standing()] == ["main"]


def test_the_same_again_adds_nothing_and_another_is_refused(book):
    book.set("main", "aa", "first")
    book.set("main", "aa", "first")
    assert book.accept("main", "aa", "first")[1].run_id == "aa" and len(book.history("main")) == 1
    with pytest.raises(QuestionError, match="leads to first .aa. already"):
        book.set("main", "bb", "second")
    for refused in (lambda: book.accept("mian", "bb", "x"), lambda: book.remove("mian"), lambda: book.known("mian")):
        with pytest.raises(QuestionError, match="Did you mean 'main'"):
            refused()
    assert len(book.history("main")) == 1


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\0b", "a\u202eb", "live:x", "model:x", "baseline:x"])
def test_what_could_not_be_told_from_something_else_is_no_name(book, name):
    for given in (lambda: book.set(name, "aa", "r"), lambda: book.accept(name, "aa", "r"), lambda: book.remove(name)):
        with pytest.raises(ChipledgerError):
            given()
    assert book.standing() == []


def test_of_two_who_accept_at_once_both_are_told(book):
    book.set("main", "aa", "first")
    many = [threading.Thread(target=book.accept, args=("main", f"r{n}", "run")) for n in range(8)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    moves = book.history("main")
    assert {m.run_id for m in moves} == {"aa", *(f"r{n}" for n in range(8))} and book.of("main") == moves[0]


def test_a_registry_of_an_earlier_version_gets_baselines_and_keeps_the_rest(tmp_path):
    with sqlite3.connect(tmp_path / "registry.db") as db:
        db.executescript(EARLIER)
    db.close()
    registry = Registry(tmp_path / "registry.db")
    BaselineBook(registry.path).set("main", "abcd1234", "a run")
    assert BaselineBook(registry.path).of("main").run_id == "abcd1234"
    assert registry.extras("abcd1234").tags == {"team": "ml"} and registry.extras("abcd1234").notes == ["a remark"]
