"""Signing in and out at `/login` and `/logout`: the browser goes to the provider and comes back with a code, once.

What belongs to one try (state, nonce, PKCE's verifier, where to go on) travels in a signed cookie of its own; a state
that came back is not taken a second time.
"""

import re
import secrets
import time
from collections import OrderedDict
from typing import Any

from anyio import to_thread
from itsdangerous import BadSignature
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app.identity.base import NOBODY, Identity
from app.identity.cookies import (
    LOGIN_PATH,
    LOGIN_S,
    cookies_in,
    drop_cookie,
    login_name,
    login_signer,
    session_in,
    session_name,
    session_signer,
    set_cookie,
)
from app.identity.door import Door
from app.identity.plain_page import plain_page
from app.identity.provider import NoLogin, Provider, word
from app.identity.settings import Oidc
from app.identity.tokens import digest
from app.serve.places import placeless
from errors import ChipledgerError
from runs.audit_book import Outcome
from runs.login_book import Login

MOST_CAME_BACK = 10_000
_STATE = re.compile(r"[A-Za-z0-9_-]{1,200}")
AGAIN = ("Sign in again", "/login")
NO_PROVIDER = "No provider is set up to sign in at: come through the proxy that signs people in, or send a token."


class Signing:
    """The handlers. Without a provider they say so."""

    def __init__(self, door: Door | None):
        self._door = door
        self._oidc: Oidc | None = door.settings.oidc if door else None
        self._provider = Provider(self._oidc) if self._oidc else None
        self._came_back: OrderedDict[str, None] = OrderedDict()

    def routes(self) -> list[Route]:
        return [
            Route("/login", self.begin, methods=["GET"]),
            Route("/login/callback", self.come_back, methods=["GET"]),
            Route("/logout", self.leaving, methods=["GET"]),
            Route("/logout", self.leave, methods=["POST"]),
        ]

    async def begin(self, request: Request) -> Response:
        """Send the browser to the provider."""
        if self._door is None or self._oidc is None or self._provider is None:
            return _nothing_here()
        try:
            begun = await self._provider.begin()
        except NoLogin as e:
            return await self._failed(request, str(e), 502)
        kept = {"nonce": begun.nonce, "verifier": begun.verifier, "next": within(request.query_params.get("next"))}
        cookie = login_signer(self._door.books.key).dumps({**kept, "state": begun.state})
        answer = RedirectResponse(begun.url, 303, {"Cache-Control": "no-store"})
        name = login_name(begun.state)
        set_cookie(answer, self._oidc, name, str(cookie), seconds=LOGIN_S, path=LOGIN_PATH)
        return answer

    async def come_back(self, request: Request) -> Response:
        """The provider sent the browser back: whoever it is, is signed in."""
        if self._door is None or self._oidc is None or self._provider is None:
            return _nothing_here()
        state = request.query_params.get("state", "")
        state = state if _STATE.fullmatch(state) else ""
        try:
            begun = self._begun(request, state)
            if error := request.query_params.get("error"):
                raise NoLogin(f"the provider refused ({word(error)})")
            person = await self._provider.person(
                request.query_params.get("code", "")[:4000], begun["nonce"], begun["verifier"]
            )
            answer = await self._signed_in(person.name, person.groups, begun["next"])
        except ChipledgerError as e:
            answer = await self._failed(request, str(e), 400)
        else:
            groups = frozenset(person.groups)
            role = self._door.settings.roles.of(person.name, groups)
            await self._note(
                request, Identity(name=person.name, role=role, groups=groups, how="oidc"), "sign in", "done"
            )
        drop_cookie(answer, self._oidc, login_name(state), path=LOGIN_PATH)
        return answer

    def _begun(self, request: Request, state: str) -> dict[str, Any]:
        """What was kept of the try that comes back. Raises NoLogin for one that this browser did not begin, or that
        came back already."""
        assert self._door is not None
        given = cookies_in(request.headers).get(login_name(state), "") if state else ""
        try:
            begun = login_signer(self._door.books.key).loads(given, max_age=LOGIN_S)
        except BadSignature as e:
            raise NoLogin("this browser began no such login, or too long ago", advice="Sign in again.") from e
        if not isinstance(begun, dict) or not secrets.compare_digest(str(begun.get("state")).encode(), state.encode()):
            raise NoLogin("this browser began another login", advice="Sign in again.")
        if state in self._came_back:
            raise NoLogin("this login came back already", advice="Sign in again.")
        self._came_back[state] = None
        while len(self._came_back) > MOST_CAME_BACK:
            self._came_back.popitem(last=False)
        return begun

    async def _signed_in(self, name: str, groups: tuple[str, ...], after: str) -> Response:
        assert self._door is not None and self._oidc is not None
        books, seconds = self._door.books, int(self._oidc.session_hours * 3600)
        session = secrets.token_urlsafe(32)
        login = Login(name=name, groups=groups, ends_ns=time.time_ns() + seconds * 1_000_000_000)
        await to_thread.run_sync(books.logins.keep, digest(books.key, session), login)
        answer = RedirectResponse(within(after), 303, {"Cache-Control": "no-store"})
        cookie = session_signer(books.key).sign(session).decode()
        set_cookie(answer, self._oidc, session_name(self._oidc), cookie, seconds=seconds)
        return answer

    async def leaving(self, request: Request) -> Response:
        """A page with a button: what signs out is a POST, that no link of another site can be."""
        known = request.scope.get("chipledger.known")
        name = known.identity.name if known else ""
        if self._oidc is None:
            return plain_page("No login to end", "Nobody signs in and out at this server itself.", link=("Back", "/"))
        if not name:
            return plain_page("Nobody is signed in here", "There is no login to end.", link=("Sign in", "/login"))
        return plain_page(
            "Sign out?", f"You are signed in as {name}.", form=("Sign out", "/logout"), link=("Back", "/")
        )

    async def leave(self, request: Request) -> Response:
        """Sign out: the session ends here, in every copy of its cookie."""
        if self._door is None or self._oidc is None or self._provider is None:
            return _nothing_here()
        books, given = self._door.books, session_in(request.headers, self._oidc)
        if given is not None:
            try:
                session = session_signer(books.key).unsign(given.encode("latin-1")).decode()
                await to_thread.run_sync(books.logins.end, digest(books.key, session))
                books.forget()
                known = request.scope.get("chipledger.known")
                await self._note(request, known.identity if known else NOBODY, "sign out", "done")
            except (BadSignature, ValueError):
                pass  # it was none of ours: it goes all the same
            except ChipledgerError:
                why = "The registry cannot be written now: your session stands still. Try again."
                return plain_page("You could not be signed out", why, form=("Sign out", "/logout"), status=503)
        link = ("Sign out of the provider too", left) if (left := await self._provider.leave()) else AGAIN
        answer = plain_page("You are signed out", "This browser is known here no longer.", link=link)
        drop_cookie(answer, self._oidc, session_name(self._oidc))
        return answer

    async def _failed(self, request: Request, why: str, status: int) -> Response:
        assert self._door is not None
        why = placeless(why, self._door.books.place.store.root)
        await self._note(request, NOBODY, "sign in", "refused", why)
        return plain_page("You could not be signed in", f"{why.rstrip('.')}.", link=AGAIN, status=status)

    async def _note(self, request: Request, who: Identity, what: str, outcome: Outcome, why: str = "") -> None:
        assert self._door is not None
        known = request.scope.get("chipledger.known")
        address = known.address if known else request.client.host if request.client else ""
        await to_thread.run_sync(self._door.noting.note, who, what, "", outcome, why, address)


def within(text: str | None) -> str:
    """Where to go on after a login: a path of this server, nothing that a browser would take for another's."""
    path = text or "/"
    plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) < 2000
    if not plain or not path.startswith("/") or path.startswith(("//", "/login", "/logout")):
        return "/"
    return path


def _nothing_here() -> Response:
    return plain_page("There is no login here", NO_PROVIDER, status=404)
