"""The places on which the conformance suite runs."""

import os

import pytest

from tests.runs.objects.places import Place, unique
from tests.runs.objects.servers import azure_server, google_server, s3_server

PLACES = ("folder", "file", "s3", "gs", "az")
SERVERS = {"s3": s3_server, "gs": google_server, "az": azure_server}


@pytest.fixture(params=PLACES)
def place(request, tmp_path, monkeypatch):
    return made(request.param, tmp_path, monkeypatch)


NOT_IN_CI = ("az",)  # its server is 240 MB of Node.js


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A place in a bucket of the server that speaks S3."""
    return made("s3", tmp_path, monkeypatch)


def made(name, folder, monkeypatch):
    if name == "folder":
        return Place(name, "", folder)
    if name == "file":
        (folder / "shared").mkdir()
        return Place(name, f"file://{folder}/shared/store", folder)
    server = SERVERS[name]()
    if isinstance(server, str):
        if os.environ.get("CI") == "true" and name not in NOT_IN_CI:
            pytest.fail(server)
        pytest.skip(server)
    for variable, value in server.environment.items():
        monkeypatch.setenv(variable, value)
    return Place(name, f"{name}://{server.bucket(unique())}/some/prefix", folder)
