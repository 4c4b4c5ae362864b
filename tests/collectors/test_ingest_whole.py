"""How an ingest goes: progress, cancelling, failing disks, being killed; a run is there whole or not at all."""

import gzip
import json
import multiprocessing
import random
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import ingest as module
from collectors.ingest import ingest
from collectors.ingesting import lane, naming
from collectors.ingesting.gather import Cancelled
from collectors.training import maxtext
from errors import InputError
from runs.schema import SCHEMAS
from runs.store import Store
from runs.tables import frame
from tests.collectors.ingesting import LOG, nothing_stored
from tests.collectors.test_goodput_log import A_JOB, lines, step
from tests.fuzz.damage import damaged


def test_progress_reaches_the_end(store, folder, monkeypatch):
    monkeypatch.setattr("collectors.reading.textlog.BATCH_ROWS", 100)
    for name in ("a.log", "b.log"):
        (folder / name).write_text(name + LOG * 2_000)
    told = []
    done = ingest([folder], store, progress=lambda *args: told.append(args))
    total = sum(p.stat().st_size for p in folder.iterdir())
    assert {t for _, t, _ in told} == {total}
    assert [d for d, _, _ in told] == sorted(d for d, _, _ in told) and told[-1] == (total, total, "stored")
    assert len({d for d, _, what in told if what == "a.log"}) > 10
    assert done.tables["steps"] == 40_000


def test_cancelling_at_any_moment_leaves_nothing(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "b.json").write_text(json.dumps(A_JOB))
    asked = 0

    def count():
        nonlocal asked
        asked += 1
        return False

    ingest([folder], store, chips=1, cancel=count)  # a run of its own, to count the questions
    for moment in range(asked):
        left = iter([False] * moment + [True] * 1000)
        with pytest.raises(Cancelled, match="cancelled; nothing was stored"):
            ingest([folder], store, cancel=lambda left=left: next(left))
        assert len(store.ids()) == 1 and list((store.root / "partial").iterdir()) == []


def test_a_full_disk_is_said_and_leaves_nothing(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)

    def full(self, table, batch):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("runs.writer.RunWriter.rows", full)
    with pytest.raises(InputError, match="the run cannot be written .*No space left.*disk full"):
        ingest([folder], store)
    assert nothing_stored(store)


def test_a_defect_of_ours_is_not_hidden_and_leaves_nothing(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)

    def broken(source):
        yield from list(maxtext_read(source))
        raise ZeroDivisionError

    maxtext_read = maxtext.read
    monkeypatch.setattr(maxtext, "read", broken)
    with pytest.raises(ZeroDivisionError):
        ingest([folder], store)
    assert nothing_stored(store)


def test_the_reader_is_never_far_ahead_of_the_writer(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)
    produced = written = furthest = 0
    batch = SCHEMAS["steps"].batch({"step": pa.array([1])})

    def many(source):
        nonlocal produced, furthest
        for _ in range(200):
            produced += 1
            furthest = max(furthest, produced - written)
            yield module.Rows("steps", batch)

    def slow(self, table, rows):
        nonlocal written
        time.sleep(0.001)
        written += 1

    monkeypatch.setattr(maxtext, "read", many)
    monkeypatch.setattr("runs.writer.RunWriter.rows", slow)
    ingest([folder], store)
    assert written == 200 and furthest <= lane.QUEUED + 3


@pytest.mark.parametrize(
    ("tables", "kind"),
    [
        ({"requests": 3}, "serving"),
        ({"engine": 1}, "serving"),
        ({"requests": 3, "ops": 1}, "serving"),
        ({"requests": 3, "steps": 1}, "training"),
        ({"ops": 1}, "training"),
        ({"stages": 1}, "serving"),
    ],
)
def test_the_kind_follows_from_the_tables(tables, kind):
    assert naming.kind_of(tables) == kind


@pytest.mark.parametrize(
    ("tables", "facts", "kind"),
    [
        ({"evidence": 6}, {"engine"}, "serving"),
        ({}, {"engine", "model"}, "serving"),
        ({"evidence": 6}, {"model"}, "training"),
        ({"steps": 3}, {"engine"}, "training"),
    ],
)
def test_a_servers_log_alone_is_a_run_of_serving(tables, facts, kind):
    """Its starts may all have failed: then nothing but lines and facts is there."""
    assert naming.kind_of(tables, facts) == kind


def _ingest_in_a_child(root, folder):
    ingest([folder], Store(root))


def test_killed_at_any_moment_the_run_is_there_whole_or_not_at_all(tmp_path, folder):
    entries = "".join(lines([step(i, i)]) for i in range(20_000))
    (folder / "goodput.jsonl").write_text(entries)
    with gzip.open(folder / "train.log.gz", "wt", compresslevel=1) as f:
        f.write(LOG * 2_000)
    root = tmp_path / "store"
    clean = multiprocessing.get_context("forkserver")  # a child of this process could inherit a lock of its threads
    clean.set_forkserver_preload([__name__])
    began = time.monotonic()
    whole = ingest([folder], Store(tmp_path / "another"))
    takes = time.monotonic() - began
    outcomes = set()
    rng = random.Random(7)
    for moment in [*(rng.uniform(0, 1.1) for _ in range(12)), 20]:
        child = clean.Process(target=_ingest_in_a_child, args=(root, folder))
        child.start()
        child.join(moment * takes)
        child.kill()
        child.join()
        store = Store(root)
        assert list((root / "partial").iterdir()) == []
        outcomes.add(len(store.ids()))
        if store.ids():
            run = store.get(whole.run_id)
            assert run.manifest.tables == whole.tables
            assert {t: run.tables.rows(t) for t in whole.tables} == whole.tables
            assert len(frame(run.tables, "steps")) == whole.tables["steps"]
            run.folder.rename(tmp_path / f"seen-{moment}")
    assert outcomes == {0, 1}


@settings(max_examples=60, deadline=None)
@given(data=damaged([LOG.encode(), gzip.compress(LOG.encode()), lines(A_JOB).encode(), gzip.compress(b"\n")]))
def test_damaged_files_are_stored_or_refused(data, tmp_path_factory):
    base = tmp_path_factory.mktemp("damaged")
    (base / "x.log").write_bytes(data)
    store = Store(base / "store")
    try:
        done = ingest([base / "x.log"], store)
        assert store.get(done.run_id).manifest.tables == done.tables
    except InputError:
        assert nothing_stored(store)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_long_lists_of_names_are_cut(names):
    assert naming.names_listed(names) == ", ".join(names)
    assert naming.names_listed([*"abcdefghijkl"]).endswith("j and 2 more")
