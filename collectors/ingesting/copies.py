"""Which files hold the same once they are unpacked: a file beside its own gzip, and one that was packed twice."""

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Sequence

from collectors.base import HEAD_BYTES
from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.folders import AnswerFolder
from collectors.ingesting.unpack import SafeSource, unpacked_digest
from collectors.reading.as_far import BROKEN, AsFar
from errors import InputError

_PIECE = 1 << 20
_LEAST = 512  # bytes of a file that was cut off by which others are chosen that it may be the beginning of


def contents(
    sources: Sequence[SafeSource], digests: Sequence[str], check: Callable[[], None]
) -> tuple[list[str], dict[int, int]]:
    """The SHA-256 of what each file holds, unpacked. A gzipped one that begins as no other does (in a bucket: that is
    called as no other), or that cannot be unpacked to its end, keeps that of its packed bytes. And of those that were
    cut off which other file each is the beginning of, by place. `check` may raise.

    The length and sum at the end of a gzip file are those of its last member alone: it is unpacked to know."""
    here = [None if isinstance(source, FarSource) else SafeSource(source.path, source.name) for source in sources]
    single = [source is not None and not isinstance(of, AnswerFolder) for of, source in zip(sources, here, strict=True)]
    packed = [one and source is not None and _packed(source) for one, source in zip(single, here, strict=True)]
    heads = [_head(source) if source is not None and any(packed) else b"" for source in here]
    alike, far = Counter(heads), None in here
    found: list[str] = []
    cut: list[int] = []
    for source, local, digest, gzipped, head in zip(sources, here, digests, packed, heads, strict=True):
        if isinstance(source, FarSource):
            digest = source.looked.unpacked or digest
        elif local is not None and gzipped and (far or not head or alike[head] > 1):
            unpacked = unpacked_digest(local, check)
            digest = unpacked or digest
            cut += [] if unpacked else [len(found)]
        found.append(digest)
    return found, _beginnings(cut, here, check)


def _beginnings(cut: Sequence[int], sources: Sequence[SafeSource | None], check: Callable[[], None]) -> dict[int, int]:
    """Which other file each of those that were cut off is the beginning of. One of less than _LEAST is no matter."""
    whole: dict[bytes, list[int]] = {}
    for m in sorted({*range(len(sources))} - {*cut}) if cut else ():
        if (other := sources[m]) is not None:
            whole.setdefault(_first(other), []).append(m)
    found: dict[int, int] = {}
    for n in cut:
        if (short := sources[n]) is not None and len(first := _first(short)) == _LEAST:
            others = ((m, other) for m in whole.get(first, ()) if (other := sources[m]) is not None)
            found |= next(({n: m} for m, other in others if _begins(other, short, check)), {})
    return found


def _first(source: SafeSource) -> bytes:
    """The first _LEAST bytes of what a file holds, or as many of them as can be had."""
    try:
        with source.binary() as f:
            return io.BufferedReader(AsFar(f)).read(_LEAST)
    except (*BROKEN, InputError):
        return b""


def _begins(whole: SafeSource, short: SafeSource, check: Callable[[], None]) -> bool:
    """Whether what one file holds begins with what can be unpacked of another."""
    try:
        with whole.binary() as f, short.binary() as g:
            there = AsFar(g, (EOFError,))
            pieces = io.BufferedReader(there, _PIECE)
            while piece := pieces.read(_PIECE):
                check()
                if f.read(len(piece)) != piece:
                    return False
            return bool(there.why)
    except (*BROKEN, InputError):
        return False


def _packed(source: SafeSource) -> bool:
    try:
        return source.gzipped
    except OSError:  # gone meanwhile, which is told where it is read
        return False


def _head(source: SafeSource) -> bytes:
    """What stands for the first bytes of what a file holds; empty where they cannot be had."""
    try:
        with source.binary() as f:
            return hashlib.sha256(f.read(HEAD_BYTES)).digest()
    except (*BROKEN, InputError):
        return b""
