"""The store: complete or not at all, never changed, found again; the registry beside it."""

import json
import multiprocessing
import os
import signal
import threading
import time

import pyarrow.parquet as pq
import pytest

from errors import InputError, QuestionError
from runs import writer
from runs.registry import Registry
from runs.schema import SCHEMAS, TABLES
from runs.store import Store
from runs.tables import MemoryTables, frame

NS = 1_767_571_200_000_000_001  # not representable as a double: floats would lose the last digit


def write(store, run_id="abcd1234", name="a run", rows=3):
    with store.writer() as w:
        for i in range(rows):
            w.rows("steps", SCHEMAS["steps"].batch({"step": [i], "start_ns": [NS + i], "host": [f"h{i}"]}))
        return w.commit(run_id=run_id, name=name, kind="training", facts={}, sources=[])


def without_marks(run):
    """Make it a run as they were written before files had marks."""
    old = {
        k: v
        for k, v in json.loads((run.folder / "run.json").read_text()).items()
        if k not in ("files", "crc32", "readers")
    }
    (run.folder / "run.json").write_text(json.dumps({**old, "schema_version": 4}))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_what_was_written_is_read_back_to_the_nanosecond(store):
    run = write(store)
    steps = frame(run.tables, "steps")
    assert list(steps["start_ns"]) == [NS, NS + 1, NS + 2]
    assert list(steps.columns) == [c.name for c in SCHEMAS["steps"].columns]
    assert store.find("a run").manifest.tables == {"steps": 3}
    assert run.tables.rows("lifecycle") == 0
    assert len(frame(run.tables, "lifecycle")) == 0


def test_filters_and_columns(store):
    run = write(store)
    assert list(frame(run.tables, "steps", ["step"], [("host", "==", "h1")])["step"]) == [1]


def test_memory_and_parquet_tables_read_alike(store):
    run = write(store)
    memory = MemoryTables({"steps": {"step": [0, 1, 2], "start_ns": [NS, NS + 1, NS + 2], "host": ["h0", "h1", "h2"]}})
    columns = ["step", "start_ns"]
    assert memory.arrow("steps", columns).equals(run.tables.arrow("steps", columns))


def test_the_disk_is_asked_for_the_files_of_a_run_together_and_before_their_folders(store, monkeypatch):
    together, asked = threading.Barrier(3, timeout=60), []  # one after another they would wait for ever

    def sync(path):
        if path.parent.name == "blobs":
            together.wait()
        asked.append(path.name)

    monkeypatch.setattr(writer, "sync", sync)
    with store.writer() as w:
        for name in "abc":
            w.blob(name, name.encode())
        run = w.commit(run_id="abcd1234", name="a run", kind="training", facts={}, sources=[])
    assert sorted(asked[:3]) == ["a", "b", "c"] and {"tables", "blobs", "run"} <= {*asked[3:]}
    assert {name: known.bytes for name, known in run.written.files.items()} == {f"blobs/{n}": 1 for n in "abc"}


def test_leaving_without_commit_leaves_nothing(store):
    with pytest.raises(ZeroDivisionError), store.writer() as w:
        w.rows("steps", SCHEMAS["steps"].batch({"step": [1]}))
        1 / 0  # noqa: B018
    assert store.ids() == []
    assert list((store.root / "partial").iterdir()) == []


def test_the_same_run_twice_is_one_run_and_the_first_stays(store):
    first = write(store).manifest.created_ns
    again = write(store, name="later").manifest
    assert (again.created_ns, again.name) == (first, "a run")
    assert list((store.root / "partial").iterdir()) == []


def _write_until_killed(root, started):
    with Store(root).writer() as w:
        w.rows("steps", SCHEMAS["steps"].batch({"step": [1]}))
        started.set()
        time.sleep(60)


def test_a_killed_writer_leaves_no_run_and_the_next_open_sweeps(tmp_path):
    store = Store(tmp_path)
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_write_until_killed, args=(tmp_path, started))
    process.start()
    assert started.wait(30)
    assert len(list((store.root / "partial").iterdir())) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert Store(tmp_path).ids() == []
    assert list((store.root / "partial").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "../partial", "/etc", "nope"])
def test_no_name_leads_out_of_the_store(store, name):
    write(store)
    assert store.get(name) is None
    with pytest.raises(QuestionError, match="no run"):
        store.find(name)


def test_find_by_the_beginning_of_an_id(store):
    write(store, run_id="abcd1234", name="x")
    write(store, run_id="abcd9999", name="y")
    assert store.find("abcd1").run_id == "abcd1234"
    with pytest.raises(QuestionError, match="beginning of 2"):
        store.find("abcd")


def test_blobs_stay_inside_the_run(store):
    run = write(store)
    with pytest.raises(InputError, match="leaves"):
        run.blob("../run.json")
    with store.writer() as w, pytest.raises(InputError, match="leaves"):
        w.blob("../x", b"")


def test_a_store_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot use this folder as a store"):
        Store(tmp_path / "file")


def test_a_damaged_manifest_is_named(store):
    run = write(store)
    (run.folder / "run.json").write_text("{}")
    with pytest.raises(InputError, match="run.json: not a run manifest"):
        _ = store.get(run.run_id).manifest


def test_one_broken_run_hides_no_other(store):
    write(store, run_id="good", name="good run")
    write(store, run_id="bad")
    (store.runs_folder / "bad" / "run.json").write_text("not json")
    runs, problems = store.listing()
    assert [r.run_id for r in runs] == ["good"]
    assert len(problems) == 1 and problems[0].startswith("bad/run.json: not a run manifest")
    assert store.find("good run").run_id == "good"


def test_a_run_written_before_a_column_was_thought_of_reads_as_null_there(store):
    run = write(store)
    path = run.tables.path("steps")
    pq.write_table(pq.read_table(path).drop_columns(["loss"]), path)
    without_marks(run)
    run = store.get(run.run_id)
    steps = frame(run.tables, "steps", ["step", "loss"], [("step", ">", 0)])
    assert steps["step"].tolist() == [1, 2]
    assert steps["loss"].isna().all()


def test_registry_keeps_tags_notes_and_prices(store):
    registry = Registry(store.root / "registry.db")
    registry.tag("r1", "team", "vision")
    registry.tag("r1", "team", "speech")
    registry.note("r1", "  restarted by hand ")
    registry.price("r1", 4.2)
    extras = Registry(store.root / "registry.db").extras("r1")
    assert (extras.tags, extras.notes, extras.usd_per_chip_hour) == ({"team": "speech"}, ["restarted by hand"], 4.2)
    registry.tag("r1", "team", None)
    registry.price("r1", None)
    assert registry.extras("r1").tags == {}
    assert registry.extras("r1").usd_per_chip_hour is None
    for bad in (-1.0, 1e9, float("nan")):
        with pytest.raises(InputError, match="no price"):
            registry.price("r1", bad)
    with pytest.raises(InputError, match="note"):
        registry.note("r1", "x" * 20_000)


def test_a_registry_that_is_no_database_is_named(tmp_path):
    (tmp_path / "registry.db").write_text("hello" * 500)
    with pytest.raises(InputError, match="registry cannot be used"):
        Registry(tmp_path / "registry.db")


def test_every_table_and_column_is_explained():
    for table in TABLES:
        assert table.row
        for column in table.columns:
            assert column.meaning, f"{table.name}.{column.name}"


def test_a_batch_with_a_wrong_column_is_named():
    with pytest.raises(InputError, match="no column stpe"):
        SCHEMAS["steps"].batch({"stpe": [1]})


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**40])
def test_a_number_beyond_64_bits_is_refused_by_the_name_of_its_column(value):
    with pytest.raises(InputError, match="a number of start_ns that 64 bits do not hold"):
        SCHEMAS["steps"].batch({"step": [0], "start_ns": [value]})


def test_small_batches_lie_in_one_piece_with_every_text_its_own(store):
    """Each piece of a Parquet file costs whoever reads it; a batch has a dictionary of its own."""
    hosts = [f"h{i % 7}" for i in range(300)]
    with store.writer() as w:
        for i in range(0, 300, 3):
            w.rows("steps", SCHEMAS["steps"].batch({"step": range(i, i + 3), "host": hosts[i : i + 3]}))
        run = w.commit(run_id="abcd1234", name="n", kind="training", facts={}, sources=[])
    steps = frame(run.tables, "steps", ["step", "host"])
    assert list(steps["step"]) == list(range(300)) and list(steps["host"]) == hosts
    assert pq.read_metadata(run.folder / "tables" / "steps.parquet").num_row_groups == 1


def test_what_waits_to_be_written_is_bounded_in_rows_and_in_bytes(store, monkeypatch):
    monkeypatch.setattr("runs.writer.GROUP_ROWS", 10)
    with store.writer() as w:
        for i in range(25):
            w.rows("steps", SCHEMAS["steps"].batch({"step": [i]}))
        monkeypatch.setattr("runs.writer.GROUP_BYTES", 1)
        w.rows("lifecycle", SCHEMAS["lifecycle"].batch({"kind": ["job"]}))
        w.rows("lifecycle", SCHEMAS["lifecycle"].batch({"kind": ["job"]}))
        run = w.commit(run_id="abcd1234", name="n", kind="training", facts={}, sources=[])
    assert list(frame(run.tables, "steps", ["step"])["step"]) == list(range(25))
    groups = {t: pq.read_metadata(run.folder / "tables" / f"{t}.parquet").num_row_groups for t in run.manifest.tables}
    assert groups == {"steps": 3, "lifecycle": 2}
