"""Tokens: made, listed and revoked, for the command line and the API alike. What a token is, is told once."""

import hmac
import secrets
import time
from collections.abc import Iterable

from app.identity.asking import who
from app.identity.base import Role
from app.identity.key import key_of
from app.workspace import Workspace
from runs.token_book import Token, TokenBook

PREFIX = "chipledger_"  # what finds a token that was put where it does not belong
SECRET_BYTES = 32
DAYS, MOST_DAYS = 90, 3650


def book(place: Workspace) -> TokenBook:
    return TokenBook(place.registry.at)


def digest(key: bytes, text: str) -> str:
    """The keyed hash of a token or session (HMAC-SHA-256, in hex). Each has 256 random bits, so that a slow hash would
    add nothing: there is nothing to guess."""
    return hmac.digest(key, text.encode("utf-8", "surrogateescape"), "sha256").hex()


def create(
    place: Workspace, name: str, role: Role, *, days: float | None = DAYS, groups: Iterable[str] = (), by: str = ""
) -> tuple[Token, str]:
    """A new token, and what it is. `days`: None: it does not expire. `by`: who makes it, where nobody is known.

    Raises InputError for a name or a group that cannot be.
    """
    now, text = time.time_ns(), PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = Token(
        token_id=secrets.token_hex(4),
        name=name,
        role=role.word,
        groups=tuple(sorted(set(groups))),
        made_by=who().name or by,
        made_ns=now,
        ends_ns=None if days is None else now + int(days * 86_400e9),
    )
    book(place).keep(token, digest(key_of(place.store.root), text))
    return token, text


def listed(place: Workspace) -> list[Token]:
    """All, the newest first."""
    return book(place).all()


def revoke(place: Workspace, name: str) -> Token:
    """Raises QuestionError where there is no such token."""
    return book(place).revoke(name)
