"""Which files hold the same once they are unpacked: a file beside its own gzip, and one that was packed twice."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from collectors.base import HEAD_BYTES
from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.unpack import BROKEN, SafeSource, unpacked_digest
from errors import InputError


def contents(sources: Sequence[SafeSource], digests: Sequence[str], check: Callable[[], None]) -> list[str]:
    """The SHA-256 of what each file holds, unpacked. A gzipped one that begins as no other does (in a bucket: that is
    called as no other), or that cannot be unpacked to its end, keeps that of its packed bytes. `check` may raise.

    The length and sum at the end of a gzip file are those of its last member alone: it is unpacked to know."""
    here = [None if isinstance(source, FarSource) else SafeSource(source.path, source.name) for source in sources]
    packed = [source is not None and _packed(source) for source in here]
    heads = [_head(source) if source is not None and any(packed) else b"" for source in here]
    alike, far = Counter(heads), None in here
    found: list[str] = []
    for source, local, digest, gzipped, head in zip(sources, here, digests, packed, heads, strict=True):
        if isinstance(source, FarSource):
            digest = source.looked.unpacked or digest
        elif local is not None and gzipped and (far or alike[head] > 1):
            digest = unpacked_digest(local, check) or digest
        found.append(digest)
    return found


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
