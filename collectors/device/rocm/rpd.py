"""Databases of rocmProfileData (`.rpd`, written by `rpdTracerControl` and `runTracer.sh`), and the JSON that its
rpd2tracing makes of one.

Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.sqlite import tells_of

NAME = "rpd"
TITLE = "rocmProfileData database"
HELP = (
    "Databases of rocmProfileData on AMD GPUs (`.rpd`): operations of devices, HIP calls with what each launched, "
    "markers and PyTorch's operators, clocks of devices; and what rpd2tracing makes of one for a viewer."
)
_TABLES = (b"rocpd_op", b"rocpd_api", b"rocpd_api_ops", b"rocpd_kernelapi", b"rocpd_copyapi", b"ext_autogradapi")
_GPU = re.compile(
    rb'"process_name"\s*,\s*"ph"\s*:\s*"M"\s*,\s*"pid"\s*:\s*"\d+"\s*,\s*"args"\s*:\s*\{\s*"name"\s*:\s*"GPU\d'
)
_SIGNS = (b'"Hip ', b'"desc"')


def sniff(source: Source) -> float:
    """0.97 for a database that tells of tables of rocmProfileData (those of rocpd have names like them), and for JSON
    in which devices and threads are named as rpd2tracing names them."""
    head = source.head
    if _is_json(source):
        return 0.97 if _GPU.search(head) and any(sign in head for sign in _SIGNS) else 0.0
    return 0.97 if tells_of(source, _TABLES) else 0.0


def _is_json(source: Source) -> bool:
    return source.head[:64].lstrip()[:1] in (b"[", b"{")


def read(source: Source) -> Iterator[Item]:
    """The database as rows, facts and named losses; memory stays bounded by what devices executed and calls made.

    Raises InputError for a database that cannot be read, and one without events.
    """
    from collectors.device.kineto.reader import Reader
    from collectors.device.rocm.rpd_json import RpdJsonStream
    from collectors.device.rocm.rpd_stream import RpdStream

    if _is_json(source):
        yield from Reader(source, RpdJsonStream(source), NAME).items()
        return
    with RpdStream(source) as stream:
        yield from Reader(source, stream, NAME).items()
        yield from stream.samples()
