"""Event files of TensorBoard as programs write them, for tests: a writer of its own, which shares nothing with the
reader."""

import struct
from collections.abc import Iterable, Mapping

BEGUN = 1_772_600_000.25  # seconds since the epoch
VERSION = b"brain.Event:2"


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32))


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def part(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(at: float, step: int, *values: bytes) -> bytes:
    """What a summary of these values is as an event."""
    steps = whole(2, step) if step else b""
    return b"\x09" + struct.pack("<d", at) + steps + part(5, b"".join(part(1, value) for value in values))


def version(at: float = BEGUN) -> bytes:
    return record(b"\x09" + struct.pack("<d", at) + part(3, VERSION))


def simple(name: str | bytes, value: float) -> bytes:
    tag = name.encode() if isinstance(name, str) else name
    return part(1, tag) + b"\x15" + struct.pack("<f", value)


def tensor(name: str, dtype: int, *fields: bytes, shape: Iterable[int] = ()) -> bytes:
    dims = b"".join(part(2, whole(1, size)) for size in shape)
    metadata = part(9, part(1, part(1, b"scalars")))
    return part(1, name.encode()) + metadata + part(8, whole(1, dtype) + part(2, dims) + b"".join(fields))


def text(name: str, said: str) -> bytes:
    """As `add_text` writes it."""
    dims = part(2, whole(1, 1))
    return (
        part(1, f"{name}/text_summary".encode())
        + part(8, whole(1, 7) + part(2, dims) + part(8, said.encode()))
        + part(9, part(1, part(1, b"text")))
    )


def logged(entries: Iterable[tuple[float, int, Mapping[str, float]]], begun: float | None = BEGUN) -> bytes:
    """As PyTorch's SummaryWriter logs: an event for each number."""
    head = version(begun) if begun is not None else b""
    return head + b"".join(
        record(event(at, step, simple(name, value))) for at, step, told in entries for name, value in told.items()
    )


def maxtext(steps: Iterable[int], at: float = BEGUN, each: float = 2.0) -> bytes:
    """As MaxText logs each step at its end."""
    entries = []
    for n, step in enumerate(steps):
        told = {
            "learning/loss": 10.0 - step / 100,
            "learning/grad_norm": 1.0,
            "perf/step_time_seconds": each,
            "perf/per_device_tflops": 400.0,
            "perf/per_device_tflops_per_sec": 400.0 / each,
            "perf/per_device_tokens": 8192,
            "perf/per_device_tokens_per_sec": 8192 / each,
            "learning/current_learning_rate": 3e-4,
        }
        entries.append((at + (n + 1) * each, step, told))
    return logged(entries, at)


def torchtitan(logs: Iterable[tuple[int, float, float]], every: int, at: float = BEGUN) -> bytes:
    """As torchtitan logs every so many steps: (step, seconds since it logged before, loss)."""
    entries, now = [], at
    for step, since, loss in logs:
        now += since
        told = {
            "loss_metrics/global_avg_loss": loss,
            "throughput(tps)": 7000.0,
            "tflops": 300.0,
            "mfu(%)": 30.0,
            "time_metrics/end_to_end(s)": since / every,
            "time_metrics/data_loading(s)": 0.01,
            "memory/max_active(GiB)": 60.0,
        }
        entries.append((now, step, told))
    return logged(entries, at)
