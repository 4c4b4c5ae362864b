"""How the server is set, by hand and by its options."""

import os
import resource
import time
import tomllib

from app.serve import server
from app.serve.server import SETTINGS
from tests.app.serving import PROJECT, command, get, request, serving


def test_settings_for_starting_streamlit_by_hand_are_the_same():
    written = {
        ".".join((*path, key)): value
        for path, table in _tables(tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text()))
        for key, value in table.items()
    }
    assert written == {**SETTINGS, "server.address": "127.0.0.1"}


def _tables(tree, path=()):
    yield path, {k: v for k, v in tree.items() if not isinstance(v, dict)}
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _tables(value, (*path, key))


def test_the_limit_may_be_given(tmp_path):
    with serving(tmp_path, "--upload-limit-bytes", "10") as address:
        upload_id = request("POST", f"{address}/api/uploads", {})[1]["upload_id"]
        assert request("PUT", f"{address}/upload/{upload_id}/a", b"x" * 11)[0] == 413
    assert command("serve", "--upload-limit-bytes", "0", "--store", tmp_path).returncode == 2


def test_a_network_address_calls_nobody_either(tmp_path, called):
    path = os.pathsep.join([str(called.parent), str(PROJECT)])
    env = {"PYTHONPATH": path, "SPY": str(called)}
    with serving(tmp_path, "--host", "0.0.0.0", "--open-to-all", cwd=called.parent, **env) as address:
        told = get(f"{address}/api/runs")[1]
        assert (told["runs"], told["problems"], told["total"]) == ([], [], 0)
        time.sleep(1)
    assert not called.exists()


def test_a_server_may_open_as_many_files_as_the_system_lets_it():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 512), before[1]))
        server._many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(before[1], server.MOST_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
