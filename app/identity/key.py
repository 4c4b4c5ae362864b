"""The server's own secret: what tokens are hashed with and cookies are signed with. A file in the store, for its owner.

Whoever has a copy of `registry.db` alone can neither check guesses of tokens nor sign cookies.
"""

import contextlib
import os
import secrets
import uuid
from pathlib import Path

from errors import InputError

NAME = "identity.key"
BYTES = 32


def key_of(store: Path) -> bytes:
    """The key of a store, made where it has none yet. Raises InputError where it cannot be read, or is none."""
    path = store / NAME
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read or made ({e.strerror or e})", where=str(path)) from e
    if len(key) < BYTES:
        advice = "Move it away: a new one is made, tokens are made anew, and everybody signs in again."
        raise InputError(f"a key of {len(key)} bytes", where=str(path), expected=f"{BYTES} bytes", advice=advice)
    return key


def _make(path: Path) -> None:
    """Whole or not at all, and once: of several processes the first one's counts."""
    part = path.with_name(f".{NAME}.{uuid.uuid4().hex}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
