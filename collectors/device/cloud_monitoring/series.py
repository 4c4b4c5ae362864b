"""What a series of Cloud Monitoring is of: which metric, in which unit, of which chip of which host."""

import re
from typing import Any, NamedTuple

from collectors.reading.documents import part, text

USED, TOTAL = "bytes_in_use", "bytes_limit"
_SHARES = {  # the end of a metric's type -> what it is called, and its unit where the series names none
    "accelerator/duty_cycle": ("duty cycle", "%"),
    "accelerator/tensorcore_utilization": ("TensorCore utilization", "%"),
    "accelerator/memory_bandwidth_utilization": ("memory bandwidth utilization", "%"),
    "tpu/mxu/utilization": ("MXU utilization", "%"),
    # the part of the time in which a kernel ran, however little of the GPU it filled
    "gpu/utilization": ("any kernel active", "%"),
    "DCGM_FI_DEV_GPU_UTIL/gauge": ("any kernel active", "%"),
    "DCGM_FI_PROF_SM_ACTIVE/gauge": ("SMs active", "1"),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE/gauge": ("tensor pipe active", "1"),
    "DCGM_FI_PROF_DRAM_ACTIVE/gauge": ("DRAM active", "1"),
}
SHARES = frozenset(name for name, _ in _SHARES.values())
_MEMORY = {"accelerator/memory_used": USED, "accelerator/memory_total": TOTAL, "gpu/memory/bytes_used": USED}
_PERCENT = {"%": 1.0, "percent": 1.0, "10^2.%": 100.0, "1": 100.0}  # a share's unit -> what makes it a percentage
_SEVERAL = "{not_a_unit}"  # of a page whose series have several, or none
_UNITS = {"percent": "%", "1": None, "": None}
_CHIP_LABELS = ("accelerator_id", "gpu_number", "gpu", "chip", "chip_id")
_ABOUT_A_CHIP = (*_CHIP_LABELS, "make", "model", "tpu_topology", "modelName", "UUID", "uuid", "device", "Hostname")
_PROMETHEUS = "prometheus.googleapis.com/"
_QUOTED = re.compile(r'["\\{}\s]+')
_NVIDIA = re.compile(r"gpu|nvidia|tesla|amd|dcgm")
_LONGEST = 400  # characters of labels that become part of a name


class Series(NamedTuple):
    """What one series is of. `maker`: TPU, GPU or accelerator, of a chip; `on_node`: whether the host is a node, and
    not a pod or a worker; `more`: its other labels, as they stand in a name."""

    name: str
    unit: str | None
    maker: str
    host: str
    on_node: bool
    chip: str
    more: str = ""

    def called(self, number: int | None) -> str:
        """Its name in `scalars`. `number`: of the chip on its host."""
        whose = ",".join(filter(None, (f'host="{self.host}"' if self.host else "", self.more)))
        name = f"{self.maker} {number} {self.name}" if number is not None else self.name
        return f"{name}{{{whose}}}" if whose else name


def labels_of(said: dict[str, Any], of: str = "metric") -> dict[str, str]:
    """The labels of a metric, or of the resource that it was measured of."""
    found = part(said, of, "labels")
    return {k: t for k, v in found.items() if (t := text(v))} if isinstance(found, dict) else {}


def series_of(said: dict[str, Any]) -> tuple[Series, float] | None:
    """(what a series is of, what makes its values such in its unit); None where it is of nothing that is kept: it does
    not tell its metric, or is of memory that is not in use."""
    kind = text(part(said, "metric", "type")) or ""
    path, labels = kind.partition("/")[2], labels_of(said)
    if not path or labels.get("memory_state", "used") != "used":
        return None
    chip = next((labels[key] for key in _CHIP_LABELS if key in labels), "")
    if path.startswith("tpu/"):  # a core of a chip that has two is a device of its own; elsewhere it is one of the CPU
        chip = chip or labels.get("core", "")
    host, on_node = _host(said, labels)
    of = Series(path, None, _maker(kind, labels) if chip else "", host, on_node, chip)
    unit = (text(said.get("unit")) or "").replace(_SEVERAL, "")
    if share := _known(path, _SHARES):
        name, usual = share
        unit = usual if kind.startswith(_PROMETHEUS) else unit  # it calls everything "1"
        scale = _PERCENT.get(unit or usual)
        return of._replace(name=name, unit="%" if scale else unit), scale or 1.0
    if chip and (memory := _known(path, _MEMORY)):  # without one it is of several
        return of._replace(name=memory, unit="B"), 1.0
    more = {k: v for k, v in labels.items() if not (chip and k in _ABOUT_A_CHIP)}
    if container := labels_of(said, "resource").get("container_name"):
        more.setdefault("container", container)
    named = ",".join(f'{bare(k)}="{bare(v)}"' for k, v in sorted(more.items()))[:_LONGEST]
    scale = 100.0 if unit == "10^2.%" else 1.0
    unit = "%" if unit == "10^2.%" else _UNITS.get(unit, unit.replace("By", "B"))
    return of._replace(unit=unit, more=named), scale


def bare(said: str) -> str:
    """A label that stands between quotes in a name."""
    return _QUOTED.sub("_", said)[:200]


def _known(path: str, table: dict[str, Any]) -> Any:
    """What a table tells of the end of a metric's type."""
    return next((what for end, what in table.items() if path == end or path.endswith(f"/{end}")), None)


def _maker(kind: str, labels: dict[str, str]) -> str:
    said = " ".join((kind, *(labels.get(key, "") for key in ("make", "model", "modelName")))).lower()
    if "tpu" in said:
        return "TPU"
    return "GPU" if _NVIDIA.search(said) else "accelerator"


def _host(said: dict[str, Any], labels: dict[str, str]) -> tuple[str, bool]:
    """(the node, else the pod, the worker of a TPU or the machine, whether it is a node); nothing where none tells."""
    of, about = labels_of(said, "resource"), said.get("metadata")
    system = part(about, "systemLabels") or part(about, "system_labels")
    if node := of.get("node_name") or text(part(system, "node_name")):
        return bare(node), True
    if pod := of.get("pod_name"):
        return bare(pod), False
    if worker := of.get("worker_id"):
        return bare(f"{of.get('node_id', 'TPU')}-w-{worker}"), False
    told = (labels.get("Hostname"), labels.get("instance_name"), text(part(system, "name")), of.get("instance_id"))
    return bare(next(filter(None, (*told, of.get("instance"))), "")), False
