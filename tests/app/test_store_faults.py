"""Commands and server over stores with faults: a removed store, a damaged run, a registry that cannot be written."""

import json
import shutil

import pytest

from app.questions.asking import ask
from app.questions.steps import STEPS
from app.workspace import workspace
from errors import InputError
from runs.schema import SCHEMAS
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import get, request, serving
from tests.collectors.ingesting import LOG
from tests.runs.test_store import without_marks


def test_doctor_reads_every_file_and_says_which_are_damaged(place, capsys):
    good, bad = made_runs.interrupted(place.store, "good"), made_runs.interrupted(place.store, "bad")
    code, text, _ = out(capsys, "doctor", "--verify")
    assert code == 0 and text.startswith("2 of 2 runs are whole: ") and "every byte read" in text
    path = bad.tables.path("steps")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    code, text, _ = out(capsys, "doctor", "--verify")
    assert code == 3 and f"damaged: {bad.run_id}/tables/steps.parquet: is not what was written" in text
    told = {r["run_id"]: r for r in json.loads(out(capsys, "doctor", "--verify", "--json")[1])["runs"]}
    assert told[good.run_id]["damaged"] == [] and told[good.run_id]["files"] == 2 and told[good.run_id]["bytes"] > 1000
    assert len(told[bad.run_id]["damaged"]) == 1
    (bad.folder / "run.json").write_bytes(b"\xff")
    code, text, _ = out(capsys, "doctor", "--verify")
    assert code == 3 and f"damaged: {bad.run_id}/run.json: not a run manifest" in text
    assert "2 runs, 1 of them damaged" in out(capsys, "doctor")[1]


def test_doctor_says_what_cannot_be_told(place, capsys):
    without_marks(old := made_runs.interrupted(place.store, "old"))
    code, text, _ = out(capsys, "doctor", "--verify")
    assert code == 4 and "not verifiable" in text and old.run_id in text
    old.tables.path("steps").write_bytes(old.tables.path("lifecycle").read_bytes())
    code, text, _ = out(capsys, "doctor", "--verify")
    assert code == 3 and "the table steps holds" in text


def test_a_damaged_run_is_a_row_and_each_question_one_sentence(place, capsys):
    run = made_runs.interrupted(place.store, "bad")
    run.tables.path("steps").unlink()
    code, text, error = out(capsys, "runs")
    assert code == 0 and "training (damaged)" in text and "steps.parquet: is missing" in error
    code, text, error = out(capsys, "show", "bad", "ledger")
    assert (code, text) == (2, "") and error.startswith(f"error: {run.run_id}/tables/steps.parquet: is missing")


def test_a_stored_run_stays_stored_where_its_registry_takes_nothing(place, capsys, monkeypatch, tmp_path):
    def full(*_):
        raise InputError("the registry cannot be written (database or disk is full)")

    monkeypatch.setattr("runs.registry.Registry.remember_files", full)
    monkeypatch.setattr("app.follow.alerts.evaluate.book", full)
    (tmp_path / "train.log").write_text(LOG)
    code, text, _ = out(capsys, "ingest", tmp_path / "train.log")
    assert code == 0 and text.startswith("Stored: run ") and text.count("the run is stored; ") == 2
    assert len(place.store.ids()) == 1


def test_ingest_again_from_a_shell(place, capsys, tmp_path):
    (tmp_path / "train.log").write_text(LOG)
    assert out(capsys, "ingest", tmp_path / "train.log")[1].startswith("Stored: run ")
    assert out(capsys, "ingest", tmp_path / "train.log")[1].startswith("Already stored: run ")
    assert out(capsys, "ingest", "--again", tmp_path / "train.log")[1].startswith("Read anew: run ")


def test_answers_kept_of_a_run_are_not_told_of_the_one_in_its_place(place, capsys):
    def write(rows):
        starts = [n * 10**9 for n in range(rows)]
        with place.store.writer() as w:
            w.rows("steps", SCHEMAS["steps"].batch({"step": range(rows), "start_ns": starts, "dur_ns": [10**9] * rows}))
            return w.commit(run_id="same", name="x", kind="training", facts={}, sources=[], replace=True)

    counts = [ask(STEPS, write(rows), {}, place.registry).to_dict()["steps"] for rows in (10, 20)]
    assert counts == [10, 20]


def test_a_store_that_is_gone_is_not_made_anew_under_a_running_process(place):
    made_runs.interrupted(place.store)
    shutil.rmtree(place.store.root)
    with pytest.raises(InputError, match="the store is gone"):
        workspace()
    assert not place.store.root.exists()


def test_a_server_whose_store_is_gone_says_so(tmp_path):
    store = tmp_path / "store"
    with serving(store) as server:
        assert get(f"{server}/healthz") == (200, {"status": "ok"})
        for name in ("x" * 300, "live:" + "x" * 3000):
            status, told = get(f"{server}/api/runs/{name}")
            assert status in (400, 404) and "error" in told and len(told["error"]) < 600
        store.rename(tmp_path / "away")
        status, told = get(f"{server}/healthz")
        assert status == 503 and told["status"] == "unhealthy" and told["error"].startswith("the store is gone")
        assert str(tmp_path) not in told["error"]
        for address in ("/api/runs", "/api/runs/abcd", "/api/runs/abcd/show/ledger"):
            status, told = get(server + address)
            assert 400 <= status < 500 and "the store is gone" in told["error"]
        assert request("POST", f"{server}/api/uploads", {})[0] == 400
        assert not store.exists()
        (tmp_path / "away").rename(store)
        assert get(f"{server}/healthz")[0] == 200 and get(f"{server}/api/runs")[0] == 200
