"""A store and a folder of inputs for tests of ingest."""

import pytest

from runs.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "inputs"
    path.mkdir()
    return path
