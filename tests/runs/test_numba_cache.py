"""Compiled kernels are built anew when any file that they are built from changes."""

import ast
import errno
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.registry import CPUDispatcher

from runs import numba_cache

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "collectors", "analyzers", "simulators", "runs", "catalog", "errors")
KERNELS = (
    "collectors.device.xplane.wire",
    "collectors.device.xplane.tables",
    "collectors.device.xplane.events",
    "collectors.device.xplane.clock",
    "collectors.device.xplane.header",
    "analyzers.serving.prefix_cache.replay",
    "simulators.serving.cruise",
    "simulators.serving.kernel",
    "simulators.serving.pages",
    "simulators.serving.scheduling",
    "simulators.serving.step",
    "simulators.topology.kernels",
    "simulators.topology.cuts.kernel",
)


def kernels(module):
    return [k for k in vars(module).values() if isinstance(k, CPUDispatcher) and k.__module__ == module.__name__]


def imported_from(module):
    """Names that a module takes from this project's files, with those files."""
    found = {}
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            path = ROOT / node.module.replace(".", "/")
            files = {a.asname or a.name: path / f"{a.name}.py" for a in node.names}  # of modules
            found |= {name: file if file.exists() else path.with_suffix(".py") for name, file in files.items()}
    return found


def test_every_file_with_kernels_is_looked_at():
    using = {p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if "njit" in p.read_text()}
    assert using == {ROOT / "runs" / "numba_cache.py"}  # nobody goes round the cache that is never stale
    found = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            for node in ast.walk(tree):
                marks = [n for d in getattr(node, "decorator_list", ()) for n in ast.walk(d)]
                names = {n.id for n in marks if isinstance(n, ast.Name)}
                if isinstance(node, ast.FunctionDef) and names & {
                    "kernel",
                    "part",
                    "compiled",
                    "allocating",
                    "_compiled",
                    "_allocating",
                    "_compiler",
                }:
                    found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert found == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_the_cache_of_a_kernel_knows_every_file_that_it_is_built_from(name):
    module = importlib.import_module(name)
    taken = imported_from(module)
    assert kernels(module)
    for kernel in kernels(module):
        files = set(kernel._cache.built_from)
        assert Path(module.__file__) in files
        for used in kernel.py_func.__code__.co_names:
            assert taken.get(used, Path(module.__file__)) in files, (kernel, used)


def test_where_compiled_code_cannot_be_kept_it_is_made_anew(monkeypatch):
    def refuse(self, function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba_cache.FunctionCache, "__init__", refuse)
    added = numba_cache.compiler(Path(__file__).parent, ())(_nrt=False)(lambda a, b: a + b)
    assert added(2, 3) == 5 and not hasattr(added._cache, "built_from")


PROGRAM = """
import numpy as np
from collectors.xplane.header import line_header
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
    kept = sorted((tmp_path / "collectors" / "xplane" / "__pycache__").glob("header.line_header*.nbc"))
    assert kept
    tables = tmp_path / "collectors" / "xplane" / "tables.py"
    tables.write_text(tables.read_text().replace("EVENT_TAG = 0x22", "EVENT_TAG = 0x2A"))
    assert events() == 0


KERNEL = """
from pathlib import Path
from runs.numba_cache import compiler
def made():
    return compiler(Path(__file__).parent, ("kernel",))(_nrt=False)(twice)
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


def test_a_disk_that_cannot_keep_code_stops_no_kernel(made, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(numba_cache.CodeFiles, "_open_for_write", full)
    assert made()(2) == 4
