"""What a trace's planes, lines and operations are: device or host, which role, which category, which collective."""

import re
from typing import NamedTuple

_DEVICE_PLANE = re.compile(r"^/device:([A-Za-z_]+):(\d+)(.*)$")
_STREAM = re.compile(r"^Stream #")
_TPU_ROLES = {
    "XLA Ops": "compute",
    "Async XLA Ops": "async",
    "XLA Modules": "module",
    "Steps": "step",
    "Sparse Core Ops": "async",
}

# NCCL's kernels name what they do but for the generic one, which is all that RCCL has; those on symmetric memory are
# called ncclSymkDevKernel. XLA has kernels of its own for exchanges of few bytes.
_NCCL = re.compile(
    r"nccl(?:Symk?)?(?:Dev)?Kernel_?(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce)|"
    r"\b(AllReduce|RaggedAllToAll)KernelImpl\b",
    re.IGNORECASE,
)
_LIBRARY = re.compile(r"^(?:nccl|rccl|msccl)\w*Kernel", re.IGNORECASE)
_NCCL_KINDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "sendrecv": "permute",
    "broadcast": "broadcast",
    "raggedalltoall": "all-to-all",
    "reduce": "broadcast",  # from all to one or from one to all: not all wait for the last
}

# Names of copies and fills: CUPTI's, those of three generations of ROCm's tracers, and ROCm's own kernels for them.
_GPU_COPY = re.compile(
    r"^((hip|cuda)?(Memcpy|Memset)|Copy(Device|Host)To(Device|Host)|FillBuffer|MEMORY_COPY_|__amd_rocclr_(copy|fill))",
    re.IGNORECASE,
)


class Plane(NamedTuple):
    """What a plane shows. `kind`: tpu, gpu, device (any other), host, other; `device`: its number, None for hosts."""

    kind: str
    device: int | None
    sparse: bool = False


def plane_of(name: str) -> Plane:
    """The meaning of a plane's name, such as `/device:TPU:3` or `/host:CPU`."""
    if match := _DEVICE_PLANE.match(name):
        kind = match[1].lower()
        return Plane(kind if kind in ("tpu", "gpu") else "device", int(match[2]), "sparse" in match[3].lower())
    return Plane("host" if name.startswith("/host:") else "other", None)


def line_role(plane: Plane, line: str) -> str:
    """Role of a line (`LINE_ROLES`). A GPU's streams hold all that occupies it: kernels, copies and collectives.

    XProf may have added lines derived from others (`XLA Ops` on a GPU): those are `other`, or time would count twice.
    """
    if plane.kind == "host":
        return "host"
    if plane.kind == "other":
        return "other"
    if plane.kind == "gpu":
        if _STREAM.match(line):
            return "compute"
        return {"Steps": "step", "XLA Modules": "module"}.get(line, "other")
    role = _TPU_ROLES.get(line, "other")
    return "async" if plane.sparse and role == "compute" else role


def nccl_kind(kernel: str) -> str | None:
    """Kind of collective of a kernel of NCCL, RCCL or XLA; None for those that do not tell, and for other kernels."""
    match = _NCCL.search(kernel)
    return _NCCL_KINDS[(match[1] or match[2]).lower()] if match else None


def of_collective(kernel: str) -> bool:
    """Whether a kernel carries out a collective, whatever it tells of its kind."""
    return bool(_LIBRARY.match(kernel)) or nccl_kind(kernel) is not None


def is_gpu_copy(kernel: str) -> bool:
    """Whether a GPU event is a copy or a fill of memory rather than a kernel of the program."""
    return bool(_GPU_COPY.match(kernel))
