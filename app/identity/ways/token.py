"""Known by a token: `Authorization: Bearer chipledger_...`, for programs."""

import time

from anyio import to_thread

from app.identity.base import Identity, Role
from app.identity.books import Books
from app.identity.tokens import PREFIX, digest
from app.identity.ways.base import Asked, Known, Unknown, Way
from runs.token_book import Token

HEADER, SCHEME = "authorization", "bearer"
LONGEST = 200  # characters of what is worth looking up
USED_EVERY_NS = 60_000_000_000
ADVICE = "`chipledger tokens create` makes a token."


async def know(books: Books, asked: Asked) -> Known | None:
    given = asked.headers.getlist(HEADER)
    if not given:
        return None
    scheme, _, text = given[0].partition(" ")
    if scheme.casefold() != SCHEME or not text.strip().startswith(PREFIX):
        if books.settings.proxy is not None:  # its own, which it hands on
            return None
        raise Unknown("the Authorization header holds no token of this server", advice=ADVICE)
    if not books.settings.tokens:
        raise Unknown("tokens are not taken here", advice="Sign in another way.")
    if len(given) > 1 or len(text) > LONGEST:
        raise Unknown("the Authorization header is not understood", expected="one token")
    token = await _token(books, digest(books.key, text.strip()))
    return Known(identity=identity_of(token), address=asked.peer)


async def _token(books: Books, hashed: str) -> Token:
    known, token = books.seen_tokens.get(hashed)
    if not known:
        token = await to_thread.run_sync(books.tokens.of_hash, hashed)
        books.seen_tokens.put(hashed, token)
    now = time.time_ns()
    if token is None:
        raise Unknown("this token is not known here", advice=ADVICE)
    if (state := token.state_at(now)) != "valid":
        raise Unknown(f"this token ({token.name}) is {state}", advice=ADVICE)
    if now - books.used.get(token.token_id, 0) > USED_EVERY_NS:
        books.used[token.token_id] = now
        await to_thread.run_sync(books.note_used, token.token_id, now)
    return token


def identity_of(token: Token) -> Identity:
    """Whoever asks with it."""
    role = next(role for role in Role if role.word == token.role)
    return Identity(name=token.name, role=role, groups=frozenset(token.groups), how="token", token_id=token.token_id)


TOKEN = Way(name="token", title="Token", help="for programs: Authorization: Bearer and a token", know=know)
