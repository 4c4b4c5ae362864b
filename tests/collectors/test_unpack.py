"""Archives: what is in them is read, what would do harm is refused by name."""

import gzip
import io
import os
import stat
import tarfile
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings

from collectors.ingest import ingest
from collectors.ingesting import gather, unpack
from errors import InputError
from runs.store import Store
from tests.collectors.test_goodput_log import A_JOB, lines
from tests.collectors.test_ingest import LOG, nothing_stored
from tests.fuzz.damage import damaged

FILES = {"run/train.log": LOG, "run/goodput.jsonl": lines(A_JOB), "run/.hidden": LOG, "__MACOSX/run/train.log": LOG}


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.mkdir("run")
        for name, content in files.items():
            z.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def tarred(files, mode="w", **more):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as t:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            for key, value in more.items():
                setattr(info, key, value)
            data = content.encode() if isinstance(content, str) else content
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


FORMS = {"zip": zipped, "tar": tarred, "tar.gz": lambda files: tarred(files, "w:gz")}
EACH = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def given_archive(tmp_path, content, name="run.zip"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@EACH
def test_an_archive_is_a_folder(tmp_path, store, form):
    done = ingest([given_archive(tmp_path, FORMS[form](FILES), f"night.{form}")], store)
    run = store.get(done.run_id)
    assert run.manifest.name == "night"
    names = [s["name"] for s in run.manifest.sources]
    assert names == [f"night.{form}/run/goodput.jsonl", f"night.{form}/run/train.log"]
    assert done.tables["steps"] == 14
    assert list((store.root / "partial").iterdir()) == []


@EACH
@pytest.mark.parametrize(
    "name",
    [
        "../evil.log",
        "a/../../evil.log",
        "/etc/evil.log",
        "C:\\evil.log",
        "c:evil.log",
        "..\\evil.log",
        "\\\\host\\evil",
        "new\nline.log",
        "bell\x07.log",
        "\x1b[2J.log",
        "turned\u202egol.txt",
        "x" * 2_000,
    ],
)
def test_names_that_leave_or_deceive_are_refused_and_shown_escaped(tmp_path, store, form, name):
    content = FORMS[form]({"train.log": LOG, name: LOG})
    with pytest.raises(InputError, match="is not safe") as error:
        ingest([given_archive(tmp_path, content)], store)
    assert repr(name[:200]) in str(error.value) and str(error.value).isprintable()
    assert nothing_stored(store) and not (tmp_path / "evil.log").exists()


@EACH
@pytest.mark.parametrize("inner", FORMS)
@pytest.mark.parametrize("name", ["inner.{}", "innocent.log"])
def test_archives_within_are_refused_by_name(tmp_path, store, form, inner, name):
    name = name.format(inner)
    content = FORMS[form]({"train.log": LOG, name: FORMS[inner]({"train.log": LOG})})
    with pytest.raises(InputError, match=f"an archive within an archive: '{name}'"):
        ingest([given_archive(tmp_path, content)], store)
    assert nothing_stored(store)


def test_a_gzipped_log_within_is_no_archive(tmp_path, store):
    path = given_archive(tmp_path, zipped({"a.log.gz": gzip.compress(LOG.encode())}))
    assert ingest([path], store).tables["steps"] == 10


@pytest.mark.parametrize("form", ["zip", "tar.gz"])
def test_what_unpacks_out_of_proportion_is_refused(tmp_path, store, form):
    content = FORMS[form]({"train.log": LOG + "\n" * (100 << 20)})
    assert len(content) < 1 << 20
    with pytest.raises(InputError, match="unpacks to"):
        ingest([given_archive(tmp_path, content)], store)
    assert nothing_stored(store)


def test_members_that_share_their_bytes_count_together(tmp_path, store, monkeypatch):
    monkeypatch.setattr(unpack, "RATIO_FREE_BYTES", 1 << 20)
    members = {f"{i}.log": "\n" * 900_000 for i in range(4)}
    with pytest.raises(InputError, match="unpacks to 3,600,000 bytes from"):
        ingest([given_archive(tmp_path, zipped(members))], store)


@EACH
def test_too_many_members_and_too_many_bytes(tmp_path, store, monkeypatch, form):
    path = given_archive(tmp_path, FORMS[form]({f"{i}.log": LOG for i in range(20)}))
    with monkeypatch.context() as patch, pytest.raises(InputError, match="holds more than 10 files"):
        patch.setattr(unpack, "MAX_MEMBERS", 10)
        ingest([path], store)
    with monkeypatch.context() as patch, pytest.raises(InputError, match="holds more than|unpacks to"):
        patch.setattr(unpack, "MAX_UNPACKED_BYTES", 1_000)
        ingest([path], store)
    assert nothing_stored(store)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_passed_over(tmp_path, store, kind):
    link = tarred({"link.log": ""}, type=kind, linkname="/etc/passwd")
    with pytest.raises(InputError, match="no file of a known format"):
        ingest([given_archive(tmp_path, link, "x.tar")], store)


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_links_beside_a_log_are_told_and_never_followed(tmp_path, store, form):
    out = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(out, "w") as z:
            z.writestr("train.log", LOG)
            for name in ("latest.log", "newest.log"):
                info = zipfile.ZipInfo(name)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                z.writestr(info, "train.log")
    else:
        with tarfile.open(fileobj=out, mode="w") as t:
            log = tarfile.TarInfo("train.log")
            log.size = len(LOG)
            t.addfile(log, io.BytesIO(LOG.encode()))
            for name, kind in (("latest.log", tarfile.SYMTYPE), ("newest.log", tarfile.LNKTYPE)):
                link = tarfile.TarInfo(name)
                link.type, link.linkname = kind, "train.log"
                t.addfile(link)
    told = ingest([given_archive(tmp_path, out.getvalue())], store)
    assert told.tables == {"steps": LOG.count("completed step")}
    (said,) = [w for w in told.warnings if "left out" in w]
    assert "2 links, devices or sparse files in it left out ('latest.log' first)" in said


@EACH
def test_of_members_of_one_name_the_last_is_read_as_unpacking_leaves_it(tmp_path, store, form):
    grown = io.BytesIO(FORMS["zip" if form == "zip" else "tar"]({"train.log": LOG.replace("loss: 2", "loss: 9")}))
    if form == "zip":
        with zipfile.ZipFile(grown, "a") as z, pytest.warns(UserWarning, match="Duplicate"):
            z.writestr("train.log", LOG)
    else:
        with tarfile.open(fileobj=grown, mode="a") as t:
            info = tarfile.TarInfo("./train.log")
            info.size = len(LOG)
            t.addfile(info, io.BytesIO(LOG.encode()))
    content = gzip.compress(grown.getvalue()) if form == "tar.gz" else grown.getvalue()
    told = ingest([given_archive(tmp_path, content)], store)
    assert told.tables == {"steps": LOG.count("completed step")}
    assert [w for w in told.warnings if "1 earlier version of a file in it left out" in w]
    assert set(store.get(told.run_id).tables.arrow("steps", ["loss"])["loss"].to_pylist()) == {2.0}


def test_an_encrypted_zip_is_refused(tmp_path, store):
    content = bytearray(zipped({"train.log": LOG}, zipfile.ZIP_STORED))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (start := content.find(magic, start)) >= 0:
            content[start + at] |= 1
            start += 4
    with pytest.raises(InputError, match="is encrypted. Unpack it with its password first"):
        ingest([given_archive(tmp_path, bytes(content))], store)


@EACH
def test_a_broken_archive_costs_a_warning_among_others_and_the_run_if_alone(tmp_path, store, form):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    whole = FORMS[form]({"train.log": LOG * 100, "other.log": os.urandom(50_000)})
    given_archive(inputs, whole[: len(whole) // 2], f"x.{form}")
    with pytest.raises(InputError, match=f"x.{form}: cannot be unpacked"):
        ingest([inputs], store)
    assert nothing_stored(store)
    (inputs / "train.log").write_text(LOG)
    done = ingest([inputs], store)
    assert done.tables["steps"] == 10 and done.warnings[0].startswith(f"x.{form}: cannot be unpacked")


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("harm", ["a bit of its checksum", "cut in the middle"])
def test_a_damaged_header_of_a_tar_is_not_its_end(tmp_path, store, mode, harm):
    content = bytearray(tarred({f"{n}/train.log": LOG for n in range(3)}))
    second = content.index(b"1/train.log")
    if harm == "cut in the middle":
        del content[second + 100 :]
    else:
        content[second + 150] ^= 1
    data = gzip.compress(content) if mode == "w:gz" else bytes(content)
    with pytest.raises(InputError, match=f"cannot be unpacked .a damaged header at byte {second:,}: .*a whole tar"):
        ingest([given_archive(tmp_path, data, "x.tar")], store)
    assert nothing_stored(store)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_without_its_end_and_one_that_goes_on_behind_it_are_told(tmp_path, store, mode):
    def told(content):
        data = gzip.compress(content) if mode == "w:gz" else content
        done = ingest([given_archive(tmp_path, data, "x.tar")], store, again=True)
        return [w for w in done.warnings if w.startswith("x.tar: ")]

    whole = tarred({f"{n}/train.log": LOG for n in range(3)})
    assert told(whole) == []
    without = told(whole[: whole.index(b"2/train.log")])
    assert without == ["x.tar: it ends without the mark of its end: files may be missing behind the last"]
    behind = told(whole + tarred({"3/train.log": LOG}))
    assert behind == ["x.tar: what stands behind its end was not read: is it several archives in one file?"]


@settings(max_examples=150, deadline=None)
@given(data=damaged([zipped(FILES), tarred(FILES), tarred(FILES, "w:gz"), zipped(FILES, zipfile.ZIP_LZMA)]))
def test_damaged_archives_are_stored_or_refused(data, tmp_path_factory):
    base = tmp_path_factory.mktemp("damaged")
    path = given_archive(base, data)
    store = Store(base / "store")
    try:
        ingest([path], store)
    except InputError as error:
        assert "\n" not in str(error)
        assert nothing_stored(store)


# Folders


def test_links_that_leave_the_folder_are_passed_over(tmp_path, store):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text(LOG)
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "train.log").write_text(LOG.replace("loss: 2", "loss: 3"))
    (inputs / "link.log").symlink_to(outside / "secret.log")
    (inputs / "folder").symlink_to(outside)
    (inputs / "loop").symlink_to(inputs)
    (inputs / "dangling").symlink_to(inputs / "nothing")
    (inputs / "within.log").symlink_to(inputs / "train.log")
    done = ingest([inputs], store)
    assert done.tables["steps"] == 10
    assert "link.log: a link that leaves the folder, passed over" in done.warnings
    assert "within.log: the same bytes as train.log, read once" in done.warnings


def test_a_folder_without_end_is_given_up(tmp_path, store, monkeypatch):
    monkeypatch.setattr(gather, "MAX_FILES", 5)
    for i in range(6):
        (tmp_path / f"{i}.log").write_text(LOG)
    with pytest.raises(InputError, match="more than 5 files"):
        ingest([tmp_path], store)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_what_may_not_be_opened_is_named(tmp_path, store):
    inputs = tmp_path / "inputs"
    (inputs / "closed").mkdir(parents=True)
    (inputs / "closed").chmod(0)
    (inputs / "closed.log").write_text(LOG)
    (inputs / "closed.log").chmod(0)
    (inputs / "train.log").write_text(LOG)
    done = ingest([inputs], store)
    (inputs / "closed").chmod(0o700)
    assert "closed: cannot be opened (Permission denied), passed over" in done.warnings
    assert "closed.log: cannot be read (Permission denied)" in done.warnings


def test_a_fifo_in_a_folder_is_no_file(tmp_path, store):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    os.mkfifo(inputs / "pipe.log")
    (inputs / "train.log").write_text(LOG)
    assert ingest([inputs], store).tables["steps"] == 10


# Headers


def memory_of(store, path, reason):
    """Bytes that refusing an archive took at its peak."""
    tracemalloc.start()
    with pytest.raises(InputError, match=reason):
        ingest([path], store)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert nothing_stored(store)
    return peak


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_of_a_tar_that_claims_much_is_refused_before_it_is_read(tmp_path, store, kind):
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 400 << 20
    path = tmp_path / "x.tar"
    with path.open("wb") as f:
        f.write(info.tobuf(tarfile.GNU_FORMAT))
        f.truncate(401 << 20)
    assert memory_of(store, path, "holds more than 33,554,432 bytes beside its files") < 60 << 20


def test_many_headers_of_a_tar_count_together(tmp_path, store, monkeypatch):
    monkeypatch.setattr(unpack, "MAX_HEADER_BYTES", 200_000)
    path = given_archive(tmp_path, tarred({f"{i}.log": LOG for i in range(40)}), "x.tar")
    assert ingest([path], store).tables["steps"] == 10
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for i in range(400):
            info = tarfile.TarInfo(f"{i}.log")
            info.pax_headers = {"comment": "x" * 600}
            t.addfile(info, io.BytesIO())
    with pytest.raises(InputError, match="holds more than 200,000 bytes beside its files"):
        ingest([given_archive(tmp_path, out.getvalue(), "y.tar")], store)


def test_a_list_of_a_zip_that_claims_much_is_refused_before_it_is_read(tmp_path, store):
    whole = zipped({"train.log": LOG})
    claimed = 400 << 20
    end = bytearray(whole[-22:])
    end[12:16] = claimed.to_bytes(4, "little")
    path = tmp_path / "x.zip"
    with path.open("wb") as f:
        f.write(whole[:-22])
        f.truncate(claimed + len(whole) - 22)
        f.seek(0, io.SEEK_END)
        f.write(end)
    assert memory_of(store, path, "lists its files in more than 8,388,608 bytes") < 60 << 20


def test_links_that_lead_to_one_another_lead_nowhere(tmp_path, store):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "a.log").symlink_to(inputs / "b.log")
    (inputs / "b.log").symlink_to(inputs / "a.log")
    (inputs / "self").symlink_to("self")
    (inputs / "train.log").write_text(LOG)
    done = ingest([inputs], store)
    assert done.tables["steps"] == 10
    assert [w for w in done.warnings if "link" in w] == [
        f"{name}: a link that leads nowhere, passed over" for name in ("a.log", "b.log", "self")
    ]
    with pytest.raises(InputError, match="no such file or folder"):
        ingest([inputs / "self"], store)
