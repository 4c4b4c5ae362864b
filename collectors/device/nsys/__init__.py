"""Exports of Nsight Systems (`nsys export --type sqlite`), of any version: the same tables as of a PyTorch trace.

Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

from collections.abc import Iterator

from collectors.base import Item, Source
from errors import InputError

NAME = "nsys"
HELP = (
    "Exports of Nsight Systems (`nsys export --type sqlite`): kernels, copies, CUDA calls, NVTX ranges as steps and "
    "modules, what the profiler itself lost."
)
_SQLITE, _REPORT = b"SQLite format 3\x00", b"NVIDIA Tegra Profiler Report"
_TABLES = (
    b"CUPTI_ACTIVITY_KIND_",
    b"StringIds",
    b"TARGET_INFO_SESSION_START_TIME",
    b"NVTX_EVENTS",
    b"META_DATA_EXPORT",
)


def sniff(source: Source) -> float:
    """0.95 for a database that tells of tables of Nsight Systems, or its own report, which is refused by name."""
    head = source.head
    if head.startswith(_REPORT):
        return 0.95
    return 0.95 if head.startswith(_SQLITE) and any(name in head for name in _TABLES) else 0.0


def read(source: Source) -> Iterator[Item]:
    """The export as rows, facts and named losses; memory stays bounded whatever the number of rows.

    Raises InputError for a report that was not exported, a database that cannot be read, and one without events.
    """
    if source.head.startswith(_REPORT):
        raise InputError(
            "a report of Nsight Systems, which only Nsight Systems itself can read",
            where=source.name,
            expected="its export",
            advice="Run `nsys export --type sqlite FILE.nsys-rep` and ingest the .sqlite file that it writes",
        )
    from collectors.device.kineto.reader import Reader
    from collectors.device.nsys.stream import NsysStream

    with NsysStream(source) as stream:
        yield from Reader(source, stream, NAME).items()
        yield from stream.evidence()
