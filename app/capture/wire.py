"""The messages of JAX's and TensorFlow's profiler server, as far as they are used (`tensorflow.ProfilerService`).

    ProfileRequest   1 duration_ms, 4 opts, 5 repository_root, 6 session_id, 7 host_name, 9 emit_xspace
    ProfileOptions   2 host_tracer_level, 3 device_tracer_level, 4 python_tracer_level, 5 version, 7 enable_hlo_proto,
                     9 duration_ms, 12 advanced_configuration
    ProfileResponse  7 empty_trace, 8 xspace

Fields by name and number are those that the server of jaxlib 0.10.2 declares. Answers are looked through without being
taken apart: a trace may be as large as a message can be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from errors import InputError

METHOD = "/tensorflow.ProfilerService/Profile"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EMPTY, _XSPACE = 7, 8
_HOSTNAMES = 4  # of an XSpace
_HOST_LEVEL, _OPTIONS_VERSION = 2, 1  # levels as JAX takes them by itself, for options of version 1
_MOST_FIELDS = 100_000  # of a message that are looked at; a trace has some dozens of planes
NO_TRACE = "its answer is no profile"


@dataclass(frozen=True)
class Tracing:
    """What is recorded: seconds, whether Python's calls too, and settings by name (`advanced_configuration`)."""

    duration_s: float
    python: bool = False
    advanced: Mapping[str, str] | None = None

    @property
    def ms(self) -> int:
        return max(round(self.duration_s * 1000), 1)


def profile_request(tracing: Tracing, session: str, host: str, folder: str, emit: bool = True) -> bytes:
    """`folder`: where a server writes that cannot send its trace (`emit`)."""
    options = (
        _number(5, _OPTIONS_VERSION)
        + _number(2, _HOST_LEVEL)
        + _number(3, 1)
        + _number(4, int(tracing.python))
        + _number(7, 1)
        + _number(9, tracing.ms)
        + b"".join(_block(12, _setting(name, value)) for name, value in (tracing.advanced or {}).items())
    )
    return (
        _number(1, tracing.ms)
        + _block(4, options)
        + _block(5, folder.encode())
        + _block(6, session.encode())
        + _block(7, host.encode())
        + (_number(9, 1) if emit else b"")
    )


def _setting(name: str, value: str) -> bytes:
    """An entry of the map: a truth value, a whole number, or a text."""
    if value.lower() in ("true", "false"):
        held = _number(2, int(value.lower() == "true"))
    elif value.isascii() and value.isdigit() and int(value) < 1 << 63:
        held = _number(3, int(value))
    else:
        held = _block(1, value.encode())
    return _block(1, name.encode()) + _block(2, held)


def trace_of(answer: bytes) -> tuple[memoryview, bool]:
    """The XSpace of an answer, of no bytes where it holds none, and whether the server calls it empty.

    Raises InputError for bytes that are no such answer.
    """
    found, empty = memoryview(b""), False
    for number, (field, value) in enumerate(_fields(memoryview(answer))):
        if number > _MOST_FIELDS:
            raise InputError(NO_TRACE)
        if field == _XSPACE and isinstance(value, memoryview):
            if len(found):
                raise InputError(f"{NO_TRACE} (two traces in one)")
            found = value
        elif field == _EMPTY and isinstance(value, int):
            empty = bool(value)
    return found, empty


def host_name(space: memoryview) -> str:
    """The host that a trace names itself, empty where it names none. Raises InputError where it is none."""
    fields = islice(_fields(space), _MOST_FIELDS)
    told = (v for f, v in fields if f == _HOSTNAMES and isinstance(v, memoryview))
    return bytes(next(told, memoryview(b""))[:256]).decode("utf-8", "replace")


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind, start = tag & 7, at
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, start = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise InputError(NO_TRACE)
        at = start + length
        if at > len(message):
            raise InputError(f"{NO_TRACE} (it is cut off)")
        yield tag >> 3, message[start:at]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise InputError(f"{NO_TRACE} (it is cut off)")


def _number(field: int, value: int) -> bytes:
    return _encoded(field << 3 | _VARINT) + _encoded(value)


def _block(field: int, data: bytes) -> bytes:
    return _encoded(field << 3 | _BYTES) + _encoded(len(data)) + data


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
