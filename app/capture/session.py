"""What the hosts of one capture share: the moment to begin, how far they are, and the word to stop."""

import shutil
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.capture.addresses import Address
from app.serve.upload_room import SPARE_BYTES
from collectors.ingesting.gather import Cancelled
from errors import InputError
from runs.durable import PRIVATE, writing

CONNECT_S = 5.0  # within which an address must accept a connection and speak
MEET_S = 15.0  # at most, for all to be reached: a name that takes long to look up keeps nobody waiting longer
LOOK_S = 0.1  # how often a thread that waits looks whether it should stop


@dataclass(frozen=True)
class Answer:
    """What came of one address. `problem`: why nothing did, else empty. `note`: what is odd about a trace that came.

    host     as the trace names it, where it does
    file     the trace; None where none came
    """

    address: Address
    file: Path | None = None
    bytes: int = 0
    host: str = ""
    problem: str = ""
    note: str = ""


@dataclass
class Session:
    """One capture of several addresses. All begin together, once each has been reached or given up.

    name         of the session, made for it
    folder       for the traces; each address has a folder of its own there
    where        all addresses, each once
    answer_s     how long an answer may take once the recording is over
    most_bytes   of one answer that is held whole
    shared       where servers write that cannot send; empty: nowhere
    began_s      when recording began, by the clock that only goes forward; None before
    """

    name: str
    folder: Path
    where: tuple[Address, ...]
    answer_s: float
    most_bytes: int
    shared: str = ""
    stop: Callable[[], bool] = lambda: False
    began_s: float | None = None
    _there: set[Address] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _all_there: threading.Event = field(default_factory=threading.Event)

    def reached(self, address: Address) -> None:
        """An address is ready, or will never be; it may be said again."""
        with self._lock:
            self._there.add(address)
            if len(self._there) == len(self.where):
                self._begin()

    def _begin(self) -> None:
        if self.began_s is None:
            self.began_s = time.monotonic()
            self._all_there.set()

    def meet(self, address: Address) -> None:
        """Wait for the others; each of them is heard of within the time that connecting may take."""
        self.reached(address)
        deadline = time.monotonic() + MEET_S
        while not self._all_there.wait(LOOK_S):
            self.check()
            if time.monotonic() > deadline:
                with self._lock:
                    self._begin()

    def check(self) -> None:
        """Raises Cancelled once the person wants no more."""
        if self.stop():
            raise Cancelled("cancelled; nothing was stored")

    def called(self, address: Address) -> str:
        """Its label, with a number where others have the same: such as a.b and a-b."""
        alike = [a for a in self.where if a.label == address.label]
        return f"{address.label}-{alike.index(address)}" if len(alike) > 1 else address.label

    def place(self, address: Address, coming: int) -> Path:
        """The folder of an address, made. Raises InputError where so many bytes do not fit beside what else the store
        needs room for."""
        folder = self.folder / self.called(address)
        with writing(folder):
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            if shutil.disk_usage(folder).free - SPARE_BYTES < coming:
                raise InputError(f"its {coming:,} bytes do not fit on the disk of this store")
        return folder


def connected(address: Address) -> socket.socket:
    """A connection. Raises InputError, in the words of the system, where there is none in time."""
    try:
        return socket.create_connection((address.host, address.port), CONNECT_S)
    except TimeoutError as e:
        raise InputError(f"no connection within {CONNECT_S:g} s") from e
    except (OSError, UnicodeError) as e:
        why = (e.strerror or str(e)) if isinstance(e, OSError) else "no such name"
        raise InputError(f"no connection ({why})") from e


def line(text: str, most: int = 300) -> str:
    """Text from elsewhere as one line without what a terminal would act on."""
    return "".join(c if c.isprintable() else " " for c in text[:most]).strip()
