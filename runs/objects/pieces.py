"""A file of a bucket read from its beginning to its end: pieces that are asked for ahead, each again where the network
stops. Whoever reads files where they lie opens them here: `opener("s3")("bucket/run/host-1.json.gz", length)`."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from errors import InputError
from runs.objects.base import PIECE_BYTES, MissingError, Objects
from runs.objects.opening import objects_at

AHEAD = 4  # pieces of a file that are asked for at once


class Pieces:
    """Reads `key` from the first byte to the last. `bytes`: its length, as a listing told it; a file that is shorter
    or longer by now was written to meanwhile, and is an InputError."""

    def __init__(self, objects: Objects, key: str, n_bytes: int):
        self._objects, self._key, self.bytes = objects, key, n_bytes
        self._pool = ThreadPoolExecutor(AHEAD)
        self._coming: deque[Future[bytes]] = deque()
        self._next = 0
        self._ask(1)  # of a file that is opened before its turn

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read(self, most: int = PIECE_BYTES) -> bytes:
        """The next bytes, a piece at most; empty at the end."""
        if not self._coming:
            return b""
        try:
            data = self._coming.popleft().result()
        except MissingError as e:
            raise InputError("no such file there any more", where=self._where) from e
        self._ask(AHEAD)
        return data

    @property
    def _where(self) -> str:
        return f"{self._objects.url}/{self._key}"

    def _ask(self, most: int) -> None:
        while self._next < self.bytes and len(self._coming) < most:
            first, end = self._next, min(self._next + PIECE_BYTES, self.bytes)
            self._coming.append(self._pool.submit(self._piece, first, end))
            self._next = end

    def _piece(self, first: int, end: int) -> bytes:
        last = end == self.bytes
        data = self._objects.read(self._key, first, end + last)  # a byte more than there should be
        if len(data) != end - first:
            raise InputError(
                f"is no longer of the {self.bytes:,} bytes that were listed",
                where=self._where,
                advice="It was written to meanwhile: ask again once it is complete.",
            )
        return data


def opener(scheme: str) -> Callable[[str, int], Pieces]:
    """Opens `bucket/key` of so many bytes."""
    buckets: dict[str, Objects] = {}

    def opened(place: str, n_bytes: int) -> Pieces:
        bucket, _, key = place.partition("/")
        if bucket not in buckets:
            buckets[bucket] = objects_at(f"{scheme}://{bucket}")
        return Pieces(buckets[bucket], key, n_bytes)

    return opened
