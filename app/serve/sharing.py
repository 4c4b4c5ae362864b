"""Who sees which run, over the API."""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app import sharing
from app.serve.answering import answering, found
from app.serve.requests import json_object
from app.serve.shelving import WHERE
from app.workspace import Workspace
from errors import InputError
from runs.run import Run

GROUPS = "groups"


class Sharing:
    """The handlers. `find`: a run by its name in an address; raises NotFound."""

    def __init__(self, place: Workspace, find: Callable[[str], Run]):
        self._place, self._find = place, find

    def routes(self) -> list[Route]:
        one = "/api/runs/{run_id}/groups"
        return [Route(one, self.groups, methods=["GET"]), Route(one, self.share, methods=["PATCH"])]

    @answering
    async def groups(self, request: Request) -> Any:
        """The groups of people whose members see a run, and admins; of none, all who are signed in see it."""
        run = await found(self._find, request.path_params["run_id"])
        return {"run_id": run.run_id, GROUPS: await run_in_threadpool(sharing.groups_of, self._place, run.run_id)}

    @answering
    async def share(self, request: Request) -> Any:
        """Let members of these groups see a run, and nobody else but admins: `{"groups": ["llm"]}`. None in the list:
        all who are signed in. Whoever asks must be in each group that the run was not in before."""
        run = await found(self._find, request.path_params["run_id"])
        given = await json_object(request)
        teams = given.pop(GROUPS, None)
        if given:
            raise InputError(f"no field {str(next(iter(given)))[:40]!r} here", where=WHERE, expected=GROUPS)
        if not isinstance(teams, list) or not all(isinstance(team, str) for team in teams):
            raise InputError(f"{GROUPS!r} is not understood", where=WHERE, expected="a list of texts")
        done = await run_in_threadpool(sharing.share, self._place, [run.run_id], teams)
        return {"run_id": run.run_id, GROUPS: list(done.groups)}
