"""What an operation is, from its opcode or the category that a trace prints: which category, which collective."""

import re

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

_CONTROL = {
    "while",
    "conditional",
    "call",
    "async-start",
    "async-done",
    "async-update",
    "after-all",
    "domain",
    "partition-id",
    "replica-id",
    "opt-barrier",
    "add-dependency",
}
_WITH_HOST = ("host send", "host recv")  # callbacks, prints, offloaded values: the device may wait for the host
_MOVEMENT = {
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "dynamic-slice",
    "dynamic-update-slice",
    "concatenate",
    "pad",
    "gather",
    "scatter",
    "bitcast",
    "reverse",
    "iota",
    "tuple",
    "get-tuple-element",
    "parameter",
    "constant",
    "sort",
    "data formatting",
    "reduce-precision",
    "bitcast-convert",
}


def collective_of(opcode: str) -> tuple[str, str] | None:
    """(kind, part) of a collective's opcode or op name; part is "", "start" or "done". None for anything else."""
    if match := _COLLECTIVE_OP.match(opcode):
        return COLLECTIVES[match[1]], (match[2] or "").lstrip("-")
    return None


def category_of(opcode: str, contraction: str = "") -> str:
    """Category (`OP_CATEGORIES`) of an HLO opcode or of a TPU trace's `hlo_category`.

    `contraction`: "matmul" or "convolution" where the operation, or the fusion around it, holds one.
    """
    word = opcode.lower()
    base = word.removesuffix("-start").removesuffix("-done")
    if contraction and base not in _CONTROL:
        return contraction
    if base in _WITH_HOST:
        return "host"
    if base in COLLECTIVES or base in ("send", "recv") or any(c in word for c in COLLECTIVES):
        return "collective"
    if base in ("dot", "convolution", "ragged-dot", "scaled-dot") or "convolution" in word:
        return "convolution" if base == "convolution" and word == "convolution" else "matmul"
    if base == "copy" or word.startswith("copy"):
        return "copy"
    if "fusion" in word and not word.startswith("non-fusion"):
        return "fusion"
    if base in ("infeed", "outfeed"):
        return base
    if "custom-call" in word or "custom call" in word:
        return "custom-call"
    if base in _CONTROL or word in _CONTROL:
        return "control"
    if base in _MOVEMENT:
        return "data-movement"
    return "elementwise" if word else "other"
