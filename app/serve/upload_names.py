"""What the files of an upload are called: names that cannot leave their folder."""

import hashlib
import re
import unicodedata
from pathlib import Path

from errors import InputError

NAME_BYTES = 180  # of one part of a path; file systems hold 255
DEPTH = 16


def clean_name(raw: str) -> Path:
    """A relative path below the upload's folder from any name a browser may send.

    Folders are kept (a profile lies in some); `..`, roots, leading dots and control characters are not. A part that
    had to be changed gets a short hash of what it was, so that two different names never become one.
    Raises InputError where nothing is left of it.
    """
    parts = []
    for part in re.split(r"[/\\]", raw):
        kept = "".join(c for c in unicodedata.normalize("NFC", part) if unicodedata.category(c)[0] != "C").strip(" .")
        if not kept:
            continue
        stem, dot, ending = kept.partition(".")
        if len(kept.encode()) > NAME_BYTES:
            stem, ending = _cut(stem, NAME_BYTES // 2), _cut(ending, NAME_BYTES // 3, from_end=True)
        if f"{stem}{dot}{ending}" != part:
            stem += "-" + hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        parts.append(f"{stem}{dot}{ending}")
    if not parts or len(parts) > DEPTH:
        raise InputError(f"{raw[:200]!r} cannot be a file's name", expected=f"a path of 1 to {DEPTH} parts")
    return Path(*parts)


def title_of(folder: Path) -> str:
    """What an upload is called while it has no other name: its one file or folder, or how many there are."""
    there = sorted(p.name for p in folder.iterdir())
    return there[0] if len(there) == 1 else f"{there[0]} and {len(there) - 1:,} more" if there else ""


def _cut(text: str, n_bytes: int, from_end: bool = False) -> str:
    data = text.encode()
    return (data[-n_bytes:] if from_end else data[:n_bytes]).decode(errors="ignore")
