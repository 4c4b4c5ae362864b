"""Pages that are files of a folder: each kind has a policy of its own, and loads nothing from elsewhere."""

from abc import ABC, abstractmethod
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send


class Folder(ABC):
    """The pages of `folder` at /`at`/. None: they are not installed."""

    missing: tuple[str, int]  # the sentence and the status where they are not there
    no_page: str  # the sentence of an address without a page

    def __init__(self, at: str, folder: Path | None, *, html: bool):
        """`html`: addresses of folders answer with their index."""
        self._at, self._folder = at, folder
        self._files = StaticFiles(directory=folder, html=html, check_dir=False) if folder else None

    def routes(self) -> list[BaseRoute]:
        return [Route(self._at, lambda request: RedirectResponse(f"{self._at}/")), Mount(self._at, self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = await self._answer(scope)
        answer.headers["Content-Security-Policy"] = self.policy()
        await answer(scope, receive, send)

    @abstractmethod
    def policy(self) -> str:
        """What its pages may load and run."""

    @abstractmethod
    async def page(self, files: StaticFiles, scope: Scope) -> Response:
        """The answer, of what is there. Raises HTTPException where it is not."""

    def _there(self) -> bool:
        return self._folder is not None and (self._folder / "index.html").is_file()

    async def _answer(self, scope: Scope) -> Response:
        if self._files is None or not self._there():
            return PlainTextResponse(self.missing[0], status_code=self.missing[1])
        try:
            return await self.page(self._files, scope)
        except HTTPException as e:
            return PlainTextResponse(self.no_page if e.status_code == 404 else e.detail, status_code=e.status_code)
