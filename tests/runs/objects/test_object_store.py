"""What belongs to stores of objects alone: damage here and there, indexes that are long or cut, processes without a
network, and an address that is another's by now."""

import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from errors import InputError
from runs.limits import NO_NETWORK_VARIABLE
from runs.objects import index as indexing
from runs.objects.folder import FolderObjects
from runs.objects.index import BIN, COMMIT, RESTORE, Happened, Index
from runs.objects.keys import manifest_key
from runs.objects.opening import address_of, local_folder, objects_at, plain
from runs.objects.store import FRESH_S, ObjectStore
from runs.objects.sweeping import sweep
from runs.registry import Registry
from runs.tidy import keep_tidy
from tests.runs.objects.places import NS, Place, at_once, steps, write


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "shared").mkdir()
    return Place("file", f"file://{tmp_path}/shared/store", tmp_path)


def table(place, run):
    """The object of the run's steps."""
    [key] = [k for k in place.listed() if k.startswith(f"runs/{run.run_id}/") and k.endswith("steps.parquet")]
    return place.folder / "shared" / "store" / key


def test_damage_in_the_cache_is_fetched_anew(shared):
    write(shared.open())
    run = shared.open("two").get("abcd1234")
    assert steps(run) == [NS, NS + 1, NS + 2]
    path = run.folder / "tables" / "steps.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert steps(run) == [NS, NS + 1, NS + 2]
    path.write_bytes(data[:-1])
    assert steps(run) == [NS, NS + 1, NS + 2]
    path.unlink()
    assert steps(run) == [NS, NS + 1, NS + 2]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-9] + b"x" * 9), "is not what was written"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1]), "is shorter than"),
        (lambda p: p.unlink(), "is missing"),
    ],
    ids=["changed", "cut", "gone"],
)
def test_damage_in_the_bucket_is_told_with_its_address(shared, harm, said):
    run = write(shared.open())
    harm(table(shared, run))
    read = shared.open("two").get("abcd1234")
    with pytest.raises(InputError, match=said) as error:
        read.tables.arrow("steps")
    assert str(error.value).startswith(f"{shared.url}/runs/abcd1234/") and "--again" in str(error.value)
    assert not (read.folder / "tables" / "steps.parquet").exists()
    assert [e.what for e in read.files.verify_there()] != []


def test_a_run_that_is_ingested_again_is_looked_at_where_it_lies(shared):
    run = write(shared.open())
    there = shared.open("two").get("abcd1234")
    assert list(there.files.verify()) == [] and not (there.folder / "tables").exists()  # nothing is fetched for it
    table(shared, run).unlink()
    assert [e.what for e in there.files.verify()] == ["is missing"]


def applied(objects, folder):
    folder.mkdir(exist_ok=True)
    found: list[str] = []
    made = Index(objects, folder, lambda e: found.append(e.run_id), lambda: (), lambda run_id: False)
    made.open()
    return made, found


def entry(n, do=COMMIT):
    at = manifest_key(f"r{n}", "0" * 16) if do == COMMIT else ""
    return Happened(do=do, run_id=f"r{n}", mark="0" * 16, at_ns=n, at=at)


@pytest.fixture
def short(monkeypatch):
    """Three entries in one object, and three of those in one."""
    monkeypatch.setattr(indexing, "TOGETHER", 3)


def test_a_long_index_is_read_from_few_objects(tmp_path, short):
    objects = FolderObjects(tmp_path / "store")
    one, mine = applied(objects, tmp_path / "one")
    for n in range(23):
        one.append(lambda n=n: entry(n))
    asked = []
    read = objects.read
    objects.read = lambda key, *given: asked.append(key) or read(key, *given)
    two, seen = applied(objects, tmp_path / "two")
    assert two.follow() == 23 and two.follow() == 0
    assert seen == mine == [f"r{n}" for n in range(23)]
    assert len([k for k in asked if "/of" in k]) == 3  # two of nine entries, one of three; two stand by themselves


@pytest.mark.parametrize("harm", [lambda p: p.unlink(), lambda p: p.write_bytes(b"nonsense")], ids=["gone", "damaged"])
def test_what_joins_entries_may_be_lost(tmp_path, short, harm):
    objects = FolderObjects(tmp_path / "store")
    one, _ = applied(objects, tmp_path / "one")
    for n in range(10):
        one.append(lambda n=n: entry(n))
    for path in (tmp_path / "store" / "index").glob("of*/*"):
        harm(path)
    two, seen = applied(objects, tmp_path / "two")
    two.follow()
    assert seen == [f"r{n}" for n in range(10)]


def test_entries_of_many_at_once_have_one_order(tmp_path, short):
    objects = FolderObjects(tmp_path / "store")
    made = [applied(objects, tmp_path / f"m{n}") for n in range(4)]
    at_once(
        *(
            lambda i=i, n=n: [i.append(lambda k=k: entry(100 * n + k)) for k in range(5)]
            for n, (i, _) in enumerate(made)
        )
    )
    for one, _ in made:
        one.follow()
    orders = [seen for _, seen in made]
    assert all(order == orders[0] for order in orders) and len(set(orders[0])) == len(orders[0]) == 20


def test_an_index_that_lost_its_end_is_no_shorter_one(shared, monkeypatch):
    store = shared.open()
    write(store)
    write(store, run_id="other")
    (shared.folder / "shared" / "store" / "index" / "000000000001.json").unlink()
    with pytest.raises(InputError, match="what was written there before is gone"):
        shared.open()


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"do": "dance"}', b"\xff", b'{"do":"bin","run_id":1}'])
def test_an_entry_that_is_none_is_told_and_hides_nothing(shared, raw):
    write(shared.open())
    (shared.folder / "shared" / "store" / "index" / "000000000001.json").write_bytes(raw)
    with pytest.raises(InputError, match="000000000001.json: is no entry of the index"):
        shared.open("two").ids()


def test_a_run_whose_manifest_is_gone_is_listed_as_damaged(shared, monkeypatch):
    monkeypatch.setattr(indexing, "HELD_BYTES", 10)
    run = write(shared.open())
    [key] = [k for k in shared.listed() if k.endswith("/run.json") and k.count("/") == 3]
    (shared.folder / "shared" / "store" / key).unlink()
    found = shared.open("two").look()
    assert found.runs == [] and "is missing" in found.broken[run.run_id]


def test_another_store_at_the_same_address_is_told(shared):
    write(shared.open())
    shutil.rmtree(shared.folder / "shared" / "store")
    with pytest.raises(InputError, match="the store is gone"):
        shared.open()
    write(shared.open("new"))
    with pytest.raises(InputError, match="another store lies there now"):
        shared.open()


def test_a_store_that_cannot_be_asked_shows_nothing_rather_than_what_is_old(shared):
    store = shared.open()
    write(store)
    assert store.ids() == ["abcd1234"]
    (shared.folder / "shared").rename(shared.folder / "unmounted")
    time.sleep(FRESH_S + 0.1)
    for _ in range(2):
        with pytest.raises(InputError, match="the folder of this store is gone"):
            store.ids()
    (shared.folder / "unmounted").rename(shared.folder / "shared")
    time.sleep(FRESH_S + 0.1)
    assert store.ids() == ["abcd1234"]


def test_what_was_noted_here_may_be_lost(shared):
    store = shared.open()
    write(store)
    write(store, run_id="other")
    store.bin.put("other")
    (store.root / "index.json").write_bytes(b"nonsense")
    again = shared.open()
    assert again.ids() == ["abcd1234"] and again.bin.has("other")


@pytest.mark.parametrize(
    "look", [lambda s: s.look().runs, lambda s: [s.look_at("abcd1234")[0]], lambda s: [s.get("abcd1234")]]
)
@pytest.mark.parametrize("harm", [lambda p: p.write_bytes(p.read_bytes()[:20]), Path.unlink], ids=["cut", "gone"])
def test_a_manifest_that_was_damaged_here_is_told_anew(shared, look, harm):
    write(shared.open())
    store = shared.open("two")
    harm(store.runs_folder / "abcd1234" / "run.json")
    [run] = look(store)
    assert run.written.kind == "training" and steps(run) == [NS, NS + 1, NS + 2]


def test_a_run_of_which_nothing_is_known_here_any_more_is_told_anew(shared):
    """Another was added and removed since."""
    write(shared.open())
    write(shared.open(), run_id="other")
    two = shared.open("two")
    write(two, run_id="third")
    two.remove("other")
    shutil.rmtree(two.runs_folder / "abcd1234")
    again = shared.open("two")
    assert sorted(again.ids()) == ["abcd1234", "third"] and [len(steps(r)) for r in again.runs()] == [3, 3]


def test_a_process_without_a_network_leaves_its_run_to_who_started_it(shared, monkeypatch):
    outside = shared.open()
    monkeypatch.setenv(NO_NETWORK_VARIABLE, "1")
    inside = shared.open()
    inside.objects.read = inside.objects.create = inside.objects.put = None
    run = write(inside)
    assert run.written.run_id == "abcd1234"
    assert steps(inside.get("abcd1234")) == [NS, NS + 1, NS + 2]
    monkeypatch.delenv(NO_NETWORK_VARIABLE)
    assert outside.ids() == [] and shared.listed() == []
    outside.bring_outgoing()
    assert steps(outside.get("abcd1234")) == [NS, NS + 1, NS + 2]
    assert steps(shared.open("two").find("a run")) == [NS, NS + 1, NS + 2]
    assert list((outside.root / "outgoing").iterdir()) == []


def test_what_waits_to_be_brought_is_brought_when_it_can_be(shared, monkeypatch):
    monkeypatch.setenv(NO_NETWORK_VARIABLE, "1")
    write(shared.open())
    monkeypatch.delenv(NO_NETWORK_VARIABLE)
    store = shared.open()
    create, store.objects.create = store.objects.create, lambda *_: (_ for _ in ()).throw(InputError("no network"))
    with pytest.raises(InputError, match="no network"):
        store.bring_outgoing()
    assert store.ids() == [] and shared.listed() == []
    store.objects.create = create
    store.sweep()
    assert steps(store.get("abcd1234")) == [NS, NS + 1, NS + 2]


def test_a_run_that_cannot_be_brought_keeps_back_no_other(shared, monkeypatch):
    monkeypatch.setenv(NO_NETWORK_VARIABLE, "1")
    inside = shared.open()
    for run_id in ("lost", "kept"):
        write(inside, run_id=run_id)
    monkeypatch.delenv(NO_NETWORK_VARIABLE)
    (inside.outgoing.mine["lost"] / "tables" / "steps.parquet").unlink()
    store = shared.open()
    store.bring_outgoing("kept")
    assert store.ids() == ["kept"]
    for act in (store.bring_outgoing, lambda: store.bring_outgoing("lost"), store.sweep):
        with pytest.raises(InputError, match="run lost waits to be brought"):
            act()
    stop = threading.Event()
    stop.set()
    keep_tidy(store, Registry(shared.folder / "registry.db").at, stop)
    assert store.ids() == ["kept"] and steps(store.get("kept")) == [NS, NS + 1, NS + 2]


@pytest.mark.parametrize("below", [".coming", "clock"])
def test_what_was_written_halfway_by_who_was_killed_is_swept(shared, below):
    store = shared.open()
    write(store)
    old, new = (shared.folder / "shared" / "store" / below / name for name in ("old", "new"))
    for path in (old, new):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 1000)
    os.utime(old, (1e9, 1e9))
    assert sweep(store).bytes == 1000
    assert not old.exists() and new.exists() and store.ids() == ["abcd1234"]


NO_ADDRESSES = (
    *("s3://", "s3://a//b", "s3://a/../b", "s3://u:p@a/b", "s3://a?x=1", "ftp://a", "file://host/x"),
    *("file:///a/../b", "://", "s3://" + "a" * 2000, "s3://a b", "memory://x"),
)


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_no_address_is_refused_without_what_is_secret(url):
    with pytest.raises(InputError, match="no address of a store") as error:
        plain(url)
    assert "u:p" not in str(error.value) and len(str(error.value)) < 400


def test_one_address_has_one_folder_here(tmp_path):
    assert local_folder("s3a://b/p/", tmp_path) == local_folder("s3://b/p", tmp_path)
    assert local_folder("s3://b/p", tmp_path) != local_folder("s3://b/p2", tmp_path)
    assert local_folder("s3://b/p", tmp_path) != local_folder("gs://b/p", tmp_path)


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'chipledger\[s3\]'"):
        objects_at("s3://bucket/prefix")


def test_a_note_that_was_damaged_is_no_store_by_itself(tmp_path):
    assert address_of(tmp_path) is None
    (tmp_path / "objects.json").write_text(json.dumps(["s3://b"]))
    with pytest.raises(InputError, match="was damaged"):
        address_of(tmp_path)


def test_restored_and_binned_in_turn_ends_as_the_last_said(shared):
    stores = [shared.open(f"m{n}") for n in range(3)]
    write(stores[0])
    at_once(*(lambda s=s: [s.bin.put("abcd1234") or s.bin.restore("abcd1234") for _ in range(6)] for s in stores))
    for store in stores:
        store.follow()
    last = list(stores[0]._index.all())[-1]
    assert last.do in (BIN, RESTORE, COMMIT)
    assert all(s.bin.has("abcd1234") == (last.do == BIN) for s in stores)
    assert all(os.path.isdir(s.runs_folder / "abcd1234") == (last.do != BIN) for s in stores)


def test_the_index_is_asked_once_a_second_at_most(shared):
    store = shared.open()
    asked, read = [], store.objects.read
    store.objects.read = lambda *given: asked.append(given) or read(*given)
    for _ in range(50):
        store.ids()
    assert isinstance(store, ObjectStore) and len(asked) <= 2
