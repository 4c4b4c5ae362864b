"""A server with clients, killed at random moments, and started again.

Each client has runs and baselines of its own, so that what it was told is all that may be found of them. Jobs that
outlive their server are killed as well, or waited for, by chance.
"""

import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.faults.kills.acts import Act, Acts, fresh
from benchmarks.faults.kills.checking import check
from benchmarks.faults.kills.state import BIN, Found, leaks, look
from benchmarks.faults.kills.suite import Suite

CLIENTS = 4
MOST_S = 20.0  # of a server's life, but for its start
STARTS_S, ORPHANS_S, ANSWER_S = 90.0, 90.0, 90.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: what outlives its parent becomes ours
_SAYS = "Chipledger is at http://127.0.0.1:"


def warm() -> None:
    """Import what a server needs, once for all that are forked."""
    import streamlit  # noqa: F401

    from app.mcp import mounted  # noqa: F401
    from app.serve import api, server, xprof  # noqa: F401


class Server:
    """`chipledger serve` in a fork of this process."""

    def __init__(self, root: Path, before: Callable[[], None] = lambda: None):
        """`before`: called in its process before anything else."""
        self._log = Path(tempfile.gettempdir()) / f"server-of-{os.getpid()}.txt"  # the store's disk may be full
        self._log.unlink(missing_ok=True)
        self.pid = os.fork()
        if not self.pid:
            _be(root, self._log, before)
        self.port = self._port()

    def _port(self) -> int:
        until = time.monotonic() + STARTS_S
        while time.monotonic() < until:
            said = self.said()
            if _SAYS in said and (port := said.partition(_SAYS)[2].split("\n")[0]).isdigit():
                with contextlib.suppress(OSError):
                    if ask(int(port), "GET", "/healthz")[0] == 200:
                        return int(port)
            time.sleep(0.05)
        raise RuntimeError(f"the server did not start: {self.said()[-2000:]}")

    def said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _be(root: Path, log: Path, before: Callable[[], None]) -> None:
    """What a server's process does; it never returns."""
    try:
        from app import workspace
        from app.cli import main

        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for n in (1, 2):
            os.dup2(fd, n)
        before()
        workspace._opened.clear()
        main(["serve", "--port=0", f"--store={root}"])
    finally:
        sys.stdout.flush()
        os._exit(70)


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """(status, JSON). Raises OSError where the answer did not come whole."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        asked.request(method, path, data, {"Host": f"localhost:{port}", "Content-Type": "application/json"})
        answer = asked.getresponse()
        return answer.status, json.loads(answer.read())
    except (http.client.HTTPException, ValueError) as e:
        raise OSError(str(e)) from e
    finally:
        asked.close()


class Client:
    """Asks a server for one change after the other until it is gone. `done` was answered, `begun` was not."""

    def __init__(self, port: int, found: Found, seed: str, inputs: Path, number: int, mine: str):
        self._port, self._chance = port, random.Random(seed)
        self._ids = found.ids
        self.done: list[Act] = []
        self.begun: Act | None = None
        self.problems: list[str] = []
        own = {k: v for k, v in found.state.items() if _owner(k, v) == mine or k.startswith(f"baseline:{mine}")}
        self._acts = Acts(Found(own, dict(found.ids)), self._chance, inputs, number, mine)
        self._mine = mine

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                kind = self._chance.choice(("upload", "upload", "ingest", "discard", *_ASKED, *_ASKED))
                kind = "ingest" if self._acts.kinds() == ["ingest"] else kind
                kind = "purge" if self._acts.kinds() == ["purge"] and kind != "discard" else kind
                (self._upload if kind in ("upload", "ingest", "discard") else self._change)(kind)

    def _change(self, kind: str) -> None:
        act = self._acts.take(kind)
        if act is not None:
            self._tried(act, lambda: [ask(self._port, *_ASKED[kind](act))])

    def _tried(self, act: Act, send: Callable[[], list[tuple[int, Any]]]) -> list[Any]:
        self.begun = act
        answers = send()
        self.begun = None
        if bad := [(status, told) for status, told in answers if status >= 300]:
            self.problems.append(f"{act.kind} was refused: {bad[0][0]} {str(bad[0][1])[:200]}")
            raise OSError
        self.done.append(act)
        return [told for _, told in answers]

    def _upload(self, kind: str) -> None:
        act = self._acts.ingest()
        data = Path(act.argv[1]).read_bytes() + f"# {self._mine}\n".encode() * self._chance.choice((1, 1, 20_000))
        status, told = ask(self._port, "POST", "/api/uploads")
        if status >= 300:
            self.problems.append(f"an upload was refused: {status} {told}")
            raise OSError
        upload = told["upload_id"]
        name = f"{self._mine}-job.log"
        put = Act("upload", [], {f"upload:{upload}/{name}": hashlib.sha256(data).hexdigest()})
        self._tried(put, lambda: [ask(self._port, "PUT", f"/upload/{upload}/{name}", data)])
        if kind == "discard":
            gone = Act("discard of an upload", [], {f"upload:{upload}/{name}": None})
            self._tried(gone, lambda: [ask(self._port, "DELETE", f"/api/uploads/{upload}")])
        if kind == "ingest":
            self._ingest(data, upload, f"{self._mine} {act.argv[2].removeprefix('--name=')}")

    def _ingest(self, data: bytes, upload: str, name: str) -> None:
        key = f"run:{hashlib.sha256(data).hexdigest()}"
        act = Act("ingest of an upload", [], {key: fresh(name)})

        def send() -> list[tuple[int, Any]]:
            told = ask(self._port, "POST", "/api/ingest", {"upload_id": upload, "name": name})
            while told[0] < 300 and told[1]["state"] in ("waiting", "running"):
                time.sleep(0.1)
                told = ask(self._port, "GET", f"/api/jobs/{told[1]['job_id']}")
            if told[0] < 300 and told[1]["state"] != "done":
                return [(500, told[1])]
            return [told]

        (told,) = self._tried(act, send)
        self._acts.ids[key] = told["run_id"]
        self._acts.state[key] = act.after[key]


def _owner(key: str, value: Any) -> str:
    return value.get("owner", "") if isinstance(value, dict) and key.startswith("run:") else ""


def _on(path: str = "", method: str = "PATCH") -> Callable[[Act, Any], tuple[str, str, Any]]:
    def asked(act: Act, body: Any) -> tuple[str, str, Any]:
        return method, f"/api/runs/{quote(act.argv[-1] if act.kind in _BY_ID else act.argv[1])}{path}", body

    return asked


_BY_ID = ("delete", "restore", "purge")


def _tags(act: Act) -> tuple[str, str, Any]:
    return _on()(act, {"tags": dict(word.split("=") for word in act.argv[2:])})


def _facts(act: Act) -> tuple[str, str, Any]:
    return _on("/facts")(act, {key: int(value) for key, value in (word.split("=") for word in act.argv[2:])})


def _baseline(act: Act) -> tuple[str, str, Any]:
    _, how, name, *run = act.argv
    method = {"set": "PUT", "accept": "PATCH", "remove": "DELETE"}[how]
    return method, f"/api/baselines/{quote(name)}", {"run": run[0]} if run else None


_ASKED: dict[str, Callable[[Act], tuple[str, str, Any]]] = {
    "tag": _tags,
    "note": lambda act: _on("/notes", "POST")(act, {"text": act.argv[2]}),
    "rename": lambda act: _on()(act, {"name": act.argv[2]}),
    "facts": _facts,
    "group": lambda act: _on()(act, {"group": act.argv[2]}),
    "star": lambda act: (
        "PATCH",
        "/api/runs",
        {"runs": [w for w in act.argv[1:] if w != "--off"], "starred": "--off" not in act.argv},
    ),
    "delete": lambda act: _on("", "DELETE")(act, None),
    "restore": lambda act: _on("/restore", "POST")(act, None),
    "purge": lambda act: _on("?now=true", "DELETE")(act, None),
    "baseline": _baseline,
}


def servers(suite: Suite, folder: Path, kills: int) -> None:
    """Kill so many servers of one store."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    warm()
    root, inputs = folder / "store", folder / "inputs"
    inputs.mkdir(parents=True)
    owners: dict[str, str] = {}
    known: dict[str, Any] = {}
    found = Found()
    number = 1_000_000
    server = Server(root)
    for _ in range(kills):
        clients = []
        for n in range(CLIENTS):
            mine = f"c{n}-"
            own = Found(
                {k: v | {"owner": owners.get(k, "")} if k.startswith("run:") else v for k, v in found.state.items()},
                found.ids,
            )
            clients.append(
                Client(server.port, own, f"{suite.chance.random()}", inputs, number := number + 10_000, mine)
            )
        threads = [threading.Thread(target=c.run) for c in clients]
        for thread in threads:
            thread.start()
        _wait(clients, suite.chance)
        server.kill()
        for thread in threads:
            thread.join()
        orphans = _orphans(suite.chance.random() < 0.5)
        for client in clients:
            for act in client.done:
                known.update({k: _bare(v) for k, v in act.after.items()})
        begun = [Act(c.begun.kind, [], {k: _bare(v) for k, v in c.begun.after.items()}) for c in clients if c.begun]
        checked = check(root, known, begun)
        for n, client in enumerate(clients):
            for act in [*client.done, *([client.begun] if client.begun else [])]:
                owners.update({k: f"c{n}-" for k in act.after if k.startswith("run:")})
        server = Server(root)
        found = look(root)
        known = dict(found.state)
        problems = [p for c in clients for p in c.problems] + checked.problems
        problems += [f"left behind once a server runs again: {p}" for p in leaks(root, served=True)]
        status, told = ask(server.port, "GET", "/api/runs")
        ids = sorted(run["run_id"] for run in told["runs"]) if status < 300 else told
        there = sorted(found.ids[k] for k, v in found.state.items() if k in found.ids and v["at"] != BIN)
        if ids != there:
            problems.append(f"the server lists {ids}, there are {there}")
        suite.note(
            "server", [*checked.moments, ("server, with so many clients", "between two, or at its end")], problems
        )
        suite.counts["a job that outlived its server", "while it wrote"] += orphans
    server.kill()
    _orphans(kill=True)


def _wait(clients: list[Client], chance: random.Random) -> None:
    """Until some of what was asked was answered, however busy the machine is, and a little longer."""
    answers, until = chance.randint(0, 20), time.monotonic() + MOST_S
    while sum(len(c.done) for c in clients) < answers and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(chance.uniform(0, 0.5))


def _bare(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != "owner"} if isinstance(value, dict) else value


def _orphans(kill: bool) -> int:
    """Jobs that outlived a server: killed, or waited for. Returns how many were killed."""
    until, count = time.monotonic() + ORPHANS_S, 0
    while pids := _children():
        for pid in pids:
            if kill or time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    count += 1
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0 if kill else os.WNOHANG)
        time.sleep(0.05)
    return count


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            told = path.read_text().rpartition(")")[2].split()
            if int(told[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found
