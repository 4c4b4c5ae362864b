"""When the server that wrote a log ran, and on how many chips: ingest adds up those that ran side by side."""

from hashlib import sha256

from collectors.base import Fact, Source

NAME = "server_ran"  # of a fact that ingest takes in, and no run keeps
HEAD, LINES, LONGEST = 1 << 10, 3, 500  # bytes of its start, lines and their characters by which a log is known again


class ServerRan:
    """The first and the last time of a server's log, ns, and its engines. A log that was fetched twice is known by how
    it begins."""

    def __init__(self, source: Source):
        self._begins = sha256(source.head[:HEAD])
        self._lines = 0
        self._engines: set[str | None] = set()
        self._times: tuple[int, int] | None = None

    def see(self, ns: int | None, engine: str | None, line: str) -> None:
        """A line of what an engine of the server did."""
        self._engines.add(engine)
        if self._lines < LINES:
            self._begins.update(line[:LONGEST].encode("utf-8", "replace"))
            self._lines += 1
        if ns is not None:
            first, last = self._times or (ns, ns)
            self._times = min(first, ns), max(last, ns)

    def fact(self, chips: int, engines: int = 1, together: int = 1) -> Fact | None:
        """None where the log carries no times. `chips`: of all `engines` of a service, of which other logs may tell
        too: this one tells of those that wrote in it, `together` in one line."""
        if self._times is None:
            return None
        first, last = self._times
        chips = chips // engines * min(max(len(self._engines), together), engines)
        said = {"log": self._begins.hexdigest(), "chips": chips, "first_ns": first, "last_ns": last}
        return Fact(NAME, said, "derived")
