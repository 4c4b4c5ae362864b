"""Uploads: files streamed to the store's disk at bounded memory, under names that cannot leave their folder."""

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from app import quota
from app.serve.blocks import blocks, lock
from app.serve.coming import reserved_bytes
from app.serve.held import Held
from app.serve.upload_names import clean_name
from app.serve.upload_owner import is_theirs, own, upload_of
from app.serve.upload_room import LIMIT_VARIABLE, TooLarge, check_free, limit_bytes
from app.serve.upload_room import bytes_below as _bytes_below
from app.serve.upload_runs import ID, RUNS, Made, noted
from app.workspace import Workspace
from errors import InputError, QuestionError
from errors.format import size
from runs.durable import PRIVATE, writing
from runs.job_book import SMALL, USUAL, JobBook
from runs.scratch import abandoned, long_unseen, touched

GONE, LIST, SEEN = ".gone", "paths.txt", "uploads.seen"
COMMAND_BYTES = 50_000  # of paths on one command line
SMALL_BYTES = 64 << 20  # of an upload that is read in seconds
UNUSED_SECONDS = 7 * 86_400.0
SWEEP_SECONDS = 3600.0
BEGINNING_S = 60.0  # another server may begin an upload at this moment
ARRIVING_SECONDS = 120.0  # between two files of an upload at most, or nobody sends it any more
UNUSED_LISTED, NAMES_TOLD = 20, 3
OTHERS = " Each server of this store has uploads of its own: one begun with another goes on there, or anew here."


class Uploads:
    """The uploads of a store. `begin`, any number of `receive`, then the folder `files` is ready to be read.

        <folder>/<upload_id>/files/...     what was uploaded
        <folder>/<upload_id>.runs          ids of the runs that were made of it, a line each; locked while it is read
        <folder>/<upload_id>/<random>.part a file on its way, locked by the server that receives it; `coming.py` has
                                           those that come in pieces, `upload_owner.py` whose an upload is

    An upload is kept as long as one of its runs is. One that no run was made of is swept once nobody touched it for
    UNUSED_SECONDS.
    """

    def __init__(self, folder: Path, place: Workspace | None = None):
        self._folder, self._place = folder, place
        self._made = Made(place)
        self._bytes: dict[str, int] = {}
        self._arriving: dict[tuple[str, Path], float] = {}  # when last a byte came of a file on its way, monotonic
        self._refused: dict[str, str] = {}
        self._swept_s = float("-inf")

    @property
    def folder(self) -> Path:
        """Where all uploads lie."""
        return self._folder

    def begin(self, key: str = "") -> str:
        """A new upload of whoever asks; with a `key`, which a sender makes of all that it sends, the one that they
        began with it before, as long as it is there."""
        if time.monotonic() - self._swept_s > SWEEP_SECONDS:
            self.sweep()
        upload = self._folder / (upload_of(key) if key else uuid.uuid4().hex)
        if self._place is not None:
            quota.begin(self._place, upload.name)
        with writing(upload):
            noted(upload).touch(mode=0o600)
            upload.mkdir(mode=PRIVATE, exist_ok=bool(key))
            own(upload)
            (upload / "files").mkdir(mode=PRIVATE, exist_ok=bool(key))
        self._bytes[upload.name] = self._bytes_of(upload) if key else 0
        return upload.name

    @staticmethod
    def _bytes_of(upload: Path) -> int:
        """What it holds, and what it promised to hold."""
        return _bytes_below(upload / "files") + reserved_bytes(upload)

    def files(self, upload_id: str) -> Path:
        """The folder that holds the files of an upload. Raises QuestionError where there is no such upload."""
        folder = self._folder / upload_id / "files"
        if not ID.fullmatch(upload_id) or not os.path.isdir(folder) or not is_theirs(folder.parent):
            others = self._place is not None and not self._place.store.has_all_uploads
            advice = f"Begin one with POST /api/uploads.{OTHERS if others else ''}"
            raise QuestionError(f"no upload {upload_id[:40]!r}", advice=advice)
        return folder

    def unused(self) -> list[dict[str, Any]]:
        """Uploads that became no run, the newest first: kept for UNUSED_SECONDS since somebody touched them, and to be
        read again. One that may still be arriving is not among them."""
        found = []
        with contextlib.suppress(OSError):
            for upload in [p for p in self._folder.iterdir() if ID.fullmatch(p.name) and is_theirs(p)]:
                touched_s = touched(upload)
                arriving = upload.name in self._bytes and time.time() - touched_s < ARRIVING_SECONDS
                if not arriving and not self._made.run_of(upload) and (files := _files_below(upload / "files")):
                    found.append((touched_s, upload.name, files))
        found.sort(reverse=True)
        return [_unused(*one) for one in found[:UNUSED_LISTED]]

    def arriving(self, upload_id: str) -> int:
        """How many files of an upload are on their way to this server. One of which nothing came for ARRIVING_SECONDS
        is not: its sender may be gone without a word."""
        since_s = time.monotonic() - ARRIVING_SECONDS
        return sum(i == upload_id and last_s > since_s for (i, _), last_s in self._arriving.items())

    def refused(self, upload_id: str) -> str | None:
        """Why the last file of an upload was refused: a browser that still sends may lose the answer that says so."""
        self.files(upload_id)
        return self._refused.get(upload_id)

    def paths(self, upload_id: str) -> list[str]:
        """What `chipledger ingest` is to be given to read an upload: many paths by a file, which a command line would
        not hold."""
        folder = self.files(upload_id)
        there = [str(p) for p in sorted(folder.iterdir())]
        if sum(map(len, there)) < COMMAND_BYTES:
            return ["--", *there]
        listed = folder.with_name(LIST)
        with writing(listed):
            listed.write_text("\n".join(there), encoding="utf-8", errors="surrogateescape")
        return [f"--paths-from={listed}"]

    def priority(self, upload_id: str) -> int:
        """Which jobs the one that reads an upload goes before: of a small one a person waits for the page."""
        return SMALL if _bytes_below(self.files(upload_id)) <= SMALL_BYTES else USUAL

    def discard(self, upload_id: str) -> None:
        """Remove an upload that was given up. Raises InputError where a stored run was made of it, or is being made:
        a run keeps tables, and its inputs may be read anew."""
        upload = self.files(upload_id).parent
        with abandoned(noted(upload), upload, unlocked=True) as free:
            if made := self._made.run_of(upload):  # looked up while nobody can read it into a run
                raise InputError(
                    f"the upload holds the inputs of run {made}",
                    where=upload_id,
                    advice="They are kept as long as the run is.",
                )
            if not free:
                raise InputError("the upload is being read into a run", where=upload_id, advice="Cancel its job first.")
            self._remove(upload)

    def sweep(self) -> None:
        """Remove what a killed server left half written, and uploads that no run was made of and nobody touched."""
        self._swept_s = time.monotonic()
        unseen = long_unseen(self._folder.with_name(SEEN), UNUSED_SECONDS)
        with contextlib.suppress(OSError):
            for left in self._folder.glob(f"*{RUNS}"):  # killed between two steps: nothing else is left of the upload
                if not left.with_suffix("").exists() and time.time() - left.stat().st_mtime > BEGINNING_S:
                    left.unlink(missing_ok=True)
            for upload in [p for p in self._folder.iterdir() if os.path.isdir(p)]:
                if upload.name.endswith(GONE):
                    shutil.rmtree(upload, ignore_errors=True)
                elif ID.fullmatch(upload.name):
                    if unseen:
                        os.utime(upload)  # kept from now on again
                    self._sweep(upload)
        Held(self._folder).sweep()

    def _sweep(self, upload: Path) -> None:
        for partial in upload.glob("*.part"):
            with abandoned(partial, partial) as gone:
                if gone:
                    partial.unlink(missing_ok=True)
        if not noted(upload).exists():  # of an earlier version: nobody noted what was made of it
            return
        if time.time() - touched(upload) > UNUSED_SECONDS and upload.name not in self._waited_for():
            with abandoned(noted(upload), upload) as free:
                if free and not self._made.run_of(upload):
                    self._remove(upload)

    def _waited_for(self) -> set[str]:
        """Uploads that a job reads, or will: where no worker works, one may wait for longer than any is kept."""
        return JobBook(self._place.registry.at).reading() if self._place is not None else set()

    def _remove(self, upload: Path) -> None:
        """At once for whoever looks: a file that is on its way then arrives nowhere."""
        gone = upload.with_name(f"{upload.name}.{uuid.uuid4().hex}{GONE}")  # one of its key may begin anew meanwhile
        with contextlib.suppress(FileNotFoundError):  # somebody else removed it
            upload.rename(gone)
        noted(upload).unlink(missing_ok=True)
        shutil.rmtree(gone, ignore_errors=True)
        self._bytes.pop(upload.name, None)
        self._refused.pop(upload.name, None)

    async def receive(self, upload_id: str, name: str, chunks: AsyncIterator[bytes], announced: int | None) -> int:
        """Stream one file to disk; returns its bytes. The file appears under its name only once it is whole.

        Raises TooLarge (nothing is kept), InputError for an impossible name or one of an input of a stored run,
        QuestionError for no such upload, or one that is discarded meanwhile.
        """
        relative = clean_name(name)
        coming = (upload_id, relative)
        self._arriving[coming] = time.monotonic()
        try:
            return await self._receive(upload_id, relative, chunks, announced)
        finally:
            self._arriving.pop(coming, None)  # or a second try arrived before this one was given up

    async def _receive(
        self, upload_id: str, relative: Path, chunks: AsyncIterator[bytes], announced: int | None
    ) -> int:
        import anyio.to_thread  # the server's alone: the command line, which marks uploads as in use, need not wait

        folder = self.files(upload_id)
        path = folder / relative
        self.keep_inputs(path, folder.parent)
        if upload_id not in self._bytes:  # begun before the server was last started
            self._bytes[upload_id] = self._bytes_of(folder.parent)
        try:
            self._check(upload_id, announced or 0)
            await anyio.to_thread.run_sync(self.admit, announced or 0)
        except (TooLarge, quota.OverQuota) as e:
            self._refused[upload_id] = str(e)
            raise
        partial = folder.with_name(f"{uuid.uuid4().hex}.part")  # beside `files`: half a file is never read as one
        written = replaced = 0
        try:
            for parent in list(relative.parents)[-2::-1]:  # never `folder` itself: it may have been discarded
                (folder / parent).mkdir(mode=PRIVATE, exist_ok=True)
            replaced = path.stat().st_size if os.path.isfile(path) else 0
            with partial.open("xb") as f:
                lock(f)
                async for block in blocks(chunks):
                    written += len(block)
                    self._arriving[upload_id, relative] = time.monotonic()
                    self._add(upload_id, len(block))
                    self._check(upload_id, 0)
                    if announced is None:
                        await anyio.to_thread.run_sync(self.admit, len(block))
                    await anyio.to_thread.run_sync(f.write, block)
            self.keep_inputs(path, folder.parent)  # it may have been read since this began
            partial.replace(path)
        except BaseException as e:  # cancelled and disconnected included: no half file may stay
            self._add(upload_id, -written)
            partial.unlink(missing_ok=True)
            refused = self.refusal(e, upload_id, relative.as_posix()) if isinstance(e, OSError) else e
            if isinstance(refused, InputError) and upload_id in self._bytes:
                self._refused[upload_id] = str(refused)
            if refused is e:
                raise
            raise refused from e
        self._add(upload_id, -replaced)
        self._refused.pop(upload_id, None)
        return written

    def keep_inputs(self, path: Path, upload: Path) -> None:
        """Raises InputError where a stored run was made of the file that another would replace: it may be read anew."""
        if os.path.isfile(path) and (made := self._made.run_of(upload)):
            seen = self._place is not None and self._place.store.kept(made)
            raise InputError(
                f"the file is an input of {f'run {made}' if seen else 'a stored run'}, and stays as it is",
                where=path.name,
                advice="Begin another upload for other files.",
            )

    def refusal(self, error: OSError, upload_id: str, name: str) -> Exception:
        if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
            return InputError("one name is both a file and a folder", where=name)
        if isinstance(error, FileNotFoundError):
            self.files(upload_id)  # raises where the upload was discarded meanwhile
        return InputError(f"cannot be written ({error.strerror})", where=name, advice="Is the disk full?")

    def reserve(self, upload_id: str, n_bytes: int) -> None:
        """Keep room in an upload for a file that will come in pieces. Raises TooLarge."""
        if upload_id not in self._bytes:  # begun before the server was last started
            self._bytes[upload_id] = self._bytes_of(self.files(upload_id).parent)
        self._check(upload_id, n_bytes)
        self._add(upload_id, n_bytes)

    def release(self, upload_id: str, n_bytes: int) -> None:
        """What was reserved, or replaced, takes no room any more."""
        self._add(upload_id, -n_bytes)

    @contextlib.contextmanager
    def on_its_way(self, upload_id: str, relative: Path) -> Iterator[Callable[[], float]]:
        """Within it a file arrives; what it yields is called at each block, and tells the time."""
        coming = (upload_id, relative)

        def tick() -> float:
            self._arriving[coming] = now_s = time.monotonic()
            return now_s

        tick()
        try:
            yield tick
        finally:
            self._arriving.pop(coming, None)

    @contextlib.asynccontextmanager
    async def noting(self, upload_id: str) -> AsyncGenerator[None]:
        """Within it a file of an upload is taken: why it was refused can be asked for until one was taken."""
        try:
            yield
        except InputError as e:
            self._refused[upload_id] = str(e)
            raise
        self._refused.pop(upload_id, None)

    def check_free(self) -> None:
        """Raises TooLarge where the disk has no room to spare."""
        check_free(self._folder, 0)

    def _add(self, upload_id: str, n_bytes: int) -> None:
        if upload_id in self._bytes:  # or it was discarded
            self._bytes[upload_id] += n_bytes

    def admit(self, coming: int) -> None:
        """Raises OverQuota where so many bytes more are too many for whoever asks."""
        if self._place is not None:
            quota.admit(self._place, coming)

    def _check(self, upload_id: str, coming: int) -> None:
        limit = limit_bytes()
        if self._bytes.get(upload_id, 0) + coming > limit:
            raise TooLarge(
                f"more than {size(limit)} in one upload",
                advice=f"Add it on the command line with `chipledger ingest`, or raise ${LIMIT_VARIABLE}.",
            )
        check_free(self._folder, coming)


def _files_below(folder: Path) -> list[tuple[str, int]]:
    """(name, bytes) of the files of an upload."""
    found = []
    for below, _, files in os.walk(folder):
        for file in files:
            path = Path(below) / file
            with contextlib.suppress(OSError):
                found.append((path.relative_to(folder).as_posix(), path.stat().st_size))
    return sorted(found)


def _unused(touched_s: float, upload_id: str, files: list[tuple[str, int]]) -> dict[str, Any]:
    return {
        "upload_id": upload_id,
        "files": len(files),
        "bytes": sum(n for _, n in files),
        "names": [name for name, _ in files[:NAMES_TOLD]],
        "touched_ns": int(touched_s * 1e9),
        "kept_until_ns": int((touched_s + UNUSED_SECONDS) * 1e9),
    }
