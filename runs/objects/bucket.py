"""Objects of a bucket, through fsspec: S3 and what speaks it, Google Cloud Storage, Azure Blob Storage.

What is created only where nothing is there yet goes with the condition that each cloud has for it: `If-None-Match: *`
(S3, Azure) and `ifGenerationMatch=0` (Google), which fsspec calls `mode="create"`.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from errors import InputError
from runs.objects.base import Entry, MissingError
from runs.objects.faults import WITHIN_S, patiently, trouble

A = TypeVar("A")
CONNECT_S, READ_S = 5, 30  # of a server that says nothing
WHOLE_BYTES = 64 << 20  # a larger file goes up in parts, and is whole once they are put together


@dataclass(frozen=True)
class Cloud:
    """A kind of bucket: `package` reads it, `extra` of this project brings that, `options` are those of its file
    system; `read` gives bytes of one of its objects by one request."""

    scheme: str
    package: str
    extra: str
    options: Callable[[], dict[str, Any]]
    read: Callable[[Any, str, int, int | None], bytes]


def _read(fs: Any, place: str, first: int, end: int | None) -> bytes:
    asked = {"start": first} if first or end is not None else {}
    return bytes(fs.cat_file(place, **asked, **({} if end is None else {"end": end})))


def _read_s3(fs: Any, place: str, first: int, end: int | None) -> bytes:
    """`cat_file` of s3fs would look first, and list what is not there."""
    asyn: Any = import_module("fsspec.asyn")
    bucket, _, key = place.partition("/")
    some = first or end is not None
    asked = {"Range": f"bytes={first}-{'' if end is None else max(end - 1, first)}"} if some else {}

    async def got() -> bytes:
        answer = await fs._call_s3("get_object", Bucket=bucket, Key=key, **asked)
        async with answer["Body"] as body:
            return bytes(await body.read())

    return bytes(asyn.sync(fs.loop, got))


def _s3() -> dict[str, Any]:
    retries = {"mode": "standard", "total_max_attempts": 1}  # whether and when it is tried again is told here
    return {"config_kwargs": {"connect_timeout": CONNECT_S, "read_timeout": READ_S, "retries": retries}}


def _gs() -> dict[str, Any]:
    from aiohttp import ClientTimeout

    return {"requests_timeout": ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S)}


def _az() -> dict[str, Any]:
    return {"connection_timeout": CONNECT_S, "read_timeout": READ_S}


CLOUDS = {
    "s3": Cloud("s3", "s3fs", "s3", _s3, _read_s3),
    "gs": Cloud("gs", "gcsfs", "gcs", _gs, _read),
    "az": Cloud("az", "adlfs", "azure", _az, _read),
}


class BucketObjects:
    """Objects below `bucket/prefix`."""

    def __init__(self, cloud: Cloud, place: str):
        self.url, self._place = f"{cloud.scheme}://{place}", place
        if importlib.util.find_spec(cloud.package) is None:
            raise InputError(
                f"a store at {cloud.scheme}:// takes the package {cloud.package}, which is not installed",
                where=self.url,
                advice=f"`pip install 'chipledger[{cloud.extra}]'`.",
            )
        self._cloud = cloud
        self._opened: Any = None

    @property
    def _fs(self) -> Any:
        """Made where it is first asked: it may look for credentials."""
        if self._opened is None:
            fsspec: Any = import_module("fsspec")  # late: a local store does without
            options = {"use_listings_cache": False, "skip_instance_cache": True, **self._cloud.options()}
            self._opened = fsspec.filesystem(self._cloud.scheme, **options)
            self._opened.retries = 1  # of s3fs: whether and when it is tried again is told here
        return self._opened

    def read(self, key: str, first: int = 0, end: int | None = None) -> bytes:
        def act() -> bytes:
            try:
                return self._cloud.read(self._fs, self._at(key), first, end)
            except Exception as e:
                if trouble(e).kind == "beyond":
                    return b""
                raise

        return self._ask(key, act)

    def create(self, key: str, data: bytes) -> bool:
        mine = False

        def act() -> None:
            nonlocal mine
            self._fs.pipe_file(self._at(key), data, mode="create")
            mine = True

        try:
            self._ask(key, act)
        except FileExistsError:
            return self._is(key, data)  # an answer may have been lost on its way, of what was written
        return mine

    def _is(self, key: str, data: bytes) -> bool:
        """Whether what lies there is what was to be written: whoever creates objects makes each one unique."""
        try:
            return self.read(key) == data
        except MissingError:
            return False

    def put(self, key: str, path: Path) -> None:
        if path.stat().st_size <= WHOLE_BYTES:
            data = path.read_bytes()
            self._ask(key, lambda: self._fs.pipe_file(self._at(key), data))
        else:
            self._ask(key, lambda: self._fs.put_file(str(path), self._at(key)), within_s=3600.0)

    def copy(self, key: str, to: str) -> None:
        self._ask(key, lambda: self._fs.cp_file(self._at(key), self._at(to)), within_s=3600.0)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                self._ask(key, lambda key=key: self._fs.rm_file(self._at(key)))
            except MissingError:
                continue

    def entries(self, below: str) -> Iterator[Entry]:
        try:
            found = self._ask(below, lambda: self._fs.find(self._at(below), detail=True))
        except MissingError:
            return
        for place, told in found.items():
            key = str(place).removeprefix(f"{self._place}/")
            yield Entry(key, int(told.get("size") or 0), _modified_s(told))

    def asked(self, act: Callable[[Any], A]) -> A:
        """What `act` gives of the file system of this cloud, which it lists with."""
        try:
            return patiently(lambda: act(self._fs), self.url)
        except MissingError as e:
            raise FileNotFoundError(self.url) from e

    def _at(self, key: str) -> str:
        return f"{self._place}/{key}"

    def _ask(self, key: str, act: Callable[[], A], within_s: float = WITHIN_S) -> A:
        return patiently(act, f"{self.url}/{key}", within_s=within_s)


def _modified_s(told: dict[str, Any]) -> float:
    """When an object was written, as its listing tells; 0 where it does not."""
    for name in ("LastModified", "mtime", "last_modified", "updated", "created"):
        when: Any = told.get(name)
        if hasattr(when, "timestamp"):
            return float(when.timestamp())
        if isinstance(when, int | float):
            return float(when)
        if isinstance(when, str):
            from datetime import datetime

            return datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()
    return 0.0
