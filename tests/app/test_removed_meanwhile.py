"""A run that is removed while it is asked about, at each instant of that: every door says so in one sentence."""

import json
from pathlib import Path

import pytest

from app import cli
from app.mcp.calling import call
from app.mcp.tools import tool
from app.programs import StoredPrograms
from app.questions.mfu import MFU
from app.questions.steps import STEPS
from app.workspace import STORE_VARIABLE, Workspace
from errors import ChipledgerError
from runs.store import Store
from tests.app import made_runs
from tests.app.test_pages import opened, words
from tests.bundled import bundled
from tests.vanishing import removed_before_each_look

REMOVED = "the run was removed meanwhile, or is being read anew. Ask again."
SQL = "select count(*) as n from steps"
EVERY_OF_A_PAGE = 17  # of some hundred looks that the page takes
ASKED = {
    "query": (("query", {"sql": SQL}), 1),
    "tables": (("query", {}), 1),
    "steps": (("show", {"question": "steps"}), 1),
    "findings": (("findings", {}), 23),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    store = Store(tmp_path_factory.mktemp("source") / "store")
    made_runs.interrupted(store, name="removed")
    made_runs.interrupted(store, name="kept")
    return store.root


@pytest.mark.parametrize("name", ASKED)
def test_an_agent_is_told(source, tmp_path, name):
    """The whole answer, or one sentence: that it was removed, or that there is no such run."""
    (asked, given), every = ASKED[name]
    *before, whole = (
        _said(one)
        for one in removed_before_each_look(
            source, "removed", tmp_path, lambda place, run: call(tool(asked), {"run": run, **given}, place), every
        )
    )
    assert len(before) > 5 and json.loads(whole)["answer"], whole
    assert all(REMOVED in said or "no run" in said for said in before), set(before)


def _said(ask) -> str:
    try:
        return ask()
    except ChipledgerError as e:
        return str(e)


def test_a_list_of_runs_leaves_it_out_and_calls_nothing_damaged(source, tmp_path):
    for ask in removed_before_each_look(source, "removed", tmp_path, lambda place, run: call(tool("runs"), {}, place)):
        rows = json.loads(ask())["answer"]["runs"]
        assert {"kept"} <= {r["name"] for r in rows} <= {"kept", "removed"}
        assert all(r["problem"] is None or r["problem"].endswith(REMOVED) for r in rows), rows


@pytest.mark.parametrize("given", [("query", SQL), ("show", "steps")], ids=["query", "show"])
def test_a_command_is_told(source, tmp_path, capsys, given):
    asked, *more = given

    def ask(place: Workspace, run: str) -> tuple[int, str, str]:
        code = cli.main([asked, f"--store={place.store.root}", run, *more, "--json"])
        return code, *capsys.readouterr()

    *before, (code, whole, _) = (one() for one in removed_before_each_look(source, "removed", tmp_path, ask, 3))
    assert code == 0 and json.loads(whole)
    for code, text, error in before:
        assert code == 2 and (REMOVED in error or "no run" in error) and error.count("\n") == 1, error
        assert json.loads(text)["error"]["what"] in error


@pytest.mark.parametrize("page", [STEPS, MFU], ids=["steps", "asks others after its answer"])
def test_a_page_is_told(source, tmp_path, monkeypatch, page):
    def ask(place: Workspace, run: str) -> str:
        monkeypatch.setenv(STORE_VARIABLE, str(place.store.root))
        at = opened(page.file, run=run)
        assert not at.exception
        return words(at)

    *before, whole = (one() for one in removed_before_each_look(source, "removed", tmp_path, ask, EVERY_OF_A_PAGE))
    assert "removed meanwhile" not in whole and page.terms[0].name in whole
    told = [said for said in before if "removed meanwhile" not in said and "no run" not in said]
    assert not [said for said in told if said != whole], "or all that it says was read already"


def test_a_program_of_a_run_is_told(tmp_path, tmp_path_factory):
    run = bundled(tmp_path_factory, "compiled-llama3.1-8b-v5p")
    file = run.tables.arrow("modules", ["file"])["file"][0].as_py()

    def ask(place: Workspace, run_id: str) -> str:
        return f"{len(StoredPrograms(place.store.find(run_id)).unpacked(file)):,} bytes"

    *before, whole = (_said(one) for one in removed_before_each_look(run.folder.parents[1], run.run_id, tmp_path, ask))
    assert whole.endswith("bytes") and before and all(REMOVED in said or "no run" in said for said in before), before
