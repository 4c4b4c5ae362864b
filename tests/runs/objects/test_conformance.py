"""What holds of every store, whatever it lies on: a folder, a shared one, a server that speaks S3, a cloud's emulator.

Two machines are two local folders over one address: what one does the other sees, and neither sees a half.
"""

import multiprocessing
import os
import signal
import time

import pytest

from errors import InputError, QuestionError
from runs.objects.sweeping import sweep
from tests.runs.objects.places import NS, at_once, steps, write


def test_what_one_machine_writes_another_reads(place):
    written = write(place.open())
    read = place.open("two").find("a run")
    assert read.written == written.written
    assert steps(read) == [NS, NS + 1, NS + 2]
    assert read.blob("program.bin").read_bytes() == written.blob("program.bin").read_bytes()
    assert read.damage is None and list(read.files.verify()) == [] and list(read.files.verify_there()) == []
    assert read.tables.rows("lifecycle") == 0


def test_a_store_that_is_empty_has_no_run(place):
    store = place.open()
    assert store.ids() == [] and store.runs() == [] and store.get("abcd1234") is None
    with pytest.raises(QuestionError, match="no run"):
        store.find("abcd1234")


def test_the_same_run_twice_is_one_run_and_the_first_stays(place):
    first = write(place.open()).written.created_ns
    again = write(place.open("two"), name="later").written
    assert (again.created_ns, again.name) == (first, "a run")
    assert [r.run_id for r in place.open("three").runs()] == ["abcd1234"]


def test_of_two_writers_at_once_one_makes_the_run(place):
    stores = [place.open(f"m{n}") for n in range(4)]
    made = at_once(*(lambda s=s, n=n: write(s, name=f"by {n}") for n, s in enumerate(stores)))
    [run] = place.open("reader").runs()
    assert {r.written.name for r in made} == {run.written.name}
    assert steps(run) == [NS, NS + 1, NS + 2] and list(run.files.verify()) == []


def test_runs_of_many_writers_are_all_there(place):
    stores = [place.open(f"m{n}") for n in range(3)]
    at_once(*(lambda s=s, n=n: [write(s, run_id=f"run{n}-{k}") for k in range(3)] for n, s in enumerate(stores)))
    assert sorted(place.open("reader").ids()) == [f"run{n}-{k}" for n in range(3) for k in range(3)]
    assert all(sorted(s.ids()) == sorted(place.open("reader").ids()) for s in map(refreshed, stores))


def refreshed(store):
    if hasattr(store, "follow"):
        store.follow()
    return store


def test_a_run_that_is_read_anew_takes_the_place_of_the_one_before(place):
    one, two = place.open(), place.open("two")
    write(one)
    before = refreshed(two).get("abcd1234")
    assert len(steps(before)) == 3
    write(one, name="anew", rows=5, replace=True)
    after = refreshed(two).get("abcd1234")
    assert after.written.name == "anew" and len(steps(after)) == 5
    assert len(place.open("three").ids()) == 1


def test_the_bin_is_seen_by_all(place):
    one, two = place.open(), place.open("two")
    write(one)
    assert one.bin.put("abcd1234") and not one.bin.put("abcd1234")
    assert refreshed(two).ids() == [] and two.bin.has("abcd1234")
    with pytest.raises(QuestionError, match="in the bin"):
        two.find("abcd1234")
    assert abs(two.binned()[0].since_ns - time.time_ns()) < 60e9
    assert two.bin.restore("abcd1234") and not two.bin.restore("abcd1234")
    assert refreshed(one).ids() == ["abcd1234"] and steps(one.get("abcd1234")) == [NS, NS + 1, NS + 2]


def test_what_is_removed_for_good_is_gone_and_may_come_again(place):
    one, two = place.open(), place.open("two")
    write(one)
    one.bin.put("abcd1234")
    assert one.bin.remove("abcd1234") and not one.bin.remove("abcd1234")
    assert refreshed(two).ids() == [] and not two.bin.has("abcd1234")
    assert write(two, rows=4).written.tables == {"steps": 4}
    two.remove("abcd1234")
    assert refreshed(one).ids() == [] and not one.bin.has("abcd1234")


def test_the_bin_is_emptied_of_what_lay_there_long_enough(place):
    one = place.open()
    write(one)
    one.bin.put("abcd1234")
    assert one.bin.empty(older_than_s=3600.0) == []
    assert one.bin.empty(older_than_s=0.0) == ["abcd1234"]
    assert place.open("two").bin.runs() == []


def test_a_reader_of_a_run_that_is_removed_is_told_so(place):
    one, two = place.open(), place.open("two")
    write(one)
    run = refreshed(two).get("abcd1234")
    assert run.written.name == "a run"
    one.remove("abcd1234")
    refreshed(two)
    with pytest.raises(InputError, match="removed meanwhile"):
        run.tables.arrow("steps")


def test_a_writer_that_gives_up_leaves_nothing(place):
    store = place.open()
    with pytest.raises(ZeroDivisionError):
        write(store, before_commit=lambda: 1 / 0)
    assert store.ids() == [] and list((store.root / "partial").iterdir()) == []
    if place.name != "folder":
        assert place.listed() == []


def _killed_at(place, what, started):
    """A writer that is killed the moment before it does this."""
    store = place.open("killed")
    act = getattr(store.objects, what[0])

    def watched(key, *given):
        if what[1] in key:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(key, *given)

    setattr(store.objects, what[0], watched)
    write(store)


def _killed_here(place, at):
    """A process for each is dear: at every point on the shared folder, on servers before the index alone."""
    if place.name == "folder":
        pytest.skip("a folder's writer is killed in test_store")
    if place.name != "file" and at != ("create", "index/"):
        pytest.skip("tried on the shared folder")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (("put", "tables/steps"), False),
        (("create", "/run.json"), False),
        (("create", "runs/abcd1234/run.json"), False),
        (("create", "index/"), True),
    ],
    ids=["between two files", "before the manifest", "before its place", "before the index"],
)
def test_a_writer_that_is_killed_is_invisible_and_is_swept(place, at, told):
    _killed_here(place, at)
    process = multiprocessing.get_context("spawn").Process(target=_killed_at, args=(place, at, None))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    reader = place.open("reader")
    assert reader.ids() == []
    assert place.listed() != [] or at[0] == "put"  # several files go up at once
    assert sweep(reader, older_than_s=3600.0).objects == 0  # it may be writing yet
    swept = sweep(reader, older_than_s=-3600.0)
    assert swept.found == (["abcd1234"] if told else [])
    if told:
        assert steps(reader.get("abcd1234")) == [NS, NS + 1, NS + 2]
    else:
        assert place.listed() == []


@pytest.mark.parametrize("at", [("create", "runs/abcd1234/run.json"), ("create", "index/")])
def test_after_a_writer_was_killed_the_same_input_is_one_run(place, at):
    _killed_here(place, at)
    process = multiprocessing.get_context("spawn").Process(target=_killed_at, args=(place, at, None))
    process.start()
    process.join(60)
    store = place.open("again")
    write(store)
    [run] = place.open("reader").runs()
    assert steps(run) == [NS, NS + 1, NS + 2] and list(run.files.verify()) == []
    sweep(store, older_than_s=-3600.0)
    assert len([k for k in place.listed() if k.endswith("steps.parquet")]) == 1
    assert list(place.open("last").find("a run").files.verify()) == []


def test_reading_lists_nothing(place):
    if place.name == "folder":
        pytest.skip("a folder is listed")
    for n in range(3):
        write(place.open(), run_id=f"run-{n}")
    reader = place.open("reader")
    reader.objects.entries = None
    assert sorted(reader.ids()) == ["run-0", "run-1", "run-2"]
    assert steps(reader.find("run-1")) == [NS, NS + 1, NS + 2]
