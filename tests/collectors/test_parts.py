"""A run in parts is the run that one process writes: the same rows in the same order, facts, warnings and answers."""

import json
import os
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pytest

from app.library import changes
from app.questions import question
from app.questions.asking import ask
from app.workspace import workspace
from collectors.ingest import ingest
from collectors.ingesting.gather import Cancelled
from collectors.ingesting.parts import spread, work
from errors import InputError, QuestionError
from runs.backup import Backups
from runs.parts import in_parts, parts_of
from runs.query import query
from runs.schema import SCHEMAS
from runs.spread import processes
from runs.spread.processes import Processes
from runs.store import Store
from tests.collectors.ingesting import nothing_stored
from tests.collectors.test_ahead import RANKS, write

HOSTS = 8


def made_in(folder):
    """Traces of eight hosts, a log, a sidecar, one trace cut short and one that is empty."""
    write(folder, ranks=HOSTS)
    (folder / "broken.pt.trace.json").write_bytes((folder / "rank0.pt.trace.json").read_bytes()[:-700])
    (folder / "empty.pt.trace.json").write_bytes(b"")
    (folder / "chipledger.json").write_text(json.dumps({"chips": HOSTS, "model": "llama2-7b"}))
    return folder


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    """As if these tables were large, and three of the files a task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread, "GATHERED_BYTES", 0)
        patch.setattr(spread, "TASK_FILES", 3)
        yield


@pytest.fixture(scope="module")
def one(hosts, tmp_path_factory):
    """(what became of it, run, store) of one process."""
    return kept(hosts, tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def several(hosts, small_parts, tmp_path_factory):
    """The same of two."""
    return kept(hosts, tmp_path_factory.mktemp("several"), Processes(2))


@pytest.fixture
def copy(several, tmp_path):
    """A copy of the latter, to be damaged."""
    _, run, store = several
    shutil.copytree(store.root, tmp_path / "copy")
    return Store(tmp_path / "copy").get(run.run_id)


def rows(run):
    """Every row of every table in order, as plain values."""
    return {name: run.tables.arrow(name).to_pylist() for name in SCHEMAS if run.tables.rows(name)}


def kept(folder, where, engine=None, **asked):
    store = Store(where)
    done = ingest([folder], store, engine=engine, **asked)
    return done, store.get(done.run_id), store


def test_rows_facts_and_warnings_are_those_of_one_process(one, several):
    (told, before, _), (said, after, store) = one, several
    assert rows(before) == rows(after) and len(rows(before)) >= 8
    assert told == said and before.manifest.facts == after.manifest.facts
    assert in_parts(after.manifest.files) and not in_parts(before.manifest.files)
    assert (before.manifest.schema_version, after.manifest.schema_version) == (5, 6)
    assert {name: after.tables.rows(name) for name in SCHEMAS} == {name: before.tables.rows(name) for name in SCHEMAS}
    assert list((store.root / "partial").iterdir()) == []
    assert list(after.files.verify()) == [] and after.damage is None


def test_small_tables_are_gathered_and_the_run_is_as_ever(tmp_path, hosts, one, monkeypatch):
    monkeypatch.setattr(spread, "GATHERED_BYTES", 1 << 22)
    before = one[1]
    _, after, _ = kept(hosts, tmp_path / "several", Processes(2))
    assert rows(before) == rows(after)
    assert after.manifest.schema_version == 5
    assert sorted(after.manifest.files) == sorted(before.manifest.files)


def test_however_many_workers_write_the_files_are_the_same_to_the_last_byte(tmp_path, hosts, several):
    found = []
    for _, run, _ in (several, kept(hosts, tmp_path / "alone", Processes(1))):
        found.append({p.relative_to(run.folder): p.read_bytes() for p in run.folder.rglob("*.parquet")})
    assert found[0] == found[1] and len(found[0]) > 20


def test_a_question_about_one_capture_opens_one_part(several):
    run = several[1]
    parts = parts_of(run.manifest.files, "op_events")
    assert len(parts) > 2
    for part in parts:
        low, high = part.captures
        assert run.tables.files("op_events", [("capture", "==", low)]) == [part.relative]
        assert run.tables.files("op_events", [("capture", "==", high)]) == [part.relative]
    assert run.tables.files("op_events", [("capture", "==", 10**6)]) == []
    assert run.tables.arrow("op_events", None, [("capture", "==", 10**6)]).num_rows == 0


def test_questions_and_sql_answer_alike(one, several):
    sql = "select capture, count(*) as n, sum(dur_ps) as ps from op_events group by capture order by capture"
    told = []
    for _, run, store in (one, several):
        place = workspace(str(store.root))
        answers = [_answer(run, place, name) for name in ("ledger", "stragglers", "collectives", "overlap", "ops")]
        told.append((query(run, sql).table.to_pylist(), answers))
    assert told[0] == told[1] and len(told[0][0]) >= HOSTS


def _answer(run, place, name):
    try:
        return json.dumps(ask(question(name), run, {}, place.registry).to_dict(), default=str)
    except QuestionError as e:
        return str(e)


def test_a_worker_that_is_killed_costs_its_task_alone(tmp_path, hosts, one, monkeypatch):
    made, killed = Processes._child, []

    def child(self):
        found = made(self)
        if len(killed) < 2:
            killed.append(found.pid)
            os.kill(found.pid, signal.SIGKILL)
            found.wait()
        return found

    monkeypatch.setattr(Processes, "_child", child)
    _, after, _ = kept(hosts, tmp_path / "several", Processes(2))
    assert len(killed) == 2 and rows(one[1]) == rows(after)


def test_a_file_that_ends_every_worker_is_named_and_the_others_are_kept(tmp_path, hosts, monkeypatch):
    made = Processes._done

    def done(self, stamp, what, task):
        if any(file["name"].endswith("rank3.pt.trace.json") for file in task.asked["files"]):
            return processes.Outcome(task=task, problem="the process that read it ended 4 times (signal 9)")
        return made(self, stamp, what, task)

    monkeypatch.setattr(Processes, "_done", done)
    told, run, _ = kept(hosts, tmp_path / "several", Processes(2))
    assert [w for w in told.warnings if "ended 4 times (signal 9)" in w and "rank3" in w]
    assert run.tables.rows("captures") == HOSTS


def test_whoever_changes_their_mind_leaves_nothing(hosts, store):
    engine = Processes(2)
    with pytest.raises(Cancelled):
        ingest([hosts], store, cancel=lambda: bool(engine._children), engine=engine)
    assert engine._children and all(child.poll() is not None for child in engine._children)
    assert nothing_stored(store)


def test_a_worker_of_another_version_is_refused_in_one_sentence(hosts, store, monkeypatch):
    monkeypatch.setattr(work, "stamp", lambda: "readers 0123456789abcdef")
    with pytest.raises(InputError, match="a worker is of another version") as refused:
        ingest([hosts], store, engine=Processes(2))
    assert "Start all workers from the same installation" in str(refused.value)
    assert nothing_stored(store)


def test_a_damaged_part_is_named_where_it_is_opened_and_read_anew(hosts, copy):
    run, store = copy, Store(copy.folder.parents[1])
    broken, whole = parts_of(run.manifest.files, "op_events")[:2]
    path = run.folder / broken.relative
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    again = store.get(run.run_id)
    assert again.tables.arrow("op_events", None, [("capture", "==", whole.captures[0])]).num_rows > 0
    with pytest.raises(InputError, match=broken.relative):
        again.tables.arrow("op_events", None, [("capture", "==", broken.captures[0])])
    assert query(again, "select count(*) as n from captures").table.to_pylist()  # reads no events
    with pytest.raises(InputError, match=broken.relative):
        query(again, "select count(*) from OP_EVENTS")
    path.unlink()
    assert broken.relative in store.get(run.run_id).damage
    done = ingest([hosts], store, engine=Processes(2))
    assert done.replaced and list(store.get(run.run_id).files.verify()) == []


def test_a_backup_holds_every_part_and_the_bin_gives_it_back(tmp_path, hosts, copy):
    run, store = copy, Store(copy.folder.parents[1])
    place, before = workspace(str(store.root)), rows(run)
    backups = Backups(tmp_path / "backups")
    made = backups.make(place.store, place.registry.path)
    assert backups.verify(made) == [] and made.damaged == ()
    backups.restore(backups.find(), tmp_path / "again")
    again = Store(tmp_path / "again").get(run.run_id)
    assert rows(again) == before and list(again.files.verify()) == []
    changes.bin_many(place, [run.run_id], who="ann")
    back = ingest([hosts], store)
    assert back.restored and rows(store.get(run.run_id)) == before


def test_the_rows_of_parts_are_read_in_pieces(several):
    run = several[1]
    pieces = list(run.tables.batches("op_events", ["capture", "event"], 50))
    assert max(piece.num_rows for piece in pieces) <= 50
    whole = run.tables.arrow("op_events", ["capture", "event"])
    assert pa.concat_tables(pieces).to_pylist() == whole.to_pylist()
    assert run.tables.first("op_events", 7).num_rows == 7


def test_few_files_are_read_as_ever(hosts, store, monkeypatch):
    monkeypatch.setattr(Processes, "map", lambda *_: pytest.fail("an engine was asked"))
    assert ingest([hosts], store).tables["captures"] == HOSTS + 1


def test_many_large_files_are_read_in_parts_without_being_asked(hosts, store, monkeypatch):
    monkeypatch.setattr(spread, "MANY_FILES", RANKS)
    monkeypatch.setattr(spread, "MANY_BYTES", 0)
    seen = []
    done = ingest([hosts], store, progress=lambda done, total, what: seen.append(done / total))
    assert in_parts(store.get(done.run_id).manifest.files)
    assert seen == sorted(seen) and seen[-1] == 1.0


def test_a_worker_that_does_not_see_the_store_says_so(tmp_path):
    gone = Path(tmp_path / "nowhere")
    with pytest.raises(InputError, match="does not see the folder of the store"):
        work.read({"folder": str(gone), "key": "a", "files": []})
