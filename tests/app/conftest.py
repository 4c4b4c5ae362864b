"""Stores for tests, each in a folder of its own, and one server for all tests that only ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.workspace import STORE_VARIABLE, Workspace, workspace
from tests.app.serving import serving


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty store that pages and commands of this process work in."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "store"))
    return workspace()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server `asked` keeps what it is given; nobody gives it a run."""
    return tmp_path_factory.mktemp("asked") / "store"


@pytest.fixture(scope="session")
def asked(empty_store: Path) -> Iterator[str]:
    """The address of a server without runs, for tests that leave it as they found it."""
    with serving(empty_store) as address:
        yield address
