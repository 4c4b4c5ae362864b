"""What is installed from the wheel: the application, its data, the bundled runs and the docs; not what makes or
measures them."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from app.manual.site_files import build

ROOT = Path(__file__).parents[1]
PARTS = ("errors", "runs", "catalog", "collectors", "analyzers", "simulators", "app", "reference", "benchmarks")
INSTALLED = {"errors", "runs", "catalog", "collectors", "analyzers", "simulators", "app"}
DATA = (".json", ".js", ".css")
SITE = "app/site"  # built, and no part of the sources
CHECKS = {"eslint.config.js", "package.json", "package-lock.json", "tsconfig.json"}  # of scripts, not of the app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The unpacked wheel, built from a copy: a folder of an earlier build would be taken into it."""
    root = tmp_path_factory.mktemp("wheel")
    source = root / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "site"))
    assert build(source / SITE) == 0
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, source / file)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", str(root)],
        cwd=source,
        check=True,
    )
    (wheel,) = root.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(root / "installed")
    return root / "installed"


def files(folder: Path, *ends: str) -> set[str]:
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name.endswith(ends)}
    return found - {
        str(p.relative_to(folder)) for part in ("__pycache__", "site") for p in folder.rglob(f"{part}/**/*")
    }


@pytest.mark.parametrize("part", sorted(INSTALLED))
def test_every_module_and_every_data_file_is_in_it(installed, part):
    assert files(installed / part, ".py", *DATA) == files(ROOT / part, ".py", *DATA) - CHECKS


def test_the_docs_are_in_it(installed):
    there, source = installed / SITE, installed.parent / "source" / SITE
    built = {p.relative_to(source): p.stat().st_size for p in source.rglob("*") if p.is_file()}
    assert len(built) > 100
    assert {p.relative_to(there): p.stat().st_size for p in there.rglob("*") if p.is_file()} == built


def test_of_the_reference_only_the_runs_are_in_it(installed):
    assert {p.name for p in installed.iterdir() if p.suffix != ".dist-info"} == INSTALLED | {"reference"}
    assert not files(installed / "reference", ".py")
    runs = ROOT / "reference/runs"
    wanted = {str(p.relative_to(runs)) for folder in runs.iterdir() if folder.is_dir() for p in folder.rglob("*")}
    assert files(installed / "reference/runs", "") == {w for w in wanted if (runs / w).is_file()}


def test_it_runs_where_no_clone_is(installed, tmp_path):
    code = (
        "import app, sys\n"
        "from app.cli import main\n"
        "from app.cli.commands.demo import reference_runs\n"
        "assert app.__file__.startswith(sys.argv[1]), app.__file__\n"
        "assert 'training' in {p.name for p in reference_runs()}\n"
        "sys.exit(main(['catalog', 'chips', 'H200']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(installed)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "CHIPLEDGER_STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "H200 SXM" in done.stdout
