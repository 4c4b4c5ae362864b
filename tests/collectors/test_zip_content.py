"""Zips that are packed with bzip2 or LZMA, and in ways that are not known."""

import zipfile

import pytest

from collectors.ingest import ingest
from errors import InputError
from tests.collectors.test_ingest import LOG
from tests.collectors.test_unpack import given_archive, memory_of, zipped


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_packed_another_way_is_read_as_any(tmp_path, store, method):
    log = LOG + "".join(f"{n} {n * n}\n" for n in range(200_000))
    usual = ingest([given_archive(tmp_path, zipped({"train.log": log}))], store)
    again = ingest([given_archive(tmp_path, zipped({"train.log": log}, method), "other.zip")], store)
    assert usual.tables == again.tables
    broken = bytearray(zipped({"train.log": log}, method))
    broken[broken.rindex(b"PK\1\2") + 16] ^= 1  # of the sum
    with pytest.raises(InputError, match="Bad CRC-32 for file 'train.log'"):
        ingest([given_archive(tmp_path, bytes(broken), "broken.zip")], store)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_unpacks_to_more_than_it_states_takes_no_memory(tmp_path, store, method):
    whole = bytearray(zipped({"train.log": "\n" * (200 << 20)}, method))
    of_list = whole.rindex(b"PK\1\2")
    whole[of_list + 24 : of_list + 28] = (1 << 20).to_bytes(4, "little")
    assert memory_of(store, given_archive(tmp_path, bytes(whole)), "Bad CRC-32") < 60 << 20


def test_a_zip_packed_in_a_way_that_is_not_known_is_refused(tmp_path, store):
    whole = bytearray(zipped({"train.log": LOG}))
    for at in (whole.index(b"train.log") - 22, whole.rindex(b"PK\1\2") + 10):
        whole[at] = 93  # zstd, which a later `zipfile` unpacks without end
    with pytest.raises(InputError, match="compression method"):
        ingest([given_archive(tmp_path, bytes(whole))], store)
