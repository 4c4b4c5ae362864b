"""The fleet over the API: its sums, what is left of budgets, and the weekly digest. What teams may spend is set on the
command line alone."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app.fleet import budgets, digest
from app.fleet.asking import ask_fleet, zone_named
from app.fleet.options import OPTIONS, RUNS, ZONE
from app.options import from_query
from app.serve.answering import answering
from app.sharing import counted
from app.workspace import Workspace


class Fleets:
    """The handlers, over one workspace."""

    def __init__(self, place: Workspace):
        self._place = place

    def routes(self) -> list[Route]:
        return [
            Route("/api/fleet", self.fleet, methods=["GET"]),
            Route("/api/budgets", self.budgets, methods=["GET"]),
            Route("/api/digest", self.digest, methods=["GET"]),
        ]

    @answering
    async def fleet(self, request: Request) -> Any:
        """All runs as one ledger, as `chipledger fleet --json` has it: sums by team, chip, model or tag, by period, and
        by cause. Runs whose numbers are still being worked out are left out and counted (`left_out`)."""
        given = from_query(request.query_params.multi_items(), OPTIONS)
        result = await run_in_threadpool(ask_fleet, self._place, given)
        return _told(result.to_dict(given.get(RUNS.name, RUNS.default)))

    @answering
    async def budgets(self, request: Request) -> Any:
        """What each team may spend this month, what it spent, what is left, and what the month may come to (modelled).
        `zone`: whose month it is. Where runs of the team are not counted (`left_out`), `spent` is at least that."""
        given = from_query(request.query_params.multi_items(), (ZONE,))
        zone = zone_named(given.get(ZONE.name) or ZONE.default)
        told = await run_in_threadpool(budgets.standing, self._place, zone)
        return _told({"budgets": [b.to_dict() for b in told]})

    @answering
    async def digest(self, request: Request) -> Any:
        """The last whole week beside the one before: what was held and lost, and budgets near their end. `zone`: whose
        week it is."""
        given = from_query(request.query_params.multi_items(), (ZONE,))
        zone = zone_named(given.get(ZONE.name) or ZONE.default)
        told = await run_in_threadpool(digest.of_last_week, self._place, zone)
        return _told(told.to_dict())


def _told(sums: dict[str, Any]) -> dict[str, Any]:
    """With which runs are counted, where that may not be all."""
    return {**sums, "counted": said} if (said := counted()) else sums
