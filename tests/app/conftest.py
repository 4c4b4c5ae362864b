"""Stores for tests, each in a folder of its own, and one server for all tests that only ask."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamlit.components.v2 import manifest_scanner

from app.workspace import STORE_VARIABLE, Workspace, workspace
from tests.app.serving import environment, serving
from tests.app.spy import SPY

if TYPE_CHECKING:
    from tests.app.identities import Identified

# What is installed is the same all the while. Streamlit looks through it whenever it starts, and each page of these
# tests is a start; a server does it once.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


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


@pytest.fixture(scope="session")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Identified"]:
    """A server that knows who asks, by each way, for tests that leave its runs as they found them."""
    from tests.app.identities import identified_server  # and a provider, which other tests need not wait for

    folder = tmp_path_factory.mktemp("identified")
    with identified_server(folder) as server:
        yield server


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The file in which the server's calls to the outside would be noted."""
    folder = tmp_path_factory.mktemp("spy")
    (folder / "sitecustomize.py").write_text(SPY)
    calls = folder / "calls"
    outside = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    subprocess.run([sys.executable, "-c", outside], env=environment(PYTHONPATH=str(folder), SPY=str(calls)))
    assert calls.read_text() == "socket.connect 192.0.2.1\n", "the spy itself must see a call"
    calls.unlink()
    return calls
