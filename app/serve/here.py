"""Which servers serve a store now, so that `chipledger open` finds one.

    <store>/serving/<random>.json    the address of a server, locked as long as its process lives

A process id would not tell: another container on the same volume counts its own.
"""

import contextlib
import fcntl
import http.client
import json
import os
import re
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from runs.durable import PRIVATE

FOLDER = "serving"
_PLAIN = re.compile(
    r"http://(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253}):[0-9]{1,5}", re.IGNORECASE
)  # what a server announces
BEGINNING_S = 60.0  # of a server that is about to announce itself
ANSWER_S = 2.0  # a server that does not say in this time that it lives is none to send anybody to


@contextlib.contextmanager
def announced(store: Path, url: str) -> Generator[None]:
    """Say in the store that it is served at this address, until the block or the process ends. A store that cannot be
    written is served all the same."""
    with contextlib.ExitStack() as until:
        with contextlib.suppress(OSError):
            folder = store / FOLDER
            folder.mkdir(mode=PRIVATE, exist_ok=True)
            _sweep(store)
            part = folder / f"{uuid.uuid4().hex}.part"
            file = until.enter_context(open(os.open(part, os.O_RDWR | os.O_CREAT, 0o600), "w", encoding="utf-8"))
            until.callback(_remove, part)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump({"url": url}, file)
            file.flush()
            until.callback(_remove, part.rename(part.with_suffix(".json")))  # whole and locked once it has its name
        yield


def server_of(store: Path) -> str | None:
    """The address of a server of this store that answers; None where there is none."""
    return next((url for url in _announced(store) if _answers(url)), None)


def _announced(store: Path) -> Iterator[str]:
    """Addresses whose processes live; what others left behind is removed."""
    for path in sorted((store / FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError), path.open(encoding="utf-8") as file:
            if _held(file.fileno()):
                yield str(json.load(file)["url"])
            else:
                _remove(path)


def _sweep(store: Path) -> None:
    """What servers left that were killed goes."""
    for _ in _announced(store):
        pass
    for part in (store / FOLDER).glob("*.part"):
        if time.time() - part.stat().st_mtime > BEGINNING_S:
            _remove(part)


def _held(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _answers(url: str) -> bool:
    if not _PLAIN.fullmatch(url):
        return False
    parts = urlsplit(url)
    try:
        asked = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_S)
    except ValueError:  # no such port, or no such host
        return False
    try:
        asked.request("GET", "/healthz")
        return asked.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
