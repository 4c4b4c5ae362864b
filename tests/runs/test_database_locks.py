"""A registry that is opened once more in a process keeps the locks that the process has."""

import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from errors import InputError
from runs import database
from runs.registry import Registry

PROJECT = Path(__file__).parents[2]
OTHER = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('begin immediate')"


def test_another_process_cannot_write_while_this_one_does_and_opens_it_again(tmp_path, monkeypatch):
    registry = Registry(tmp_path / "registry.db")
    with contextlib.closing(sqlite3.connect(registry.path)) as writing:
        writing.execute("pragma journal_mode = delete")  # whose locks lie on the file itself
        writing.execute("begin immediate")
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, **more | {"timeout": 0}))
        monkeypatch.setattr(database, "BEGUN_S", 0)
        with contextlib.suppress(InputError):  # it is locked
            Registry(registry.path)
        command = [sys.executable, "-c", OTHER, str(registry.path)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode != 0 and "locked" in done.stderr


def test_who_begins_a_file_waits_for_another_who_does(tmp_path):
    """SQLite itself refuses at once where another is about to write."""
    path, held, held_longer = tmp_path / "registry.db", threading.Event(), threading.Event()

    def begin():
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("create table theirs (x)")
            other.execute("begin immediate")
            held.set()
            held_longer.wait(60)

    (first := threading.Thread(target=begin)).start()
    assert held.wait(60)
    threading.Timer(0.1, held_longer.set).start()
    Registry(path).note("r", "x")
    first.join(60)
    assert Registry(path).extras("r").notes == ["x"]
