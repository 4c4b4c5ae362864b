"""How a program is kept with a run: as it came, packed, under a name made of what it holds.

Captures of a job carry the same programs again: those that are the same to the last byte are one file, whichever of its
hosts or workers brought them.
"""

import hashlib

import pyarrow as pa

from collectors.base import Blob


def kept(proto: bytes) -> Blob:
    """An HloProto as a file of the run."""
    name = hashlib.sha256(proto).hexdigest()[:32]
    return Blob(f"hlo/{name}.pb.zst", pa.Codec("zstd").compress(proto, asbytes=True))
