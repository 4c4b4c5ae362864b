"""Uploads: hostile names stay inside, limits hold, nothing half is kept, memory stays small."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.serve.uploads import LIMIT_VARIABLE, TooLarge, Uploads, _bytes_below, clean_name, limit_bytes
from errors import InputError, QuestionError


def receive(uploads: Uploads, upload_id: str, name: str, *chunks: bytes, announced: int | None = None) -> int:
    async def stream():
        for chunk in chunks:
            yield chunk

    return asyncio.run(uploads.receive(upload_id, name, stream(), announced))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("train.log", "train.log"),
        ("plugins/profile/2025_01_01/host 0.xplane.pb", "plugins/profile/2025_01_01/host 0.xplane.pb"),
        ("<img src=x onerror=alert(1)>.pb", "<img src=x onerror=alert(1)>.pb"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("a/./b", "a/b"),
        ("лог 日本.txt", "лог 日本.txt"),
    ],
)
def test_names_that_people_use_stay_as_they_are(raw, clean):
    assert clean_name(raw) == Path(clean)


@pytest.mark.parametrize("raw", ["", "/", "..", "../..", ".", "\x00", " ", "/".join("a" * 17)])
def test_names_of_nothing_are_refused(raw):
    with pytest.raises(InputError):
        clean_name(raw)


@given(st.text(max_size=400))
def test_no_name_leaves_its_folder(raw):
    try:
        path = clean_name(raw)
    except InputError:
        return
    assert not path.is_absolute()
    assert all(p not in ("", ".", "..") and not p.startswith(".") and len(p.encode()) <= 250 for p in path.parts)
    assert "\x00" not in str(path)
    assert clean_name(raw) == path


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_different_names_stay_different(a, b):
    try:
        one, other = clean_name(a), clean_name(b)
    except InputError:
        return
    same = [p for p in a.replace("\\", "/").split("/") if _holds(p)] == [
        p for p in b.replace("\\", "/").split("/") if _holds(p)
    ]
    assert (one == other) == same


def _holds(part: str) -> bool:
    try:
        return bool(clean_name(part).parts)
    except InputError:
        return False


def test_files_arrive_whole_and_a_second_try_replaces_the_first(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.begin()
    assert receive(uploads, upload, "a/b.log", b"12", b"345") == 5
    assert receive(uploads, upload, "a/b.log", b"6789") == 4
    assert receive(uploads, upload, "empty") == 0
    assert files(uploads.files(upload)) == {"a/b.log": b"6789", "empty": b""}
    assert uploads._bytes[upload] == 4


def test_the_limit_holds_for_all_files_of_an_upload(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "10")
    uploads = Uploads(tmp_path)
    upload = uploads.begin()
    receive(uploads, upload, "a", b"123456")
    with pytest.raises(TooLarge, match="more than 10 bytes in one upload"):
        receive(uploads, upload, "b", b"12345")
    with pytest.raises(TooLarge):
        receive(uploads, upload, "b", announced=5)
    assert files(tmp_path / upload) == {"files/a": b"123456"}
    assert receive(uploads, upload, "b", b"1234") == 4
    again = Uploads(tmp_path)
    with pytest.raises(TooLarge):
        receive(again, upload, "c", b"1")


def test_more_than_the_disk_holds_is_refused_before_a_byte_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, str(1 << 62))
    uploads = Uploads(tmp_path)
    with pytest.raises(TooLarge, match="do not fit on the disk"):
        receive(uploads, uploads.begin(), "a", announced=1 << 60)


def test_what_breaks_off_leaves_nothing(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.begin()

    async def breaks():
        yield b"half"
        raise ConnectionError("gone")

    with pytest.raises(InputError, match="cannot be written"):
        asyncio.run(uploads.receive(upload, "a", breaks(), None))
    assert files(tmp_path / upload) == {} and uploads._bytes[upload] == 0


def test_one_name_cannot_be_file_and_folder(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.begin()
    receive(uploads, upload, "a", b"1")
    with pytest.raises(InputError, match="both a file and a folder"):
        receive(uploads, upload, "a/b", b"1")
    receive(uploads, upload, "c/d", b"1")
    with pytest.raises(InputError, match="both a file and a folder"):
        receive(uploads, upload, "c", b"1")
    assert files(tmp_path / upload) == {"files/a": b"1", "files/c/d": b"1"}


@pytest.mark.parametrize("upload", ["", "..", "../x", "0" * 31, "0" * 32, "Z" * 32, "/etc"])
def test_an_upload_that_was_not_begun_is_refused(tmp_path, upload):
    (tmp_path / "x" / "files").mkdir(parents=True)
    with pytest.raises(QuestionError):
        receive(Uploads(tmp_path), upload, "a", b"1")


def test_discarded_means_gone(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.begin()
    receive(uploads, upload, "a", b"1")
    uploads.discard(upload)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "much", "", "²", "1_0"])
def test_a_limit_that_is_no_number_is_told(monkeypatch, text):
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(InputError, match="is no limit for uploads; expected a whole number from 1, in bytes"):
        limit_bytes()


def test_files_that_are_taken_away_while_they_are_counted_count_nothing(tmp_path):
    (tmp_path / "there").write_bytes(b"123")
    (tmp_path / "gone").symlink_to(tmp_path / "taken away")
    assert _bytes_below(tmp_path) == 3 and _bytes_below(tmp_path / "taken away") == 0
