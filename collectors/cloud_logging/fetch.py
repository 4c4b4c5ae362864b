"""Back-fill in windows, then what is new and what came late, into a spool; to be gone on with at any moment."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from collectors.cloud_logging.query import Wanted, between
from collectors.cloud_logging.service import Service
from collectors.cloud_logging.spool import Spool

S = 1_000_000_000
WINDOW_NS = 7 * 86400 * S  # of the back-fill: one question never spans more
OVERLAP_NS = 10 * 60 * S  # read again each time: entries arrive out of order
SWEEP_NS = 10 * 60 * S  # how often entries are looked for that came later than that
CLOCK_NS = 3600 * S  # how wrong this machine's clock may be: it counts only until the service's own is known
QUIET_NS = 10 * 60 * S  # a job that said so has ended when nothing follows for so long


@dataclass
class Fetcher:
    """One job's entries. `poll` reads what there is, as often as it is called; nothing is lost or kept twice.

    `progress` is called after every page: at 1000 entries a read, a month of a busy job takes minutes.
    What makes it so: every read begins before the newest entry already kept and the spool drops what it knows.
    Entries that arrive with a timestamp older than the overlap are found by when they were received.
    """

    service: Service
    wanted: Wanted
    spool: Spool
    progress: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.filter = self.wanted.filter()

    def begin(self, since_ns: int) -> None:
        """Where the back-fill begins. What was read before stays; an earlier moment or other filters read again."""
        cursor = self.spool.cursor
        if cursor.since is None or since_ns < cursor.since or cursor.filter != self.filter:
            cursor.since = min(since_ns, cursor.since or since_ns)
            cursor.filter, cursor.through, cursor.newest, cursor.swept_at = self.filter, cursor.since, None, None
            self.spool.save()

    def poll(self, now_ns: int | None = None) -> int:
        """Read all that is there; returns how many entries are new.

        Raises Denied, Unreachable or Cancelled; what was read until then is kept, and the next poll goes on there.
        """
        now_ns = time.time_ns() if now_ns is None else now_ns
        cursor, new = self.spool.cursor, 0
        assert cursor.through is not None and cursor.since is not None, "begin() comes first"
        if cursor.swept_at is None:
            cursor.swept_at, cursor.sweep_from = now_ns, now_ns - CLOCK_NS
        while cursor.through + WINDOW_NS < now_ns:
            new += self._read(between(self.filter, self._start(), cursor.through + WINDOW_NS))
            cursor.through += WINDOW_NS
            self.spool.save()
        start = self._start()
        new += self._read(between(self.filter, start))
        if now_ns - cursor.swept_at >= SWEEP_NS and start > cursor.since:
            received = cursor.received
            new += self._read(between(self.filter, cursor.since, start, cursor.sweep_from))
            cursor.swept_at = now_ns
            cursor.sweep_from = cursor.sweep_from if received is None else received - OVERLAP_NS
            self.spool.save()
        return new

    def ended(self, now_ns: int | None = None) -> bool:
        """Whether the job said that it ended and nothing has come since, for a while."""
        cursor = self.spool.cursor
        if cursor.ended is None or (cursor.active is not None and cursor.active > cursor.ended):
            return False
        return (time.time_ns() if now_ns is None else now_ns) - cursor.ended >= QUIET_NS

    def _start(self) -> int:
        """From where to read on: the overlap before the newest entry, within the window."""
        cursor = self.spool.cursor
        assert cursor.through is not None, "begin() comes first"
        return max(cursor.through, cursor.newest - OVERLAP_NS) if cursor.newest is not None else cursor.through

    def _read(self, filter_text: str) -> int:
        new, fresh = 0, set()
        for page in self.service.pages(filter_text):
            new += self.spool.append(page, fresh)
            if self.progress is not None:
                self.progress()
        return new
