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

COLLECTIVES: dict[str, str] = {
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "reduce-scatter": "reduce-scatter",
    "all-to-all": "all-to-all",
    "ragged-all-to-all": "all-to-all",
    "collective-permute": "permute",
    "collective-broadcast": "broadcast",
}
_COLLECTIVE_OP = re.compile(
    r"^(all-reduce|all-gather|reduce-scatter|ragged-all-to-all|all-to-all|collective-permute|collective-broadcast)"
    r"(-start|-done)?(?:\.[\w.]+)?$"
)
_NCCL = re.compile(
    r"nccl(?:Dev)?Kernel_?(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce)", re.IGNORECASE
)
_NCCL_KINDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "sendrecv": "permute",
    "broadcast": "broadcast",
    "reduce": "all-reduce",
}

_CONTROL = {
    "while", "conditional", "call", "async-start", "async-done", "async-update", "after-all", "domain", "partition-id",
    "replica-id", "opt-barrier", "add-dependency",
}  # fmt: skip
_MOVEMENT = {
    "broadcast", "reshape", "transpose", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad",
    "gather", "scatter", "bitcast", "reverse", "iota", "tuple", "get-tuple-element", "parameter", "constant", "sort",
    "data formatting", "reduce-precision", "bitcast-convert",
}  # fmt: skip
_GPU_COPY = re.compile(r"^(Memcpy|MemcpyD2D|MemcpyH2D|MemcpyD2H|Memset|__amd_rocclr_(copy|fill))", re.IGNORECASE)


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
    """Role of a line (`LINE_ROLES`). On a GPU it holds for kernels; copies and NCCL kernels there are `async`.

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


def collective_of(opcode: str) -> tuple[str, str] | None:
    """(kind, part) of a collective's opcode or op name; part is "", "start" or "done". None for anything else."""
    if match := _COLLECTIVE_OP.match(opcode):
        return COLLECTIVES[match[1]], (match[2] or "").lstrip("-")
    return None


def nccl_kind(kernel: str) -> str | None:
    """Kind of collective of an NCCL or RCCL kernel, None for other kernels."""
    match = _NCCL.search(kernel)
    return _NCCL_KINDS[match[1].lower()] if match else None


def is_gpu_copy(kernel: str) -> bool:
    """Whether a GPU event is a copy or a fill of memory rather than a kernel of the program."""
    return bool(_GPU_COPY.match(kernel))


def category_of(opcode: str, contraction: str = "") -> str:
    """Category (`OP_CATEGORIES`) of an HLO opcode or of a TPU trace's `hlo_category`.

    `contraction`: "matmul" or "convolution" where the operation, or the fusion around it, holds one.
    """
    word = opcode.lower()
    base = word.removesuffix("-start").removesuffix("-done")
    if contraction and base not in _CONTROL:
        return contraction
    if base in COLLECTIVES or base in ("send", "recv") or any(c in word for c in COLLECTIVES):
        return "collective"
    if base in ("dot", "convolution", "ragged-dot") or "convolution" in word:
        return "convolution" if base == "convolution" and word == "convolution" else "matmul"
    if base == "copy" or word.startswith("copy"):
        return "copy"
    if "fusion" in word:
        return "fusion"
    if base in ("infeed", "outfeed"):
        return base
    if "custom-call" in word or "custom call" in word:
        return "custom-call"
    if base in _CONTROL:
        return "control"
    if base in _MOVEMENT:
        return "data-movement"
    return "elementwise" if word else "other"
