"""What handlers of the HTTP API share: errors of ours, and defects, as JSON."""

import functools
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from app.identity.may import NotAllowed
from app.operations import logs
from app.quota import OverQuota
from app.serve.places import placeless
from app.serve.stopping import Stopping
from app.serve.upload_room import TooLarge
from errors import ChipledgerError, QuestionError
from errors.options import once_each
from runs.run import Run

ASKED = frozenset(
    ("compare", "several", "history", "show", "show_model", "whatif", "topology", "query", "job", "runs", "delete")
    + ("tiles", "event", "search", "selection", "arrows", "step", "perfetto")  # of a timeline
    + ("fleet", "budgets", "digest")
    + ("report", "report_of_two")
    + ("audit",)
)
"""Handlers that read parameters; others take none."""
BODIES = frozenset(
    ("label", "label_many", "add_note", "edit_note", "save_search", "set_baseline", "accept_baseline", "say", "begin")
    + ("ingest", "compile", "capture", "receive", "create", "append", "share", "create_token", "add")
)
"""Handlers that read a body."""


class NotFound(QuestionError):
    """What the address names does not exist."""


CODES: tuple[tuple[type[ChipledgerError], int], ...] = (
    (TooLarge, 413),
    (OverQuota, 413),
    (NotFound, 404),
    (NotAllowed, 403),
    (Stopping, 503),
)
"""Status of the errors that have one of their own."""


def answering(handler: Callable) -> Callable:
    """A handler whose errors of ours become JSON."""

    @functools.wraps(handler)
    async def wrapped(self: Any, request: Request) -> Response:
        try:
            if handler.__name__ not in ASKED:
                once_each(request.query_params.multi_items(), ())
            if handler.__name__ not in BODIES:
                _bodiless(request)
            answer = await handler(self, request)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except ChipledgerError as e:
            code = next((c for kind, c in CODES if isinstance(e, kind)), getattr(e, "status", 400))
            # the rest of a refused body is not read: without the header it would be taken for the next request
            error = placeless(str(e), self._place.store.root)
            return JSONResponse({"error": error}, status_code=code, headers={"Connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as e:  # who asked is told that it is not their fault; the log holds where it is
            logs.tell_defect(e)
            error = f"this is a defect of Chipledger, not of what was asked ({type(e).__name__})"
            advice = "The server's output tells where: please report it with those lines."
            return JSONResponse({"error": f"{error}. {advice}"}, status_code=500, headers={"Connection": "close"})

    return wrapped


async def found(find: Callable[[str], Run], name: str) -> Run:
    """The run of a name, found beside the loop: to know a name, or the beginning of an id, all runs are looked at, and
    of many thousands that takes seconds, in which nobody else would be answered."""
    return await run_in_threadpool(find, name)


def _bodiless(request: Request) -> None:
    """Raises QuestionError for fields that nothing would read."""
    kind, length = request.headers.get("content-type", ""), request.headers.get("content-length", "0")
    if kind.startswith("application/json") and length != "0":
        raise QuestionError(f"no field is taken by {request.method} here", expected="parameters of the address alone")
