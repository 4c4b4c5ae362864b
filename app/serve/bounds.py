"""What one job of the server may take, and how that is told to `serve` and `worker`."""

import os
from dataclasses import dataclass
from typing import Any

from errors.numbers import Number
from errors.options import Option
from runs.machine import memory_here

HOURS = Option(
    "job_hours", Number(0, 1000, above=True), 6.0, "the longest that a job may take", unit="hours", local=True
)
MEMORY_GB = Option(
    "job_memory_gb",
    Number(0.5, 1e6),
    None,
    "the most memory of all processes of a job together (default: three quarters of this machine's or container's)",
    unit="GB",
    local=True,
)
GRACE = Option(
    "grace_s",
    Number(0, 86_400),
    5.0,
    "when told to stop: how long jobs may go on before they are parked for whoever works next, and uploads before they "
    "are broken off",
    unit="s",
    local=True,
)
OPTIONS = (HOURS, MEMORY_GB, GRACE)
SHARE = 0.75  # of the memory there is: the server itself and the disk's cache need some


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Of one job: seconds of wall clock, bytes of memory of all its processes, seconds of processor time and bytes of a
    file of each of them, and how many they are."""

    wall_s: float
    memory_bytes: int
    cpu_s: int
    file_bytes: int = 40 << 30  # twice an upload: what it unpacks to, or the largest table
    processes: int = 64

    @property
    def wall(self) -> str:
        return f"{self.wall_s / 3600:g} h" if self.wall_s >= 3600 else f"{self.wall_s:g} s"


@dataclass(frozen=True, kw_only=True)
class Working:
    """How a server or a worker is asked to work, by the names of OPTIONS. `works`: whether it runs jobs; `at_once`: how
    many inputs it reads at the same time, None: the usual number."""

    job_hours: float = HOURS.default
    job_memory_gb: float | None = None
    grace_s: float = GRACE.default
    works: bool = True
    at_once: int | None = None

    def of_jobs(self) -> dict[str, Any]:
        """As `Jobs` takes it."""
        more = {} if self.at_once is None else {"ingests": self.at_once}
        limits = bounds(self.job_hours, self.job_memory_gb)
        return {"works": self.works, "limits": limits, "grace_s": self.grace_s, **more}


def bounds(hours: float | None = None, memory_gb: float | None = None) -> Bounds:
    """As they were asked for, else as this machine allows."""
    wall_s = 3600 * (HOURS.default if hours is None else hours)
    memory = round(SHARE * memory_here()) if memory_gb is None else round(memory_gb * 1e9)
    return Bounds(wall_s=wall_s, memory_bytes=memory, cpu_s=max(1, round(wall_s * (os.cpu_count() or 1))))
