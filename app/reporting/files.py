"""Where a report is written: whole or not at all, and over nothing that is there already unless it is asked for."""

import contextlib
import os
import uuid
from pathlib import Path

from errors import InputError

FORCE = "Add --force to write over it, or name another file."


def check(path: Path, force: bool) -> None:
    """Before anything is worked out. Raises InputError where nothing can be written there."""
    if path.is_dir():
        raise InputError("is a folder", where=str(path), expected="the name of a file")
    if not path.parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), advice="Make it first.")
    if not force and os.path.lexists(path):
        raise InputError("is there already", where=str(path), advice=FORCE)


def keep(path: Path, data: bytes, force: bool) -> None:
    """Write a file, so that at any moment there is none, the old one or the new one, whole. Raises InputError where it
    cannot be written, or is there already and `force` is not given."""
    partial = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}")
    try:
        with partial.open("xb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        if force:
            partial.replace(path)
        else:
            os.link(partial, path)  # refuses where another wrote it meanwhile
    except FileExistsError as e:
        raise InputError("is there already", where=str(path), advice=FORCE) from e
    except OSError as e:
        raise InputError(f"cannot be written ({e.strerror or e})", where=str(path)) from e
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
