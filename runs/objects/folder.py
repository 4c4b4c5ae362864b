"""Objects as files of a folder that several machines may share: `file:///shared/chipledger`."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from errors import InputError
from runs.durable import PRIVATE, sync
from runs.objects.base import COMING, Entry, MissingError


class FolderObjects:
    """A file is given its name by a link, which fails where the name is taken: of several writers one wins, and none
    sees half a file. Raises InputError where the folder above it is not there: a disk that is not mounted is no empty
    store."""

    def __init__(self, root: Path):
        self.root = root
        self.url = f"file://{root}"
        self._coming = root / COMING

    def read(self, key: str, first: int = 0, end: int | None = None) -> bytes:
        with self._said(key), (self.root / key).open("rb") as f:
            f.seek(first)
            return f.read(-1 if end is None else max(end - first, 0))

    def create(self, key: str, data: bytes) -> bool:
        with self._said(key), self._written(key) as (partial, target):
            partial.write_bytes(data)
            sync(partial)
            try:
                os.link(partial, target)
            except FileExistsError:
                return False
            sync(target.parent)
        return True

    def put(self, key: str, path: Path) -> None:
        with self._said(key), self._written(key) as (partial, target):
            shutil.copyfile(path, partial)
            sync(partial)
            partial.replace(target)
            sync(target.parent)

    def copy(self, key: str, to: str) -> None:
        with self._said(key), self._written(to) as (partial, target):
            os.link(self.root / key, partial)  # neither is ever written to
            partial.replace(target)
            sync(target.parent)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            with self._said(key):
                (self.root / key).unlink(missing_ok=True)

    def entries(self, below: str) -> Iterator[Entry]:
        with self._said(below):
            for folder, _, files in os.walk(self.root / below):
                for file in files:
                    path = Path(folder, file)
                    with contextlib.suppress(FileNotFoundError):
                        told = path.stat()
                        yield Entry(path.relative_to(self.root).as_posix(), told.st_size, told.st_mtime)

    @contextlib.contextmanager
    def _written(self, key: str) -> Generator[tuple[Path, Path]]:
        """(a file without a name, the name that it is to have)."""
        if not self.root.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory", str(self.root.parent))
        self._coming.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        partial, target = self._coming / uuid.uuid4().hex, self.root / key
        target.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        try:
            yield partial, target
        finally:
            partial.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _said(self, key: str) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as e:
            if not self.root.parent.is_dir():
                raise InputError(
                    "the folder of this store is gone", where=self.url, advice="Is its disk mounted?"
                ) from e
            raise MissingError(key) from e
        except OSError as e:
            raise InputError(
                f"cannot be read or written ({e.strerror or type(e).__name__})",
                where=f"{self.url}/{key}",
                advice="May this user read and write there, and is the disk full?",
            ) from e
