"""Exports of Nsight Systems (`nsys export --type sqlite` or `parquetdir`), of any version: the same tables as of a
PyTorch trace.

Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.ingesting.folders import TableFolder
from collectors.reading.sqlite import tells_of
from errors import InputError

NAME = "nsys"
TITLE = "Nsight Systems export"
HELP = (
    "Exports of Nsight Systems (`nsys export --type sqlite` or `--type parquetdir`): kernels, copies, CUDA calls, NVTX "
    "ranges as steps and modules, metrics, power and temperature of GPUs, what the profiler itself lost."
)
_REPORT = b"NVIDIA Tegra Profiler Report"
_TABLES = (
    b"CUPTI_ACTIVITY_KIND_",
    b"StringIds",
    b"TARGET_INFO_SESSION_START_TIME",
    b"NVTX_EVENTS",
    b"META_DATA_EXPORT",
)


def sniff(source: Source) -> float:
    """0.95 for a database or a folder that tells of tables of Nsight Systems, or its own report, which is refused by
    name."""
    head = source.head
    if isinstance(source, TableFolder) or head.startswith(_REPORT):
        return 0.95
    return 0.95 if tells_of(source, _TABLES) else 0.0


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
        yield from stream.besides()
