"""What names in an export tell: ranges of NVTX, calls of CUDA, copies."""

import re
from dataclasses import dataclass

_STEP = re.compile(
    r"^\s*(?:(?:train|training)[ _-]?)?(?:step|iteration|iter|batch|ProfilerStep)[\s:#=_-]*(\d{1,17})\s*$", re.I
)
_BARE = re.compile(r"^\s*(?:(?:train|training)[ _-]?)(?:step|iteration|iter)\s*$|^\s*(?:step|iteration)\s*$", re.I)
_OPERATOR = re.compile(
    r"^(?P<name>[^,]+?)(?:, seq = (?P<seq>\d{1,18}))?(?:, op_id = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?"
    r"(?:, input_op_ids = .*)?$",
    re.DOTALL,
)
_FETCH = re.compile(
    r"^enumerate\(DataLoader\)|^\s*(?:data[ _-]?load(?:ing|er)?|fetch(?:[ _-]?(?:data|batch))?|next[ _-]?batch)\s*$",
    re.I,
)
_SIGNS = (", seq = ", ", op_id = ", ", sizes = ")
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
}
_SYNCS = {1: "Event Synchronize", 2: "Stream Wait Event", 3: "Stream Synchronize", 4: "Context Synchronize"}
FETCHED = "enumerate(DataLoader)"  # what the fetch of a batch is called among events


@dataclass(frozen=True)
class Range:
    """What a range is: `step` of this number (-1: counted by its place), an operator of PyTorch (`torch.autograd`'s
    `emit_nvtx`) with its sequence number and the sizes of its tensors as text, or a name alone."""

    name: str
    step: int | None = None
    operator: bool = False
    sequence: int | None = None
    sizes: str = ""
    fetch: bool = False


def range_of(text: str) -> Range:
    """What a range's text tells."""
    if any(sign in text for sign in _SIGNS) and (match := _OPERATOR.match(text)):  # most ranges, so these first
        sequence = int(match["seq"]) if match["seq"] else None
        return Range(match["name"], operator=True, sequence=sequence, sizes=match["sizes"] or "")
    if match := _STEP.match(text):
        return Range(text, step=int(match[1]))
    if _BARE.match(text):
        return Range(text, step=-1)
    return Range(FETCHED, fetch=True) if _FETCH.match(text) else Range(text)


def call_of(name: str) -> str:
    """`cudaLaunchKernel` of `cudaLaunchKernel_v7000`."""
    return _VERSION.sub("", name)


def copy_of(kind: int) -> str:
    """A copy's name from its direction, as CUPTI numbers them."""
    return f"Memcpy {_COPIES.get(kind, '')}".strip()


def sync_of(kind: int) -> str:
    return _SYNCS.get(kind, "Synchronize")
