"""A browser that nobody looks into while it works.

What drives browsers for tests has the page's engine prepare for questions about its errors: each that a library throws
and catches while it is loaded then costs a tenth of a second, because the engine reads the library's 4.7 MB anew to say
where it was. Here the page is opened, and asked once, without that.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from app.cli.commands.doctor import chromium

FLAGS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0", "--window-size=1440,900"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
START_S, TRIES = 30.0, 10
OPENED_S = 1.5  # a new window draws its own surface first, for a second of one processor: who follows a link has it


class Browser:
    """Chromium, spoken to in its own protocol."""

    def __init__(self, socket: ClientConnection):
        self._socket, self._sent = socket, 0

    def fresh(self, address: str, asked: str) -> Any:
        """What the expression comes to, on a page that is opened in an empty window of a browser that has nothing of it
        yet. Raises RuntimeError where it comes to nothing."""
        context = self._send("Target.createBrowserContext")["browserContextId"]
        try:
            opened = {"browserContextId": context, "width": 1440, "height": 900}
            target = self._send("Target.createTarget", url="about:blank", **opened)["targetId"]
            session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            time.sleep(OPENED_S)
            self._send("Page.navigate", session, url=address)
            return self._told(session, asked)
        finally:
            self._send("Target.disposeBrowserContext", browserContextId=context)

    def _told(self, session: str, asked: str) -> Any:
        wanted = {"expression": asked, "awaitPromise": True, "returnByValue": True}
        for _ in range(TRIES - 1):  # the page that it asks may still be the one before
            with contextlib.suppress(RuntimeError):
                return self._send("Runtime.evaluate", session, **wanted)["result"]["value"]
        return self._send("Runtime.evaluate", session, **wanted)["result"]["value"]

    def _send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._sent += 1
        said: dict[str, Any] = {"id": self._sent, "method": method, "params": params}
        self._socket.send(json.dumps(said | ({"sessionId": session} if session else {})))
        while (told := json.loads(self._socket.recv())).get("id") != self._sent:
            pass
        if "error" in told:
            raise RuntimeError(f"{method}: {told['error'].get('message')}")
        return told["result"]


@contextlib.contextmanager
def browser() -> Generator[Browser]:
    """Raises RuntimeError where Chromium does not start."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"], **quiet)
        try:
            with connect(_address(Path(profile) / "DevToolsActivePort"), max_size=None) as socket:
                yield Browser(socket)
        finally:
            process.kill()
            process.wait()


def _address(told: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            port, path = told.read_text().split()
            return f"ws://127.0.0.1:{port}{path}"
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not start within {START_S:.0f} s")
