"""What a server does for its library in the background: rows, and what the first search of them needs, are there
before somebody waits, the bin is emptied, and the weekly digest is told."""

import contextlib
import threading
from collections.abc import Generator

from app.library.table import table
from app.workspace import Workspace
from errors import ChipledgerError
from runs.tidy import keep_tidy


@contextlib.contextmanager
def upkeep(place: Workspace) -> Generator[None]:
    """Within it the library is kept; leaving does not wait for what is being done."""
    stop = threading.Event()
    for name, work in (("library upkeep", _keep), ("weekly digest", _tell)):
        threading.Thread(target=work, args=(place, stop), name=name, daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _keep(place: Workspace, stop: threading.Event) -> None:
    with contextlib.suppress(ChipledgerError):  # a store that cannot be read: its pages say so
        table(place).rows()
        table(place).work_ahead()
    keep_tidy(place.store, place.registry.at, stop)


def _tell(place: Workspace, stop: threading.Event) -> None:
    from app.fleet.digest import keep_telling  # it lists runs itself

    keep_telling(place, stop)
