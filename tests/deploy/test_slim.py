"""What the image leaves out of its libraries."""

import ctypes
import importlib.util
import json
import re
import shutil
import struct
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.app.serving import PROJECT
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
        "plotly/labextension/index.js": 40,
        "plotly/__init__.py": 100,
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
    assert left == ["mine/latest.py", "numpy/core.py", "plotly/__init__.py", "streamlit/testing/v1/app_test.py"]
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


@cache
def sources():
    """The text of the modules that run."""
    packages = ("errors", "runs", "catalog", "collectors", "analyzers", "simulators", "app")
    return "\n".join(p.read_text() for name in packages for p in (PROJECT / name).rglob("*.py"))


def patterns(library):
    found = (p for what in slim.NEEDLESS for p in what.patterns if p.startswith(f"{library}/"))
    return [p.removeprefix(f"{library}/") for p in found]


def test_no_page_draws_what_the_image_cannot():
    text = sources()
    drawn = {name.lower() for name in re.findall(r"\bgo\.([A-Z]\w+)", text)}
    assert "scatter" in drawn and not drawn & set(slim.UNDRAWN)
    elements = set(re.findall(r"\bst\.(\w+)\(", text))
    charts = {name for name in elements if name.endswith(("_chart", "map"))}
    assert "markdown" in elements and charts == {"plotly_chart"}, (
        "maps, graphs and Altair's charts are not in the image"
    )
    assert not elements & {"image", "graphviz", "mermaid", "echarts"} and "```mermaid" not in text


def test_no_module_imports_what_the_image_leaves_out():
    lines = re.findall(r"^ *(?:from ([\w.]+) )?import ([\w., ]+)", sources(), re.MULTILINE)
    names = {(package, name.strip().split(" ")[0]) for package, those in lines for name in those.split(",")}
    imported = {f"{package}.{name}".strip(".") for package, name in names} | {package for package, _ in names}
    libraries = ("scipy", "numpy", "pyarrow", "numba", "duckdb", "streamlit")
    taken = {f"{name}/{p}".removesuffix(".*") for name in libraries for p in patterns(name) if "*" not in p[:-2]}
    taken = {path.replace("/", ".") for path in taken}
    assert {"scipy.io", "pyarrow._s3fs"} <= taken and {"scipy.special", "pyarrow.parquet"} <= imported
    left_out = ("altair", "pydeck", "PIL", *taken)
    assert not [name for name in imported if any(f"{name}.".startswith(f"{one}.") for one in left_out)]


def test_what_styles_charts_is_whole():
    plotly, streamlit = (Path(importlib.util.find_spec(name).origin).parent for name in ("plotly", "streamlit"))
    styled = set()
    for path in (plotly / "package_data" / "templates").glob("*.json"):
        styled |= set(json.loads(path.read_text()).get("data", ()))
    theme = (streamlit / "elements" / "lib" / "streamlit_plotly_theme.py").read_text()
    styled |= {name.lower() for name in re.findall(r"\bgo\.(?:layout\.template\.data\.)?(\w+)", theme)}
    assert {"bar", "waterfall"} <= styled and not styled & set(slim.UNDRAWN)
    assert all((plotly / "graph_objs" / f"_{kind}.py").is_file() for kind in slim.UNDRAWN)


@pytest.mark.parametrize("library", ["PIL", "pyarrow", "scipy", "streamlit"])
def test_what_is_left_out_is_in_the_libraries(library):
    folder = Path(importlib.util.find_spec(library).origin).parent
    assert patterns(library)
    for pattern in patterns(library):
        assert pattern.startswith(("libarrow_python", "_pyarrow_cpp")) or any(folder.glob(pattern)), pattern
