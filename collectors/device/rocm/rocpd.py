"""Databases of rocprofv3 (`--output-format rocpd`, the default since ROCm 7), of one process or of several merged.

Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.sqlite import tells_of

NAME = "rocpd"
TITLE = "rocprofv3 database"
HELP = (
    "Databases of rocprofv3 on AMD GPUs (`*_results.db`, the default since ROCm 7): kernels, copies, HIP, HSA and RCCL "
    "calls with what each launched, ROCTX ranges as steps and modules, and of the environment settings that cost."
)
_TABLES = (b"rocpd_info_", b"rocpd_kernel_dispatch", b"rocpd_region", b"rocpd_memory_copy", b"rocpd_memory_allocate")


def sniff(source: Source) -> float:
    """0.95 for a database that tells of tables of rocpd."""
    return 0.95 if tells_of(source, _TABLES) else 0.0


def read(source: Source) -> Iterator[Item]:
    """The database as rows, facts and named losses; memory stays bounded by what devices executed and calls made.

    Raises InputError for a database that cannot be read, and one without events.
    """
    from collectors.device.kineto.reader import Reader
    from collectors.device.rocm.rocpd_stream import RocpdStream

    with RocpdStream(source) as stream:
        yield from Reader(source, stream, NAME).items()
        yield from stream.besides()
