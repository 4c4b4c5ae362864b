"""What names in an export tell: calls of CUDA, copies, waits."""

import re

_VERSION = re.compile(r"_v\d{3,6}$")
_COPIES = {
    0: "",
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "Unified HtoD",
    12: "Unified DtoH",
    13: "Unified DtoD",
}
_SYNCS = {1: "Event Synchronize", 2: "Stream Wait Event", 3: "Stream Synchronize", 4: "Context Synchronize"}


def call_of(name: str) -> str:
    """`cudaLaunchKernel` of `cudaLaunchKernel_v7000`."""
    return _VERSION.sub("", name)


def copy_of(kind: int) -> str:
    """A copy's name from its direction, as CUPTI numbers them."""
    return f"Memcpy {_COPIES.get(kind, '')}".strip()


def sync_of(kind: int) -> str:
    return _SYNCS.get(kind, "Synchronize")
