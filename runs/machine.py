"""What this machine has for a process, or the container that it is in."""

import contextlib
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container, as it sees it


def processors() -> int:
    """How many this process may use, as far as the system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_here() -> int:
    """Bytes of memory of this machine, or of this container where that has less."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits()])


def memory_left() -> int:
    """Bytes of memory that the machine can give now, at most what this container may have; 0 where it does not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min([int(line.split()[1]) << 10, *_limits()])
    return 0


def _limits() -> list[int]:
    found: list[int] = []
    for limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # not there, or `max`
            found.append(int(Path(limit).read_text()))
    return found
