"""Stores for tests: each in a folder of its own."""

from pathlib import Path

import pytest

from app.workspace import STORE_VARIABLE, Workspace, workspace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty store that pages and commands of this process work in."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "store"))
    return workspace()
