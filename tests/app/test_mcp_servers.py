"""Both doors for agents as they are started, real processes asked by the official client."""

import functools
import json
import urllib.request
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.mcp.tools import TOOLS
from runs.store import Store
from tests.app import made_runs
from tests.app.agents import MODES, Agent, scripted
from tests.app.serving import get, serving
from tests.bundled import RUNS, demo_store

MOST_CALLS, MOST_TOKENS = 5, 20_000
DOORS = pytest.mark.parametrize("door", ["stdio", "http"])


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return demo_store(tmp_path_factory)


@pytest.fixture(scope="module")
def doors(store, called) -> Any:
    """What an agent connects to, by name."""
    with serving(store, cwd=called.parent, PYTHONPATH=f"{called.parent}:{Path.cwd()}", SPY=str(called)) as address:
        yield {"http": address, "stdio": store}
    assert not called.exists(), called.read_text()


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
        ("runs", {"search": "serving kind:serving", "sort": "-name"}),
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
            if name == "json" and tool == "runs":  # a page of them, each shorter
                assert [r["run_id"] for r in told["answer"]["runs"]] == [r["run_id"] for r in found["runs"]], given
            elif name == "json" and "left_out" not in told:
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
