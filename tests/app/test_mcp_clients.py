"""Clients that go away, bytes that are no messages, who may ask, and a machine without the protocol's package."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.mcp.tools import TOOLS
from app.serve.requests import BODY_BYTES
from tests.app.agents import Agent, scripted
from tests.app.serving import PROJECT, command, environment, get, request, serving
from tests.bundled import demo_store

ACCEPTS = {"Content-Type": "application/json", "Accept": "application/json"}
DOC = (PROJECT / "docs" / "mcp.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return demo_store(tmp_path_factory)


@pytest.fixture(scope="module")
def address(store) -> Iterator[str]:
    with serving(store) as found:
        yield found


def _message(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def _hello() -> bytes:
    known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    return _message(0, "initialize", **known) + b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def _process(store: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", *(arguments or ("mcp",)), "--store", str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


LONG = "select sum(a.range * b.range) from range(300000) a, range(3000000) b"


def test_a_client_that_goes_away_in_the_middle_of_a_call(store):
    """Its process ends by itself once the query under way has, which its time limit ends."""
    process = _process(store)
    call = {"run": "reference-training", "sql": LONG, "timeout": 3}
    process.stdin.write(_hello() + _message(1, "tools/call", name="query", arguments=call))
    process.stdin.flush()
    time.sleep(3)
    began = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and time.monotonic() - began < 20
    assert b"Traceback" not in said


def _begun(store: Path) -> subprocess.Popen:
    """A process that has answered once."""
    process = _process(store)
    process.stdin.write(_hello())
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "chipledger"
    return process


def test_it_can_be_stopped_at_a_terminal_while_it_waits(store):
    process = _begun(store)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT and not process.stderr.read()


def test_a_client_that_reads_no_answer_gets_no_traceback(store):
    process = _begun(store)
    process.stdout.close()
    process.stdin.write(_message(1, "tools/list"))
    process.stdin.flush()
    time.sleep(1)
    process.stdin.close()
    assert process.wait(60) == 0 and not process.stderr.read()


def test_a_client_that_goes_away_leaves_the_server_as_it_was(address):
    where = urlsplit(address)
    call = {"run": "reference-training", "sql": LONG, "timeout": 3}
    for _ in range(3):
        one = http.client.HTTPConnection(where.hostname, where.port)
        one.request("POST", "/mcp", _message(1, "tools/call", name="query", arguments=call), ACCEPTS)
        time.sleep(0.2)
        one.close()
    assert get(f"{address}/healthz") == (200, {"status": "ok"})

    async def script(one: Agent) -> dict:
        return await one.ask("query", run="reference-training", sql="select 1 as one")

    assert scripted(address, script)["answer"]["rows"] == [[1]]


def test_bytes_that_are_no_messages_end_no_session(store):
    odd = [
        b"\n",
        b"nothing\n",
        b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        b"{}\n",
        b'{"jsonrpc":"2.0","id":{}}\n',
        b"1\n",
    ]
    odd += [b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}\n', b'"' + b"x" * 5_000_000 + b'"\n']
    process = _process(store)
    process.stdin.write(_hello() + b"".join(odd) + _message(99, "tools/call", name="runs", arguments={"rows": 1}))
    process.stdin.flush()
    out: list[bytes] = []
    while not out or json.loads(out[-1]).get("id") != 99:
        out.append(process.stdout.readline())
        assert out[-1], process.stderr.read().decode()
    assert json.loads(json.loads(out[-1])["result"]["content"][0]["text"])["answer"]["runs"]
    more, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and str(store).encode() not in b"".join(out) + more
    assert b"Traceback" not in b"".join(out)


@pytest.mark.parametrize(
    ("method", "body", "headers", "status"),
    [
        ("GET", None, {}, 405),
        ("DELETE", None, {}, 405),
        ("PUT", b"{}", {}, 405),
        ("POST", b"", ACCEPTS, 400),
        ("POST", b"{}", ACCEPTS, 400),
        ("POST", b"[]", ACCEPTS, 400),
        ("POST", b"[" * 60_000, ACCEPTS, 400),
        ("POST", b"\xff", ACCEPTS, 400),
        ("POST", b"9" * 60_000, ACCEPTS, 400),
        ("POST", b" " * (BODY_BYTES + 1), ACCEPTS, 413),
        ("POST", _message(1, "tools/list"), {**ACCEPTS, "Origin": "http://evil.example"}, 403),
        ("POST", _message(1, "tools/list"), {**ACCEPTS, "Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", _message(1, "tools/list"), {**ACCEPTS, "Host": "evil.example"}, 403),
        ("POST", _message(1, "tools/list"), ACCEPTS, 200),
    ],
)
def test_who_may_ask_over_http_and_what(address, method, body, headers, status):
    code, told = request(method, f"{address}/mcp", body, headers)
    assert code == status
    if status != 200:
        assert set(told) == {"error"} and "\n" not in told["error"]


@pytest.fixture
def without(tmp_path) -> dict[str, str]:
    """The environment of a process to which the package is not installed."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    return {"PYTHONPATH": f"{tmp_path}:{PROJECT}"}


def test_without_its_package_the_command_says_so(tmp_path, without):
    said = command("mcp", "--store", tmp_path / "store", **without)
    assert said.returncode == 2 and not said.stdout
    assert said.stderr.count("\n") == 1 and "pip install 'chipledger[mcp]'" in said.stderr


def test_without_its_package_all_else_is_served(tmp_path, without):
    with serving(tmp_path / "store", **without) as address:
        assert get(f"{address}/api/runs")[0] == 200
        status, told = request("POST", f"{address}/mcp", _message(1, "tools/list"), ACCEPTS)
        assert status == 503 and "chipledger[mcp]" in told["error"]


def test_the_docs_name_every_tool():
    assert re.findall(r"^\| `(\w+)` \|", DOC, re.MULTILINE) == [t.name for t in TOOLS]


def test_a_client_is_connected_as_the_docs_say(store):
    """Their lines of configuration start a server that answers."""
    told = json.loads(re.search(r"```json\n(.*?)```", DOC, re.DOTALL)[1])["mcpServers"]["chipledger"]
    assert told["command"] == "chipledger"
    process = _process(store, *told["args"])
    process.stdin.write(_hello() + _message(1, "tools/list"))
    process.stdin.flush()
    said = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.communicate(timeout=60)
    assert [t["name"] for t in said[1]["result"]["tools"]] == [t.name for t in TOOLS]


def test_the_script_of_the_docs_runs(address):
    script = re.search(r"```python\n(.*?)```", DOC, re.DOTALL)[1]
    assert "http://localhost:8501" in script
    ours = script.replace("http://localhost:8501", address)
    done = subprocess.run([sys.executable, "-c", ours], capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("It was interrupted 2 times") and "slow_rank {'ranks': [1]" in done.stdout
