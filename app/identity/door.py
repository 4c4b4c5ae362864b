"""What the guard asks of identity: who asks, what they may, and what the audit log is told."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import Scope

from app.identity.base import NOBODY, Identity, Role
from app.identity.books import Books
from app.identity.knowing import known as who_asks
from app.identity.noting import Noting
from app.identity.rights import WEBSOCKET, Right
from app.identity.settings import Settings
from app.identity.table import Table
from app.identity.ways.base import Asked, Known, Unknown
from app.workspace import Workspace
from errors import ChipledgerError
from runs.audit_book import Outcome

UNKNOWN, FORBIDDEN, UNAVAILABLE = 401, 403, 503
LOOK_AGAIN_S = 5.0  # at an open websocket: whether whoever opened it is known still
FROM_HERE = ("same-origin", "none")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What holds for a request: who asks and which record of rights. `refused`: why it is not answered, with `status`.
    `sign_in`: a page of a browser that nobody is signed in with; it is led to `/login`."""

    known: Known
    right: Right
    refused: str = ""
    status: int = 0
    sign_in: str = ""


class Door:
    """Over one workspace, with the settings of identity."""

    def __init__(self, settings: Settings, place: Workspace, pages: Collection[str]):
        self.settings = settings
        self.books, self._pages = Books(settings, place), pages
        self.noting = Noting(place)
        self._table: Table | None = None
        self.stripped = (settings.proxy.secret_header.encode(),) if settings.proxy else ()

    def right(self, scope: Scope) -> Right:
        """The record of rights of a request."""
        if self._table is None:
            routes: list[BaseRoute] = scope["app"].routes
            self._table = Table(routes, self._pages)
        method = WEBSOCKET if scope["type"] == "websocket" else scope["method"]
        return self._table.right(method, scope["path"])

    async def verdict(self, scope: Scope) -> Verdict:
        """Whether a request is answered, and for whom."""
        right, asked = self.right(scope), _asked(scope)
        try:
            known = await who_asks(self.books, asked)
        except Unknown as e:
            nobody = Known(identity=NOBODY, address=asked.peer)
            if right.least is Role.NOBODY:
                return Verdict(known=nobody, right=right)
            return self._refused(scope, nobody, right, str(e), UNKNOWN)
        except ChipledgerError:
            nobody = Known(identity=NOBODY, address=asked.peer)
            if right.least is Role.NOBODY:
                return Verdict(known=nobody, right=right)
            why = "who asks cannot be found out now: the registry cannot be read. Try again"
            return Verdict(known=nobody, right=right, refused=why, status=UNAVAILABLE)
        if known.identity.role < right.least:
            return self._short(scope, known, right)
        if known.browser and _changes(scope) and not _from_here(asked.headers):
            why = "a browser's login writes from this server's own pages alone: send its Origin header, or a token"
            return Verdict(known=known, right=right, refused=why, status=FORBIDDEN)
        return Verdict(known=known, right=right)

    def _short(self, scope: Scope, known: Known, right: Right) -> Verdict:
        """Whoever asks has not the role that it needs."""
        asks = known.identity
        if asks.how == "nobody":
            way = "sign in at /login, or send a token" if self.settings.oidc else "send a token"
            way = f"come through the proxy that signs people in, or {way}" if self.settings.proxy else way
            return self._refused(scope, known, right, f"who asks is not known here: {way}", UNKNOWN)
        if asks.role is Role.NOBODY:
            why = f"{asks.name[:80]} has no role here: an admin can give one"
        else:
            why = f"{asks.name[:80]} is {_a(asks.role)} here, and this needs {_a(right.least)}"
        return Verdict(known=known, right=right, refused=why, status=FORBIDDEN)

    def _refused(self, scope: Scope, known: Known, right: Right, why: str, status: int) -> Verdict:
        leads = self.settings.oidc is not None and scope["type"] == "http" and navigates(scope)
        query = scope["query_string"].decode("latin-1")
        here = scope["path"] + (f"?{query}" if query else "")
        led = f"/login?next={quote(here, safe='/')}" if leads and len(here) < 2000 else "/login" if leads else ""
        return Verdict(known=known, right=right, refused=why, status=status, sign_in=led)

    async def still(self, scope: Scope, identity: Identity) -> bool:
        """Whether whoever opened a websocket is known still, as the same and with the same role."""
        try:
            return (await who_asks(self.books, _asked(scope))).identity == identity
        except ChipledgerError:
            return False

    async def note(
        self, scope: Scope, verdict: Verdict, outcome: Outcome, more: str = "", told: Collection[str] = ()
    ) -> None:
        """Tell the audit log. `told`: what the request changed, each with what it was about."""
        what = verdict.right.what or f"ask {verdict.right.path}"
        about = "; ".join((f"{scope.get('method', WEBSOCKET)} {scope['path']}", *told))
        known = verdict.known
        await to_thread.run_sync(self.noting.note, known.identity, what, about, outcome, more, known.address)


class Again:
    """Whether it is time to look again at whoever opened a websocket."""

    def __init__(self) -> None:
        self._looked_s = time.monotonic()

    def due(self) -> bool:
        now = time.monotonic()
        if now - self._looked_s < LOOK_AGAIN_S:
            return False
        self._looked_s = now
        return True


def _asked(scope: Scope) -> Asked:
    client = scope.get("client")
    return Asked(headers=Headers(scope=scope), peer=client[0] if client else "")


def _changes(scope: Scope) -> bool:
    return scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD", "OPTIONS")


def _from_here(headers: Headers) -> bool:
    """Whether a browser says that a page of this server asks; that it says nothing is not enough where what it sends of
    itself says who asks. That it does not say otherwise was looked at before."""
    return headers.get("sec-fetch-site") == "same-origin" or "origin" in headers or "referer" in headers


def navigates(scope: Scope) -> bool:
    """Whether a person opens a page, rather than a script asking for data."""
    headers = Headers(scope=scope)
    if scope["method"] != "GET" or scope["path"].startswith(("/api/", "/_stcore/", "/media/", "/component/")):
        return False
    return headers.get("sec-fetch-mode", "navigate") == "navigate" and "text/html" in headers.get("accept", "")


def _a(role: Role) -> str:
    return f"{'a' if role is Role.VIEWER else 'an'} {role.word}"
