"""The processes that a job started: how many they are, what memory they hold, and how they are ended."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Seen:
    """One process. `session`: the id of its leader; `began`: in ticks since the machine was started, which with the id
    names it for good; `bytes`: of memory that it holds."""

    pid: int
    parent: int
    session: int
    began: int
    bytes: int


def seen(pid: int) -> Seen | None:
    """None of one that is gone, or waits to be buried."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        if after_name[0] != "Z":
            parent, session, began, pages = (int(after_name[n]) for n in (1, 3, 19, 21))
            return Seen(pid, parent, session, began, pages * _PAGE)
    return None


def _all() -> Iterator[Seen]:
    for name in os.listdir(_PROC):
        if name.isdecimal() and (one := seen(int(name))):
            yield one


def family(pid: int) -> list[Seen]:
    """A process, those of its session, and all that they started, as far as they are there. Memory that processes share
    is counted for each."""
    there, found = list(_all()), {pid}
    grown = True
    while grown:
        more = {p.pid for p in there if p.parent in found or p.session == pid} - found
        found |= more
        grown = bool(more)
    return [p for p in there if p.pid in found]


def now() -> int:
    """In ticks since the machine was started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def kill(pid: int, until: int | None = None) -> None:
    """End a process with its family, at once and for good. They are stopped first, so that none starts others
    meanwhile. `until`: of one that has ended already, when: its id may be another's by now, who began later."""
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for one in family(pid):
            again = seen(one.pid)
            if again is not None and again.began == one.began and (until is None or one.began <= until):
                with contextlib.suppress(OSError):
                    os.kill(one.pid, how)
