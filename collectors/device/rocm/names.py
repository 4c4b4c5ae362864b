"""What names and categories of AMD's profilers tell: which call is which, which operation is a copy, a fill, a wait."""

import re

RUNTIME, RANGE, RCCL, PROFILER, OTHER = "hip_runtime", "nvtx", "user_annotation", "overhead", "rocm"  # as categories
_COPY = re.compile(r"COPY_?(?:(HOST|DEVICE)_?TO_?(HOST|DEVICE))?", re.IGNORECASE)
_END = {"HOST": "H", "DEVICE": "D"}
_CALLS = re.compile(r"^_{0,2}(hip|hsa|cuda|cu)(?=[A-Z_])")
_RCCL = re.compile(r"^(nccl|rccl|mscclpp?)[A-Z]")
_ROCTX = re.compile(r"^roctx", re.IGNORECASE)
_OWN = re.compile(r"^(hcc_activity_callback|rpdflush|\w+Table::\w+|rpd_\w+)$")


def call_kind(category: str, name: str) -> str:
    """Category of a call or range of a host's thread, from what the profiler says of it, else from its own name."""
    said = category.lower()
    if "marker" in said or "roctx" in said or said in ("user", "python", "host"):
        return RANGE
    if "rccl" in said or _RCCL.match(name):
        return RCCL
    if "hip" in said or "hsa" in said:
        return RUNTIME
    if said:
        return OTHER
    if _CALLS.match(name):
        return RUNTIME
    if _ROCTX.match(name):
        return RANGE
    return PROFILER if _OWN.match(name) else OTHER


def is_hip(category: str, name: str = "") -> bool:
    """Whether a call is one of HIP, that a program itself makes, rather than one of HSA below it."""
    return "hip" in category.lower() or name.lstrip("_").startswith("hip")


def copy_name(name: str) -> str:
    """`Memcpy HtoD` of `MEMORY_COPY_HOST_TO_DEVICE` and `CopyHostToDevice`."""
    match = _COPY.search(name)
    if not match or not match[1]:
        return "Memcpy" if match else name
    return f"Memcpy {_END[match[1].upper()]}to{_END[match[2].upper()]}"


def operation_kind(kind: str) -> str:
    """Category of what a device executed, from the kind of operation that the runtime called it."""
    said = kind.lower()
    if "copy" in said:
        return "gpu_memcpy"
    if "fill" in said or "memset" in said:
        return "gpu_memset"
    return "cuda_sync" if "barrier" in said or "marker" in said else "kernel"
