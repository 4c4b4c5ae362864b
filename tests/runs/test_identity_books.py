"""Tokens, logins and the audit log as the registry keeps them."""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from errors import InputError, QuestionError
from runs import audit_book, token_book
from runs.audit_book import AuditBook, Entry
from runs.login_book import Login, LoginBook
from runs.token_book import Token, TokenBook

NOW = time.time_ns()


def token(token_id="a", **more):
    return Token(**{"token_id": token_id, "name": "ci", "role": "viewer", "made_ns": NOW} | more)


@pytest.fixture
def tokens(registry_at):
    return TokenBook(registry_at)


@pytest.fixture
def audit(registry_at):
    return AuditBook(registry_at)


def test_a_token_is_found_by_its_hash_alone(tokens):
    tokens.keep(token(groups=("ml", "b"), ends_ns=NOW + 1), "hash of a")
    found = tokens.of_hash("hash of a")
    assert found.groups == ("ml", "b") and found.ends_ns == NOW + 1 and found.state_at(NOW) == "valid"
    assert found.state_at(NOW + 1) == "expired", "it ends at that moment, not after it"
    assert tokens.of_hash("another") is None and tokens.of_hash("") is None and tokens.of_hash("ci") is None


def test_a_token_is_revoked_by_its_id_or_by_a_name_that_one_has(tokens):
    for number in "abc":
        tokens.keep(token(number, name="twice" if number != "c" else "once"), number)
    assert tokens.revoke("once").token_id == "c"
    with pytest.raises(QuestionError, match="2 tokens are called 'twice'.*such as a, b"):
        tokens.revoke("twice")
    first = tokens.revoke("a")
    assert first.state_at(NOW) == "revoked" and tokens.revoke("a").revoked_ns == first.revoked_ns, "once is enough"
    assert tokens.revoke("twice").token_id == "b", "of the two one alone holds still"
    with pytest.raises(QuestionError, match="no token"):
        tokens.revoke("twice")


def test_a_name_is_that_of_the_token_that_holds_where_others_have_expired(tokens):
    tokens.keep(token("a", name="ci", ends_ns=NOW), "old")
    tokens.keep(token("b", name="ci", ends_ns=time.time_ns() + 10**15), "new")
    assert tokens.revoke("ci").token_id == "b"
    assert tokens.revoke("ci").token_id == "a", "an expired one that is alone is meant"


def test_no_two_tokens_are_one(tokens):
    tokens.keep(token("a"), "hash")
    with pytest.raises(InputError):
        tokens.keep(token("b"), "hash")
    assert [t.token_id for t in tokens.all()] == ["a"]


def test_when_a_token_was_used_never_goes_back(tokens):
    tokens.keep(token(), "hash")
    for at in (NOW + 5, NOW + 3):
        tokens.used("a", at)
    assert tokens.all()[0].used_ns == NOW + 5


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\x00b", "a\u202eb", "a\u200bb"])
def test_a_token_has_a_name_that_shows(tokens, name):
    with pytest.raises(InputError):
        tokens.keep(token(name=name), "hash")
    with pytest.raises(InputError):
        tokens.keep(token(groups=(name,)), "hash")


def test_tokens_are_bounded(tokens, monkeypatch):
    monkeypatch.setattr(token_book, "MOST", 2)
    tokens.keep(token("a"), "1")
    tokens.keep(token("b"), "2")
    with pytest.raises(InputError, match="2 tokens are kept already"):
        tokens.keep(token("c"), "3")


def test_a_login_ends_at_its_time_and_when_it_is_ended(registry_at):
    book = LoginBook(registry_at)
    book.keep("a", Login(name="ann", groups=("ml",), ends_ns=time.time_ns() + 10**12))
    book.keep("b", Login(name="bob", groups=(), ends_ns=time.time_ns() - 1))
    assert book.of_hash("a") == Login(name="ann", groups=("ml",), ends_ns=book.of_hash("a").ends_ns)
    assert book.of_hash("b") is None
    book.keep("c", Login(name="cy", groups=(), ends_ns=time.time_ns() + 10**12))
    with book._connect() as db:
        assert {h for (h,) in db.execute("select hash from logins")} == {"a", "c"}, "what ended is not kept"
    book.end("a")
    assert book.of_hash("a") is None and book.of_hash("c") is not None


def test_the_audit_log_is_only_added_to(audit):
    audit.note(Entry(what="delete a run", outcome="done", who="ann"))
    audit.note(Entry(what="sign in", outcome="failed"))
    for sql in ("update audit set who = 'bob'", "delete from audit", "update audit set outcome = 'refused'"):
        with pytest.raises(InputError, match="only added to"), audit._connect() as db:
            db.execute(sql)
    if isinstance(audit.at, Path):
        with sqlite3.connect(audit.path) as db:
            for sql in ("update audit set who = 'bob'", "delete from audit", "update audit set outcome = 'refused'"):
                with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                    db.execute(sql)
    assert [e.what for e in audit.entries()] == ["sign in", "delete a run"]


def test_entries_since_then_the_newest_first(audit):
    for at in (100, 300, 200):
        audit.note(Entry(what=str(at), outcome="done", at_ns=at))
    assert [e.what for e in audit.entries(since_ns=200)] == ["200", "300"], "in the order in which they were told"
    assert [e.what for e in audit.entries(most=1)] == ["200"]


@pytest.mark.parametrize("who", ["", "x" * 10_000])
def test_nobody_fills_the_disk_with_refusals(audit, monkeypatch, who):
    """Neither unknown people together nor one who is known, who is told of more."""
    monkeypatch.setattr(audit_book, "MOST_REFUSED", 150)
    monkeypatch.setattr(audit_book, "KNOWN_REFUSED_A_MINUTE", 80)
    most = 80 if who else audit_book.REFUSED_A_MINUTE
    minute = 60_000_000_000
    audit.note(Entry(what="kept", outcome="done", at_ns=1))
    for number in range(10):
        for at in range(100):
            audit.note(Entry(what="ask", outcome="refused", who=who, at_ns=number * minute + at + 1))
    told = audit.entries()
    refused = [e for e in told if e.outcome == "refused"]
    assert len(refused) <= 150 + most and told[-1].what == "kept"
    last = [e for e in refused if e.at_ns >= 9 * minute]
    assert len(last) == most and f"number {most} in this minute" in last[0].more
    assert all(len(e.who) <= audit_book.TEXT for e in refused)
    audit.note(Entry(what="delete a run", outcome="done", at_ns=9 * minute + 500))
    assert audit.entries()[0].what == "delete a run", "what is done is told however much is refused"


def test_refusals_are_told_after_a_clock_was_set_back(audit):
    hour = 3600 * 10**9
    for at in range(100):
        audit.note(Entry(what="ask", outcome="refused", at_ns=hour + at))
    audit.note(Entry(what="guess a token", outcome="refused", at_ns=1))
    assert audit.entries()[0].what == "guess a token"


def test_of_refusals_at_once_one_says_that_more_are_not_told(audit):
    def ask(_):
        for at in range(20):
            audit.note(Entry(what="ask", outcome="refused", at_ns=NOW - NOW % 60_000_000_000 + at))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(16)))
    told = audit.entries()
    assert len(told) == audit_book.REFUSED_A_MINUTE
    assert [e.what for e in told if "not told" in e.more] == ["refuse many requests"]


def test_no_entry_holds_what_a_terminal_would_act_on(audit):
    audit.note(Entry(what="\x1b[2Jclear", outcome="done", who="a\nb\u202e", about="\x00"))
    entry = audit.entries()[0]
    assert (entry.what, entry.who, entry.about) == ("?[2Jclear", "a?b?", "?")
