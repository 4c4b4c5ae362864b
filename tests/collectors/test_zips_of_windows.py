"""Zips whose folders are written with backslashes, as some programs of Windows make them."""

import io
import zipfile

import pytest

from collectors.ingest import ingest
from errors import InputError
from tests.collectors.ingesting import LOG
from tests.collectors.test_unpack import given_archive


def made_on(system, files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.create_system = system
            z.writestr(info, content)
    return out.getvalue()


WINDOWS, UNIX = 0, 3
ODD = "dir\\train.log"


@pytest.mark.parametrize("system, name", [(WINDOWS, "run.zip/dir/train.log"), (UNIX, f"run.zip/{ODD}")])
def test_folders_of_a_zip_made_on_windows_are_folders(tmp_path, store, system, name):
    content = made_on(system, {"dir\\": "", ODD: LOG})
    done = ingest([given_archive(tmp_path, content)], store)
    assert name in [source["name"] for source in store.get(done.run_id).manifest.sources]


def test_of_a_zip_made_on_windows_names_are_held_against_names_as_in_a_folder(tmp_path, store):
    files = {ODD: LOG, "dir/train.log": LOG.replace("loss: 2", "loss: 3"), "dir\\.hidden\\a.log": LOG, "end\\": LOG}
    done = ingest([given_archive(tmp_path, made_on(WINDOWS, files))], store)
    names = [source["name"] for source in store.get(done.run_id).manifest.sources]
    assert sorted(names) == ["run.zip/dir/train.log", "run.zip/end\\"]
    assert any("1 earlier version of a file in it left out" in said for said in done.warnings)


@pytest.mark.parametrize("name", ["..\\train.log", "\\train.log", "a\\..\\..\\b", "C:\\train.log"])
def test_names_of_windows_that_leave_the_archive_are_refused(tmp_path, store, name):
    with pytest.raises(InputError, match="is not safe"):
        ingest([given_archive(tmp_path, made_on(WINDOWS, {name: LOG}))], store)
