"""What the image leaves out of its libraries."""

import ctypes
import importlib.util
import shutil
import struct
import sys
from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY

_SPEC = importlib.util.spec_from_file_location("slim", DEPLOY / "image" / "slim.py")
slim = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(slim)


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    for name, n_bytes in {
        "numpy/tests/test_a.py": 10,
        "numpy/core.py": 100,
        "numpy/_core/include/a.h": 20,
        "pandas/tests/deep/tests/test_b.py": 30,
        "pydeck/nbextension/index.js": 40,
        "pydeck/__init__.py": 100,
        "streamlit/testing/v1/app_test.py": 100,
        "mine/latest.py": 100,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * n_bytes)
    return folder


def test_what_is_taken_is_what_was_there_less_what_is_left(packages, capsys):
    before = slim.weight(packages)
    taken = slim.slim(packages)
    assert sum(taken.values()) == 10 + 20 + 30 + 40 == before - slim.weight(packages)
    left = sorted(p.relative_to(packages).as_posix() for p in packages.rglob("*.py"))
    assert left == ["mine/latest.py", "numpy/core.py", "pydeck/__init__.py", "streamlit/testing/v1/app_test.py"]
    assert sum(slim.slim(packages).values()) == 0
    assert slim.main(str(packages.parents[2])) == 0 and "are left" in capsys.readouterr().out


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    assert slim.main(str(tmp_path)) == 2 and "no environment" in capsys.readouterr().err
    assert (tmp_path / "tests").is_dir()


def library(loaded, names):
    """A library of 64 bits, as far as it is looked at: a part that is loaded, and what stands behind it."""
    head = bytearray(64 + 56)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<QQ", head, 32, 64, 64 + 56 + loaded)  # where its parts are told, and its sections
    struct.pack_into("<HHHHH", head, 52, 64, 56, 1, 64, 3)
    struct.pack_into("<QQQQ", head, 64 + 8, 0, 0, 0, 64 + 56 + loaded)
    return bytes(head) + b"l" * loaded + b"n" * names


def test_a_library_keeps_what_is_loaded_and_tells_of_no_sections(packages):
    made, odd = packages / "mine" / "a.so.2", packages / "mine" / "b.so"
    made.write_bytes(library(loaded=500, names=70))
    odd.write_bytes(b"x" * 300)
    assert slim.slim(packages)["names in libraries, for debuggers"] == 70
    left = made.read_bytes()
    assert (
        len(left) == 64 + 56 + 500 and left.endswith(b"l" * 500) and left[40:48] == bytes(8) and left[58:64] == bytes(6)
    )
    assert odd.read_bytes() == b"x" * 300
    assert slim.without_names(made) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="libraries of Linux")
def test_a_library_without_names_can_be_loaded(tmp_path):
    _ctypes_test = pytest.importorskip("_ctypes_test")

    copy = Path(shutil.copy(_ctypes_test.__file__, tmp_path))
    copy.chmod(0o600)
    assert slim.without_names(copy) > 0
    told = ctypes.CDLL(str(copy))
    told._testfunc_q_bhilfd.restype = ctypes.c_longlong
    assert told._testfunc_q_bhilfd(1, 2, 3, 4, ctypes.c_float(5), ctypes.c_double(6)) == 21
