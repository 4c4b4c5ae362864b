"""A process that may open no connection, and asks for the registry: see test_postgres_relay.py."""

import os
import socket
import sys

from runs.postgres.relay import Relay
from runs.registry import Registry

try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=2)
    print("connected")
except OSError:
    print("refused")
registry = Registry(Relay(int(sys.argv[1])))
registry.tag("r", "from", "the child")
print(registry.extras("r").tags)
with registry._connect() as db:
    db.execute("begin immediate")
    db.execute("delete from tags")
    print("half", flush=True)
    os.kill(os.getpid(), 9)
