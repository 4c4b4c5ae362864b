"""Work that waits for nobody else: health is told also while every other thread waits for a registry that is locked."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")
MOST = 4  # at a time


class Aside:
    """Threads of its own, for one server."""

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None

    async def run(self, work: Callable[[], T]) -> T:
        self._limiter = self._limiter or CapacityLimiter(MOST)  # made in the loop that uses it
        return await to_thread.run_sync(work, limiter=self._limiter)
