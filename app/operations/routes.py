"""`/readyz` and `/metrics`: for what watches a server."""

import hmac
import os
import time
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from app.operations.metrics import MEDIA_TYPE, Figures
from app.operations.readiness import Readiness, to_dict
from app.serve.answering import answering
from app.serve.aside import Aside
from app.serve.guard import LOOPBACK_NAMES, is_loopback
from app.workspace import Workspace
from errors import InputError

TOKEN_VARIABLE, TOKEN_FILE_VARIABLE = "CHIPLEDGER_METRICS_TOKEN", "CHIPLEDGER_METRICS_TOKEN_FILE"
KEPT_S = 1.0  # what was found of a server's readiness
LEAST_TOKEN = 16  # characters: fewer can be guessed
_PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def metrics_token() -> str:
    """What a monitor from elsewhere must show; empty: none may come from elsewhere. From a file or the environment,
    never from the command line, which all users of a machine can read. Raises InputError for one that is no secret."""
    named = os.environ.get(TOKEN_FILE_VARIABLE)
    try:
        text = Path(named).read_text(encoding="utf-8") if named else os.environ.get(TOKEN_VARIABLE, "")
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or "no text"
        raise InputError(f"cannot be read ({why})", where=f"${TOKEN_FILE_VARIABLE}") from e
    token = text.strip()
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        where = f"${TOKEN_FILE_VARIABLE if named else TOKEN_VARIABLE}"
        expected = f"at least {LEAST_TOKEN} plain characters, such as of `openssl rand -hex 32`"
        raise InputError("this is no token", where=where, expected=expected)
    return token


def may_read_metrics(scope: Scope, token: str) -> bool:
    """Whoever is on this machine and came straight here, and whoever shows the token."""
    headers = Headers(scope=scope)
    scheme, _, shown = headers.get("authorization", "").partition(" ")
    if token and scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode()):
        return True
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    straight = name.casefold() in LOOPBACK_NAMES and not any(h in headers for h in _PASSED_ON)
    return straight and is_loopback((scope.get("client") or ("",))[0])


class Operations:
    """The handlers."""

    def __init__(self, place: Workspace, figures: Figures, readiness: Readiness, token: str = ""):
        self._place, self._figures, self._readiness, self._token = place, figures, readiness, token
        self._aside = Aside()
        self._looked: tuple[float, dict[str, Any]] = (float("-inf"), {})

    def routes(self) -> list[Route]:
        return [
            Route("/readyz", self.ready, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
        ]

    @answering
    async def ready(self, request: Request) -> Any:
        """200 where the server can do its work, else 503: each check with a sentence where it fails. `needed`: false of
        what only makes it slower."""
        told = await self._aside.run(self._told)
        return JSONResponse(told, status_code=200 if told["status"] == "ready" else 503)

    def _told(self) -> dict[str, Any]:
        """What was looked at within KEPT_S is not looked at again: whoever asks may be anybody."""
        if time.monotonic() - self._looked[0] > KEPT_S:
            self._looked = time.monotonic(), to_dict(self._readiness.checks())
        return self._looked[1]

    @answering
    async def metrics(self, request: Request) -> Any:
        """Figures for a monitor, in the text format of OpenMetrics: to this machine itself, and to who shows the token
        of `CHIPLEDGER_METRICS_TOKEN_FILE` as `Authorization: Bearer`."""
        if not may_read_metrics(request.scope, self._token):
            error = "figures are for this machine itself, and for who shows the token of the monitor"
            return JSONResponse({"error": error}, status_code=403)
        return Response(await run_in_threadpool(self._figures.text), media_type=MEDIA_TYPE)
