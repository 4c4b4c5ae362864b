"""What names of ranges tell: those that a program pushes and pops by NVTX and ROCTX."""

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
