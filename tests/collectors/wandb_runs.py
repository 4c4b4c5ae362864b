"""`.wandb` files, written by hand: LevelDB's framing and the few messages of Protobuf that W&B's client writes."""

import json
import struct
import zlib
from typing import Any

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 1 << 15
STDERR, STDOUT = 0, 1


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes | str) -> bytes:
    data = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(data)) + data


def items(field: int, values: dict[str, Any]) -> bytes:
    """A value that is bytes stands there as it is: JSON that somebody else wrote."""
    written = {k: v if isinstance(v, bytes) else json.dumps(v).encode() for k, v in values.items()}
    return b"".join(message(field, message(1, k), message(16, v)) for k, v in written.items())


def at(field: int, seconds: float) -> bytes:
    return message(field, number(1, int(seconds)), number(2, round(seconds % 1 * 1e9)))


def history(step: int, seconds: float | None, **values: Any) -> bytes:
    own = {} if seconds is None else {"_timestamp": seconds, "_runtime": 1.0}
    named = {name.replace("__", "/"): value for name, value in values.items()}
    return message(2, items(1, {**named, **own, "_step": step}), message(2, number(1, step)))


def summary(**values: Any) -> bytes:
    return message(3, items(1, values))


def config(values: dict[str, Any]) -> bytes:
    return message(5, items(1, values))


def stats(seconds: float, values: dict[str, Any]) -> bytes:
    return message(7, at(2, seconds), items(3, values))


def output(stream: int, seconds: float, text: str, field: int = 13) -> bytes:
    return message(field, number(1, stream), at(2, seconds), message(3, text))


def metric(axis: str, glob: str = "*") -> bytes:
    return message(12, message(2, glob), message(4, axis))


def started(seconds: float, host: str = "n7", name: str = "", resumed: bool = False) -> bytes:
    more = number(18, 1) if resumed else b""
    return message(17, message(1, "abc"), message(8, name), message(13, host), at(17, seconds), more)


def ended(code: int, runtime: int) -> bytes:
    return message(18, number(1, code), number(2, runtime))


def framed(*records: bytes, block: int = BLOCK) -> bytes:
    """A file of these records, each of which gets its number."""
    out = bytearray(HEADER)
    for n, data in enumerate(records):
        data, first = number(1, n) + data, True
        while True:
            room = block - len(out) % block
            if room < 7:
                out += bytes(room)
                continue
            part, data = data[: room - 7], data[room - 7 :]
            kind = (1 if first else 4) if not data else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
            if not data:
                break
    return bytes(out)
