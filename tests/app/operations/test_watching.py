"""Each request is watched: its id, its template, how long it took, what it moved, who asked."""

import asyncio
import contextlib
import io
import json
import re

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.operations import logs
from app.operations.log_options import AS_JSON
from app.operations.metrics import Figures
from app.operations.watching import Watched
from app.serve.guard import Guard

HERE = "http://127.0.0.1"


class Knows:
    """Stands for a guard that knows who asks."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        with acting_as(Identity(name="ann", role=Role.VIEWER, how="token")):
            await self._app(scope, receive, send)


async def echo(request):
    return PlainTextResponse(b"x" * len(await request.body()))


async def broken(request):
    raise KeyError("odd")


async def talk(websocket):
    await websocket.accept()
    await websocket.send_text("hello")
    await websocket.close()


@pytest.fixture
def client(tmp_path):
    (tmp_path / "a.js").write_text("1")
    figures = Figures()
    app = Starlette(
        routes=[
            Route("/api/runs/{run_id}", echo, methods=["GET", "POST"]),
            Route("/upload/{upload_id}/{name:path}", echo, methods=["PUT"]),
            Route("/api/broken", broken),
            Route("/api/{rest:path}", echo, methods=["GET"]),
            WebSocketRoute("/_stcore/stream", talk),
            Mount("/static", StaticFiles(directory=tmp_path)),
        ],
        middleware=[
            Middleware(Watched, figures=figures, all_told=True),
            Middleware(Guard, loopback=True),
            Middleware(Knows),
        ],
    )
    made = TestClient(app, base_url=HERE, raise_server_exceptions=False)
    made.figures = figures
    return made


def lines_of(act):
    stream = io.StringIO()
    with logs.logging_to(stream, AS_JSON):
        act()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def counted(client, name, *labels):
    families = text_string_to_metric_families(client.figures.text().decode())
    return {
        tuple(s.labels[n] for n in labels): s.value
        for f in families
        for s in f.samples
        if s.name == f"chipledger_{name}"
    }


def test_a_request_is_told_by_its_template_with_who_and_what_it_moved(client):
    secret = "name-of-a-secret-run"
    (line,) = lines_of(
        lambda: client.post(
            f"/api/runs/{secret}?token={secret}",
            content=b"12345",
            headers={"x-request-id": "mine-1", "authorization": f"Bearer {secret}", "cookie": f"a={secret}"},
        )
    )
    assert secret not in json.dumps(line) and "12345" not in json.dumps(line)
    kept = {k: v for k, v in line.items() if k not in ("time", "duration_s")}
    assert kept == {
        "level": "info",
        "event": "request",
        "request_id": "mine-1",
        "method": "POST",
        "route": "/api/runs/{run_id}",
        "status": 200,
        "received_bytes": 5,
        "sent_bytes": 5,
        "who": "ann",
    }
    assert 0 <= line["duration_s"] < 60


@pytest.mark.parametrize(
    "given", ["", "a b", "x" * 65, "-x", "a\tb", "<script>", 'a"b', "a,b", "..", "a/b", "\u00e9", "{}"]
)
def test_an_id_that_cannot_be_written_anywhere_is_replaced(client, given):
    answer = client.get("/api/runs/x", headers={"x-request-id": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


@pytest.mark.parametrize("given", ["a", "A-1_b.c", "x" * 64, "4bf92f3577b34da6a3ce929d0e0e4736"])
def test_an_id_that_was_given_is_echoed(client, given):
    assert client.get("/api/runs/x", headers={"x-request-id": given}).headers["x-request-id"] == given


def test_labels_are_bounded_whatever_is_asked(client):
    for n in range(40):
        client.get(f"/api/runs/{n}")
        client.get(f"/nothing/{n}")
        client.get(f"/api/nothing/{n}")
        client.get(f"/static/{n}.js")
        client.request(f"ODD{n}", f"/api/runs/{n}")
    found = counted(client, "http_requests_total", "method", "route", "status")
    assert found == {
        ("GET", "/api/runs/{run_id}", "200"): 40,
        ("GET", "other", "404"): 40,
        ("GET", "other", "200"): 40,
        ("GET", "/static", "404"): 40,
        ("other", "/api/runs/{run_id}", "405"): 40,
    }


def test_what_the_guard_refuses_is_counted_told_and_carries_the_headers(client):
    def act():
        answer = client.post("/api/runs/x", headers={"origin": "http://evil.example"})
        assert answer.status_code == 403 and answer.headers["x-request-id"]
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")

    (line,) = lines_of(act)
    assert (line["status"], line["route"], line["who"]) == (403, "other", None)


def test_a_defect_below_is_counted_as_one_and_told(client):
    lines = lines_of(lambda: client.get("/api/broken"))
    assert [line["status"] for line in lines if line["event"] == "request"] == [500]
    assert lines[0]["level"] == "error"


def test_what_is_broken_off_is_no_defect():
    async def app(scope, receive, send):
        raise asyncio.CancelledError

    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        with contextlib.suppress(asyncio.CancelledError):
            await Watched(app, Figures(), all_told=True)(scope, None, None)

    (line,) = lines_of(lambda: asyncio.run(ask()))
    assert (line["status"], line["level"]) == (499, "info")


def test_bytes_of_uploads_are_counted_as_they_come(client):
    client.put("/upload/abc/a.log", content=b"x" * 1000)
    client.post("/api/runs/x", content=b"x" * 77)
    assert counted(client, "upload_bytes_total") == {(): 1000}


def test_sessions_are_told_when_they_begin_and_end_and_when_they_are_refused(client):
    def act():
        with client.websocket_connect("ws://127.0.0.1/_stcore/stream") as socket:
            assert socket.receive_text() == "hello"
            assert counted(client, "sessions_opened_total") == {(): 1}
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("ws://127.0.0.1/_stcore/stream", headers={"origin": "http://evil.example"}),
        ):
            pass

    lines = lines_of(act)
    assert [(line["event"], line.get("who")) for line in lines] == [
        ("session_opened", "ann"),
        ("session_closed", "ann"),
        ("session_refused", None),
    ]
    assert counted(client, "sessions") == {(): 0} and counted(client, "sessions_refused_total") == {(): 1}
