"""Both doors for agents as they are started, real processes asked by the official client."""

import functools
import http.client
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from app.mcp.tools import TOOLS
from app.serve.api import BODY_BYTES
from runs.store import Store
from tests.app import made_runs
from tests.app.agents import MODES, Agent, agent
from tests.app.serving import command, environment, get, request, serving
from tests.bundled import RUNS, demo_store

MOST_CALLS, MOST_TOKENS = 5, 20_000
DOORS = pytest.mark.parametrize("door", ["stdio", "http"])
ACCEPTS = {"Content-Type": "application/json", "Accept": "application/json"}
Script = Callable[[Agent], Awaitable[Any]]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return demo_store(tmp_path_factory)


@pytest.fixture(scope="module")
def doors(store, called) -> Any:
    """What an agent connects to, by name."""
    with serving(store, cwd=called.parent, PYTHONPATH=f"{called.parent}:{Path.cwd()}", SPY=str(called)) as address:
        yield {"http": address, "stdio": store}
    assert not called.exists(), called.read_text()


def scripted(door: str | Path, script: Script, mode: str = "auto", errors: Path | None = None) -> Any:
    """What a script of an agent's comes to."""

    async def run() -> Any:
        with anyio.fail_after(240):
            async with agent(door, mode, errors) as one:
                return await script(one)

    return anyio.run(run)


@pytest.fixture(scope="module")
def truth() -> list[dict]:
    return json.loads((RUNS / "training.truth.json").read_text())["injections"]


@DOORS
@pytest.mark.parametrize("mode", MODES)
def test_why_is_this_run_slow(doors, door, mode, truth, tmp_path):
    """From the question to cause, place and gain of all that was done to the run, held against the record of it, with
    the evidence of one of them; tools and instructions count as tokens too."""

    async def script(one: Agent) -> list[dict]:
        listed = await one.tools()
        assert [t["name"] for t in listed] == [t.name for t in TOOLS]
        found = (await one.ask("runs", search="reference-training"))["answer"]["runs"]
        told = await one.ask("findings", run=found[0]["run_id"])
        causes = told["answer"]["findings"]
        late = next(f for f in causes if f["cause"] == "slow_rank")
        shown = await one.ask("show", run=found[0]["run_id"], question=late["question"])
        assert shown["answer"]["ranks"][0]["rank"] == 1
        where = late["where"]["steps"]
        sql = f"select median(dur_ns) from steps where step between {where['first']} and {where['last']}"
        rows = (await one.ask("query", run=found[0]["run_id"], sql=sql))["answer"]["rows"]
        assert rows[0][0] > 5e8, "each of these steps took as long as it was held up"
        assert one.calls <= MOST_CALLS and one.tokens <= MOST_TOKENS, (one.calls, one.tokens)
        print(f"{door} {mode}: {one.calls} calls, {one.tokens:,.0f} tokens")
        return causes

    causes = {f["cause"]: f for f in scripted(doors[door], script, mode, tmp_path / "errors")}
    late, stalls = ([i for i in truth if i["what"] == what] for what in ("straggler", "input_stall"))
    assert causes["interruption"]["evidence"][0] == {
        "name": "times",
        "value": float(sum(i["what"] == "kill" for i in truth)),
        "unit": "",
        "question": "interruptions",
    }
    assert causes["slow_rank"]["where"] == {
        "ranks": [late[0]["process"]],
        "hosts": ["vm/1"],
        "steps": {"first": late[0]["first_step"], "last": late[0]["last_step"], "every": 1},
    }
    assert causes["loader_stalls"]["where"]["steps"]["first"] == stalls[0]["first_step"]
    assert causes["loader_stalls"]["where"]["steps"]["last"] == stalls[0]["last_step"]
    chips = len(stalls)
    for cause, lost_s in (("slow_rank", late[0]["total_s"]), ("loader_stalls", stalls[0]["total_s"])):
        gain = causes[cause]["gain_chip_seconds"]
        assert gain["low"] <= lost_s * chips <= gain["high"], (cause, lost_s * chips, gain)
    assert all(f["cure"] for f in causes.values())
    assert not (tmp_path / "errors").read_text()


@DOORS
def test_any_bundled_run_is_told_within_the_budget(doors, door):
    async def script(one: Agent) -> None:
        await one.tools()
        before = one.bytes
        for run in (await one.ask("runs"))["answer"]["runs"]:
            one.calls, one.bytes = 1, before
            text, failed = await one.text("findings", run=run["run_id"])
            if failed:  # of one bundled program there is no chip time to tell of
                assert "did not compile" in text
                continue
            told = json.loads(text)
            for found in told["answer"]["findings"]:
                assert found["cause"] and found["cure"] and found["question"] in told["links"]
                gain = found["gain_chip_seconds"]
                assert gain is None or 0 <= gain["low"] <= gain["likely"] <= gain["high"], "not every one is known"
            for question in {f["question"] for f in told["answer"]["findings"][:3]}:
                await one.ask("show", run=run["run_id"], question=question)
            assert one.calls <= MOST_CALLS and one.tokens <= MOST_TOKENS, (run["name"], one.calls, one.tokens)
            print(f"{run['name']}: {one.calls} calls, {one.tokens:,.0f} tokens")

    scripted(doors[door], script)


def test_every_door_and_protocol_answers_alike(doors):
    async def script(one: Agent) -> list:
        tools = await one.tools()
        said = [await one.text("runs"), await one.text("runs", page="x"), await one.text("nothing")]
        said += [
            await one.text("findings", run="reference-serving-client"),
            await one.text("show", run="x", question="x"),
        ]
        resources = [r.uri for r in (await one.client.list_resources()).resources]
        templates = [r.uri_template for r in (await one.client.list_resource_templates()).resource_templates]
        read = (await one.client.read_resource("chipledger://questions/ledger")).contents[0].text
        return [tools, said, resources, templates, read]

    first, *others = [scripted(doors[door], script, mode) for door in ("stdio", "http") for mode in MODES]
    assert first[1][1] == ("--page 'x'; expected a whole number from 1 to 1,000,000", True) and first[2] and first[3]
    assert all(other == first for other in others)


def test_links_lead_to_the_same_answer_on_the_server(doors):
    asked = [
        ("runs", {}),
        ("findings", {"run": "reference-training"}),
        ("show", {"run": "reference-training", "question": "steps"}),
        ("show", {"run": "reference-training", "question": "goodput", "options": {"rules": "ml-goodput", "bins": 5}}),
        ("show", {"run": "model:llama3.1-8b", "question": "padding", "options": {"mxu": 128}}),
        ("query", {"run": "reference-training", "sql": "select count(*) as n, 'ü&=?' as t from steps", "rows": 5}),
        ("query", {"run": "reference-training"}),
        ("whatif", {"name": "checkpoint", "options": {"save_s": 30, "mttf_s": 10000.5}}),
        ("compare", {"a": "reference-serving", "b": "reference-serving-client"}),
        ("topology", {"spec": ["v5p:4x4x8", "v5e:4x4"], "fail": ["chip=5"]}),
    ]

    async def script(one: Agent) -> list[dict]:
        return [await one.ask(tool, **given, tokens=50_000) for tool, given in asked]

    for (tool, given), told in zip(asked, scripted(doors["http"], script), strict=True):
        for name, path in told["links"].items():
            status, found = get(doors["http"] + path) if name == "json" else _page(doors["http"] + path)
            assert status == 200, (tool, name, path)
            if name == "json" and tool != "runs" and "left_out" not in told:
                skipped = {"seconds", "tables"}
                assert (
                    {k: v for k, v in told["answer"].items() if k not in skipped}
                    == {k: v for k, v in found.items() if k not in skipped}
                    if isinstance(found, dict)
                    else told["answer"] == found
                ), (tool, given)


def _page(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.read().decode()


@DOORS
def test_twenty_calls_at_once(doors, door):
    """Some of them wrong: each gets the answer that it gets alone."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for i in range(5):
        calls.append(("query", {"run": "reference-training", "sql": f"select {i} as i, count(*) as n from steps"}))
        calls.append(
            ("show", {"run": "reference-training", "question": ["ledger", "steps", "mfu", "input", "flops"][i]})
        )
        calls.append(("findings", {"run": "reference-serving"} if i % 2 else {"run": f"nope {i}"}))
        calls.append(("query", {"run": "reference-training", "sql": f"drop table t{i}"}))

    async def script(one: Agent) -> tuple[list, list]:
        alone = [await one.text(tool, **given) for tool, given in calls]
        at_once: list = [None] * len(calls)

        async def ask(i: int) -> None:
            at_once[i] = await one.text(calls[i][0], **calls[i][1])

        async with anyio.create_task_group() as group:
            for i in range(len(calls)):
                group.start_soon(ask, i)
        return alone, at_once

    alone, at_once = scripted(doors[door], script)
    assert [failed for _, failed in alone] == [failed for _, failed in at_once]
    for (tool, _), (before, failed), (after, _) in zip(calls, alone, at_once, strict=True):
        if tool == "query" and not failed:
            before, after = (json.loads(t)["answer"]["rows"] for t in (before, after))
        assert before == after


@DOORS
def test_an_answer_of_twenty_megabytes(doors, door):
    """The 54 days on 16,384 accelerators: cut in the server, and any part of it there for the asking."""

    async def script(one: Agent) -> None:
        run = (await one.ask("runs", search="16,384"))["answer"]["runs"][0]["run_id"]
        text, failed = await one.text("show", run=run, question="goodput")
        assert not failed and len(text.encode()) <= 3_000 * 4
        told = json.loads(text)
        steps = next(n for n in told["left_out"] if n["part"] == "/step_deviation_s")
        assert steps["of"] > 600_000 and told["answer"]["goodput_share"] > 0.8
        later = await one.ask("show", run=run, question="goodput", part="/step_deviation_s", start=600_000, tokens=500)
        assert list(later["answer"])[0] == "600000" or later["start"] == 600_000
        late = await one.refused("show", run=run, question="goodput", part="/step_deviation_s", start=10**9)
        assert "entries" in late

    scripted(doors[door], script)


@DOORS
def test_a_run_that_is_deleted_meanwhile(tmp_path, door):
    folder = tmp_path / "store"
    store = Store(folder)
    runs = [made_runs.interrupted(store, name=f"run {i}").run_id for i in range(6)]

    async def script(one: Agent) -> list[tuple[str, bool]]:
        said: list[tuple[str, bool]] = []

        async def ask(tool: str, **given: Any) -> None:
            said.append(await one.text(tool, **given))

        async with anyio.create_task_group() as group:
            for i, run in enumerate(runs):
                for tool, more in (("findings", {}), ("query", {"sql": "from steps"}), ("show", {"question": "steps"})):
                    group.start_soon(functools.partial(ask, tool, run=run, **more))
                await anyio.sleep(0.05 * i)
                store.remove(run)
        for run in runs:
            assert "no run" in await one.refused("findings", run=run)
        assert (await one.ask("runs"))["answer"]["found"] == 0
        return said

    errors = tmp_path / "errors"
    if door == "stdio":
        said = scripted(folder, script, errors=errors)
        assert "Traceback" not in errors.read_text()
    else:
        with serving(folder) as address:
            said = scripted(address, script)
    assert len(said) == 18
    for text, failed in said:
        assert "defect" not in text and (not failed or ("\n" not in text and str(tmp_path) not in text)), text


def _message(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def _hello() -> bytes:
    known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    return _message(0, "initialize", **known) + b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def _process(store: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "mcp", "--store", str(store)],
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


def test_a_client_that_goes_away_leaves_the_server_as_it_was(doors):
    where = urlsplit(doors["http"])
    call = {"run": "reference-training", "sql": LONG, "timeout": 3}
    for _ in range(3):
        one = http.client.HTTPConnection(where.hostname, where.port)
        one.request("POST", "/mcp", _message(1, "tools/call", name="query", arguments=call), ACCEPTS)
        time.sleep(0.2)
        one.close()
    assert get(f"{doors['http']}/healthz") == (200, {"status": "ok"})

    async def script(one: Agent) -> dict:
        return await one.ask("query", run="reference-training", sql="select 1 as one")

    assert scripted(doors["http"], script)["answer"]["rows"] == [[1]]


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
def test_who_may_ask_over_http_and_what(doors, method, body, headers, status):
    code, told = request(method, f"{doors['http']}/mcp", body, headers)
    assert code == status
    if status != 200:
        assert set(told) == {"error"} and "\n" not in told["error"]


@pytest.fixture
def without(tmp_path) -> dict[str, str]:
    """The environment of a process to which the package is not installed."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    return {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}


def test_without_its_package_the_command_says_so(tmp_path, without):
    said = command("mcp", "--store", tmp_path / "store", **without)
    assert said.returncode == 2 and not said.stdout
    assert said.stderr.count("\n") == 1 and "pip install 'chipledger[mcp]'" in said.stderr


def test_without_its_package_all_else_is_served(tmp_path, without):
    with serving(tmp_path / "store", **without) as address:
        assert get(f"{address}/api/runs")[0] == 200
        status, told = request("POST", f"{address}/mcp", _message(1, "tools/list"), ACCEPTS)
        assert status == 503 and "chipledger[mcp]" in told["error"]
