"""What the image leaves out of its libraries."""

import importlib.util

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
