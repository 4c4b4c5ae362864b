"""The command line over a store in a bucket: what one machine ingests another shows, as a folder does."""

import json
import os
from pathlib import Path

import pytest

from app.cli import main
from app.workspace import CACHE_BYTES_VARIABLE, CACHE_VARIABLE, workspace
from errors import InputError
from tests.collectors.ingesting import LOG
from tests.runs.objects.conftest import made

URL_OF_NOBODY = "s3://no-such-bucket-here/p"


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, "")  # what `--cache` sets is taken back
    return made("s3", tmp_path, monkeypatch)


@pytest.fixture
def ask(bucket, tmp_path, capsys):
    """What a command prints, as this machine runs it; of JSON what it holds."""

    def asked(*words, machine="one", store=bucket.url, code=0):
        found = main(["--store", store, "--cache", str(tmp_path / machine), *words])
        out, err = capsys.readouterr()
        assert found == code, err
        return json.loads(out) if "--json" in words and not code else out + err

    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text(LOG)
    return asked


def test_what_is_ingested_on_one_machine_is_shown_on_another(ask, tmp_path):
    local = str(tmp_path / "store")
    done = ask("ingest", str(tmp_path / "logs"), "--name", "mine", "--json")
    ask("ingest", str(tmp_path / "logs"), "--name", "mine", "--json", store=local)
    assert [r["run_id"] for r in ask("runs", "--json", machine="two")["runs"]] == [done["run_id"]]
    for question in ("steps", "mfu", "ledger"):
        words = ("show", "mine", question, "--json")
        assert ask(*words, machine="two") == ask(*words, store=local)
    words = ("query", "mine", "select count(*) as n from steps", "--json")
    assert ask(*words, machine="two")["rows"] == ask(*words, store=local)["rows"]


def test_files_of_a_bucket_are_read_where_they_lie(ask, bucket, tmp_path):
    there = bucket.objects()
    there.create("jobs/night/logs/train.log", LOG.encode())
    there.create("jobs/night/.hidden/x.log", b"no")
    by_address = ask("ingest", f"{bucket.url}/jobs/night/**", "--json")
    by_path = ask("ingest", str(tmp_path / "logs"), "--json", machine="two")
    assert by_path["run_id"] == by_address["run_id"] and by_path["existed"]


def test_runs_are_mirrored_and_moved(ask, bucket, tmp_path):
    other, local = f"{bucket.url}-other", str(tmp_path / "store")
    run_id = ask("ingest", str(tmp_path / "logs"), "--json", store=local)["run_id"]
    assert ask("mirror", bucket.url, "--json", store=local)["copied"] == [run_id]
    assert ask("mirror", bucket.url, "--json", store=local)["there"] == [run_id]
    assert ask("mirror", other, run_id, "--move", "--json", machine="two")["moved"] == [run_id]
    assert ask("runs", "--json", machine="three")["runs"] == []
    assert ask("show", run_id, "steps", "--json", machine="three", store=other) == ask(
        "show", run_id, "steps", "--json", store=local
    )
    assert ask("mirror", str(tmp_path / "back"), "--json", machine="three", store=other)["copied"] == [run_id]
    assert "same store" in ask("mirror", bucket.url, code=2)


def test_a_run_that_is_damaged_is_not_mirrored_and_hides_no_other(ask, bucket, tmp_path):
    local = str(tmp_path / "store")
    bad = ask("ingest", str(tmp_path / "logs"), "--json", store=local)["run_id"]
    (tmp_path / "logs" / "train.log").write_text(LOG.replace("1.0", "1.2"))
    good = ask("ingest", str(tmp_path / "logs"), "--json", store=local)["run_id"]
    table = Path(local) / "runs" / bad / "tables" / "steps.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    assert "steps.parquet" in ask("mirror", bucket.url, store=local, code=3)
    assert [r["run_id"] for r in ask("runs", "--json")["runs"]] == [good]


def test_a_backup_holds_what_the_bucket_does_not(ask, tmp_path):
    run_id = ask("ingest", str(tmp_path / "logs"), "--json")["run_id"]
    ask("note", run_id, "a note of ours")
    made = ask("backup", str(tmp_path / "backups"))
    assert "damaged" not in made and "no run, since they lie in a bucket" in made
    restored = str(tmp_path / "restored")
    ask("backup", str(tmp_path / "backups"), "--restore-to", restored)
    assert [r["run_id"] for r in ask("runs", "--json", store=restored)["runs"]] == [run_id]
    assert "a note of ours" in ask("note", run_id, store=restored)


def test_a_store_that_is_not_there_is_one_sentence(ask):
    said = ask("runs", store=URL_OF_NOBODY, code=2)
    assert said == (
        f"error: {URL_OF_NOBODY}/chipledger.json: no such bucket. Is its name right, and does it still exist?\n"
    )


def test_a_run_that_is_not_there_is_told_with_the_address(ask, bucket):
    assert f"error: {bucket.url}: no run 'x' in this store" in ask("show", "x", "steps", code=2)


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "1e308", "9" * 1000])
def test_a_limit_that_is_none_is_told(bucket, tmp_path, monkeypatch, text):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(CACHE_BYTES_VARIABLE, text)
    with pytest.raises(InputError, match=CACHE_BYTES_VARIABLE):
        workspace(bucket.url)
    assert os.environ[CACHE_BYTES_VARIABLE] == text
