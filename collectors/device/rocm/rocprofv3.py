"""JSON of rocprofv3 (`--output-format json`), and its other files that cannot be read, each refused by name.

Only what recognising a file needs is imported here; `read` imports the rest, which brings Numba.
"""

from collections.abc import Iterator

from collectors.base import Item, Source
from errors import InputError

NAME = "rocprofv3"
TITLE = "rocprofv3 JSON"
HELP = (
    "JSON of rocprofv3 on AMD GPUs (`--output-format json`): kernels, copies, HIP, HSA and RCCL calls with what each "
    "launched, ROCTX ranges as steps and modules."
)
_KEY = b'"rocprofiler-sdk-tool"'
_PERFETTO, _OTF2 = (".pftrace", ".perfetto-trace"), (".otf2",)


def sniff(source: Source) -> float:
    """0.97 for JSON that begins as rocprofv3's does; 0.9 for traces of other viewers, which are refused by name."""
    head = source.head[:4096].lstrip()
    if head[:1] == b"{" and _KEY in head:
        return 0.97
    return 0.9 if _other(source) else 0.0


def _other(source: Source) -> str:
    """What a file for another viewer is; empty where it is none."""
    name, head = source.name.lower().removesuffix(".gz"), source.head
    if name.endswith(_PERFETTO) and head[:1] == b"\n":  # the tag of a packet, with which each of its messages begins
        return "a trace for the viewer Perfetto"
    return "an archive of OTF2" if name.endswith(_OTF2) and b"\0" in head else ""


def read(source: Source) -> Iterator[Item]:
    """The profile as rows, facts and named losses; memory stays bounded by what devices executed and calls made.

    Raises InputError for a profile without events, and for a trace of another kind.
    """
    if other := _other(source):
        raise InputError(
            f"{other}, which is not read",
            where=source.name,
            expected="the profile itself: `*_results.db` or `*_results.json` of rocprofv3",
            advice="Ingest the database that lies beside it, or profile with `rocprofv3 --output-format rocpd`",
        )
    from collectors.device.kineto.reader import Reader
    from collectors.device.rocm.rocprofv3_stream import Rocprofv3Stream

    with Rocprofv3Stream(source) as stream:
        yield from Reader(source, stream, NAME).items()
