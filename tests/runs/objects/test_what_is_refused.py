"""What a store of objects does not do: take what is no store of objects for one, or believe what an index, a manifest
or an address says that cannot be so."""

import json
import os

import pytest

from errors import InputError
from runs.objects.index import Happened, happened
from runs.objects.store import ObjectStore
from runs.objects.sweeping import sweep
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
