"""Runs held against one another, over HTTP: two, several, and those of a history."""

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app.baselines import find_run
from app.comparing.answer import Compared
from app.comparing.modelled import beside_model
from app.comparing.modelled_words import told
from app.comparing.options import LOADS, SIDES, WHATIF, A, B
from app.comparing.several import options as several_options
from app.comparing.several.told import told_of_several
from app.history import options as history_options
from app.history.told import Asked, tell
from app.options import from_query
from app.serve.answering import NotFound, answering
from app.workspace import Workspace
from errors import QuestionError
from runs.run import Run

COMPARED = (*SIDES, *LOADS, WHATIF)


def both(place: Workspace, given: Mapping[str, Any]) -> tuple[Run, Run]:
    """The two that are asked about, each by id, name or `baseline:NAME`. Raises NotFound, and QuestionError where one
    is not named."""
    if missing := [o.name for o in SIDES if given.get(o.name) is None]:
        raise QuestionError("two runs are compared", expected=" and ".join(missing))
    try:
        a, b = (find_run(place, given[o.name]) for o in SIDES)
    except QuestionError as e:
        raise NotFound(str(e)) from e
    return a, b


class Comparing:
    """The handlers."""

    def __init__(self, place: Workspace):
        self._place = place

    def routes(self) -> list[Route]:
        return [
            Route("/api/compare", self.compare, methods=["GET"]),
            Route("/api/several", self.several, methods=["GET"]),
            Route("/api/history", self.history, methods=["GET"]),
        ]

    @answering
    async def compare(self, request: Request) -> Any:
        """Run `b` against run `a`, as `chipledger compare --json` has it; `load_a`, `load_b` of served runs. With
        `whatif` instead of `b`: against what the model of training says."""
        given = from_query(request.query_params.multi_items(), COMPARED)
        if WHATIF.name in given:
            return await run_in_threadpool(self._beside_model, given)
        a, b = await run_in_threadpool(both, self._place, given)
        found = await run_in_threadpool(Compared, a, b, self._place, *(given.get(o.name) for o in LOADS))
        return found.to_dict()

    def _beside_model(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if A.name not in given:
            raise QuestionError(f"no run to hold against {WHATIF.name}", expected=f"{A.name} and {WHATIF.name}")
        if {B.name, *(o.name for o in LOADS)} & given.keys():
            raise QuestionError(f"{WHATIF.name} beside another run or a load", expected=f"{A.name} and {WHATIF.name}")
        try:
            find_run(self._place, given[A.name])
        except QuestionError as e:
            raise NotFound(str(e)) from e
        return told(beside_model(given[A.name], given[WHATIF.name], self._place))

    @answering
    async def several(self, request: Request) -> Any:
        """Several runs beside one another, as `chipledger compare A B C --json` has it: of `runs` by id or name, of a
        search `q`, or of a `group`. Figures that are still being worked out are counted as `pending`."""
        given = from_query(request.query_params.multi_items(), several_options.ASKED)
        return await run_in_threadpool(told_of_several, self._place, given)

    @answering
    async def history(self, request: Request) -> Any:
        """A metric over many runs, as `chipledger history --json` has it: each point with its range, where it changed
        for good, and whether it drifts. `metric` must be given; runs by `search`, `group` or `name`."""
        asked = Asked.of(from_query(request.query_params.multi_items(), history_options.ASKED))
        return (await run_in_threadpool(tell, asked, self._place)).to_dict()
