"""A run that is copied is the same objects as any other copy of it: who is interrupted takes none of them away."""

import itertools

import pytest

from runs.objects.sweeping import sweep
from runs.store import Store
from tests.runs.objects.places import NS, Place, steps, write


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "shared").mkdir()
    return Place("file", f"file://{tmp_path}/shared/store", tmp_path)


def copied(store, run):
    with store.writer() as writer:
        return writer.copy(run)


def interrupted(store, run, at, meanwhile=lambda: None):
    """Copy a run; the `at`-th file is not put any more."""
    put, asked = store.objects.put, itertools.count(1)

    def ends(key, path):
        nth = next(asked)  # several go up at once
        if nth == 1:
            meanwhile()
        if nth == at:
            raise KeyboardInterrupt
        put(key, path)

    store.objects.put = ends
    with pytest.raises(KeyboardInterrupt):
        copied(store, run)
    store.objects.put = put


def whole(store):
    run = store.get("abcd1234")
    return steps(run) == [NS, NS + 1, NS + 2] and list(run.files.verify_there()) == []


@pytest.mark.parametrize("at", [1, 2])
def test_a_copy_that_is_interrupted_takes_nothing_of_a_run_in_the_bin(shared, tmp_path, at):
    run = write(Store(tmp_path / "plain"))
    one = shared.open()
    assert copied(one, run) and one.bin.put("abcd1234")
    interrupted(shared.open("two"), run, at)
    assert one.bin.restore("abcd1234") and whole(shared.open("three"))


@pytest.mark.parametrize("at", [1, 2])
def test_of_two_copies_at_once_the_one_that_is_interrupted_harms_no_other(shared, tmp_path, at):
    run = write(Store(tmp_path / "plain"))
    one = shared.open()
    interrupted(shared.open("two"), run, at, meanwhile=lambda: copied(one, run))
    assert whole(shared.open("three"))


def test_what_a_copy_left_is_swept_or_goes_on(shared, tmp_path):
    run = write(Store(tmp_path / "plain"))
    store = shared.open()
    interrupted(store, run, 2)
    assert store.ids() == [] and shared.listed() != []
    assert sweep(store, older_than_s=-3600.0).objects and shared.listed() == []
    interrupted(store, run, 2)
    assert copied(store, run) and whole(shared.open("two"))
