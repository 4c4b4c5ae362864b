"""How much a person, a group and all together may keep: added up as the disk says, refused before anything is sent."""

import asyncio
import hashlib

import pytest

from app import quota
from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.library import changes
from app.quota import OverQuota
from app.serve.coming import Coming
from app.serve.resuming import Piece, Resuming
from app.serve.upload_runs import note_run
from app.serve.uploads import Uploads
from errors import InputError
from tests.app import made_runs


@pytest.fixture(autouse=True)
def added_up_anew(monkeypatch):
    quota.forget()
    monkeypatch.setattr(quota, "FRESH_S", -1.0)


def person(name: str, *groups: str) -> Identity:
    return Identity(name=name, role=Role.UPLOADER, groups=frozenset(groups), how="token")


def send(uploads: Uploads, upload_id: str, data: bytes, announced: bool = True, name: str = "a.log") -> int:
    async def stream():
        for at in range(0, len(data), 1 << 16):
            yield data[at : at + (1 << 16)]

    return asyncio.run(uploads.receive(upload_id, name, stream(), len(data) if announced else None))


def test_each_person_has_their_own_and_all_share_one(place, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_PERSON_BYTES", "1000")
    monkeypatch.setenv("CHIPLEDGER_QUOTA_BYTES", "2500")
    uploads = Uploads(place.store.uploads_folder, place)
    with acting_as(person("ann")):
        one = uploads.begin()
        assert send(uploads, one, b"x" * 900) == 900
        with pytest.raises(OverQuota, match="ann keeps 900 bytes of 1.00 kB already; 200 bytes more do not fit"):
            send(uploads, one, b"x" * 200, name="b.log")
    with acting_as(person("ben")):
        two = uploads.begin()
        assert send(uploads, two, b"x" * 1000) == 1000
        with pytest.raises(OverQuota, match="ben keeps"):
            uploads.begin()
    with acting_as(person("cat")):
        three = uploads.begin()
        with pytest.raises(OverQuota, match="this store holds"):
            send(uploads, three, b"x" * 700)
    kept = quota.add_up(place)
    assert kept.people == {"ann": 900, "ben": 1000, "cat": 0} and kept.in_all == 1900
    uploads.discard(one)
    with acting_as(person("cat")):
        assert send(uploads, three, b"x" * 700) == 700


def test_a_group_counts_what_its_people_keep(place, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_GROUP_BYTES", "1000")
    uploads = Uploads(place.store.uploads_folder, place)
    for name in ("ann", "ben"):
        with acting_as(person(name, "ml")):
            assert send(uploads, uploads.begin(), b"x" * 450) == 450
    with acting_as(person("cat", "infra", "ml")):
        third = uploads.begin()
        with pytest.raises(OverQuota, match="group ml keeps"):
            send(uploads, third, b"x" * 200)
    with acting_as(person("dan", "infra")):
        assert send(uploads, uploads.begin(), b"x" * 900) == 900


def test_runs_that_were_made_of_an_upload_are_its_owners_in_the_bin_too(place):
    uploads = Uploads(place.store.uploads_folder, place)
    with acting_as(person("ann")):
        upload = uploads.begin()
        send(uploads, upload, b"x" * 100)
    run = made_runs.interrupted(place.store, name="made")
    made_runs.interrupted(place.store, name="nobody's")
    note_run([place.store.uploads_folder / upload / "files" / "a.log"], place.store.uploads_folder, run.run_id)
    size = sum(p.stat().st_size for p in run.folder.rglob("*") if p.is_file())
    assert quota.add_up(place).people == {"ann": 100 + size}
    changes.bin_many(place, ["made"])
    assert quota.add_up(place).people == {"ann": 100 + size}, "what can be brought back is still kept"
    changes.purge(place, older_than_s=-1)
    assert quota.add_up(place).people == {"ann": 100}


def test_a_run_whose_input_was_sent_twice_counts_once_for_each(place):
    uploads, run = Uploads(place.store.uploads_folder, place), made_runs.interrupted(place.store, name="made")
    for name in ("ann", "ann", "ben"):
        with acting_as(person(name, "ml")):
            upload = uploads.begin()
            send(uploads, upload, b"x" * 100)
        note_run([place.store.uploads_folder / upload / "files" / "a.log"], place.store.uploads_folder, run.run_id)
    size = sum(p.stat().st_size for p in run.folder.rglob("*") if p.is_file())
    kept = quota.add_up(place)
    assert kept.people == {"ann": 200 + size, "ben": 100 + size}
    assert kept.groups == {"ml": 300 + size} and kept.in_all == 300 + size


def test_a_body_of_unknown_length_is_ended_where_there_is_no_more_room(place, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_PERSON_BYTES", "3000000")
    uploads = Uploads(place.store.uploads_folder, place)
    with acting_as(person("ann")):
        upload = uploads.begin()
        with pytest.raises(OverQuota):
            send(uploads, upload, b"x" * 5_000_000, announced=False)
    assert not list(uploads.files(upload).iterdir()) and not list(uploads.files(upload).parent.glob("*.part"))
    assert "ann keeps" in (uploads.refused(upload) or "")


def test_without_a_quota_nothing_is_added_up(place, monkeypatch):
    monkeypatch.setattr(quota, "add_up", lambda place: pytest.fail("looked through the disk"))
    uploads = Uploads(place.store.uploads_folder, place)
    assert send(uploads, uploads.begin(), b"x") == 1


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e308", "nan", "9" * 400, "1.5"])
def test_a_setting_that_is_no_quota_is_refused_when_the_server_starts(monkeypatch, text):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_BYTES", text)
    with pytest.raises(InputError, match=r"\$CHIPLEDGER_QUOTA_BYTES"):
        quota.quota()


def begun(resuming: Resuming, uploads: Uploads, name: str, n_bytes: int, sha256: str = "") -> str:
    upload = uploads.begin()
    resuming.create(upload, name, n_bytes, sha256)
    return upload


def test_what_is_promised_in_pieces_counts_from_its_begin_on(place, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_BYTES", "1000")
    uploads = Uploads(place.store.uploads_folder, place)
    resuming = Resuming(uploads)
    first = begun(resuming, uploads, "a.log", 900)
    with pytest.raises(OverQuota, match="900 bytes of 1.00 kB already; 200 bytes more"):
        begun(resuming, uploads, "b.log", 200)
    assert quota.add_up(place).in_all == 900
    uploads.discard(first)
    begun(resuming, uploads, "b.log", 200)


def test_a_content_that_is_held_already_takes_no_room(place, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_QUOTA_PERSON_BYTES", "1000")
    uploads, data = Uploads(place.store.uploads_folder, place), b"x" * 700
    resuming, digest = Resuming(uploads), hashlib.sha256(data).hexdigest()
    with acting_as(person("ann")):
        for _ in range(3):
            upload = uploads.begin()
            coming = resuming.create(upload, "a.log", len(data), digest)
            if not coming.is_whole(resuming.upload(upload)):
                asyncio.run(_sent(resuming, upload, coming, data))
        assert quota.add_up(place).people == {"ann": 700}
        with pytest.raises(OverQuota, match="ann keeps 700 bytes"):
            resuming.create(uploads.begin(), "b.log", 400, "")


async def _sent(resuming: Resuming, upload: str, coming: Coming, data: bytes) -> None:
    async def stream():
        yield data

    await resuming.write(upload, coming, Piece(0, None), stream())
