"""Which contents an asker sent before, so that they are not sent again. Nobody is told of what others sent.

<uploads>/.held/<hash of asker, SHA-256 and length>   where such a file lies: upload and id, on one line
"""

import contextlib
from pathlib import Path

from app.identity.asking import who
from app.serve.coming import Coming, hashed
from app.serve.upload_owner import held_of, owner_of
from runs.durable import PRIVATE, write_whole

FOLDER = ".held"


class Held:
    """The contents below `uploads`."""

    def __init__(self, uploads: Path):
        self._uploads = uploads

    def note(self, upload: Path, coming: Coming) -> None:
        """Note where a whole file lies. A disk that takes no note costs sending it again, no more."""
        with contextlib.suppress(OSError):
            folder = self._uploads / FOLDER
            folder.mkdir(mode=PRIVATE, exist_ok=True)
            write_whole(folder / held_of(coming.sha256, coming.n_bytes), f"{upload.name} {coming.file_id}")

    def find(self, sha256: str, n_bytes: int) -> Path | None:
        """A file of this content that the asker sent, read through once more; None where there is none."""
        with contextlib.suppress(OSError, ValueError):
            found = self._of(self._uploads / FOLDER / held_of(sha256, n_bytes))
            if found and found.stat().st_size == n_bytes and hashed(found, n_bytes).hexdigest() == sha256:
                return found
        return None

    def sweep(self) -> None:
        """Forget what lies nowhere any more."""
        with contextlib.suppress(OSError):
            for note in (self._uploads / FOLDER).iterdir():
                with contextlib.suppress(OSError, ValueError):
                    if not (self._uploads / note.read_text(encoding="utf-8").split()[0]).is_dir():
                        note.unlink()

    def _of(self, note: Path) -> Path | None:
        """Raises OSError or ValueError for a note that cannot be read."""
        upload_id, file_id = note.read_text(encoding="utf-8").split()
        upload = self._uploads / upload_id
        coming = Coming.there(upload, file_id)
        theirs = owner_of(upload) == who().name
        return coming.place(upload) if theirs and coming and coming.is_whole(upload) else None
