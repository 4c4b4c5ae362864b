"""A process that may open no connection, and asks for the registry: see test_postgres_relay.py."""

import os
import socket
import sys
from pathlib import Path

from runs.database import put
from runs.postgres.relay import Relay
from runs.registry import Registry

try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=2)
    print("connected")
except OSError:
    print("refused")
registry = Registry(Relay(int(sys.argv[1])))
registry.remember_files([("ab" * 32, Path("/from/the/child"), 1)])
print(registry.extras("r").tags)
with registry._connect() as db:
    db.execute("begin immediate")
    db.execute(put("files", "sha256", "path, bytes"), ("cd" * 32, "/from/nobody", 1))
    print("half", flush=True)
    os.kill(os.getpid(), 9)
