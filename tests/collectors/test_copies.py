"""A file counts once, packed or not."""

import gzip
import random

import pytest

from collectors.ingest import ingest
from collectors.ingesting.gather import Cancelled
from tests.collectors.ingesting import LOG

HALF = len(LOG) // 2
LONG = LOG + "".join(f"{random.Random(n).random()}\n" for n in range(10_000))  # its first 64 KiB are not all of it
MEMBERS = gzip.compress(LONG[:HALF].encode()) + gzip.compress(LONG[HALF:].encode())
ENDS_ALIKE = gzip.compress(LOG.encode()) + gzip.compress(LONG.encode())  # its last member is the other file


@pytest.mark.parametrize(
    "files, kept",
    [
        ({"a.log": LONG.encode(), "a.log.gz": gzip.compress(LONG.encode())}, "a.log"),
        ({"a.gz": gzip.compress(LONG.encode()), "b.log": LONG.encode()}, "a.gz"),
        ({"a.log": LONG.encode(), "old/packed": MEMBERS}, "a.log"),
        ({"a.gz": gzip.compress(LONG.encode(), 1, mtime=1), "b.gz": gzip.compress(LONG.encode(), 9, mtime=2)}, "a.gz"),
        ({"a.gz": MEMBERS, "b.gz": gzip.compress(LONG.encode())}, "a.gz"),
    ],
)
def test_what_is_packed_beside_what_it_was_made_of_counts_once(store, folder, files, kept):
    [other] = files.keys() - {kept}
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    done = ingest([folder], store)
    assert done.tables == {"steps": 10}
    assert f"{other}: the same bytes as {kept} where both are unpacked, read once" in done.warnings
    assert {file.name: file.state for file in done.files} == {kept: "read", other: "left_out"}


@pytest.mark.parametrize(
    "packed, steps",
    [
        pytest.param(gzip.compress((LONG + "and more\n").encode()), 20, id="longer"),
        pytest.param(gzip.compress((LONG[:-2] + "x\n").encode()), 20, id="another byte"),
        pytest.param(ENDS_ALIKE, 30, id="one member more"),
        pytest.param(gzip.compress((LONG + "and more\n").encode())[:-9], 20, id="longer, and cut short"),
    ],
)
def test_what_is_packed_and_holds_something_else_is_no_copy(store, folder, packed, steps):
    (folder / "a.log").write_text(LONG)
    (folder / "b.gz").write_bytes(packed)
    done = ingest([folder], store)
    assert done.tables["steps"] == steps and not any("read once" in said for said in done.warnings)


@pytest.mark.parametrize("name", ["a.gz", "z.gz"])
@pytest.mark.parametrize("end", [-9, -20_000, 2_000])
def test_what_was_packed_and_cut_off_beside_the_whole_of_it_counts_once(store, folder, name, end):
    (folder / "b.log").write_text(LONG)
    (folder / name).write_bytes(gzip.compress(LONG.encode())[:end])
    done = ingest([folder], store)
    assert done.tables == {"steps": 10}
    assert {file.name: file.state for file in done.files} == {"b.log": "read", name: "left_out"}


def test_to_know_copies_may_be_cancelled(store, folder, monkeypatch):
    (folder / "a.log").write_text(LONG)
    (folder / "b.gz").write_bytes(gzip.compress(LONG.encode()))
    asked = [False]
    monkeypatch.setattr("collectors.ingest.made_of", lambda *_: asked.__setitem__(0, True) or "0" * 16)
    with pytest.raises(Cancelled):
        ingest([folder], store, cancel=lambda: asked[0])
