"""Where a report is written: whole or not at all, and over nothing that is there already unless it is asked for."""

import contextlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from app.words import short
from errors import InputError

FORCE = "Add --force to write over it, or name another file."
A_FILE = "the name of a file"
PERMISSIONS = 0o777
LONGEST = 200  # characters of a place that are told
KEPT = 40  # characters of a name that stand in that of its unfinished file: no file system refuses so few


def check(path: Path, force: bool) -> None:
    """Before anything is worked out. Raises InputError where nothing can be written there."""
    where = short(path, LONGEST)
    try:
        if path.is_dir():
            raise InputError("is a folder", where=where, expected=A_FILE)
        if not path.parent.is_dir():
            raise InputError("there is no such folder", where=short(path.parent, LONGEST), advice="Make it first.")
        if path.exists() and not path.is_file():  # a device or a pipe: what is there stays what it is
            raise InputError("is no file", where=where, expected=A_FILE, advice="Give - to print it.")
    except OSError as e:  # a name that is too long, a folder that nobody may look into
        raise _cannot(path, e) from e
    if not force and os.path.lexists(path):
        raise InputError("is there already", where=where, advice=FORCE)


def keep(path: Path, data: bytes | Iterable[bytes], force: bool) -> int:
    """Write a file, from all of it or its pieces, so that at any moment there is none, the old one or the new one,
    whole; returns its bytes. One that is written over keeps its permissions, and a link to it still leads there. Raises
    InputError where it cannot be written, or is there already and `force` is not given."""
    target = Path(os.path.realpath(path)) if force else path
    partial = target.with_name(f".{target.name[:KEPT]}.{uuid.uuid4().hex}")
    try:
        with partial.open("xb") as f:
            _like(target, f.fileno())  # before there is anything to read
            f.writelines([data] if isinstance(data, bytes) else data)
            f.flush()
            os.fsync(f.fileno())
            written = f.tell()
        if force:
            partial.replace(target)
        else:
            _name(partial, target)
        return written
    except FileExistsError as e:
        raise InputError("is there already", where=short(path, LONGEST), advice=FORCE) from e
    except OSError as e:
        raise _cannot(path, e) from e
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _like(old: Path, new: int) -> None:
    """The permissions of a file that is written over; some file systems have none to give."""
    with contextlib.suppress(OSError):
        os.fchmod(new, old.stat().st_mode & PERMISSIONS)


def _name(partial: Path, path: Path) -> None:
    """Give it its name. A link refuses where another wrote it meanwhile; where there are no links (a stick, a bucket
    that is mounted) it is looked for once more."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        check(path, False)
        partial.replace(path)


def _cannot(path: Path, why: OSError) -> InputError:
    return InputError(f"cannot be written ({why.strerror or why})", where=short(path, LONGEST))
