"""Baselines over the API: names for the runs that others are held against."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app import baselines
from app.serve.answering import NotFound, answering
from app.serve.requests import json_object
from app.serve.shelving import checked
from app.workspace import Workspace
from errors import QuestionError

MOVED = ("run", "who", "why")


class Baselining:
    """The handlers."""

    def __init__(self, place: Workspace):
        self._place = place

    def routes(self) -> list[Route]:
        one = "/api/baselines/{name:path}"
        return [
            Route("/api/baselines", self.baselines, methods=["GET"]),
            Route(one, self.baseline, methods=["GET"]),
            Route(one, self.set_baseline, methods=["PUT"]),
            Route(one, self.accept_baseline, methods=["PATCH"]),
            Route(one, self.remove_baseline, methods=["DELETE"]),
        ]

    @answering
    async def baselines(self, request: Request) -> Any:
        """Every baseline: the run that it leads to, since when, by whom and why, and whether that run is in the
        library, in the bin, or no longer in the store."""
        found = await run_in_threadpool(baselines.baselines, self._place)
        return {"baselines": [b.to_dict() for b in found]}

    @answering
    async def baseline(self, request: Request) -> Any:
        """Where a baseline leads (`null`: it was removed), and all that it ever led to, the newest first."""
        now, past = await run_in_threadpool(self._known, request.path_params["name"])
        return {"baseline": now.to_dict() if now else None, "history": [m.to_dict() for m in past]}

    @answering
    async def set_baseline(self, request: Request) -> Any:
        """Name a run: `{"run": "...", "who": "ann", "why": "..."}`. A name that leads to another run is left as it is,
        and that is an error."""
        name, given = request.path_params["name"], checked(await json_object(request), MOVED, ("run",))
        run, more = self._run(given)
        found = await run_in_threadpool(lambda: baselines.set_baseline(self._place, name, run, **more))
        return {"baseline": found.to_dict()}

    @answering
    async def accept_baseline(self, request: Request) -> Any:
        """Lead a baseline to another run: `{"run": "...", "who": "ann", "why": "..."}`. What it led to before stays
        told."""
        name, given = request.path_params["name"], checked(await json_object(request), MOVED, ("run",))
        self._known(name)
        run, more = self._run(given)
        before, now = await run_in_threadpool(lambda: baselines.accept(self._place, name, run, **more))
        return {"baseline": now.to_dict(), "before": before.to_dict()}

    @answering
    async def remove_baseline(self, request: Request) -> Any:
        """Take a baseline's name away. Its history stays."""
        name = request.path_params["name"]
        self._known(name)
        removed = await run_in_threadpool(lambda: baselines.remove(self._place, name))
        return {"removed": removed.to_dict()}

    def _known(self, name: str) -> Any:
        try:
            return baselines.shown(self._place, name)
        except QuestionError as e:
            raise NotFound(str(e)) from e

    @staticmethod
    def _run(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return given["run"], {k: given[k] for k in ("who", "why") if k in given}
