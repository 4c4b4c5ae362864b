"""What handlers of the HTTP API share: errors of ours, and defects, as JSON."""

import functools
import traceback
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from app.quota import OverQuota
from app.serve.places import placeless
from app.serve.uploads import TooLarge
from errors import ChipledgerError, QuestionError
from errors.options import once_each

ASKED = frozenset(
    ("compare", "several", "history", "show", "show_model", "whatif", "topology", "query", "job", "runs", "delete")
    + ("tiles", "event", "search", "selection", "arrows", "step", "perfetto")  # of a timeline
    + ("fleet", "budgets", "digest")
    + ("report", "report_of_two")
)
"""Handlers that read parameters; others take none."""


class NotFound(QuestionError):
    """What the address names does not exist."""


def answering(handler: Callable) -> Callable:
    """A handler whose errors of ours become JSON."""

    @functools.wraps(handler)
    async def wrapped(self: Any, request: Request) -> Response:
        try:
            if handler.__name__ not in ASKED:
                once_each(request.query_params.multi_items(), ())
            answer = await handler(self, request)
            return answer if isinstance(answer, Response) else JSONResponse(answer)
        except ChipledgerError as e:
            code = 413 if isinstance(e, TooLarge | OverQuota) else 404 if isinstance(e, NotFound) else 400
            # the rest of a refused body is not read: without the header it would be taken for the next request
            error = placeless(str(e), self._place.store.root)
            return JSONResponse({"error": error}, status_code=code, headers={"Connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as e:  # who asked is told that it is not their fault; the log holds where it is
            traceback.print_exception(e)
            error = f"this is a defect of Chipledger, not of what was asked ({type(e).__name__})"
            advice = "The server's output tells where: please report it with those lines."
            return JSONResponse({"error": f"{error}. {advice}"}, status_code=500, headers={"Connection": "close"})

    return wrapped
