"""What is told of a server's health waits for no thread that others have, and no request holds up the loop of all."""

import asyncio

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from app.serve.api import Api
from app.serve.aside import MOST, Aside
from app.serve.jobs import Jobs
from app.serve.xprof import Xprof
from app.workspace import workspace
from errors import QuestionError
from runs.store import Store


def test_it_is_answered_while_all_other_threads_are_taken():
    async def asked() -> list[int]:
        others = to_thread.current_default_thread_limiter()
        for _ in range(int(others.total_tokens)):
            others.acquire_on_behalf_of_nowait(object())
        found, aside = [], Aside()

        async def ask(number: int) -> None:
            found.append(await aside.run(lambda: number))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(3 * MOST):
                    tasks.start_soon(ask, number)
        return sorted(found)

    assert anyio.run(asked) == list(range(3 * MOST))


def test_no_run_is_looked_for_in_the_loop(tmp_path, monkeypatch):
    """By a name, or the beginning of an id, all runs are looked at: of many thousands that takes seconds."""
    looked = list[bool]()

    def find(self, name):
        try:
            asyncio.get_running_loop()
            looked.append(False)
        except RuntimeError:
            looked.append(True)
        raise QuestionError("no such run")

    place = workspace(str(tmp_path / "store"))
    monkeypatch.setattr(Store, "find", find)
    routes = Api(place, Jobs()).routes() + Xprof(place).routes()
    client = TestClient(Starlette(routes=routes), base_url="http://127.0.0.1", follow_redirects=False)
    fill = {"run_id": "some-name", "analysis": "ledger", "number": "1", "name": "training"}
    asked = [
        (method, route.path.format(**fill))
        for route in routes
        if isinstance(route, Route) and "{run_id}" in route.path and "rest" not in route.path
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]
    asked += [("GET", "/api/compare?a=some&b=other"), ("GET", "/api/compare/report?a=some&b=other")]
    for method, path in [*asked, ("PATCH", "/api/runs")]:
        body = {"starred": True} | ({"runs": ["some-name"]} if path == "/api/runs" else {})
        client.request(method, path, json=body if method in ("PATCH", "POST") else None)
        assert all(looked), (method, path)
    assert len(looked) > 20
