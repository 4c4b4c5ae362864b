"""What samples of NVIDIA's DCGM exporter tell of GPUs: rows for whichever reader met them in a scrape.

    scalars    `GPU 0 SM active{host="node-1",mig="1g.10gb 3",pod="ns/train-0"}`: FIELDS under their names here, any
               other field under its own. Ratios (PROF_*) times 100 as %; energy mJ / 1000 as J; clocks MHz; power W
    memory     bytes_in_use = FB_USED MiB * 2^20, bytes_limit = (FB_USED + FB_FREE) MiB * 2^20: what programs can have,
               without what the driver keeps (FB_RESERVED)
    evidence   Xids, faults of memory and clocks held down, when they come (`dcgm_events`)
    facts      chip, where all GPUs are of one model that is no virtual GPU

A GPU is told once a scrape: where it is shared, each pod's series repeats what the GPU did. Power, clocks, errors are
of the GPU, whichever of its MIG instances repeats them; shares of its units and memory are of each instance.
GPU_UTIL and its like are shares of time in which anything ran at all, however little, and are named so.
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import NamedTuple

from collectors.base import Fact, Item, Source
from collectors.device.dcgm_events import REASONS, SLOWED, XID, Event, Events, Now, Place, event_of
from collectors.reading.evidence import Evidence
from collectors.reading.textlog import Buffer, Tally, clean, digits, fits

PREFIX = "DCGM_"
MIB = 1 << 20
MAX_SERIES, MAX_ROWS = 50_000, 10_000_000
MAX_GPUS = 20_000
MAX_PODS = 1_000  # characters of the pods that share a GPU
MAX_TEXT = 100  # characters of a label that become part of a name
_USED, _FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
_PER_INSTANCE = ("DCGM_FI_PROF_", "DCGM_FI_DEV_FB_")  # of a MIG instance; all else is of its GPU
_OWN_POD = "dcgm"  # in the name of the exporter's own pod, which Prometheus writes where the GPU's user would stand
_NO_CHIP = re.compile(r"grid|vgpu|virtual|\.\.\.", re.IGNORECASE)  # a part of one, or left out


class Field(NamedTuple):
    name: str
    unit: str | None
    scale: float = 1.0
    most: float = float("inf")  # above this it is none


_SHARE = 1.01  # a ratio of two readings may be a little above 1


def _ratio(name: str) -> Field:
    return Field(name, "%", 100.0, 100 * _SHARE)


def _percent(name: str) -> Field:
    return Field(name, "%", 1.0, 100.0)


FIELDS: dict[str, Field] = {
    "PROF_GR_ENGINE_ACTIVE": _ratio("graphics engine active"),
    "PROF_SM_ACTIVE": _ratio("SM active"),
    "PROF_SM_OCCUPANCY": _ratio("SM occupancy"),
    "PROF_PIPE_TENSOR_ACTIVE": _ratio("tensor pipe active"),
    "PROF_PIPE_TENSOR_IMMA_ACTIVE": _ratio("tensor pipe active (integer)"),
    "PROF_PIPE_TENSOR_HMMA_ACTIVE": _ratio("tensor pipe active (half precision)"),
    "PROF_PIPE_TENSOR_DFMA_ACTIVE": _ratio("tensor pipe active (double precision)"),
    "PROF_PIPE_FP64_ACTIVE": _ratio("FP64 pipe active"),
    "PROF_PIPE_FP32_ACTIVE": _ratio("FP32 pipe active"),
    "PROF_PIPE_FP16_ACTIVE": _ratio("FP16 pipe active"),
    "PROF_PIPE_INT_ACTIVE": _ratio("integer pipe active"),
    "PROF_DRAM_ACTIVE": _ratio("DRAM active"),
    "PROF_PCIE_TX_BYTES": Field("PCIe sent", "B/s"),
    "PROF_PCIE_RX_BYTES": Field("PCIe received", "B/s"),
    "PROF_NVLINK_TX_BYTES": Field("NVLink sent", "B/s"),
    "PROF_NVLINK_RX_BYTES": Field("NVLink received", "B/s"),
    "DEV_GPU_UTIL": _percent("time with any kernel running"),
    "DEV_MEM_COPY_UTIL": _percent("time with any memory traffic"),
    "DEV_ENC_UTIL": _percent("video encoder in use"),
    "DEV_DEC_UTIL": _percent("video decoder in use"),
    "DEV_POWER_USAGE": Field("power", "W"),
    "DEV_POWER_USAGE_INSTANT": Field("power of the instant", "W"),
    "DEV_POWER_MGMT_LIMIT": Field("power limit", "W"),
    "DEV_ENFORCED_POWER_LIMIT": Field("power limit in force", "W"),
    "DEV_TOTAL_ENERGY_CONSUMPTION": Field("energy since the driver was loaded", "J", 1e-3),
    "DEV_SM_CLOCK": Field("SM clock", "MHz"),
    "DEV_MEM_CLOCK": Field("memory clock", "MHz"),
    "DEV_VIDEO_CLOCK": Field("video clock", "MHz"),
    "DEV_GPU_TEMP": Field("temperature", "°C"),
    "DEV_MEMORY_TEMP": Field("memory temperature", "°C"),
    "DEV_FB_TOTAL": Field("memory", "MiB"),
    "DEV_FB_USED": Field("memory used", "MiB"),
    "DEV_FB_FREE": Field("memory free", "MiB"),
    "DEV_FB_RESERVED": Field("memory kept by the driver", "MiB"),
    "DEV_XID_ERRORS": Field("last Xid", None),
    **{
        f"DEV_CLOCKS_EVENT_REASON_{reason}_NS": Field(f"time slowed down by {by}", "s", 1e-9)
        for reason, by in {
            "SW_POWER_CAP": "the power limit",
            "SYNC_BOOST": "sync boost",
            "SW_THERM_SLOWDOWN": "heat (software)",
            "HW_THERM_SLOWDOWN": "heat (hardware)",
            "HW_POWER_BRAKE_SLOWDOWN": "the power brake",
        }.items()
    },
}
# labels beside those that say which GPU it is of, of metrics that tell of several things of one
_PARTS = ("xid", "clock_event", "health_watch", "nvlink", "nvswitch", "link", "port", "peer", "peer_gpu")
_OF_PODS = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL")  # of which newer exporters tell what each pod's processes do


class _Series(NamedTuple):
    place: Place
    pod: str | None
    field: str  # the metric's name, with what of a GPU it tells of where that is not all
    event: Event | None  # that it counts


class Gpus:
    """Rows of the DCGM samples of one input. Shown each series once (`place`), each sample (`enter`), and the end of
    each scrape (`end`)."""

    def __init__(self, source: Source, tally: Tally):
        self._source, self._tally = clean(source.name), tally
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "unit", "source")
        self.memory = Buffer("memory", "host", "device", "ts_ns", "kind", "bytes", "name")
        self._evidence = Evidence(source, tally)
        self._known: dict[str, _Series | None] = {}
        self._events = Events(self._evidence, tally)
        self._now: dict[Place, Now] = {}
        self._names: dict[tuple[Place, str, str], str] = {}  # of scalars
        self._rows = 0
        self._gpus: set[Place] = set()
        self._models: set[str] = set()

    @property
    def any(self) -> bool:
        return bool(self._gpus)

    def place(self, text: str, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a series is of a GPU that it numbers. Each text is looked at once."""
        if text not in self._known:
            self._known[text] = self._series(name, labels) if name.startswith(PREFIX) else None
        return self._known[text] is not None

    def enter(self, text: str, value: float) -> None:
        """A sample of a series of which `place` is true."""
        series = self._known[text]
        if series is None or not isfinite(value):
            return
        if _blank(value):
            self._tally.add(f"samples of {series.field}", "DCGM's mark for a value that it does not know")
            return
        now = self._now.setdefault(series.place, Now())
        if series.pod:
            now.users.add(series.pod)
            if series.field in _OF_PODS:
                now.pods.setdefault(series.field, {}).setdefault(series.pod, value)
        if series.event is not None:
            now.counts.setdefault(series.event, (value, text))
        if series.field == XID and value and not now.values.get(XID, (1.0, ""))[0]:
            del now.values[XID]  # newer exporters name the code in a label: the series of none may still stand
        if not (series.pod and series.field in _OF_PODS):
            now.values.setdefault(series.field, (value, text))

    def end(self, ts_ns: int | None) -> None:
        """Rows of what was entered since the last end."""
        self._events.see(self._now, ts_ns)
        for place, now in self._now.items():
            pods = ", ".join(sorted(now.users))[:MAX_PODS]
            self._of_pods(now)
            self._memory(place, now, ts_ns)
            for name, (value, _) in now.values.items():
                self._field(place, pods, name, value, ts_ns)
        self._now = {}

    def _of_pods(self, now: Now) -> None:
        """The GPU's value of a field that its pods tell: what all repeat; of memory the sum of what each tells."""
        for name, told in now.pods.items():
            if name in now.values:
                continue  # the GPU's own series is there too
            values = list(told.values())
            if len(set(values)) == 1:
                now.values[name] = (values[0], "")
            elif name == _USED:
                now.values[name] = (sum(values), "")
            else:
                self._tally.add(f"samples of {name}", "each pod's own is told, and not the GPU's", count=len(values))

    def full(self) -> Iterator[Item]:
        for part in (self.scalars, self.memory, self._evidence):
            yield from part.full()

    def rest(self) -> Iterator[Item]:
        for part in (self.scalars, self.memory, self._evidence):
            yield from part.rest()
        if len(self._models) == 1 and not _NO_CHIP.search(model := next(iter(self._models))):
            yield Fact("chip", model)
        elif len(self._models) > 1:
            some = ", ".join(sorted(self._models)[:5])
            self._tally.add("the chip", f"GPUs of several models are told of ({some}): which the job held is not known")

    def _series(self, name: str, labels: Mapping[str, str]) -> _Series | None:
        told = labels["gpu"] if "gpu" in labels else labels.get("device", "").removeprefix("nvidia")
        device = digits(told)
        if device is None or device >= 1 << 16:
            return None
        place = Place(_host(labels), device, _mig(labels) if name.startswith(_PER_INSTANCE) else "")
        if place.gpu not in self._gpus and len(self._gpus) >= MAX_GPUS:
            self._tally.add("series of GPUs", f"of more than {MAX_GPUS:,} GPUs")
            return None
        self._gpus.add(place.gpu)
        if model := clean(labels.get("modelName", "").strip())[:MAX_TEXT]:
            self._models.add(model)
        parts = (f"{key} {labels[key].strip()}" for key in _PARTS if labels.get(key, "").strip())
        part = clean(", ".join(parts))[:MAX_TEXT]
        full = f"{name} of {part}" if part and name.removeprefix("DCGM_FI_") not in FIELDS else name
        return _Series(place, _pod(labels), full, event_of(name, labels))

    def _field(self, place: Place, pods: str, name: str, value: float, ts_ns: int | None) -> None:
        if name in REASONS:
            for bit, by, _ in SLOWED if 0 <= value < 1 << 32 else ():
                self._scalar(place, pods, f"slowed down by {by}", 100.0 * bool(int(value) & bit), "%", ts_ns)
            return
        bare = name.removeprefix("DCGM_FI_")
        known = FIELDS.get(bare) or Field(bare, None)
        if value < 0 or value * known.scale > known.most:
            self._tally.add(f"samples of {name}", f"below 0, or above {known.most / known.scale:g}")
        elif bare == "DEV_MEMORY_TEMP" and value == 0:
            self._tally.add(f"samples of {name}", "0 °C: a GPU without such a sensor writes that")
        else:
            scaled = value if known.scale == 1 else float(f"{value * known.scale:.15g}")  # 15.6205, as 0.156205 says
            self._scalar(place, pods, known.name, scaled, known.unit, ts_ns)

    def _scalar(self, place: Place, pods: str, name: str, value: float, unit: str | None, ts_ns: int | None) -> None:
        key = (place, pods, name)
        full = self._names.get(key)
        if full is None:
            if len(self._names) >= MAX_SERIES:
                self._tally.add("samples", f"of more than {MAX_SERIES:,} series of GPUs")
                return
            full = self._names[key] = _full_name(place, pods, name)
        if self._rows >= MAX_ROWS:
            self._tally.add("samples", f"more than {MAX_ROWS:,} of GPUs")
            return
        self._rows += 1
        self.scalars.add(ts_ns, full, value, unit, self._source)

    def _memory(self, place: Place, now: Now, ts_ns: int | None) -> None:
        used, free = (now.values.get(name, (None,))[0] for name in (_USED, _FREE))
        limit = None if used is None or free is None else used + free
        for kind, mib in (("bytes_in_use", used), ("bytes_limit", limit)):
            if mib is not None and mib >= 0 and fits(size := round(mib * MIB)):
                name = f"MIG {place.mig}" if place.mig else None
                self.memory.add(place.host, place.device, ts_ns, kind, size, name)


def _blank(value: float) -> bool:
    """What DCGM writes for a value that is not known, of 32 and 64 bits and of reals."""
    return value >= 9.2e18 or 0x7FFFFFF0 <= value <= 0x7FFFFFFF or 2.0**47 <= value <= 2.0**47 + 15


def _host(labels: Mapping[str, str]) -> str | None:
    """The node: the exporter's `Hostname`, but for one that is its pod's name where Prometheus names the node."""
    said = [labels.get(key, "").strip() for key in ("Hostname", "hostname", "node", "kubernetes_node")]
    said = [name for name in said if name and name != "..."]
    named = next((name for name in said if _OWN_POD not in name), None) or next(iter(said), None)
    name = named or labels.get("instance", "").rpartition(":")[0] or labels.get("instance", "")
    return clean(name)[:MAX_TEXT] or None


def _mig(labels: Mapping[str, str]) -> str:
    """The MIG instance, `1g.10gb 3`; empty where the whole GPU is meant."""
    parts = (labels.get(key, "").strip() for key in ("GPU_I_PROFILE", "GPU_I_ID"))
    return clean(" ".join(filter(None, parts)))[:MAX_TEXT]


def _pod(labels: Mapping[str, str]) -> str | None:
    """Who holds the GPU, as Kubernetes says it: under `exported_` where Prometheus writes the exporter's own pod."""
    for prefix in ("exported_", ""):
        pod = labels.get(f"{prefix}pod", "").strip()
        if pod and pod != "..." and _OWN_POD not in pod:
            space = labels.get(f"{prefix}namespace", "").strip()
            return clean(f"{space}/{pod}" if space else pod)[:MAX_TEXT]
    return None


def _full_name(place: Place, pods: str, name: str) -> str:
    about = {"host": place.host, "mig": place.mig, "pod": pods}
    labels = ",".join(f'{key}="{_quoted(said)}"' for key, said in about.items() if said)
    return f"GPU {place.device} {name}" + (f"{{{labels}}}" if labels else "")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
