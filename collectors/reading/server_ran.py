"""When the servers that wrote a log ran, and on how many chips: ingest adds up those that ran side by side."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from collectors.base import Fact, Source

NAME = "server_ran"  # of a fact that ingest takes in, and no run keeps
HEAD, LINES, LONGEST = 1 << 10, 3, 500  # bytes of its start, lines and their bytes by which a log is known again
MOST = 1000  # servers in one log
_BEFORE = re.compile(  # what kubectl and container runtimes put before a line, or not: the log is the same
    rb"^(?:\[pod/[^\]\s]{1,600}\] ?)?(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z (?:std(?:out|err) [FP] )?)?", re.MULTILINE
)


@dataclass
class _Server:
    begins: bytes = b""
    lines: int = 0
    engines: set[str | None] = field(default_factory=set[str | None])
    times: tuple[int, int] | None = None


class ServerRan:
    """The first and the last time of each server that wrote in a log, by its host, ns, and its engines. A log that was
    fetched twice is known by how it begins."""

    def __init__(self, source: Source):
        self._head = _BEFORE.sub(b"", source.head[: 16 * HEAD])[:HEAD]
        self._servers: dict[str | None, _Server] = {}

    def see(self, ns: int | None, host: str | None, engine: str | None, line: str) -> None:
        """A line of what an engine of the server on a host did."""
        if (server := self._servers.get(host)) is None:
            if len(self._servers) >= MOST:
                return
            server = self._servers[host] = _Server()
        server.engines.add(engine)
        if server.lines < LINES:
            server.begins += _BEFORE.sub(b"", line[: 2 * LONGEST].encode("utf-8", "replace"))[:LONGEST]
            server.lines += 1
        if ns is not None:
            first, last = server.times or (ns, ns)
            server.times = min(first, ns), max(last, ns)

    def facts(self, chips: int, engines: int = 1, together: int = 1) -> Iterator[Fact]:
        """One for each server; none where the log carries no times. `chips`: of all `engines` of a service, of which
        other logs may tell too: a server has those of the engines that wrote in it, `together` in one line."""
        several = len(self._servers) > 1
        for host, server in self._servers.items():
            if server.times is not None:
                first, last = server.times
                begins = (host or "").encode() if several else self._head
                mine = chips // engines * min(max(len(server.engines), together), engines)
                log = sha256(begins + server.begins).hexdigest()
                yield Fact(NAME, {"log": log, "chips": mine, "first_ns": first, "last_ns": last}, "derived")
