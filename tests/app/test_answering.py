"""What the HTTP API answers where something went wrong."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

from starlette.requests import ClientDisconnect, Request

from app.serve.answering import NotFound, answering
from errors import InputError


class Door:
    """Handlers that end as they are told to."""

    _place = SimpleNamespace(store=SimpleNamespace(root=Path("/store")))

    def __init__(self, error: BaseException):
        self._error = error

    @answering
    async def run(self, request: Request) -> dict:
        raise self._error


def told(error: BaseException) -> tuple[int, dict]:
    request = Request({"type": "http", "query_string": b"", "headers": []})
    answer = asyncio.run(Door(error).run(request))
    return answer.status_code, json.loads(answer.body or b"{}")


def test_a_defect_is_told_as_one_and_where_it_is_stands_in_the_output_alone(capsys):
    status, answer = told(KeyError("/store/secret"))
    assert status == 500 and set(answer) == {"error"}
    assert answer["error"].startswith("this is a defect of Chipledger, not of what was asked (KeyError).")
    assert "secret" not in answer["error"]
    assert "raise self._error" in capsys.readouterr().err


def test_what_was_asked_wrongly_is_no_defect(capsys):
    assert told(InputError("is damaged", where="/store/runs/a"))[0] == 400
    assert told(NotFound("no such run"))[0] == 404
    assert told(ClientDisconnect()) == (400, {})
    assert capsys.readouterr().err == ""
