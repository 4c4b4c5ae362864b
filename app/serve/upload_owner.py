"""Whose an upload is: nobody else may learn that it is there, and an asker finds their own again by what they send."""

import contextlib
import hashlib
from pathlib import Path

from app.identity.asking import who

OWNER = "owner.txt"  # in an upload's folder; none where nobody was known by name


def owner_of(upload: Path) -> str:
    """The name of whoever began an upload; empty where no identity was set up then."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (upload / OWNER).read_text(encoding="utf-8")
    return ""


def own(upload: Path) -> None:
    """Note that whoever asks began an upload. Raises OSError."""
    if name := who().name:
        (upload / OWNER).write_text(name, encoding="utf-8")


def is_theirs(upload: Path) -> bool:
    """Whether whoever asks may see an upload and add to it."""
    return who().sees_all or owner_of(upload) == who().name


def upload_of(key: str) -> str:
    """The id of the asker's upload with a key: another asker's with the same key is another upload."""
    return hashlib.sha256(f"{who().name}\0{key}".encode()).hexdigest()[:32]


def held_of(sha256: str, n_bytes: int) -> str:
    """Under which name the asker's files of a content are found."""
    return hashlib.sha256(f"{who().name}\0{sha256}\0{n_bytes}".encode()).hexdigest()
