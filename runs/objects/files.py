"""The files of a run whose objects lie elsewhere: fetched when they are first needed, held to what was written."""

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from errors import InputError
from runs.integrity import AGAIN, Files, Mark
from runs.objects.base import DifferentError, MissingError, Objects
from runs.objects.cache import Cache, whole
from runs.objects.opening import objects_at


def files_told(folder: Path, marks: Mapping[str, Mark | None], place: Mapping[str, Any]) -> Files:
    """In another process of this machine: the files that `FetchedFiles.place` told of."""
    kept = Cache(Path(place["cache"]), place["most_bytes"])
    return FetchedFiles(folder, marks, str, objects=objects_at(place["url"]), cache=kept, below=place["below"])


class FetchedFiles(Files):
    """`below`: the key below which the files of this writing of the run lie."""

    def __init__(
        self,
        folder: Path,
        marks: Mapping[str, Mark | None],
        moved: Callable[[], str],
        *,
        objects: Objects,
        cache: Cache,
        below: str,
        online: bool = True,
    ):
        super().__init__(folder, marks, moved)
        self._objects, self._cache, self._below, self._online = objects, cache, below, online

    def whole(self, relative: str) -> Path | None:
        if relative not in self.marks:
            return None
        self._fetched(relative, self._known(relative))
        try:
            return super().whole(relative)
        except InputError:  # damaged here: what lies there is asked for again, once
            if self._moved():
                raise
            self._cache.drop(self._local(relative))
        self._fetched(relative, self._known(relative))
        return super().whole(relative)

    @contextmanager
    def held(self, relative: str) -> Generator[Path | None]:
        if relative not in self.marks:
            yield None
            return
        known = self._known(relative)
        self.whole(relative)
        with self._cache.reading(self._local(relative), known, self._piece(relative)) as path:
            yield path

    def place(self) -> dict[str, Any]:
        kept = {"cache": str(self._cache.root), "most_bytes": self._cache.most_bytes}
        return {"url": self._objects.url, "below": self._below, **kept}

    def state(self, below: str) -> tuple[Hashable, ...]:
        """An object never changes: which writing of the run it is tells all."""
        return str(self.folder), self._below, below

    def look(self) -> Iterator[InputError]:
        """Nothing is asked of the network; what is missing there is told by who needs it, and by `verify`."""
        return iter(())

    def verify(self) -> Iterator[InputError]:
        """What was fetched is read through; of all else is asked whether it lies there, as long as it should be."""
        for relative in sorted(self.marks):
            here = (self.folder / relative).is_file()
            if problem := self._changed(relative) if here else self._amiss(relative):
                if here:  # it is fetched again
                    self._cache.drop(self._local(relative))
                    problem = self._amiss(relative)
                if problem:
                    yield self._wrong(relative, problem)

    def _amiss(self, relative: str) -> str:
        """What a look at an object finds; empty where it cannot be looked at from here."""
        known = self._known(relative)
        if not self._online:
            return ""
        try:
            end = self._piece(relative)(max(known.bytes - 1, 0), known.bytes + 1)
        except MissingError:
            return "is missing"
        return "" if len(end) == min(known.bytes, 1) else f"is not of the {known.bytes:,} bytes that were written"

    def verify_there(self) -> Iterator[InputError]:
        for relative in sorted(self.marks):
            try:
                whole(self._known(relative), self._piece(relative), lambda data: None)
            except MissingError:
                yield self._wrong(relative, "is missing")
            except DifferentError as e:
                yield self._wrong(relative, e.reason)

    def bytes_there(self) -> int | None:
        return sum(known.bytes for known in self.marks.values() if known)

    def _known(self, relative: str) -> Mark:
        known = self.marks[relative]
        if known is None:
            raise self.error(relative, "nobody knows what it was")
        return known

    def _fetched(self, relative: str, known: Mark) -> None:
        for last in (False, True):
            try:
                self._cache.file(self._local(relative), known, self._piece(relative))
                return
            except DifferentError as e:
                if last:
                    raise self._wrong(relative, e.reason) from e
            except MissingError as e:
                raise self._wrong(relative, "is missing") from e

    def _wrong(self, relative: str, problem: str) -> InputError:
        if moved := self._moved():
            return InputError(moved, where=self.folder.name, advice="Ask again.")
        return InputError(problem, where=f"{self._objects.url}/{self._below}/{relative}", advice=AGAIN)

    def _local(self, relative: str) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}/{relative}"

    def _piece(self, relative: str) -> Callable[[int, int], bytes]:
        key = f"{self._below}/{relative}"
        return lambda first, end: self._objects.read(key, first, end)
