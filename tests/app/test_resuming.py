"""Files that come in pieces: what arrived stays, nothing wrong is kept, and senders go on from what is there."""

import asyncio
import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.serve import resuming as module
from app.serve.blocks import WRITE_BYTES
from app.serve.coming import Coming
from app.serve.resuming import Busy, NoSuchFile, Piece, Resuming, WrongOffset, WrongSum
from app.serve.upload_room import LIMIT_VARIABLE, TooLarge
from app.serve.uploads import Uploads
from errors import InputError

ANN, BEN = (Identity(name=name, role=Role.UPLOADER, how="token") for name in ("ann", "ben"))
KEY = "0" * 64


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def stream(*chunks: bytes):
    for chunk in chunks:
        yield chunk


class Door:
    """The two halves of a server over a folder, as one that was just started."""

    def __init__(self, folder: Path):
        self.uploads = Uploads(folder)
        self.files = Resuming(self.uploads)

    def write(self, upload: str, coming: Coming, offset: int, *chunks: bytes, checksum=None) -> Coming:
        return asyncio.run(self.files.write(upload, coming, Piece(offset, checksum), stream(*chunks)))

    def offset(self, upload: str, coming: Coming) -> int:
        return asyncio.run(self.files.state(upload, coming))[1]


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


BOUNDARIES = [0, 1, WRITE_BYTES - 1, WRITE_BYTES, WRITE_BYTES + 1, 2 * WRITE_BYTES]


@pytest.mark.parametrize("cut", BOUNDARIES)
@pytest.mark.parametrize("again", [False, True], ids=["the same server", "another server"])
def test_a_file_goes_on_where_it_was_cut_whichever_server_has_it(tmp_path, cut, again):
    data = os.urandom(2 * WRITE_BYTES + 17)
    one = Door(tmp_path)
    upload = one.uploads.begin(KEY)
    coming = one.files.create(upload, "a/b.log", len(data), sha(data))
    one.write(upload, coming, 0, data[:cut])
    other = Door(tmp_path) if again else one
    assert other.uploads.begin(KEY) == upload
    found = other.files.create(upload, "a/b.log", len(data), sha(data))
    assert found == coming and other.offset(upload, found) == cut
    done = other.write(upload, found, cut, data[cut:])
    assert done.sha256 == sha(data) and files(other.uploads.files(upload)) == {"a/b.log": data}
    assert not list((tmp_path / upload).glob("*.coming")) and other.files.unfinished(upload) == []
    assert other.uploads._bytes[upload] == len(data)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 60), max_size=12), st.booleans())
def test_any_cutting_of_any_file_makes_the_same_file(tmp_path_factory, data, lengths, checked):
    door = Door(tmp_path_factory.mktemp("up"))
    upload = door.uploads.begin()
    coming, at = door.files.create(upload, "f", len(data), sha(data) if checked else ""), 0
    for length in [*lengths, len(data)]:
        piece = data[at : at + length]
        total = ("sha1", hashlib.sha1(piece).digest()) if checked else None
        coming = door.write(upload, coming, at, piece, checksum=total)
        at += len(piece)
        assert door.offset(upload, coming) == at
    coming = asyncio.run(door.files.state(upload, coming))[0]
    assert coming.sha256 == sha(data) and files(door.uploads.files(upload)) == {"f": data}


@pytest.mark.parametrize("checked", [False, True])
def test_a_cut_in_the_middle_keeps_whole_blocks_and_none_of_a_piece_with_a_sum(tmp_path, checked):
    door, data = Door(tmp_path), os.urandom(3 * WRITE_BYTES)
    upload = door.uploads.begin()

    async def breaks():
        yield data[: 2 * WRITE_BYTES]
        yield b"x"
        raise ConnectionError("gone")

    coming = door.files.create(upload, "f", len(data), sha(data))
    total = ("sha256", hashlib.sha256(data).digest()) if checked else None
    with pytest.raises(InputError, match="cannot be written"):
        asyncio.run(door.files.write(upload, coming, Piece(0, total), breaks()))
    kept = 0 if checked else 2 * WRITE_BYTES
    assert door.offset(upload, coming) == kept
    assert door.write(upload, coming, kept, data[kept:]).sha256 == sha(data)


@pytest.mark.parametrize("offset", [0, 2, 4, 5, 1 << 62])
def test_a_piece_that_begins_elsewhere_is_refused_and_changes_nothing(tmp_path, offset):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 5, "")
    door.write(upload, coming, 0, b"abc")
    with pytest.raises(WrongOffset, match="3 bytes of the file are there"):
        door.write(upload, coming, offset, b"de")
    assert door.offset(upload, coming) == 3


def test_a_piece_with_another_sum_is_thrown_away_and_the_same_piece_sent_again_counts_once(tmp_path):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 6, sha(b"abcdef"))
    with pytest.raises(WrongSum):
        door.write(upload, coming, 0, b"abd", checksum=("sha256", hashlib.sha256(b"abc").digest()))
    assert door.offset(upload, coming) == 0
    door.write(upload, coming, 0, b"abc", checksum=("sha256", hashlib.sha256(b"abc").digest()))
    with pytest.raises(WrongOffset):
        door.write(upload, coming, 0, b"abc")
    assert door.write(upload, coming, 3, b"def").sha256 == sha(b"abcdef")


def test_a_file_that_is_not_what_was_said_is_dropped_whole(tmp_path):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 3, sha(b"abc"))
    with pytest.raises(WrongSum, match=sha(b"abd")):
        door.write(upload, coming, 0, b"abd")
    assert files(tmp_path / upload) == {} and door.uploads._bytes[upload] == 0
    with pytest.raises(NoSuchFile):
        door.files.find(upload, coming.file_id)
    coming = door.files.create(upload, "f", 3, sha(b"abc"))
    assert door.write(upload, coming, 0, b"abc").sha256 == sha(b"abc")


def test_more_than_was_announced_is_refused_and_the_file_goes_on_from_before(tmp_path):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 4, "")
    door.write(upload, coming, 0, b"ab")
    with pytest.raises(InputError, match="more than the 4 bytes announced"):
        door.write(upload, coming, 2, b"cde")
    assert door.offset(upload, coming) == 2 and door.uploads.refused(upload)
    door.write(upload, coming, 2, b"cd")
    assert files(door.uploads.files(upload)) == {"f": b"abcd"} and door.uploads.refused(upload) is None


def test_the_limit_counts_what_was_announced_and_after_a_restart_too(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "10")
    door = Door(tmp_path)
    upload = door.uploads.begin(KEY)
    door.files.create(upload, "a", 6, sha(b"aaaaaa"))
    for server in (door, Door(tmp_path)):
        with pytest.raises(TooLarge):
            server.files.create(upload, "b", 5, "")
    coming = door.files.create(upload, "a", 6, sha(b"aaaaaa"))
    door.files.drop(coming, upload)
    coming = door.files.create(upload, "b", 10, "")
    assert door.write(upload, coming, 0, b"b" * 10).placed_ns


def test_a_full_disk_keeps_what_came_and_the_rest_may_come_later(tmp_path, monkeypatch):
    door, data = Door(tmp_path), os.urandom(2 * WRITE_BYTES)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", len(data), sha(data))
    door.write(upload, coming, 0, data[:WRITE_BYTES])
    with monkeypatch.context() as full:
        full.setattr("app.serve.upload_room.shutil.disk_usage", lambda _: _Full)
        with pytest.raises(TooLarge, match="no more fits"):
            door.write(upload, coming, WRITE_BYTES, data[WRITE_BYTES:])
        assert "no more fits" in str(door.uploads.refused(upload))
    assert door.offset(upload, coming) == WRITE_BYTES
    assert door.write(upload, coming, WRITE_BYTES, data[WRITE_BYTES:]).sha256 == sha(data)


class _Full:
    free = 0


def test_a_write_that_the_system_refuses_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 6, sha(b"abcdef"))
    door.write(upload, coming, 0, b"abc")

    def refuse(file, block, sums):
        file.write(block[:1])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(module, "_taken_in", refuse)
        with pytest.raises(InputError, match="No space left"):
            door.write(upload, coming, 3, b"def", checksum=("sha256", hashlib.sha256(b"def").digest()))
    assert door.offset(upload, coming) == 3
    assert door.write(upload, coming, 3, b"def").sha256 == sha(b"abcdef")


def test_an_upload_discarded_meanwhile_is_told_and_its_file_arrives_nowhere(tmp_path):
    door = Door(tmp_path)
    upload = door.uploads.begin(KEY)
    coming = door.files.create(upload, "f", 4, "")

    async def discards():
        yield b"ab"
        door.uploads.discard(upload)
        yield b"cd"

    with pytest.raises((NoSuchFile, InputError)):
        asyncio.run(door.files.write(upload, coming, Piece(0), discards()))
    assert files(tmp_path) == {}
    with pytest.raises(NoSuchFile, match="no upload"):
        door.offset(upload, coming)
    assert door.uploads.begin(KEY) == upload and door.files.listed(upload) == []


def test_two_senders_of_one_file_take_turns_and_a_silent_one_gives_way(tmp_path, monkeypatch):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 6, sha(b"abcdef"))

    async def both():
        may_end = asyncio.Event()

        async def slow():
            yield b"abc"
            await may_end.wait()

        first = asyncio.create_task(door.files.write(upload, coming, Piece(0), slow()))
        await asyncio.sleep(0.05)
        with pytest.raises(Busy, match="being sent just now"):
            await door.files.write(upload, coming, Piece(0), stream(b"abcdef"))
        with pytest.raises(Busy):
            await door.files.state(upload, coming)
        with pytest.raises(Busy):
            door.files.drop(coming, upload)
        assert door.uploads.arriving(upload) == 1
        monkeypatch.setattr(module, "STALLED_SECONDS", 0.0)
        _, there = await door.files.state(upload, coming)
        with pytest.raises(Busy, match="another request goes on"):
            await first
        return await door.files.write(upload, coming, Piece(there), stream(b"abcdef"[there:]))

    assert asyncio.run(both()).sha256 == sha(b"abcdef") and door.uploads.arriving(upload) == 0


@pytest.mark.parametrize(("by", "again", "linked"), [(ANN, ANN, True), (ANN, BEN, False)])
def test_what_its_sender_sent_before_is_not_sent_again_and_others_learn_nothing_of_it(tmp_path, by, again, linked):
    door, data = Door(tmp_path), os.urandom(1000)
    with acting_as(by):
        upload = door.uploads.begin(KEY)
        door.write(upload, door.files.create(upload, "f", len(data), sha(data)), 0, data)
    with acting_as(again):
        second = door.uploads.begin()
        found = door.files.create(second, "other", len(data), sha(data))
        assert door.offset(second, found) == (len(data) if linked else 0)
        assert (door.uploads.begin(KEY) == upload) is linked
        if linked:
            door.uploads.discard(second)
        else:
            with pytest.raises(NoSuchFile, match="no upload"):
                door.files.listed(upload)
            assert door.uploads.unused() == []
    assert (tmp_path / upload / "files/f").read_bytes() == data


def test_a_held_file_that_was_damaged_since_is_sent_again(tmp_path):
    door, data = Door(tmp_path), b"abcdef"
    upload = door.uploads.begin()
    door.write(upload, door.files.create(upload, "f", 6, sha(data)), 0, data)
    place = tmp_path / upload / "files/f"
    told = place.stat()
    place.write_bytes(b"abcdeX")
    os.utime(place, ns=(told.st_atime_ns, told.st_mtime_ns))
    second = door.uploads.begin()
    assert door.offset(second, door.files.create(second, "f", 6, sha(data))) == 0


@pytest.mark.parametrize("by_put", [False, True])
def test_a_file_that_another_of_its_name_replaced_is_no_half_of_one(tmp_path, by_put):
    door, old, new = Door(tmp_path), b"first", b"second one"
    upload = door.uploads.begin()
    first = door.files.create(upload, "f", len(old), sha(old))
    door.write(upload, first, 0, old)
    if by_put:
        asyncio.run(door.uploads.receive(upload, "f", stream(new), len(new)))
    else:
        door.write(upload, door.files.create(upload, "f", len(new), sha(new)), 0, new)
    assert door.files.unfinished(upload) == []
    assert [(one.n_bytes, offset) for one, offset in door.files.listed(upload)] == [(len(new), len(new))][by_put:]
    assert door.uploads._bytes_of(tmp_path / upload) == len(new)
    with pytest.raises(NoSuchFile):
        door.files.find(upload, first.file_id)
    door.write(upload, door.files.create(upload, "f", len(old), sha(old)), 0, old)  # and back again
    assert (tmp_path / upload / "files/f").read_bytes() == old and door.files.unfinished(upload) == []


def test_notes_of_what_is_held_go_with_their_uploads(tmp_path):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    door.write(upload, door.files.create(upload, "f", 3, sha(b"abc")), 0, b"abc")
    door.uploads.discard(upload)
    door.uploads.sweep()
    assert files(tmp_path) == {}


@pytest.mark.parametrize("raw", ["../../etc/passwd", "/etc/passwd", "a/../../b", "..\\..\\x", "a\x00b", "x" * 5000])
def test_no_name_leaves_its_folder_this_way_either(tmp_path, raw):
    door = Door(tmp_path / "up")
    (tmp_path / "up").mkdir()
    upload = door.uploads.begin()
    coming = door.files.create(upload, raw, 3, sha(b"abc"))
    door.write(upload, coming, 0, b"abc")
    inside = tmp_path / "up" / upload / "files"
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size == 3] == [
        p for p in inside.rglob("*") if p.is_file()
    ]


@pytest.mark.parametrize("file_id", ["", "..", "../x", "0" * 31, "0" * 32, "Z" * 32, "/etc/passwd", "a" * 5000])
def test_a_file_that_was_not_begun_is_refused(tmp_path, file_id):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    (tmp_path / upload / "x.json").write_text(json.dumps({"file_id": "x", "name": "../y", "n_bytes": 1}))
    with pytest.raises(NoSuchFile):
        door.files.find(upload, file_id)


def test_a_kill_between_note_and_place_loses_nothing(tmp_path, monkeypatch):
    door = Door(tmp_path)
    upload = door.uploads.begin()
    coming = door.files.create(upload, "f", 3, sha(b"abc"))

    placed = Path.replace

    def killed(self, target):
        if self.is_relative_to(tmp_path):  # other threads of this process may place files of their own
            raise KeyboardInterrupt
        return placed(self, target)

    with monkeypatch.context() as kill:
        kill.setattr(Path, "replace", killed)
        kill.setattr("app.serve.coming.write_whole", lambda path, text: path.write_text(text))
        with pytest.raises(KeyboardInterrupt):
            door.write(upload, coming, 0, b"abc")
    after = Door(tmp_path)
    assert after.files.unfinished(upload) == ["f"]
    assert after.offset(upload, after.files.find(upload, coming.file_id)) == 3
    assert files(after.uploads.files(upload)) == {"f": b"abc"} and after.files.unfinished(upload) == []
