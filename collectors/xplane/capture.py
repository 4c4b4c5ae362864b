"""What only the whole capture tells: its row, facts about the hardware, and whether the profiler lost operations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from collectors.base import Fact, Item, Lost, Rows
from collectors.xplane.arrays import batch
from collectors.xplane.ops import CPU_DEVICES_PER_PROCESS
from collectors.xplane.planes import PlaneIndex, Value
from collectors.xplane.wire import varint

if TYPE_CHECKING:
    from collectors.xplane.reader import Reader

_MISSING_SHARE = 0.01  # of program time without operations, before it is worth a word
_LOCAL_CHIP, _GLOBAL_CORE = 4, 6  # fields of a TPU plane's `core_details`


def core_details(stats: dict[str, Value]) -> dict[int, int]:
    """Integer fields of a TPU plane's `core_details` by number; fields that are 0 are not written."""
    raw = stats.get("core_details")
    if not isinstance(raw, bytes) or not raw:
        return {}
    data, pos, found = np.frombuffer(raw, np.uint8), 0, {_LOCAL_CHIP: 0, _GLOBAL_CORE: 0}
    while pos < len(data):
        tag, pos = varint(data, pos, len(data))
        if pos < 0 or tag & 7:
            break
        value, pos = varint(data, pos, len(data))
        if pos < 0:
            break
        found[int(tag) >> 3] = int(value)
    return found


def ranks_of(devices: list[tuple[PlaneIndex, dict]], stand_ins: set[int]) -> dict[int, int]:
    """Global rank by device number, where the trace tells: TPU cores know theirs, CPU devices count by process.

    CPU ranks assume that all processes have as many devices as this one.
    """
    ranks = {}
    for index, stats in devices:
        details = core_details(stats)
        if details and index.plane.device is not None:
            ranks[index.plane.device] = details[_GLOBAL_CORE]
    local = sorted({d % CPU_DEVICES_PER_PROCESS for d in stand_ins})
    for ordinal in stand_ins:
        process, device = divmod(ordinal, CPU_DEVICES_PER_PROCESS)
        ranks[device] = process * len(local) + local.index(device)
    return ranks


# GPU planes tell vendor, compute capability, cores and memory, not the product: (vendor, major, minor, cores,
# least and most memory in GB) that only one product has, and its name.
_GPUS = (
    ("Nvidia", 7, 0, 80, 0, 20, "V100 16GB"),
    ("Nvidia", 7, 0, 80, 20, 40, "V100 32GB"),
    ("Nvidia", 8, 0, 108, 0, 50, "A100 40GB"),
    ("Nvidia", 8, 0, 108, 50, 100, "A100 80GB"),
    ("Nvidia", 9, 0, 114, 0, 100, "H100 PCIe"),
    ("Nvidia", 9, 0, 132, 0, 100, "H100 SXM"),
    ("Nvidia", 9, 0, 132, 120, 160, "H200"),
    ("Nvidia", 10, 0, 148, 160, 220, "B200"),
    ("AMD", 9, 4, 304, 180, 220, "MI300X"),
)


def device_type(devices: list[tuple[PlaneIndex, dict]]) -> tuple[str | None, str]:
    """(type of the devices, how it is known): as the trace names it, or derived from what a GPU's plane tells."""
    for index, stats in devices:
        if isinstance(stats.get("device_type_string"), str):
            return stats["device_type_string"], "measured"
        if index.plane.kind == "gpu":
            parts = [stats.get(n) for n in ("device_vendor", "compute_cap_major", "compute_cap_minor", "core_count")]
            memory = (_number(stats.get("memory_size")) or 0.0) / 1e9
            for *known, low, high, name in _GPUS:
                if known == parts and low < memory <= high:
                    return name, "derived"
            return f"{parts[0]} GPU, compute capability {parts[1]}.{parts[2]}, {parts[3]} cores", "measured"
    return (devices[0][0].name.split(":")[1] if devices else None), "measured"


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def capture_items(
    reader: "Reader", host: str | None, process: int | None, devices: list[tuple[PlaneIndex, dict]], stats: dict
) -> Iterator[Item]:
    """The row of `captures`, facts, and named gaps. Peaks are of one plane, which is one device as JAX counts them."""
    first = devices[0][1] if devices else {}
    kind, basis = device_type(devices)
    kind = kind or ("cpu" if reader.stand_ins else None)
    count = len(devices) or len(reader.stand_ins)
    teraflops = _number(first.get("peak_teraflops_per_second"))
    gigabytes = _number(first.get("peak_hbm_bw_gigabytes_per_second"))
    bandwidth = gigabytes * 1e9 if gigabytes else _number(first.get("memory_bandwidth"))
    peak = teraflops * 1e12 if teraflops else None
    stop = reader.stop_ns
    if stop is None and reader.last_ps is not None:
        stop = reader.base_ns + reader.last_ps // 1000
    yield Rows("captures", batch("captures", {
        "capture": [reader.source.index], "host": [host], "process": [process],
        "start_ns": [reader.base_ns], "stop_ns": [stop], "devices": [count or None], "device_type": [kind],
        "peak_flops_per_s": [peak], "peak_hbm_bytes_per_s": [bandwidth], "source": [reader.source.name],
    }))  # fmt: skip
    if kind:
        yield Fact("chip", kind, basis)
    chips = len({core_details(s).get(_LOCAL_CHIP, i) for i, (_, s) in enumerate(devices)}) if devices else count
    if reader.programs.devices > count > 0:  # collectives reach beyond this host
        yield Fact("chips", chips * reader.programs.devices // count, "derived")
    elif chips:
        yield Fact("chips", chips)
    for name, value in (
        ("peak_flops_per_s", peak), ("peak_hbm_bytes_per_s", bandwidth), ("jax_version", stats.get("jax_version")),
        ("jaxlib_version", stats.get("jaxlib_version")), ("libtpu_version", stats.get("libtpu_version")),
    ):  # fmt: skip
        if value is not None:
            yield Fact(name, value)
    yield from _gaps(reader)


def _gaps(reader: "Reader") -> Iterator[Lost]:
    for device, runs in reader.program_runs.items():
        spans = np.concatenate(runs)
        seen = reader.programs_seen.get(device)
        missing = np.ones(len(spans), bool) if seen is None else ~seen[: len(spans)]
        length = (spans[:, 1] - spans[:, 0]).astype(float)
        if length.sum() and length[missing].sum() > _MISSING_SHARE * length.sum():
            yield Lost(
                f"operations of device {device}",
                f"{missing.sum()} of {len(spans)} program runs ({length[missing].sum() / 1e12:.3f} s) show none: "
                "the profiler's buffer was full; profile a shorter time",
            )  # fmt: skip
    if reader.gpu_ops[0] and not reader.gpu_ops[1]:
        yield Lost(
            "the HLO operations of GPU kernels",
            "no kernel names one; with command buffers they do not: profile with --xla_gpu_enable_command_buffer=",
        )  # fmt: skip
