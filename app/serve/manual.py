"""The docs at /docs/: files of the built site, under a policy of their own: they load nothing from elsewhere."""

import json
from pathlib import Path

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from app.manual import AT, SCRIPTS, SITE

MISSING = "The docs were not built here: `python -m app.manual` in a clone builds them, and `make run` does."
NO_PAGE = f"The docs have no such page; they begin at {AT}/."


class Manual:
    """Files of the site. Only the scripts that were in its pages when it was built may run."""

    def __init__(self, site: Path = SITE):
        self._site = site
        self._files = StaticFiles(directory=site, html=True, check_dir=False)

    def routes(self) -> list[BaseRoute]:
        return [Route(AT, lambda request: RedirectResponse(f"{AT}/")), Mount(AT, self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = await self._answer(scope)
        answer.headers["Content-Security-Policy"] = self._policy()
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        from starlette.exceptions import HTTPException

        if not (self._site / "index.html").is_file():
            return PlainTextResponse(MISSING, status_code=404)
        try:
            return await self._files.get_response(self._files.get_path(scope), scope)
        except HTTPException as e:
            return PlainTextResponse(NO_PAGE if e.status_code == 404 else e.detail, status_code=e.status_code)

    def _policy(self) -> str:
        try:
            hashes = json.loads((self._site / SCRIPTS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            hashes = []
        scripts = " ".join(["'self'", *(f"'{h}'" for h in hashes)])
        return (
            f"default-src 'none'; script-src {scripts}; worker-src 'self'; connect-src 'self'; img-src 'self' data:; "
            "style-src 'self' 'unsafe-inline'; font-src 'self'; base-uri 'self'; form-action 'self'; "
            "frame-ancestors 'self'"
        )
