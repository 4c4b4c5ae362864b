"""What of the image's libraries is kept compiled."""

import importlib.util
import sys

import pytest

from tests.deploy.manifests import DEPLOY

_SPEC = importlib.util.spec_from_file_location("compiled", DEPLOY / "image" / "compiled.py")
compiled = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(compiled)

SOURCE = """import a_library.part, other as short
def late():
    from a_library import part, name
    from . import beside
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A package with a module that is imported, one that breaks off and one that nobody asks for."""
    folder = tmp_path / "a_library"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "part": "from a_library import inner",
        "inner": "",
        "broken": "1/0",
        "alone": "",
    }.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "a_library"]:
        del sys.modules[name]


def kept(folder):
    return {path.name.partition(".")[0] for path in folder.glob("__pycache__/*.pyc")}


def test_what_is_imported_anywhere_in_a_module_is_named():
    assert set(compiled.named(SOURCE)) == {"a_library.part", "other", "a_library", "a_library.name"}


def test_what_is_loaded_is_kept_compiled_and_nothing_else(library):
    assert compiled.load({"a_library.part", "a_library.nothing", "a_library.broken", "not_there.at_all"}) == 1
    assert {"__init__", "part", "inner"} <= kept(library) and "alone" not in kept(library)
    compiled.compile_all("a_library")
    compiled.compile_all("not_there")
    assert kept(library) == {"__init__", "part", "inner", "broken", "alone"}


def test_without_chipledger_nothing_is_compiled(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "files", lambda _: [])
    assert compiled.main() == 2 and "Chipledger is not installed" in capsys.readouterr().err
