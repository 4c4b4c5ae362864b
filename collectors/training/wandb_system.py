"""System metrics that W&B samples beside a job (every 15 s, each the mean of what was seen since the sample before).

    scalars   each by W&B's own name and its unit (`gpu.0.powerWatts`, `network.sent`, `proc.memory.rssMB`). Of the
              job's GPUs shares are named `GPU 0 ...`, so that questions of devices find them: `gpu` is NVML's
              utilisation, the part of the time in which any kernel ran, however few of the units it used
    memory    bytes_in_use of the job's GPUs, and of TPUs, whose bytes_limit stands beside: all that is allocated there,
              whoever holds it
A machine has GPUs of other jobs too. Where W&B says which the process is on (`gpu.process.4.gpu`), those are the job's;
where it never does, as in most containers, all that it sees are taken for the job's.
"""

import re
from collections.abc import Iterator, Sequence

from collectors.base import Rows, Source
from collectors.reading.textlog import Buffer, clean
from collectors.training.tracked import MAX_NAME

HELD = 1_000  # samples in which a process is waited for: some four hours
_GPU = re.compile(r"gpu\.(process\.)?(\d{1,5})\.(\w{1,60})$", re.ASCII)
_TPU = re.compile(r"tpu\.(\d{1,5})\.(\w{1,60})$", re.ASCII)
_TPU_BYTES = {  # the first by clients before 2025
    "memoryUsageBytes": "bytes_in_use",
    "hbmCapacityUsage": "bytes_in_use",
    "hbmCapacityTotal": "bytes_limit",
}
_SHARES = {  # of the most that is possible, in %. Not those of DCGM (smActive): some clients count them from 0 to 1
    "gpu": "some kernel ran (NVML utilization)",
    "memory": "memory was read or written (NVML utilization)",
    "memoryAllocated": "memory allocated",
    "powerPercent": "power of its limit",
}
_BYTES = "memoryAllocatedBytes"
_UNITS = (  # by how a name ends, the longest first
    ("cpu_percent", "%"),
    ("memory_percent", "%"),
    ("enforcedPowerLimitWatts", "W"),
    ("MHz", "MHz"),
    ("smClock", "MHz"),
    ("memoryClock", "MHz"),
    ("Percent", "%"),
    (".percent", "%"),
    ("Watts", "W"),
    ("Bytes", "bytes"),
    (".temp", "°C"),
    (".memoryAllocated", "%"),
    ("dutyCycle", "%"),
    ("hbmMemoryUsage", "%"),
    ("runtimeHbmUtilization", "%"),
    ("hbmCapacityUsage", "bytes"),
    ("hbmCapacityTotal", "bytes"),
    (".memoryUsed", "MiB"),
    (".memoryTotal", "MiB"),
    (".memoryFree", "MiB"),
    ("MB", "MB"),
    ("GB", "GB"),
    ("network.sent", "bytes"),
    ("network.recv", "bytes"),
    ("disk.in", "MB"),
    ("disk.out", "MB"),
)
_WHOLE_NAMES = {"cpu": "%", "memory": "%"}


class System:
    """Rows of `scalars` and `memory` from samples in the order of the file. `host`: whose they are. `devices`: GPUs
    that the process is known to be on."""

    def __init__(self, source: Source):
        self._source = source.name
        self.host: str | None = None
        self.devices: set[int] = set()
        self._known = False  # whose the GPUs are
        self._held: list[tuple[int, int, str, float]] = []  # time, device, what, value
        self._samples = 0
        self._names: dict[str, tuple[str, str | None]] = {}
        self._scalars = Buffer("scalars", "ts_ns", "name", "value", "unit", "source")
        self._memory = Buffer("memory", "host", "device", "ts_ns", "kind", "bytes", "name")

    def sample(self, ts_ns: int | None, values: Sequence[tuple[str, float]]) -> None:
        """One sample: names and numbers."""
        self._samples += 1
        for key, value in values:
            gpu = _GPU.match(key)
            if gpu is None:
                self._other(ts_ns, key, value)
            elif gpu[1]:
                self.devices.add(int(gpu[2]))  # the same numbers stand under the device's own name
            elif ts_ns is not None and (gpu[3] in _SHARES or gpu[3] == _BYTES):
                self._held.append((ts_ns, int(gpu[2]), gpu[3], value))
            else:
                self._scalar(ts_ns, key, value)
        self._known |= bool(self.devices) or self._samples >= HELD
        if self._known:
            self._let_go()

    def full(self) -> Iterator[Rows]:
        yield from self._scalars.full()
        yield from self._memory.full()

    def rest(self) -> Iterator[Rows]:
        self._let_go()
        yield from self._scalars.rest()
        yield from self._memory.rest()

    def _let_go(self) -> None:
        """Enter what waited to hear whose GPUs are the job's."""
        for ts_ns, device, what, value in self._held:
            if self.devices and device not in self.devices:
                self._scalar(ts_ns, f"gpu.{device}.{what}", value)
            elif what == _BYTES:
                self._bytes(ts_ns, device, value)
            else:
                self._scalars.add(ts_ns, f"GPU {device} {_SHARES[what]}", value, "%", self._source)
        self._held = []

    def _bytes(self, ts_ns: int | None, device: int, value: float, kind: str = "bytes_in_use") -> None:
        if 0 <= value < 1 << 62:
            self._memory.add(self.host, device, ts_ns, kind, round(value), "all processes")

    def _other(self, ts_ns: int | None, key: str, value: float) -> None:
        if (tpu := _TPU.match(key)) and tpu[2] in _TPU_BYTES:
            self._bytes(ts_ns, int(tpu[1]), value, _TPU_BYTES[tpu[2]])
        self._scalar(ts_ns, key, value)

    def _scalar(self, ts_ns: int | None, key: str, value: float) -> None:
        name, unit = self._names.get(key) or self._named(key)
        self._scalars.add(ts_ns, name, value, unit, self._source)

    def _named(self, key: str) -> tuple[str, str | None]:
        unit = _WHOLE_NAMES.get(key) or next((unit for end, unit in _UNITS if key.endswith(end)), None)
        if re.match(r"gpu\.\d+\.(?:gpu|memory)$", key):
            unit = "%"
        named = clean(key)[:MAX_NAME], unit
        if len(self._names) < 100_000:
            self._names[key] = named
        return named
