"""What compiles is taken out of the image where every kernel runs without it, and only there."""

import importlib.util
import sys
from importlib.metadata import Distribution

import pytest

from errors import ChipledgerError
from tests.deploy.manifests import DEPLOY

_SPEC = importlib.util.spec_from_file_location("without_numba", DEPLOY / "image" / "without_numba.py")
without_numba = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(without_numba)

OWN = "Name: chipledger\nRequires-Dist: numba>=0.63\nRequires-Dist: numpy>=2.2\nRequires-Dist: numbagg; extra == 'a'\n"
FILES = {
    "numba": ("numba/core/a.py", "numba-1.dist-info/METADATA", "numba-1.dist-info/RECORD", "../../../bin/numba"),
    "llvmlite": ("llvmlite/binding/libllvmlite.so", "llvmlite-1.dist-info/METADATA", "llvmlite-1.dist-info/RECORD"),
    "chipledger": ("runs/a.py", "chipledger-1.dist-info/METADATA", "chipledger-1.dist-info/RECORD"),
}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """An environment with the compilers and what Numba kept, beside what stays."""
    folder = tmp_path / "lib" / "python3.12" / "site-packages"
    for files in FILES.values():
        for file in (folder / name for name in files):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x" * 10)
        record = next(folder / name for name in files if name.endswith("RECORD"))
        record.write_text("".join(f"{name},,\n" for name in files))
    (folder / "chipledger-1.dist-info" / "METADATA").write_text(OWN)
    (folder / "runs" / "__pycache__").mkdir()
    for name in ("a.nbc", "a.nbi", "a.so"):
        (folder / "runs" / "__pycache__" / name).write_text("x" * 10)

    def distribution(name):
        return Distribution.at(folder / f"{name}-1.dist-info")

    monkeypatch.setattr(without_numba, "distribution", distribution)
    for name in without_numba.COMPILERS:  # it puts them out of reach
        monkeypatch.setitem(sys.modules, name, sys.modules.get(name))
    return folder


def left(folder):
    top = folder.parents[2]
    return sorted(p.relative_to(top).as_posix() for p in top.rglob("*") if p.is_file())


def test_where_every_kernel_runs_they_go_with_all_that_they_brought(packages, monkeypatch, capsys):
    monkeypatch.setattr("app.kernels.warm", lambda: None)
    assert without_numba.main() == 0 and "without which every kernel runs" in capsys.readouterr().out
    names = [path.removeprefix("lib/python3.12/site-packages/") for path in left(packages)]
    assert names == [
        *(f"chipledger-1.dist-info/{n}" for n in ("METADATA", "RECORD")),
        "runs/__pycache__/a.so",
        "runs/a.py",
    ]
    asked = (packages / "chipledger-1.dist-info" / "METADATA").read_text()
    assert asked == "Name: chipledger\nRequires-Dist: numpy>=2.2\nRequires-Dist: numbagg; extra == 'a'\n"


def test_where_one_does_not_they_stay(packages, monkeypatch, capsys):
    def refused():
        assert sys.modules["numba"] is None and sys.modules["llvmlite"] is None
        raise ChipledgerError("no code is kept", where="a.kernel")

    monkeypatch.setattr("app.kernels.warm", refused)
    before = left(packages)
    assert without_numba.main() == 0 and "a.kernel: no code is kept" in capsys.readouterr().out
    assert left(packages) == before
