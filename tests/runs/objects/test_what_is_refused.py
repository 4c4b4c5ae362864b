"""What a store of objects does not do: take what is no store of objects for one, or believe what an index, a manifest
or an address says that cannot be so."""

import json
import os
import time
import zlib

import pytest

from app.library.mirroring import mirror
from app.workspace import Workspace
from errors import InputError, QuestionError
from runs.bin import KEPT_S
from runs.integrity import Mark
from runs.objects.index import Happened, happened
from runs.objects.keys import marked
from runs.objects.opening import plain
from runs.objects.store import ObjectStore
from runs.objects.sweeping import sweep
from runs.registry import Registry
from runs.run import Manifest
from runs.store import Store
from tests.runs.objects.places import NS, Place, steps, write


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "shared").mkdir()
    return Place("file", f"file://{tmp_path}/shared/store", tmp_path)


def test_a_plain_store_given_as_an_address_stays_what_it_is(tmp_path):
    write(Store(tmp_path / "plain"))
    with pytest.raises(InputError, match="holds runs, but is no store of objects"):
        ObjectStore(f"file://{tmp_path}/plain", tmp_path / "one")
    assert not (tmp_path / "plain" / "chipledger.json").exists()
    assert steps(Store(tmp_path / "plain").get("abcd1234")) == [NS, NS + 1, NS + 2]


def test_what_lies_below_no_mark_is_never_swept(shared):
    store = shared.open()
    theirs = shared.folder / "shared" / "store" / "runs" / "abcd1234" / "tables" / "steps.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"a table of a plain store")
    os.utime(theirs, (1e9, 1e9))
    assert sweep(store).objects == 0 and theirs.exists()


def test_a_store_of_objects_is_opened_by_its_address_alone(shared):
    write(shared.open())
    with pytest.raises(InputError, match=f"is a store of objects.*{shared.url}"):
        Store(shared.folder / "shared" / "store")


MARK = "0123456789abcdef"
WHOLE = {"do": "commit", "run_id": "r", "mark": MARK, "at_ns": 1, "at": f"runs/r/{MARK}/run.json", "manifest": ""}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"run_id": name} for name in ("/victim", "../../victim", "a\0b", "", "a/b", ".", "r" * 129)),
        *({"mark": mark} for mark in ("", "tables", MARK.upper(), "../" * 5, MARK + "0")),
        *({"at_ns": ns} for ns in (10**30, -1, 1 << 63, True, 1.5, None)),
        *({"at": at} for at in ("", "chipledger.json", "/etc/passwd", "runs", "../x")),
        *({"do": do} for do in ("remove", "dance", None, [])),
        *({"do": do, "at": at} for do in ("bin", "restore", "remove") for at in ("/tmp", "..", "index")),
        *({"manifest": what} for what in (1, "\ud800")),
        {"more": "x"},
    ],
    ids=repr,
)
def test_an_entry_that_cannot_be_is_one_sentence(wrong):
    assert happened(json.dumps(WHOLE).encode(), "here").run_id == "r"
    with pytest.raises(InputError, match=r"^here: is no entry of the index of a store"):
        happened(json.dumps(WHOLE | wrong).encode(), "here")


@pytest.mark.parametrize("lacking", ["do", "run_id", "mark", "at_ns"])
def test_an_entry_that_lacks_something_is_one_sentence(lacking):
    for raw in (json.dumps({k: v for k, v in WHOLE.items() if k != lacking}), "[" * 100_000):
        with pytest.raises(InputError, match="is no entry of the index of a store"):
            happened(raw.encode(), "here")


@pytest.mark.parametrize("do", ["bin", "restore", "remove", "commit"])
def test_an_index_names_no_folder_outside_of_the_store(shared, do):
    victim = shared.folder / "victim"
    victim.mkdir()
    (victim / "precious").write_text("x")
    one = shared.open()
    write(one)
    at = "bin" if do == "remove" else ""
    assert one.objects.create(
        "index/000000000001.json",
        Happened(do=do, run_id=str(victim), mark=MARK, at_ns=1, at=at, manifest="x").to_json(),
    )
    with pytest.raises(InputError, match="is no entry of the index"):
        shared.open("two").ids()
    assert (victim / "precious").read_text() == "x"


@pytest.mark.parametrize("other", ["file://{}/./b", "file://{}//b", "file:///{}/b", "FILE://{}/b/", "file://{}/link"])
def test_one_folder_has_one_address(tmp_path, other):
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert plain(other.format(tmp_path)) == plain(f"file://{tmp_path}/b") == ("file", f"{tmp_path}/b")


@pytest.mark.parametrize("kind", ["plain", "objects"])
def test_a_store_is_not_mirrored_onto_itself(tmp_path, kind):
    if kind == "plain":
        here = Store(tmp_path / "b")
        (tmp_path / "link").symlink_to(tmp_path / "b")
        there = Store(tmp_path / "link")
    else:  # what leads to one bucket by two names cannot be told from the names
        here, there = (ObjectStore(f"file://{tmp_path}/b", tmp_path / machine) for machine in ("one", "two"))
    write(here)
    places = [Workspace(store, Registry(tmp_path / f"{n}.db")) for n, store in enumerate((here, there))]
    with pytest.raises(QuestionError, match="both are the same store"):
        mirror(*places, move=True)
    assert here.ids() == ["abcd1234"] and not here.bin.has("abcd1234")


SECRETS = (
    *("s3://KEY:SECRET@bucket/" + "a" * 1100, "s3://KEY:SEC?RET@bucket/p q", "s3://KEY:SEC/RET@bucket/p q"),
    *("s3://bucket/p#SECRET", "s3://bucket/p;sig=SECRET", " s3://KEY:SECRET@b/p", "s3:/KEY:SECRET@b", "KEY:SEC@b#RET"),
    *("ftp://bucket/p?sig=SECRET", "file://KEY:SECRET@host/x"),
)


@pytest.mark.parametrize("url", SECRETS)
def test_no_refusal_of_an_address_repeats_a_secret(url):
    with pytest.raises(InputError, match="no address of a store") as error:
        plain(url)
    assert not any(secret in str(error.value) for secret in ("KEY", "SEC", "RET"))


@pytest.mark.parametrize("lost", [0, 1])
def test_an_index_that_lost_an_entry_is_no_smaller_store(shared, lost):
    one, fresh = shared.open(), shared.open("fresh")
    for n in range(3):
        write(one, f"abcd000{n}")
    (shared.folder / "shared" / "store" / "index" / f"{lost:012d}.json").unlink()
    for act in (lambda: shared.open("two"), lambda: shared.open("two"), lambda: write(fresh, "ffff0001")):
        with pytest.raises(InputError, match=f"{lost:012d}.json: what was written there before is gone"):
            act()
    assert len(list((shared.folder / "shared" / "store" / "index").iterdir())) == 2


def test_an_index_is_listed_once_on_a_machine(shared):
    write(shared.open())
    shared.open("two")
    two = shared.open("two")
    two.objects.entries = None
    write(two, "other")
    assert sorted(two.ids()) == ["abcd1234", "other"]


OUTSIDE = ("../x", "/x", "tables/../../x", "tables//x", "./x", "", "tables/", "..\\x", "a\nb", "a\0b")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_manifest_names_no_file_outside_of_its_run(name):
    def told(**given):
        return Manifest(run_id="abcd1234", name="x", kind="training", created_ns=1, **given).to_json()

    data = Mark(6, f"{zlib.crc32(b'owned.'):08x}")
    assert Manifest.from_json(told(files={"tables/steps.parquet": data}, tables={"steps": 3}), "here")
    for raw in (told(files={name: data}), told(tables={name: 3}, files=None)):
        with pytest.raises(InputError, match="not a run manifest"):
            Manifest.from_json(raw, "here")


def test_a_run_of_a_manifest_that_names_others_files_is_damaged_and_fetches_nothing(shared):
    one, data = shared.open(), b"owned.\n"
    name = "../../../up/pwned"
    files = {name: Mark(len(data), f"{zlib.crc32(data):08x}")}
    raw = Manifest(run_id="abcd1234", name="x", kind="training", created_ns=1, files=files).to_json().encode()
    at = f"runs/abcd1234/{marked(raw)}/run.json"
    entry = Happened(do="commit", run_id="abcd1234", mark=marked(raw), at_ns=1, at=at, manifest=raw.decode())
    assert one.objects.create("index/000000000000.json", entry.to_json())
    found = shared.open("two").look()
    assert found.runs == [] and "not a run manifest" in found.broken["abcd1234"]


def test_a_machine_whose_clock_is_behind_empties_the_bin_of_no_other(shared, monkeypatch):
    one, two = shared.open(), shared.open("two")
    write(one)
    behind = time.time_ns() - int(2 * KEPT_S * 1e9)
    with monkeypatch.context() as clock:
        clock.setattr(time, "time_ns", lambda: behind)
        one.bin.put("abcd1234")
    two.follow()
    assert two.bin.empty() == [] and two.bin.has("abcd1234")
    assert two.bin.restore("abcd1234") and steps(two.get("abcd1234")) == [NS, NS + 1, NS + 2]
