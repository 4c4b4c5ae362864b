"""A digest that was begun early is taken where the file is still as it was then, and nowhere else."""

import hashlib

import pytest

from collectors.ingesting.digests import hashed
from collectors.ingesting.unpack import SafeSource
from runs import begun_digests
from runs.begun_digests import begin, begun, state_of


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(begun_digests, "LEAST_BYTES", 4)
    path = tmp_path / "trace"
    path.write_bytes(b"12345")
    return path


def digest_of(path):
    ((digest, state),) = hashed([SafeSource(path, path.name)], lambda: None)
    assert state == (state_of(path),)
    return digest


def test_what_was_begun_is_taken_once(file, monkeypatch):
    begin([file])
    future = begun_digests._begun[file, state_of(file)]
    assert future.result(10) == hashlib.sha256(b"12345").hexdigest()
    monkeypatch.setattr("collectors.ingesting.digests._digest", lambda *_: "taken now")
    assert digest_of(file) == future.result() and digest_of(file) == "taken now"


def test_a_file_that_was_written_to_since_is_hashed_anew(file):
    begin([file])
    file.write_bytes(b"another")
    assert digest_of(file) == hashlib.sha256(b"another").hexdigest()


def test_small_files_folders_and_what_is_not_there_are_passed_over(file, tmp_path):
    small = tmp_path / "small"
    small.write_bytes(b"123")
    before = dict(begun_digests._begun)
    begin([small, tmp_path, tmp_path / "gone", tmp_path / ("x" * 5000)])
    assert begun_digests._begun == before and begun(small, state_of(small)) is None


@pytest.mark.parametrize("error", [OSError("gone for a moment"), MemoryError()])
def test_a_file_that_cannot_be_read_then_is_read_later(file, monkeypatch, error):
    def refused(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(begun_digests, "_digest", refused)
        begin([file])
        assert begun_digests._begun[file, state_of(file)].exception(10)
    assert digest_of(file) == hashlib.sha256(b"12345").hexdigest()


def test_a_file_that_is_named_twice_holds_up_none_after_it(file, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"54321")
    begin([file, file, other])
    begin([file])
    for path in (file, other):
        future = begun_digests._begun.pop((path, state_of(path)))
        assert future.result(10) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_who_waits_can_still_be_told_to_stop(file, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    begin([file])
    with pytest.raises(KeyboardInterrupt):
        hashed([SafeSource(file, file.name)], stop)
