"""How fast to ask: the quota that all jobs of a project share, and patience with a service that refuses or drops."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from collectors.ingesting.gather import Cancelled

QUOTA_READS, QUOTA_SECONDS = 60, 60.0  # of the service: reads a minute and project
MOST_ASKED_S = 600.0  # no longer, whatever the service asks for
SPARED = 10  # reads a minute left to whoever else looks at the project's logs

Wait = Callable[[float], bool]
"""Waits so many seconds, or less where the person stops it: then it returns true (`threading.Event.wait`)."""


class Limiter:
    """At most `reads` in any `seconds`, whichever threads ask; one refusal holds up all of them.

    Safe for several threads. The last `reads` moments are kept, so that no window of that length holds more.
    """

    def __init__(self, reads: int = QUOTA_READS - SPARED, seconds: float = QUOTA_SECONDS):
        self.reads, self.seconds = reads, seconds
        self._lock = threading.Lock()
        self._taken: deque[float] = deque(maxlen=reads)
        self._not_before = 0.0

    def take(self, wait: Wait) -> None:
        """Wait for a turn and take it. Raises Cancelled where the waiting was stopped."""
        while True:
            with self._lock:
                now = time.monotonic()
                free = self._taken[0] + self.seconds if len(self._taken) == self.reads else 0.0
                delay = max(self._not_before, free) - now
                if delay <= 0:
                    self._taken.append(now)
                    return
            pause(delay, wait)

    def hold(self, seconds: float) -> None:
        """Nobody asks for so long: the service refused somebody for asking too often."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)


@dataclass(frozen=True)
class Patience:
    """How often and how long to try again: waits grow from `base_s` by two to `most_s`, each shortened by chance."""

    tries: int = 8
    base_s: float = 1.0
    most_s: float = 60.0

    def delay_s(self, attempt: int, retry_after: str | None) -> float:
        """Seconds before attempt `attempt + 1`: what the service asks for and a little more, else our own."""
        if (asked := retry_after_s(retry_after)) is not None:
            return min(asked, MOST_ASKED_S) + random.uniform(0, self.base_s / 4)
        return min(self.base_s * 2**attempt, self.most_s) * random.uniform(0.5, 1)


def retry_after_s(text: str | None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date; None where it holds neither."""
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None


def pause(seconds: float, wait: Wait) -> None:
    """Raises Cancelled where the waiting was stopped."""
    if wait(seconds):
        raise Cancelled("stopped")
