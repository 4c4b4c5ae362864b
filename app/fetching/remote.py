"""Files of buckets and web servers, streamed to an upload of the store and then read like any other upload."""

import http.client
import importlib.util
import urllib.request
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from app.fetching.addresses import WEB, Address, within
from app.serve.blocks import lock
from app.serve.upload_names import clean_name
from app.serve.upload_room import SPARE_BYTES, free_bytes, limit_bytes
from app.serve.uploads import Uploads
from collectors.ingesting.far.files import FarFile
from collectors.ingesting.gather import MAX_FILES, shown
from collectors.ingesting.told import FileTold, Tell
from errors import ChipledgerError, InputError
from errors.format import size
from runs.durable import writing
from runs.objects.bucket import CLOUDS, BucketObjects
from runs.objects.pieces import opener as opener_of

CHUNK = 1 << 22
AHEAD = 8
FETCHING = "Fetching"
TIMEOUT_S = 60.0  # of a web server that says nothing

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class There:
    """A file there. `name`: below what was asked for; `bytes`: 0 where nobody says."""

    place: str
    name: str
    bytes: int


@dataclass(frozen=True)
class _Place:
    """`ahead`: of so many files the beginning is asked for before their turn: many small ones would else each be
    waited for."""

    files: list[There]
    open: Callable[[There], Any]
    ahead: int = 0


def fetch(
    one: Address,
    prefixes: tuple[Address, ...] | None,
    uploads: Uploads,
    progress: Progress,
    tell: Tell | None,
    check: Callable[[], None],
) -> Path:
    """The folder with the files of an address. Raises InputError, with nothing kept, where there is none, they are more
    than an upload may hold, or one cannot be read."""
    place = _opened(one, prefixes)
    _fitting(one, place.files, uploads)
    upload = uploads.begin()
    try:
        _all(place, uploads.files(upload), progress, tell or (lambda file: None), check)
    except BaseException:
        uploads.discard(upload)
        raise
    return uploads.files(upload)


def listed(one: Address, prefixes: tuple[Address, ...] | None) -> list[FarFile]:
    """The files of a bucket that an address means, under the names that `fetch` would give them. Raises InputError
    where there is none."""
    files = _opened(one, prefixes).files
    _some(one, files)
    names = {file: shown(clean_name(file.name).as_posix()) for file in files}
    return [FarFile(scheme=one.scheme, place=f.place, name=name, bytes=f.bytes) for f, name in names.items()]


def _opened(one: Address, prefixes: tuple[Address, ...] | None) -> _Place:
    if one.scheme in WEB:
        opener = urllib.request.build_opener(*([] if prefixes is None else [_Stays()]))
        name = PurePosixPath(one.rest.partition("?")[0]).name or one.name
        return _Place([There(str(one), name, 0)], lambda file: opener.open(file.place, timeout=TIMEOUT_S))
    if one.package and importlib.util.find_spec(one.package) is None:
        raise InputError(
            f"reading {one.scheme}:// takes the package {one.package}, which is not installed",
            where=str(one),
            advice=f"`pip install {one.package}`, or copy the files and give them as a folder.",
        )
    with _said(str(one)):
        if one.scheme in CLOUDS:
            found = BucketObjects(CLOUDS[one.scheme], one.rest).asked(lambda fs: _found(fs, one))
            pieces = opener_of(one.scheme)
            return _Place(list(_there(one, found, prefixes)), lambda file: pieces(file.place, file.bytes), AHEAD)
        import fsspec

        fs = fsspec.filesystem(one.scheme)
        return _Place(list(_there(one, _found(fs, one), prefixes)), lambda file: fs.open(file.place, "rb"))


class _Stays(urllib.request.HTTPRedirectHandler):
    """A server that leads elsewhere is not followed: the operator named where to read from."""

    def redirect_request(self, *given: Any, **named: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - whatever it is called with
        return None


def _found(fs: Any, one: Address) -> dict[str, dict[str, Any]]:
    return {str(info["name"]): info for info in _infos(fs, one)}


def _infos(fs: Any, one: Address) -> Iterator[dict[str, Any]]:
    """What a file system says of each file that is meant."""
    heads = list(fs.glob(one.rest, detail=True).values()) if one.is_pattern else [fs.info(one.rest)]
    for head in heads:
        if head.get("type") == "directory":
            yield from fs.find(head["name"], detail=True).values()
        else:
            yield head


def _there(one: Address, found: dict[str, dict[str, Any]], prefixes: tuple[Address, ...] | None) -> Iterator[There]:
    base = one.base
    for place, info in sorted(found.items()):
        parts = tuple(part for part in place.split("/") if part)
        outside = prefixes is not None and not within(Address(one.scheme, "/".join(parts)), prefixes)
        inner = parts[len(base) :] or parts[-1:]
        if not outside and not place.endswith("/") and not any(part.startswith(".") for part in inner):
            yield There(place, "/".join(inner), int(info.get("size") or 0))


def _fitting(one: Address, there: list[There], uploads: Uploads) -> None:
    """Raises InputError where there is nothing, or too much."""
    _some(one, there)
    total, most = sum(file.bytes for file in there), limit_bytes()
    if total > most:
        raise InputError(f"{size(total)}, and an upload holds {size(most)}", where=str(one), advice="Give fewer files.")
    if total > free_bytes(uploads.folder) - SPARE_BYTES:
        raise InputError(f"{size(total)} do not fit on the disk of this store", where=str(one))


def _some(one: Address, there: list[There]) -> None:
    if not there:
        raise InputError("no file is there", where=str(one), expected="a file, a folder with files, or a pattern")
    if len(there) > MAX_FILES:
        raise InputError(f"more than {MAX_FILES:,} files", where=str(one), advice="Give one run's folder.")


def _all(
    place: _Place,
    folder: Path,
    progress: Progress,
    tell: Tell,
    check: Callable[[], None],
) -> None:
    total, done, most = sum(file.bytes for file in place.files), 0, limit_bytes()
    for file in place.files:
        tell(FileTold(file.name, file.bytes, state="waiting"))
    for file, opened in _ahead(place):
        came = 0
        with _said(file.name), opened() as source, _Arriving(folder, file.name) as out:
            while chunk := source.read(CHUNK):
                check()
                came += len(chunk)
                if done + came > most:
                    raise InputError(f"more than {size(most)}, which is what an upload holds", where=file.name)
                out.write(chunk)
                tell(FileTold(file.name, max(came, file.bytes), state="fetching", progress=_part(came, file.bytes)))
                progress(done + came, max(total, done + came + 1), f"{FETCHING} {file.name}")
            _whole(source)
        done += came
        tell(FileTold(file.name, came, state="waiting"))


def _whole(source: Any) -> None:
    """Raises ConnectionError where a web server announced more than came: reading ends there as at a file's end."""
    if isinstance(source, http.client.HTTPResponse) and source.length:
        raise ConnectionError(f"the connection ended {size(source.length)} before the file did")


def _ahead(place: _Place) -> Iterator[tuple[There, Callable[[], Any]]]:
    """Each file with what opens it, some opened before their turn."""
    coming: deque[tuple[There, Any]] = deque()
    rest = iter(place.files)
    try:
        while True:
            while len(coming) <= place.ahead and (file := next(rest, None)) is not None:
                coming.append((file, place.open(file) if place.ahead else None))
            if not coming:
                return
            file, begun = coming.popleft()
            yield file, partial(_begun, place, file, begun)
    finally:
        for _, begun in coming:
            if begun is not None:
                begun.__exit__()


def _begun(place: _Place, file: There, begun: Any) -> Any:
    return place.open(file) if begun is None else begun


class _Arriving:
    """A file on its way: it has its name once it is whole, and nothing is left of it otherwise."""

    def __init__(self, folder: Path, name: str):
        self._path = folder / clean_name(name)
        self._partial = folder.with_name(f"{uuid.uuid4().hex}.part")

    def __enter__(self) -> IO[bytes]:
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self._partial.open("xb")
        lock(self._file)
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._file.close()
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)


def _part(came: int, whole: int) -> float | None:
    return round(min(came / whole, 1.0), 3) if whole else None


@contextmanager
def _said(where: str) -> Iterator[None]:
    """Whatever a library raises of what is there, in one sentence: each cloud has errors of its own."""
    try:
        yield
    except ChipledgerError:
        raise
    except FileNotFoundError as e:
        raise InputError("no such file or folder there", where=where) from e
    except OSError as e:
        why = e.strerror or str(e)[:200] or type(e).__name__
        raise InputError(f"cannot be fetched ({why})", where=where, advice="Is it there, and is the disk full?") from e
    except Exception as e:
        why = (str(e).splitlines() or [""])[0][:200]
        raise InputError(
            f"cannot be read ({type(e).__name__}{f': {why}' if why else ''})",
            where=where,
            advice="Does it exist, and may this machine's own credentials read it?",
        ) from e
