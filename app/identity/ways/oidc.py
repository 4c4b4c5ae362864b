"""Known by a login at a provider of OpenID Connect: the session cookie that `login.py` sets."""

import time

from anyio import to_thread
from itsdangerous import BadSignature

from app.identity.base import Identity
from app.identity.books import Books
from app.identity.cookies import session_in, session_signer
from app.identity.tokens import digest
from app.identity.ways.base import Asked, Known, Unknown, Way
from runs.login_book import Login


async def know(books: Books, asked: Asked) -> Known | None:
    oidc = books.settings.oidc
    given = session_in(asked.headers, oidc) if oidc is not None else None
    if given is None:
        return None
    known, login = books.seen_logins.get(given)
    if not known:
        login = await _login(books, given)
        books.seen_logins.put(given, login)
    if login is None or time.time_ns() >= login.ends_ns:
        return None  # it ended: they sign in again
    groups = frozenset(login.groups)
    role = books.settings.roles.of(login.name, groups)
    found = Identity(name=login.name, role=role, groups=groups, how="oidc")
    return Known(identity=found, browser=True, address=asked.peer)


async def _login(books: Books, given: str) -> Login | None:
    try:
        session = session_signer(books.key).unsign(given.encode("latin-1")).decode()
    except (BadSignature, ValueError) as e:
        raise Unknown("the session cookie is not one that this server gave") from e
    return await to_thread.run_sync(books.logins.of_hash, digest(books.key, session))


OIDC = Way(name="oidc", title="OpenID Connect", help="people sign in at your provider", know=know)
