"""Whether a server can do its work."""

import shutil
from collections import namedtuple

import pytest

from app.operations import readiness
from app.operations.readiness import LEAST_FREE_BYTES, Readiness, kernels_said, to_dict
from runs.kernels import KERNELS

Usage = namedtuple("Usage", "total used free")


def failing(place):
    return {c.name: c.said for c in Readiness(place).checks() if not c.ok and c.needed}


def test_a_store_that_is_there_is_ready_and_nothing_stays_of_the_looking(place):
    before = sorted(place.store.root.rglob("*"))
    assert failing(place) == {}
    assert to_dict(Readiness(place).checks())["status"] == "ready"
    assert sorted(place.store.root.rglob("*")) == before


def _no_store(place):
    shutil.rmtree(place.store.root)


def _nothing_written(place):
    (place.store.root / "partial").rmdir()
    (place.store.root / "partial").write_text("no folder")


def _damaged(place):
    place.registry.path.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize(
    ("break_it", "name", "said"),
    [
        (_no_store, "store", "The store is gone, or can no longer be read."),
        (_nothing_written, "store", "The store cannot be written"),
        (_damaged, "registry", "The registry cannot be used, it is damaged"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence_that_names_no_path(place, break_it, name, said):
    break_it(place)
    found = failing(place)
    assert found[name].startswith(said) and found[name].endswith(".")
    assert str(place.store.root) not in str(to_dict(Readiness(place).checks()))


@pytest.mark.parametrize("free", [0, LEAST_FREE_BYTES - 1, LEAST_FREE_BYTES])
def test_a_full_disk_is_told_with_what_is_free(place, monkeypatch, free):
    monkeypatch.setattr(readiness.shutil, "disk_usage", lambda _: Usage(10**12, 10**12 - free, free))
    said = failing(place).get("disk")
    assert bool(said) == (free < LEAST_FREE_BYTES)


def test_code_that_is_not_kept_makes_slower_and_not_unready(place, monkeypatch, tmp_path):
    monkeypatch.setattr(readiness, "PROJECT", tmp_path)
    said = kernels_said()
    assert f"{len(KERNELS)} packages" in said and "python -m app.kernels" in said
    told = to_dict(Readiness(place).checks())
    assert told["status"] == "ready" and told["checks"]["kernels"] == {"ok": False, "needed": False, "said": said}
    for n, kernels in enumerate(KERNELS):
        folder = tmp_path.joinpath(*kernels.package.split("."), "__pycache__")
        folder.mkdir(parents=True)
        (folder / ("a.so", "a.nbc")[n % 2]).write_bytes(b"")
    assert kernels_said() == ""
