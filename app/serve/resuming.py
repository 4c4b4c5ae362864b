"""Files that come in pieces, and go on where they were cut off: after a lost connection, a killed sender or server.

A piece with a checksum counts whole or not at all; one without counts as far as it came. What a killed server had
written of a piece stays, checked or not: the whole file's SHA-256 is compared before it is put in its place.
"""

import contextlib
import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.serve.blocks import blocks, locked_now
from app.serve.coming import Coming, coming_below, hashed, linked
from app.serve.held import Held
from app.serve.upload_names import clean_name
from app.serve.uploads import Uploads
from errors import ChipledgerError, InputError, QuestionError
from errors import format as fmt

if TYPE_CHECKING:
    import anyio

STALLED_SECONDS = 10.0  # a piece of which nothing came for so long gives way to another sender
YIELD_SECONDS = 5.0  # how long it may take for that
HASHES = 256  # of files on their way that are kept in memory; others are read again at their end


class Refused(ChipledgerError):
    """What the protocol has a status of its own for."""

    status = 400


class WrongOffset(Refused):
    """The piece does not begin where the file ends."""

    status = 409


class Busy(Refused):
    """Another request sends the file just now."""

    status = 423


class WrongSum(Refused):
    """What came is not what its sender says it is. It is thrown away."""

    status = 460


class NoSuchFile(Refused):
    """It was never begun, or was given up."""

    status = 404


@dataclass(frozen=True)
class Piece:
    """Where a piece begins, and what it should hash to: the name of the algorithm and the sum; None: not said."""

    offset: int
    checksum: tuple[str, bytes] | None = None


@dataclass
class _Sending:
    """A request that sends a file now."""

    scope: "anyio.CancelScope"
    ended: "anyio.Event"
    last_s: float = field(default_factory=time.monotonic)


class Resuming:
    """The files on their way of all uploads. `create`, then `write` until all is there, `state` after a break."""

    def __init__(self, uploads: Uploads):
        self._uploads, self._held = uploads, Held(uploads.folder)
        self._sending: dict[Path, _Sending] = {}
        self._hashes: OrderedDict[Path, tuple[int, hashlib._Hash]] = OrderedDict()
        self._creating = threading.Lock()

    def upload(self, upload_id: str) -> Path:
        """Raises NoSuchFile where there is no such upload of the asker."""
        try:
            return self._uploads.files(upload_id).parent
        except QuestionError as e:
            raise NoSuchFile(e.what, advice=e.advice) from e

    def find(self, upload_id: str, file_id: str) -> Coming:
        """Raises NoSuchFile."""
        upload = self.upload(upload_id)
        if (found := Coming.there(upload, file_id)) is None or found.is_replaced(upload):
            raise NoSuchFile(f"no file {file_id[:40]!r} on its way", advice="Begin it with POST .../files.")
        return found

    def listed(self, upload_id: str) -> list[tuple[Coming, int]]:
        """The files of an upload that came this way, with how much of each is there."""
        upload = self.upload(upload_id)
        return [(one, one.offset(upload)) for one in coming_below(upload)]

    def unfinished(self, upload_id: str) -> list[str]:
        """The names of those that are not whole."""
        upload = self.upload(upload_id)
        return [one.name for one in coming_below(upload) if not one.is_whole(upload)]

    def create(self, upload_id: str, raw_name: str, n_bytes: int, sha256: str) -> Coming:
        """The file that is to come: the one that was begun before, where it is the same. One whose content the asker
        sent before is whole at once. Raises TooLarge, InputError, NoSuchFile."""
        upload, name = self.upload(upload_id), clean_name(raw_name).as_posix()
        coming = Coming.of(name, n_bytes, sha256)
        if there := self._begun(coming, upload):
            return there
        with self._refusing(coming, upload_id):
            held = self._held.find(sha256, n_bytes) if sha256 and n_bytes else None
        with self._creating, self._refusing(coming, upload_id):
            if there := self._begun(coming, upload):
                return there
            if held is None:
                self._uploads.admit(n_bytes)
            self._uploads.keep_inputs(coming.place(upload), upload)
            self._uploads.reserve(upload_id, n_bytes)
            coming.data(upload).open("ab").close()
            coming.note(upload)
        with self._refusing(coming, upload_id):
            return self._taken(coming, upload, held) if held else coming

    @staticmethod
    def _begun(coming: Coming, upload: Path) -> Coming | None:
        found = Coming.there(upload, coming.file_id)
        return found if found and (found.is_whole(upload) or found.data(upload).exists()) else None

    def _taken(self, coming: Coming, upload: Path, held: Path) -> Coming:
        """A file that is held already, at its place in another upload."""
        data = coming.data(upload)
        if data in self._sending or data.stat().st_size:  # it comes already: it goes on from there
            return coming
        data.unlink()
        try:
            linked(held, data)
        except OSError:
            data.open("ab").close()
            return coming
        return self._put(coming, upload, coming.sha256)

    def drop(self, coming: Coming, upload_id: str) -> None:
        """Give up a file that is not whole. Raises Busy, InputError."""
        upload = self.upload(upload_id)
        if coming.is_whole(upload):
            raise InputError("the file arrived whole", where=coming.name, advice="Discard its upload instead.")
        if coming.data(upload) in self._sending:
            raise Busy("the file is being sent just now", where=coming.name)
        self._forget(coming, upload)

    def _forget(self, coming: Coming, upload: Path) -> None:
        self._hashes.pop(coming.data(upload), None)
        coming.drop(upload)
        self._uploads.release(upload.name, coming.n_bytes)

    async def state(self, upload_id: str, coming: Coming) -> tuple[Coming, int]:
        """A file and how much of it is there; what came whole is put in its place by this, if nothing else did that.
        Raises Busy while another request sends it, WrongSum where it is not what it should be."""
        from anyio.to_thread import run_sync

        upload = self.upload(upload_id)
        if coming.is_whole(upload):
            return coming, coming.n_bytes
        async with self._alone(coming, upload):
            coming = self.find(upload_id, coming.file_id)
            if (offset := coming.offset(upload)) == coming.n_bytes:
                coming = await run_sync(self._finish, coming, upload)
            return coming, offset

    async def write(self, upload_id: str, coming: Coming, piece: Piece, chunks: AsyncIterator[bytes]) -> Coming:
        """Take a piece of a file. Raises WrongOffset, Busy, WrongSum, TooLarge, InputError, NoSuchFile."""
        from anyio.to_thread import run_sync

        upload = self.upload(upload_id)
        async with self._alone(coming, upload) as sending, self._uploads.noting(upload_id):
            coming = self.find(upload_id, coming.file_id)
            offset = coming.offset(upload)
            if piece.offset != offset:
                what = f"{fmt.count(offset, 'byte')} of the file are there, the piece begins at {piece.offset:,}"
                raise WrongOffset(what, where=coming.name, advice="Ask with HEAD, and go on from there.")
            if offset < coming.n_bytes:
                self._uploads.keep_inputs(coming.place(upload), upload)
                with self._refusing(coming, upload_id):
                    await self._append(coming, upload, piece, chunks, sending)
                self.find(upload_id, coming.file_id)  # or it was discarded meanwhile
            if not coming.is_whole(upload) and coming.offset(upload) == coming.n_bytes:
                coming = await run_sync(self._finish, coming, upload)
        return coming

    async def _append(
        self, coming: Coming, upload: Path, piece: Piece, chunks: AsyncIterator[bytes], sending: _Sending
    ) -> None:
        from anyio.to_thread import run_sync

        data, relative = coming.data(upload), Path(coming.name)
        whole = self._hash_at(data, piece.offset)
        own = hashlib.new(piece.checksum[0]) if piece.checksum else None
        sums = [s for s in (whole, own) if s is not None]
        with data.open("r+b", buffering=0) as f, self._uploads.on_its_way(upload.name, relative) as tick:
            if not locked_now(f):
                raise Busy("another server sends the file", where=coming.name)
            f.seek(at := piece.offset)
            try:
                async for block in blocks(chunks):
                    if at + len(block) > coming.n_bytes:
                        raise InputError(f"more than the {coming.n_bytes:,} bytes announced", where=coming.name)
                    self._uploads.check_free()
                    await run_sync(_taken_in, f, block, sums)
                    at += len(block)
                    sending.last_s = tick()
                if own is not None and piece.checksum and own.digest() != piece.checksum[1]:
                    raise WrongSum("the piece does not have the sum that came with it", where=coming.name)
                await run_sync(os.fsync, f.fileno())
            except BaseException as e:
                self._hashes.pop(data, None)
                if own is not None or isinstance(e, ChipledgerError):
                    os.ftruncate(f.fileno(), piece.offset)
                raise
        if whole is not None:
            self._keep_hash(data, at, whole)

    def _hash_at(self, data: Path, offset: int) -> "hashlib._Hash | None":
        """The hash of what came so far, where this server took all of it."""
        if offset == 0:
            return hashlib.sha256()
        at, whole = self._hashes.get(data, (0, None))
        return whole if at == offset else None

    def _keep_hash(self, data: Path, at: int, whole: "hashlib._Hash") -> None:
        self._hashes[data] = (at, whole)
        self._hashes.move_to_end(data)
        while len(self._hashes) > HASHES:
            self._hashes.popitem(last=False)

    def _finish(self, coming: Coming, upload: Path) -> Coming:
        """Put a file in its place that came whole. Raises WrongSum: nothing of it is kept."""
        data = coming.data(upload)
        with self._refusing(coming, upload.name):
            at, known = self._hashes.pop(data, (0, None))
            whole = known if known is not None and at == coming.n_bytes else hashed(data, coming.n_bytes)
            if coming.sha256 and whole.hexdigest() != coming.sha256:
                self._forget(coming, upload)
                what = f"what came has the SHA-256 {whole.hexdigest()}, not {coming.sha256}"
                raise WrongSum(what, where=coming.name, advice="Did it change while it was sent? Send it anew.")
            return self._put(coming, upload, whole.hexdigest())

    def _put(self, coming: Coming, upload: Path, sha256: str) -> Coming:
        place = coming.place(upload)
        self._uploads.keep_inputs(place, upload)
        replaced = place.stat().st_size if place.is_file() else 0
        done = coming.put(upload, sha256)
        self._uploads.release(upload.name, replaced)
        self._held.note(upload, done)
        return done

    @contextlib.contextmanager
    def _refusing(self, coming: Coming, upload_id: str):  # noqa: ANN202 - a context
        try:
            yield
        except OSError as e:
            raise self._uploads.refusal(e, upload_id, coming.name) from e

    @contextlib.asynccontextmanager
    async def _alone(self, coming: Coming, upload: Path) -> AsyncGenerator[_Sending]:
        """Only one request takes a file at a time. One of which nothing comes any more gives way: its sender may have
        lost the connection without this server's hearing of it."""
        import anyio

        key = coming.data(upload)
        if other := self._sending.get(key):
            if time.monotonic() - other.last_s > STALLED_SECONDS:
                other.scope.cancel()
                with anyio.move_on_after(YIELD_SECONDS):
                    await other.ended.wait()
            if key in self._sending:
                raise Busy("the file is being sent just now", where=coming.name, advice="Ask again in a moment.")
        with anyio.CancelScope() as scope:
            mine = self._sending[key] = _Sending(scope, anyio.Event())
            try:
                yield mine
            finally:
                del self._sending[key]
                mine.ended.set()
        if scope.cancelled_caught:
            raise Busy("another request goes on with the file", where=coming.name)


def _taken_in(file: BinaryIO, block: bytes, sums: "list[hashlib._Hash]") -> None:
    """Write a block, all of it, and add it to the sums."""
    view = memoryview(block)
    while view:
        view = view[file.write(view) :]
    for one in sums:
        one.update(block)
