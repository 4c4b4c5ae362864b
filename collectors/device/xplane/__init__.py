"""XPlane traces (`*.xplane.pb`, `*.xplane.riegeli`) of JAX, TensorFlow and PyTorch/XLA on TPU, GPU and CPU.

Only what recognising a file needs is imported here; `read` and `prepare` import the rest, which brings Numba.
"""

import gc
import gzip
import io
import re
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from collectors.base import Item, Lost, Source
from collectors.device.xplane.riegeli import SIGNATURE
from errors import InputError
from runs.absent import absent

if TYPE_CHECKING:
    from collectors.device.xplane.planes import SpaceIndex

NAME = "xplane"
TITLE = "XPlane profile"
HELP = (
    "Profiles that jax.profiler, TensorFlow or PyTorch/XLA write (`<host>.xplane.pb`, `.xplane.riegeli` by continuous "
    "profiling): every operation of every device and host thread, compiled programs, steps, collectives."
)
UNPACKED_LIMIT_BYTES = 1 << 35  # a gzipped trace that unpacks to more than 32 GiB is refused
_CHUNK = 1 << 20
_HEAD = 1 << 16
_NAMED = re.compile(r"\.xplane\.(?:pb|riegeli)(?:\.gz)?$")
_REPLACEMENT = b"\xef\xbf\xbd"  # U+FFFD, what a text filter puts in place of bytes that are not UTF-8


def sniff(source: Source) -> float:
    """1 for a file that begins as an XSpace with a plane; 0.9 for one that did before a text filter mangled it, and for
    one of records, which may be of something else, or that is empty, if its name is a profile's."""
    head = source.head
    if head[:8] == SIGNATURE[:8] or not head:
        return 0.9 if _NAMED.search(source.name) else 0.0
    if _mangled(head) is not None and (b"/device:" in head or b"/host:" in head):
        return 0.9
    if head[:1] not in (b"\x0a", b"\x12", b"\x1a", b"\x22"):
        return 0.0
    for name in (b"/host:", b"/device:", b"Task Environment"):
        at = head.find(name)
        # A plane's name is field 2 with a short length before it.
        if at >= 2 and head[at - 2] == 0x12 and len(name) <= head[at - 1] < 128:
            return 1.0
    return 0.6 if _NAMED.search(source.name) else 0.0


def _mangled(head: bytes) -> int | None:
    """Offset of the first sign that a text filter went over a binary file; None where there is none."""
    at = head.find(_REPLACEMENT)
    if at < 0 or head.count(_REPLACEMENT) < 8:
        return None
    try:
        head[: len(head) - 4].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 8:
            return None  # bytes that are not UTF-8 survived, so no filter replaced them
    return at


@contextmanager
def _opened(source: Source, lost: list[Lost]) -> Iterator[BinaryIO]:
    """The content as a seekable file; a gzipped one is unpacked to a temporary file first."""
    if not source.gzipped:
        with source.binary() as file:
            yield file
        return
    with tempfile.TemporaryFile(prefix="chipledger-") as file:
        done = 0
        try:
            with source.binary() as packed:
                while chunk := packed.read1(_CHUNK):  # type: ignore[attr-defined]  # keeps what precedes a fault
                    done += len(chunk)
                    if done > UNPACKED_LIMIT_BYTES:
                        raise InputError(
                            f"unpacks to more than {UNPACKED_LIMIT_BYTES >> 30} GiB",
                            where=source.name,
                            advice="Profile fewer steps",
                        )
                    _store(file, chunk, source)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if not done:
                raise InputError(f"a gzip archive that cannot be unpacked ({error})", where=source.name) from error
            lost.append(Lost("the rest of the gzip archive", str(error), done))
        yield file


def _store(file: BinaryIO, chunk: bytes, source: Source) -> None:
    try:
        file.write(chunk)
    except OSError as error:
        raise InputError(f"no room to unpack it ({error.strerror})", where=source.name) from error


def read(source: Source) -> Iterator[Item]:
    """The trace as rows, facts, HLO blobs and named losses; memory stays bounded whatever the size of the file.

    Raises InputError for a file that is no XSpace, or of which no plane can be read.
    """
    lost: list[Lost] = []
    with _opened(source, lost) as file:
        file.seek(0)
        head = file.read(_HEAD)
        _check_head(source, head)
        prepare()
        if head.startswith(SIGNATURE[:8]):
            yield from _read_records(source, file, lost)
        else:
            yield from read_space(source, file, lost)


def _read_records(source: Source, file: BinaryIO, lost: list[Lost]) -> Iterator[Item]:
    """The trace of a file of records, each a space of its own, as one: unpacked to a temporary file first."""
    from collectors.device.xplane.riegeli.records import Record, unpack

    parts: list[tuple[int, int]] = []
    with tempfile.TemporaryFile(prefix="chipledger-") as out:
        for found in unpack(file, out, source.name):
            if isinstance(found, Record):
                parts.append(found)
            else:
                lost.append(found)
        if not parts:
            why = f"; {lost[0].reason}, from byte {lost[0].offset or 0:,} on" if lost else ""
            raise InputError(
                f"no record can be read{why}",
                where=source.name,
                expected="Riegeli/records with an XSpace in each record, as continuous profiling writes them",
                advice="Check that the file is whole; profile again if it is",
            )
        out.flush()
        yield from read_space(source, out, lost, parts)


def read_space(
    source: Source, file: BinaryIO, lost: list[Lost], parts: Sequence[tuple[int, int]] | None = None
) -> Iterator[Item]:
    """What an XSpace tells, or several of one capture, of which `parts` says where they lie. `lost`: what was lost
    before. Raises InputError where no plane can be read."""
    from collectors.device.xplane.planes import index_space
    from collectors.device.xplane.reader import Reader
    from collectors.device.xplane.wire import Window

    space = index_space(Window(file, _HEAD), parts)
    space.lost += lost
    _check_planes(source, space)
    yield from Reader(source, file, space).items()


def _check_head(source: Source, head: bytes) -> None:
    if not head:
        raise InputError(
            "the file is empty (0 bytes): JAX leaves that behind where the profile grew beyond 2 GiB, which protobuf "
            "does not write, or where the job ended before the profile was written",
            where=source.name,
            expected="an XSpace message",
            advice='Profile fewer steps, or set advanced_configuration={"enable_continuous_profiling": True} of '
            "jax.profiler.ProfileOptions, which writes `.xplane.riegeli` piece by piece",
        )
    at = _mangled(head)
    if at is not None:
        raise InputError(
            f"bytes were replaced by U+FFFD (EF BF BD), first at byte {at}: a text filter went over this binary file",
            where=source.name,
            expected="an XSpace message as the profiler wrote it",
            advice="Copy it again as binary, without text conversion",
        )


def _check_planes(source: Source, space: "SpaceIndex") -> None:
    if not any(p.name and (len(p.lines) or len(p.events) or len(p.stats)) for p in space.planes):
        at = min([*(lost.offset or 0 for lost in space.lost), space.damage or 0])
        raise InputError(
            f"no plane can be read; the message is damaged from byte {at} on",
            where=source.name,
            expected="an XSpace message (`*.xplane.pb`)",
            advice="Check that the file is whole and is a profile",
        )
    if space.damage is not None:
        space.lost.append(Lost("the rest of the file", "its fields are damaged, or it ends early", space.damage))


_preparing = threading.Lock()
_prepared = False


def prepare() -> None:
    """Loads, and on a new installation compiles, all that `read` needs: seconds once, then a third of a second.

    `read` calls it; calling it before, in a thread while a file is still being copied or hashed, hides that time.
    """
    global _prepared
    with _preparing:
        if _prepared:
            return
        collecting = gc.isenabled()
        gc.disable()  # importing makes many objects and no garbage; looking for it takes a third of the time
        try:
            with absent("scipy.linalg"):  # numba looks there for products of matrices, which no kernel here has
                from collectors.device.xplane.state import grown, new_ops

                grown(new_ops(1), 0)
                for _ in read_space(Source(Path("sample"), "sample"), io.BytesIO(_SAMPLE), []):
                    pass
            _prepared = True
        finally:
            # The objects of loaded modules stay for good: without them later collections, and the end, are quicker.
            gc.freeze()
            if collecting:
                gc.enable()


# A trace of one plane, one line and one event with one stat, for `prepare`.
_SAMPLE = (
    b"\x0a\x3d\x12\x09/host:CPU\x1a\x16\x12\x06python\x18\x01\x22\x0a\x08\x01\x18\x05\x22\x04\x08\x01\x20\x07"
    b"\x22\x0a\x08\x01\x12\x06\x12\x04step\x2a\x0c\x08\x01\x12\x08\x12\x06number"
)
