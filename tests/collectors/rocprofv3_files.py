"""What rocprofv3 writes as JSON, written by hand."""

import json
from copy import deepcopy
from typing import Any

from tests.collectors.rocm_files import BOOT, MI300X

_KINDS = ("NONE", "HIP_RUNTIME_API_EXT", "KERNEL_DISPATCH", "MEMORY_COPY", "MARKER_CORE_RANGE_API", "RCCL_API")
RCCL_CALLS = ("ncclAllGather", "ncclAllReduce", "ncclGroupStart", "ncclGroupEnd", "ncclCommCount", "ncclSend")
_OPERATIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("hipApiName", "hipLaunchKernel", "hipMemcpyAsync"),
    ("KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"),
    ("MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"),
    ("roctxMarkA", "roctxThreadRangeA"),
    RCCL_CALLS,
)


class Tool:
    """What rocprofv3 writes as JSON of one process."""

    def __init__(self, pid: int = 908, host: str = "node-7"):
        self.pid = pid
        self.records: dict[str, list[Any]] = {"kernel_dispatch": [], "hip_api": [], "marker_api": [], "memory_copy": []}
        self.kernels: list[str] = []
        self.markers: list[dict[str, Any]] = []
        self.metadata = {"node": {"hostname": host}, "pid": pid, "command": ["/usr/bin/python3", "train.py"]}

    def record(self, kind: str, of: str, operation: int, start: int, dur: int, call: int, **more: Any) -> "Tool":
        """A record of any kind."""
        told = {"kind": _KINDS.index(of), "operation": operation, "thread_id": self.pid}
        told |= {"correlation_id": {"internal": call, "external": 0}, "start_timestamp": start}
        self.records.setdefault(kind, []).append({**told, "end_timestamp": start + dur, **more})
        return self

    def kernel(self, name: str, start: int, dur: int, call: int, agent: int = 37_946, queue=16, stream=0) -> "Tool":
        if name not in self.kernels:
            self.kernels.append(name)
        info = {"agent_id": {"handle": agent}, "queue_id": {"handle": queue}, "kernel_id": self.kernels.index(name)}
        return self.record(
            "kernel_dispatch",
            "KERNEL_DISPATCH",
            2,
            start,
            dur,
            call,
            dispatch_info=info,
            stream_id={"handle": stream},
        )

    def ran(self, name: str, start: int, dur: int, call: int, lag: int = 50, **more: Any) -> "Tool":
        """A kernel with the call that launched it `lag` before."""
        self.record("hip_api", "HIP_RUNTIME_API_EXT", 1, start - lag, 5, call)
        return self.kernel(name, start, dur, call, **more)

    def copy(self, start: int, dur: int, call: int, size: int, to: int = 37_946, of: int = 37_944) -> "Tool":
        sides = {"dst_agent_id": {"handle": to}, "src_agent_id": {"handle": of}, "bytes": size}
        return self.record("memory_copy", "MEMORY_COPY", 2, start, dur, call, **sides)

    def range(self, text: str, start: int, dur: int) -> "Tool":
        call = 100_000 + len(self.markers)
        self.markers.append({"key": call, "value": text})
        return self.record("marker_api", "MARKER_CORE_RANGE_API", 1 if dur else 0, start, dur, call)

    def told(self) -> dict[str, Any]:
        """As it stands in the file."""
        agents = [{"id": {"handle": 37_944}, "type": 1, "name": "AMD EPYC", "node_id": 0, "logical_node_type_id": 0}]
        for n in range(2):
            gpu = {"type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "logical_node_type_id": n}
            agents.append({"id": {"handle": 37_946 + n}, "node_id": 2 + n, **gpu, **deepcopy(MI300X)})
        symbols = [{"kernel_id": n, "formatted_kernel_name": name} for n, name in enumerate(self.kernels)]
        kinds = [{"kind": k, "operations": o} for k, o in zip(_KINDS, _OPERATIONS, strict=True)]
        return {
            "metadata": self.metadata,
            "agents": agents,
            "counters": [],
            "strings": {"buffer_records": kinds, "marker_api": self.markers},
            "kernel_symbols": symbols,
            "callback_records": {"counter_collection": []},
            "buffer_records": self.records,
        }

    def text(self) -> str:
        return json.dumps({"rocprofiler-sdk-tool": [self.told()]}, separators=(",", ":"))


def whole_tool() -> Tool:
    """A small profile with something of everything: two steps on one device."""
    made = Tool()
    for step in range(2):
        at, call = BOOT + 1_000_000 * (step + 1), 10 * step
        made.range(f"step {step + 7}", at, 900_000).range("attention", at + 2_000, 300_000)
        made.ran("Cijk_Ailk_Bljk_HHS_BH", at + 10_000, 70_000, call + 1)
        made.ran("vectorized_elementwise_kernel", at + 200_000, 50_000, call + 2, stream=4, queue=17)
        made.record("rccl_api", "RCCL_API", 1, at + 312_000, 37_000, call + 3)
        made.ran("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", at + 330_000, 60_000, call + 4, 5_000)
        made.record("hip_api", "HIP_RUNTIME_API_EXT", 2, at + 500_000, 4_000, call + 5)
        made.copy(at + 505_000, 1_000, call + 5, 1 << 20)
    made.range("loss is finite", BOOT + 2_950_000, 0)
    made.records["counter_collection"] = [{"dispatch_data": {}, "records": []}]
    return made
