"""How much an upload may hold, and how much its disk has room for."""

import contextlib
import os
import shutil
from pathlib import Path

from errors import InputError, QuestionError
from errors.format import size
from errors.numbers import Number

LIMIT_VARIABLE = "CHIPLEDGER_UPLOAD_LIMIT_BYTES"
DEFAULT_LIMIT_BYTES = 20 << 30
LIMIT = Number(1, whole=True)  # bytes of one upload
SPARE_BYTES = 1 << 30  # the disk is never filled up to the last byte: the store needs room to ingest


class TooLarge(InputError):
    """The upload is over the limit, or over what the disk holds."""


def limit_bytes() -> int:
    """The most bytes that one upload may hold. Raises InputError for a setting that is no number."""
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT_BYTES))
    try:
        return LIMIT.read(text, LIMIT_VARIABLE)
    except QuestionError as e:
        where, expected = f"${LIMIT_VARIABLE}", f"{LIMIT.expected}, in bytes"
        raise InputError(f"{text[:80]!r} is no limit for uploads", where=where, expected=expected) from e


def free_bytes(folder: Path) -> float:
    try:
        return shutil.disk_usage(folder).free
    except OSError as e:
        raise InputError(f"the uploads of this store cannot be reached ({e.strerror})") from e


def check_free(folder: Path, coming: int) -> None:
    """Raises TooLarge where so many bytes more leave no room to spare."""
    if coming > free_bytes(folder) - SPARE_BYTES:
        what = f"{size(coming)} do not fit" if coming else f"no more fits, but for {size(SPARE_BYTES)} kept free,"
        raise TooLarge(f"{what} on the disk of this store", advice="Free some space first.")


def bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder, less those that are taken away meanwhile."""
    total = 0
    for below, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(below, file)).st_size
    return total
