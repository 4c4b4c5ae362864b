"""Uploads: files streamed to the store's disk at bounded memory, under names that cannot leave their folder."""

import hashlib
import os
import re
import shutil
import unicodedata
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread

from app.format import size
from errors import InputError, QuestionError

LIMIT_VARIABLE = "CHIPLEDGER_UPLOAD_LIMIT_BYTES"
DEFAULT_LIMIT_BYTES = 20 << 30
SPARE_BYTES = 1 << 30  # the disk is never filled up to the last byte: the store needs room to ingest
WRITE_BYTES = 1 << 20  # one write to disk for many small network chunks
NAME_BYTES = 180  # of one part of a path; file systems hold 255
DEPTH = 16
_ID = re.compile(r"[0-9a-f]{32}")


class TooLarge(InputError):
    """The upload is over the limit, or over what the disk holds."""


def limit_bytes() -> int:
    """The most bytes that one upload may hold. Raises InputError for a setting that is no number."""
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT_BYTES))
    if not text.isdigit() or int(text) == 0:
        raise InputError(f"{text!r} is no limit for uploads", where=f"${LIMIT_VARIABLE}", expected="bytes, above 0")
    return int(text)


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


def _cut(text: str, n_bytes: int, from_end: bool = False) -> str:
    data = text.encode()
    return (data[-n_bytes:] if from_end else data[:n_bytes]).decode(errors="ignore")


class Uploads:
    """The uploads of a store. `begin`, any number of `receive`, then the folder `files` is ready to be read."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._bytes: dict[str, int] = {}

    def begin(self) -> str:
        upload_id = uuid.uuid4().hex
        (self._folder / upload_id / "files").mkdir(parents=True)
        self._bytes[upload_id] = 0
        return upload_id

    def files(self, upload_id: str) -> Path:
        """The folder that holds the files of an upload. Raises QuestionError where there is no such upload."""
        folder = self._folder / upload_id / "files"
        if not _ID.fullmatch(upload_id) or not folder.is_dir():
            raise QuestionError(f"no upload {upload_id[:40]!r}", advice="Begin one with POST /api/uploads.")
        return folder

    def discard(self, upload_id: str) -> None:
        """Remove an upload that was given up before it was ingested."""
        shutil.rmtree(self.files(upload_id).parent, ignore_errors=True)
        self._bytes.pop(upload_id, None)

    async def receive(self, upload_id: str, name: str, chunks: AsyncIterator[bytes], announced: int | None) -> int:
        """Stream one file to disk; returns its bytes. The file appears under its name only once it is whole.

        Raises TooLarge (nothing is kept), InputError for an impossible name, QuestionError for no such upload.
        """
        folder = self.files(upload_id)
        relative = clean_name(name)
        path = folder / relative
        if upload_id not in self._bytes:  # begun before the server was last started
            self._bytes[upload_id] = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        self._check(upload_id, announced or 0)
        partial = folder.with_name(f"{uuid.uuid4().hex}.part")  # beside `files`: half a file is never read as one
        written, replaced = 0, 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replaced = path.stat().st_size if path.is_file() else 0
            with partial.open("xb") as f:
                async for block in _blocks(chunks):
                    written += len(block)
                    self._bytes[upload_id] += len(block)
                    self._check(upload_id, 0)
                    await anyio.to_thread.run_sync(f.write, block)
            partial.replace(path)
        except BaseException as e:  # cancelled and disconnected included: no half file may stay
            self._bytes[upload_id] = self._bytes.get(upload_id, 0) - written
            partial.unlink(missing_ok=True)
            if isinstance(e, FileExistsError | NotADirectoryError | IsADirectoryError):
                raise InputError("one name is both a file and a folder", where=name) from e
            if isinstance(e, OSError):
                raise InputError(f"cannot be written ({e.strerror})", where=name, advice="Is the disk full?") from e
            raise
        self._bytes[upload_id] -= replaced
        return written

    def _check(self, upload_id: str, coming: int) -> None:
        limit = limit_bytes()
        if self._bytes.get(upload_id, 0) + coming > limit:
            raise TooLarge(
                f"more than {size(limit)} in one upload",
                advice=f"Add it on the command line with `chipledger ingest`, or raise ${LIMIT_VARIABLE}.",
            )
        if coming and coming > shutil.disk_usage(self._folder).free - SPARE_BYTES:
            raise TooLarge(f"{size(coming)} do not fit on the disk of this store", advice="Free some space first.")


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Small network chunks joined to blocks worth a write."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        if len(buffer) >= WRITE_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
