"""Runs in a notebook: what its page in the docs shows works as it stands there, and errors are those of everywhere."""

import re

import pandas as pd
import pytest

from app.notebook import open_run
from app.questions import question
from app.questions.asking import ask
from app.workspace import STORE_VARIABLE, workspace
from errors import QuestionError
from tests.app import made_runs
from tests.app.asking import PROJECT
from tests.bundled import bundled

BLOCK = re.compile(r"```python\n(.+?)```", re.DOTALL)


@pytest.fixture
def opened(place):
    made_runs.interrupted(place.store, "run a")
    return open_run("run a", str(place.store.root))


def test_what_the_docs_show_runs(tmp_path_factory, monkeypatch, capsys):
    run = bundled(tmp_path_factory, "training")
    monkeypatch.setenv(STORE_VARIABLE, str(run.folder.parents[1]))
    [code] = BLOCK.findall((PROJECT / "docs" / "notebooks.md").read_text(encoding="utf-8"))
    shown = {}
    exec(compile(code, "docs/notebooks.md", "exec"), shown)
    assert len(shown["steps"]) == run.tables.rows("steps") and len(shown["longest"]) == 5
    assert shown["longest"]["seconds"].iloc[0] == shown["steps"]["dur_ns"].max() / 1e9
    assert shown["mfu"] is ask(question("mfu"), run, {}, workspace().registry)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(run.manifest.fact("chip")) and printed[-1] == str(shown["mfu"].to_dict()["mfu"])


def test_tables_are_frames_and_one_that_the_run_lacks_is_empty(opened):
    assert opened.name == "run a" and opened.facts["chips"] == made_runs.CHIPS
    assert set(opened.tables) == {"steps", "lifecycle"} and opened.tables["steps"] == 260
    frame = opened.table("steps")
    assert isinstance(frame, pd.DataFrame) and frame["start_ns"].dtype == pd.Int64Dtype() and len(frame) == 260
    assert opened.table("scalars").empty and "value" in opened.table("scalars").columns


def test_whole_numbers_of_an_answer_keep_every_digit_beside_nulls(opened):
    ns = 1_795_177_051_653_751_373
    for kind in ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"):
        answer = opened.query(f"select unnest([1, null]::{kind}[]) as n")["n"]
        assert str(answer.dtype).lower().startswith(("int", "uint")) and answer.isna().tolist() == [False, True]
    answer = opened.query(f"select unnest([{ns}, null]) as start_ns, 1.5::double as seconds")
    assert answer["start_ns"].dtype == opened.table("steps")["start_ns"].dtype and answer["seconds"].dtype == "float64"
    assert int(answer["start_ns"][0]) == ns


def test_an_answer_that_was_cut_warns(opened):
    with pytest.warns(UserWarning, match="cut off after 3 rows"):
        assert opened.query("select step from steps order by step", rows=3)["step"].tolist() == [0, 1, 2]


def test_what_cannot_be_answered_is_an_error_of_one_line(opened):
    for asked, said in (
        (lambda: open_run("run b", str(opened.place.store.root)), "no run"),
        (lambda: opened.table("nothing"), "no table 'nothing'"),
        (lambda: opened.query("select x from steps"), "Binder Error"),
        (lambda: opened.ask("nothing"), "no analysis 'nothing'"),
        (lambda: opened.ask("mfu", price=3), "no option 'price'"),
    ):
        with pytest.raises(QuestionError, match=said) as told:
            asked()
        assert "\n" not in str(told.value)
