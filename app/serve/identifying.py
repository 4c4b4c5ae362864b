"""Who asks, tokens and the audit log over the API."""

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.identity import tokens
from app.identity.asking import who
from app.identity.audit import AS, MOST, SINCE, csv_of, entries
from app.identity.base import Role
from app.identity.door import Door
from app.identity.may import changing
from app.options import from_query
from app.serve.answering import NotFound, answering
from app.serve.ingesting import line
from app.serve.requests import json_object
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors.nearest import did_you_mean

FIELDS = ("name", "role", "expires_days", "groups")
ROLES = tuple(role.word for role in (Role.VIEWER, Role.UPLOADER, Role.ADMIN))


class Identifying:
    """The handlers. `door`: None where no identity is set up."""

    def __init__(self, place: Workspace, door: Door | None):
        self._place, self._door = place, door

    def routes(self) -> list[Route]:
        return [
            Route("/api/whoami", self.whoami, methods=["GET"]),
            Route("/api/tokens", self.tokens, methods=["GET"]),
            Route("/api/tokens", self.create_token, methods=["POST"]),
            Route("/api/tokens/{token_id}", self.revoke_token, methods=["DELETE"]),
            Route("/api/audit", self.audit, methods=["GET"]),
        ]

    @answering
    async def whoami(self, request: Request) -> Any:
        """Who asks: name, role, groups, and by what the server knows them (`open`: no identity is set up)."""
        asks = who()
        return {"name": asks.name, "role": asks.role.word, "groups": sorted(asks.groups), "how": asks.how}

    @answering
    async def tokens(self, request: Request) -> Any:
        """Every token: name, role, groups, by whom and when, until when, when used last, whether valid still."""
        kept = await run_in_threadpool(tokens.listed, self._place)
        return {"tokens": [token.to_dict() for token in kept]}

    @answering
    async def create_token(self, request: Request) -> Any:
        """Make a token: `{"name": "ci", "role": "uploader", "expires_days": 90, "groups": []}`. What it is, `token`, is
        told in this answer and nowhere else."""
        name, role, days, groups = _wanted(await json_object(request))
        create = changing("create a token", Role.ADMIN)(tokens.create)
        made = await run_in_threadpool(lambda: create(self._place, name, role, days=days, groups=groups))
        return {**made[0].to_dict(), "token": made[1]}

    @answering
    async def revoke_token(self, request: Request) -> Any:
        """Revoke a token, by its id, or its name where one alone has it."""
        try:
            gone = await run_in_threadpool(tokens.revoke, self._place, request.path_params["token_id"])
        except QuestionError as e:
            raise NotFound(str(e)) from e
        if self._door is not None:
            self._door.books.forget()
        return gone.to_dict()

    @answering
    async def audit(self, request: Request) -> Any:
        """The audit log, the newest first: who, what, when, about what, from where, and what came of it. `since`: a
        date or a time ago; `format=csv`: as a table."""
        given = from_query(request.query_params.multi_items(), (SINCE, MOST, AS))
        told = await run_in_threadpool(entries, self._place, given.get(SINCE.name), given.get(MOST.name))
        if given.get(AS.name) == "csv":
            name = "attachment; filename=audit.csv"
            return Response(csv_of(told), media_type="text/csv", headers={"Content-Disposition": name})
        return {"audit": [entry.to_dict() for entry in told]}


def _wanted(given: dict[str, Any]) -> tuple[str, Role, float | None, list[str]]:
    """Name, role, days (None: no end) and groups of a token. Raises InputError."""
    if unknown := next((name for name in given if name not in FIELDS), None):
        raise _wrong(f"no field {unknown[:40]!r} here", f"one of {', '.join(FIELDS)}", did_you_mean(unknown, FIELDS))
    role = given.get("role")
    if role not in ROLES:
        raise _wrong(f"role {json.dumps(role)[:40]}", f"one of {', '.join(ROLES)}")
    days = given.get("expires_days", tokens.DAYS)
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not _possible(days)):
        raise _wrong(
            "'expires_days' is not understood", f"above 0, up to {tokens.MOST_DAYS:,}; null: it does not expire"
        )
    groups = given.get("groups") or []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise _wrong("'groups' is not understood", "a list of names")
    return line(given.get("name") or "", "name"), Role[role.upper()], days, groups


def _possible(days: float) -> bool:
    return 0 < days <= tokens.MOST_DAYS


def _wrong(what: str, expected: str, advice: str = "") -> InputError:
    return InputError(what, where="request", expected=expected, advice=advice)
