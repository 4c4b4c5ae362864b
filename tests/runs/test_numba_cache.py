"""Compiled kernels are built anew when any file that they are built from changes."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runs import numba_cache

ROOT = Path(__file__).parents[2]


def test_where_compiled_code_cannot_be_kept_it_is_made_anew(monkeypatch):
    def refuse(self, function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba_cache.FunctionCache, "__init__", refuse)
    added = numba_cache.kept(Path(__file__).parent, ())(_nrt=False)(lambda a, b: a + b)
    assert added(2, 3) == 5 and not hasattr(added._cache, "built_from")


PROGRAM = """
import numpy as np
from collectors.device.xplane.header import line_header
header = np.zeros(7, np.int64)
line_header(np.frombuffer(bytes([0x22, 1, 0, 0x22, 1, 0]), np.uint8), 0, 6, 6, header)
print(header[6])
"""


def test_an_edit_of_a_file_that_a_kernel_takes_from_is_compiled(tmp_path):
    """`line_header` counts fields with the tag EVENT_TAG, which stands in tables.py."""
    for package in ("collectors", "runs", "catalog", "errors"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))

    def events():
        known = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env=known,
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        return int(run.stdout)

    assert events() == 2
    kept = sorted((tmp_path / "collectors" / "device" / "xplane" / "__pycache__").glob("*line_header*.*"))
    assert {file.suffix for file in kept} in ({".so"}, {".nbc", ".nbi"})
    tables = tmp_path / "collectors" / "device" / "xplane" / "tables.py"
    tables.write_text(tables.read_text().replace("EVENT_TAG = 0x22", "EVENT_TAG = 0x2A"))
    assert events() == 0


KERNEL = """
from pathlib import Path
from runs.numba_cache import kept
def made():
    return kept(Path(__file__).parent, ("kernel",))(_nrt=False)(twice)
def twice(a):
    return a + a
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes the same kernel anew, as another process does; its code lies below tmp_path."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernel.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", tmp_path / "kernel.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kernel", module)
    spec.loader.exec_module(module)
    return module.made


def _kept(tmp_path):
    return sorted((tmp_path / "__pycache__").glob("kernel.twice*.nbc"))


def _flipped(raw):
    return raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda raw: b"", lambda raw: raw[: len(raw) // 2], lambda raw: raw[:20], _flipped], ids=range(4)
)
def test_kept_code_that_was_damaged_is_made_anew(tmp_path, made, damage):
    assert made()(2) == 4
    (file,) = _kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = made()
    assert again(2) == 4 and not again.stats.cache_hits
    assert _kept(tmp_path) == [file]
    third = made()
    assert third(2) == 4 and sum(third.stats.cache_hits.values()) == 1


def test_code_of_other_types_under_a_name_is_never_run(tmp_path, made):
    """Numba gives two processes that compile at once one number for two kernels."""
    assert made()(2) == 4
    (whole,) = _kept(tmp_path)
    assert made()(2.5) == 5.0
    (real,) = [file for file in _kept(tmp_path) if file != whole]
    real.write_bytes(whole.read_bytes())
    assert made()(2.5) == 5.0


def test_code_beside_a_source_where_nothing_can_be_written_is_read(made, tmp_path, monkeypatch):
    def refused(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    assert made()(2) == 4
    monkeypatch.setattr("numba.core.caching.tempfile.TemporaryFile", refused)
    monkeypatch.setattr(numba_cache.CodeFiles, "_open_for_write", lambda *_: refused())
    again = made()
    assert again(2) == 4 and sum(again.stats.cache_hits.values()) == 1
    assert again(2.5) == 5.0, "of other types it is compiled, and not kept"
    for file in _kept(tmp_path):
        file.unlink()
    elsewhere = numba_cache.BesideSource.from_function(made, str(tmp_path / "kernel.py"))
    assert elsewhere is None, "where none was put, numba looks on"


def test_a_disk_that_cannot_keep_code_stops_no_kernel(made, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(numba_cache.CodeFiles, "_open_for_write", full)
    assert made()(2) == 4
