"""A file of an upload that comes in pieces, as it lies on disk.

    <upload>/<file_id>.coming   the bytes that are there
    <upload>/<file_id>.json     what it is to be; once it is whole, when it was put in its place below `files`

How far it is says the length of the first alone, so that a server that was killed needs no other memory. Its id is made
of name, length and SHA-256, so that whoever sends it anew finds what is there.
"""

import contextlib
import hashlib
import json
import os
import re
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from runs.durable import sync, write_whole

COMING, ABOUT = ".coming", ".json"
READ_BYTES = 1 << 20
SHA256 = re.compile(r"[0-9a-f]{64}")
FILE_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Coming:
    """A file on its way.

    name       its path below `files`
    n_bytes    how long it is to be
    sha256     its content's, as its sender says beforehand, in hexadecimal; empty: told at the end
    placed_ns  the time that its file bears since it is whole; 0: it is not
    """

    file_id: str
    name: str
    n_bytes: int
    sha256: str = ""
    placed_ns: int = 0

    @classmethod
    def of(cls, name: str, n_bytes: int, sha256: str) -> Self:
        """With an id of its own, the same for the same name, length and hash; any where no hash is said."""
        what = f"{name}\0{n_bytes}\0{sha256}".encode("utf-8", "surrogatepass")
        file_id = hashlib.sha256(what).hexdigest()[:32] if sha256 else uuid.uuid4().hex
        return cls(file_id=file_id, name=name, n_bytes=n_bytes, sha256=sha256)

    @classmethod
    def there(cls, upload: Path, file_id: str) -> Self | None:
        """The one of this id in an upload, if there is one that can be read."""
        if not FILE_ID.fullmatch(file_id):
            return None
        with contextlib.suppress(OSError, ValueError, TypeError):
            return cls(**json.loads((upload / f"{file_id}{ABOUT}").read_text(encoding="utf-8")))
        return None

    def data(self, upload: Path) -> Path:
        return upload / f"{self.file_id}{COMING}"

    def place(self, upload: Path) -> Path:
        return upload / "files" / self.name

    def note(self, upload: Path) -> None:
        """Raises OSError."""
        write_whole(upload / f"{self.file_id}{ABOUT}", json.dumps(asdict(self)))

    def is_whole(self, upload: Path) -> bool:
        """Whether it is in its place still: not where another file of its name came after it."""
        with contextlib.suppress(OSError):
            there = self.place(upload).stat()
            return (there.st_size, there.st_mtime_ns) == (self.n_bytes, self.placed_ns)
        return False

    def is_replaced(self, upload: Path) -> bool:
        """Whether it was whole, and another file of its name came after it: nothing of it is there, or to come."""
        left = bool(self.placed_ns) and not self.data(upload).exists()  # looked at first: `put` moves it meanwhile
        return left and not self.is_whole(upload)

    def offset(self, upload: Path) -> int:
        """How many bytes of it are there."""
        if self.is_whole(upload):
            return self.n_bytes
        with contextlib.suppress(OSError):
            return min(self.data(upload).stat().st_size, self.n_bytes)
        return 0

    def put(self, upload: Path, sha256: str) -> Self:
        """Put what came into its place. What it is is noted first: a kill in between leaves all bytes where they were,
        and the file not in place. Raises OSError."""
        data, place = self.data(upload), self.place(upload)
        for parent in list(Path(self.name).parents)[-2::-1]:  # never `files` itself: it may have been discarded
            (upload / "files" / parent).mkdir(mode=0o700, exist_ok=True)
        done = replace(self, sha256=sha256, placed_ns=data.stat().st_mtime_ns)
        done.note(upload)
        data.replace(place)
        sync(place.parent)
        return done

    def drop(self, upload: Path) -> None:
        """Forget it and what came of it; a file in its place stays."""
        for path in (self.data(upload), upload / f"{self.file_id}{ABOUT}"):
            path.unlink(missing_ok=True)


def coming_below(upload: Path) -> list[Coming]:
    """All of an upload, whole or not, by name; without those that were replaced."""
    found = (Coming.there(upload, path.stem) for path in upload.glob(f"*{ABOUT}"))
    there = (one for one in found if one and not one.is_replaced(upload))
    return sorted(there, key=lambda one: (one.name, one.file_id))


def reserved_bytes(upload: Path) -> int:
    """The bytes that files of an upload will take which are not whole yet."""
    return sum(one.n_bytes for one in coming_below(upload) if not one.is_whole(upload))


def hashed(path: Path, upto: int) -> "hashlib._Hash":
    """SHA-256 of the first bytes of a file. Raises OSError."""
    sha = hashlib.sha256()
    with path.open("rb") as f:
        while upto > 0 and (block := f.read(min(READ_BYTES, upto))):
            sha.update(block)
            upto -= len(block)
    return sha


def linked(source: Path, to: Path) -> None:
    """The same content at another place, without a second copy where the file system can. Raises OSError."""
    try:
        os.link(source, to)
    except OSError:
        import shutil

        shutil.copyfile(source, to)
