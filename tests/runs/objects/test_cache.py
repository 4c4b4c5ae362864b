"""What was fetched is kept below a limit, and what is read stays; one asks the network for all."""

import multiprocessing
import os
import signal
import threading
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.integrity import Mark
from runs.objects import cache as caching
from runs.objects.base import PIECE_BYTES, DifferentError, MissingError
from runs.objects.cache import RESTS_S, Cache
from tests.runs.objects.places import at_once


class Source:
    """Bytes by path, as they lie in a bucket; counts what is asked for."""

    def __init__(self, files):
        self.files, self.asked, self.wait = files, [], threading.Event()
        self.wait.set()

    def piece(self, relative):
        def read(first, end):
            self.asked.append((relative, first))
            self.wait.wait(10)
            if relative not in self.files:
                raise MissingError(relative)
            return self.files[relative][first:end]

        return read


def known(data):
    return Mark(len(data), f"{zlib.crc32(data):08x}")


@pytest.fixture
def local(tmp_path):
    (tmp_path / "partial").mkdir()
    (tmp_path / "runs" / "r").mkdir(parents=True)
    return tmp_path


def name(n):
    return f"runs/r/tables/{n}.parquet"


def aged(cache, *relatives):
    """As if they had last been used long ago, the first before the others."""
    for n, relative in enumerate(relatives):
        when = time.time() - 10 * RESTS_S + n
        os.utime(cache.root / "cached" / relative, (when, when))


@given(st.integers(0, 40), st.integers(1, 9))
def test_what_comes_in_pieces_is_what_was_written(tmp_path_factory, length, piece_bytes):
    root = tmp_path_factory.mktemp("local")
    (root / "partial").mkdir()
    (root / "runs" / "r").mkdir(parents=True)
    data = bytes(range(length))
    source, before = Source({name(1): data}), caching.PIECE_BYTES
    caching.PIECE_BYTES = piece_bytes
    try:
        path = Cache(root, 1 << 20).file(name(1), known(data), source.piece(name(1)))
    finally:
        caching.PIECE_BYTES = before
    assert path.read_bytes() == data
    assert len(source.asked) == -(-length // piece_bytes)


def test_what_is_here_is_not_asked_for_again(local):
    source, cache = Source({name(1): b"abc"}), Cache(local, 1 << 20)
    for _ in range(3):
        assert cache.file(name(1), known(b"abc"), source.piece(name(1))).read_bytes() == b"abc"
    assert source.asked == [(name(1), 0)]


def test_of_readers_at_once_one_asks_the_network(local):
    source = Source({name(1): b"abc"})
    caches = [Cache(local, 1 << 20) for _ in range(6)]
    source.wait.clear()
    threading.Timer(0.3, source.wait.set).start()
    at_once(*(lambda c=c: c.file(name(1), known(b"abc"), source.piece(name(1))) for c in caches))
    assert source.asked == [(name(1), 0)]


def test_what_was_not_used_for_longest_goes_first(local):
    files = {name(n): bytes([n]) * 100 for n in range(5)}
    source, cache = Source(files), Cache(local, 350)
    for n in range(3):
        cache.file(name(n), known(files[name(n)]), source.piece(name(n)))
    aged(cache, name(1), name(0), name(2))
    cache.file(name(3), known(files[name(3)]), source.piece(name(3)))
    assert not (local / name(1)).exists() and all((local / name(n)).exists() for n in (0, 2, 3))
    cache.file(name(4), known(files[name(4)]), source.piece(name(4)))
    assert cache.bytes() == 300 and not (local / name(0)).exists()


def test_what_is_read_or_was_asked_for_just_now_stays(local):
    files = {name(n): bytes([n]) * 100 for n in range(4)}
    source, cache = Source(files), Cache(local, 100)
    with cache.reading(name(0), known(files[name(0)]), source.piece(name(0))) as path:
        aged(cache, name(0))
        Cache(local, 100).file(name(1), known(files[name(1)]), source.piece(name(1)))
        assert path.read_bytes() == files[name(0)]
        cache.trim()
        assert path.exists() and (local / name(1)).exists()  # the one is read, the other was asked for just now
    aged(cache, name(0), name(1))
    cache.trim()
    assert not path.exists() and (local / name(1)).exists()


def test_a_file_larger_than_the_limit_is_read_and_goes_next(local):
    files = {name(0): b"x" * 500, name(1): b"y" * 50}
    source, cache = Source(files), Cache(local, 100)
    assert cache.file(name(0), known(files[name(0)]), source.piece(name(0))).read_bytes() == files[name(0)]
    aged(cache, name(0))
    cache.file(name(1), known(files[name(1)]), source.piece(name(1)))
    assert cache.bytes() == 50


@pytest.mark.parametrize("came", [b"abd", b"ab", b""])
def test_of_what_is_another_nothing_is_kept(local, came):
    with pytest.raises(DifferentError):
        Cache(local, 1 << 20).file(name(1), known(b"abc"), Source({name(1): came}).piece(name(1)))
    assert not (local / name(1)).exists() and list((local / "partial").iterdir()) == []


def test_of_what_is_not_there_nothing_is_kept(local):
    with pytest.raises(MissingError):
        Cache(local, 1 << 20).file(name(1), known(b"abc"), Source({}).piece(name(1)))
    assert not (local / name(1)).exists()


def test_a_run_that_was_removed_is_not_made_again_by_its_files(local):
    source = Source({name(1): b"abc"})

    def read(first, end):
        (local / "runs" / "r").rmdir()
        return source.piece(name(1))(first, end)

    with pytest.raises(MissingError):
        Cache(local, 1 << 20).file(name(1), known(b"abc"), read)
    assert not (local / "runs" / "r").exists()


def _fetching(root, begun):
    def read(first, end):
        if first:
            begun.set()
            time.sleep(60)
        return b"x" * (end - first)

    Cache(root, 1 << 40).file(name(1), known(b"x" * (PIECE_BYTES + 1)), read)


def test_a_process_that_is_killed_while_it_fetches_leaves_nothing_in_the_way(local):
    data, context = b"x" * (PIECE_BYTES + 1), multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_fetching, args=(local, begun))
    process.start()
    assert begun.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (local / name(1)).exists()
    source = Source({name(1): data})
    path = Cache(local, 1 << 40).file(name(1), known(data), source.piece(name(1)))
    assert path.stat().st_size == len(data) and len(source.asked) == 2


def test_many_readers_under_eviction_read_what_was_written(local, monkeypatch):
    monkeypatch.setattr(caching, "RESTS_S", 0.0)  # every file that is not held may go at once
    files = {name(n): os.urandom(1000) for n in range(8)}
    source = Source(files)

    def reads(seed):
        cache = Cache(local, 2500)
        for k in range(60):
            one = name((seed * 7 + k * k) % 8)
            with cache.reading(one, known(files[one]), source.piece(one)) as path:
                assert path.read_bytes() == files[one]

    at_once(*(lambda s=s: reads(s) for s in range(4)))
    Cache(local, 2500).trim()
    assert Cache(local, 2500).bytes() <= 2500


def test_what_was_used_at_a_time_that_is_yet_to_be_goes_first(local):
    files = {name(n): bytes([n]) * 100 for n in range(3)}
    source, cache = Source(files), Cache(local, 250)
    for n in range(2):
        cache.file(name(n), known(files[name(n)]), source.piece(name(n)))
    ahead = time.time() + 1e6
    os.utime(local / "cached" / name(0), (ahead, ahead))
    cache.file(name(2), known(files[name(2)]), source.piece(name(2)))
    assert not (local / name(0)).exists() and (local / name(1)).exists() and (local / name(2)).exists()


def test_of_a_run_that_is_forgotten_no_slip_is_left(local):
    source, cache = Source({name(1): b"abc"}), Cache(local, 1 << 20)
    cache.file(name(1), known(b"abc"), source.piece(name(1)))
    assert (local / "cached" / name(1)).exists()
    cache.forget("r")
    assert [p for p in (local / "cached").rglob("*") if p.is_file()] == []
