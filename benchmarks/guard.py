"""What the guard costs a request, in CPU microseconds: who asks, which record of rights, what is told to what follows.

    python -m benchmarks.guard [--requests 20000]

The routes are those of the real application; behind the guard nothing is done. `nothing` is that alone.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.types import ASGIApp

from app.identity.base import Role
from app.identity.door import Door
from app.identity.settings import read
from app.identity.tokens import create
from app.pages.all import every_page
from app.serve.guard import Guard
from app.workspace import STORE_VARIABLE, workspace

SETTINGS = '[roles.admin]\npeople = ["ann@x"]\n[proxy]\nuser_header = "X-User"\nfrom = ["10.0.0.1"]\n'
BROWSER = {
    "host": "localhost:8501",
    "user-agent": "x" * 100,
    "accept": "text/html",
    "accept-language": "en",
    "accept-encoding": "gzip",
    "sec-fetch-site": "same-origin",
    "sec-fetch-mode": "cors",
    "referer": "http://localhost:8501/",
}
Make = Callable[[int], dict[str, Any]]


def routes() -> list[Any]:
    """Those of the application that `serve` would run."""
    import streamlit as st

    from app.serve.server import serve

    made: list[Any] = []
    st.App.run = lambda app, config: made.append(app)  # pyright: ignore[reportAttributeAccessIssue]
    serve("127.0.0.1", 0)
    return list(made[0]._build_starlette_app().routes)


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def measured(app: ASGIApp, make: Make, requests: int) -> float:
    """CPU microseconds a request, less what making it takes."""

    async def send(message: Any) -> None: ...

    async def receive() -> Any: ...

    for number in range(100):
        await app(make(number), receive, send)
    began = time.process_time()
    for number in range(requests):
        await app(make(number), receive, send)
    asked, began = time.process_time() - began, time.process_time()
    for number in range(requests):
        make(number)
    return (asked - (time.process_time() - began)) / requests * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STORE_VARIABLE] = str(Path(folder) / "store")
        file = Path(folder) / "identity.toml"
        file.write_text(SETTINGS)
        app, place = SimpleNamespace(routes=routes()), workspace()
        door = Door(read(file), place, {f"/{page.path}" for page in every_page()})
        token = create(place, "benchmark", Role.ADMIN)[1]

        def request(path: str, peer: str = "127.0.0.1", **more: str) -> dict[str, Any]:
            headers = [(k.replace("_", "-").encode(), v.encode()) for k, v in (BROWSER | more).items()]
            asked = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
            return {**asked, "client": (peer, 1), "app": app}

        bearer = f"Bearer {token}"
        cases: dict[str, tuple[ASGIApp, Make]] = {
            "nothing": (nothing, lambda _: request("/api/runs")),
            "open": (Guard(nothing, True), lambda _: request("/api/runs")),
            "token": (Guard(nothing, True, door), lambda _: request("/api/runs", authorization=bearer)),
            "proxy": (Guard(nothing, True, door), lambda _: request("/api/runs", "10.0.0.1", x_user="ann@x")),
            "token, an address that was never asked": (
                Guard(nothing, True, door),
                lambda n: request(f"/static/{n}-{time.time_ns()}.js", authorization=bearer),
            ),
        }
        for name, (guard, make) in cases.items():
            print(f"{asyncio.run(measured(guard, make, asked.requests)):8.1f} µs  {name}", flush=True)


if __name__ == "__main__":
    main()
