"""Whose code a frame of a stack is, how a line of one's own code is named, and what a program does there."""

import re
from collections.abc import Sequence

Frame = tuple[str, str, int]  # function, file, line; stacks hold the innermost first

OWN, LIBRARY, NATIVE = "own", "library", "native"
PHASES: dict[str, str] = {
    "forward": "allocated within a module's forward",
    "backward": "allocated by the backward pass",
    "optimizer": "allocated by an optimiser's step",
    "communication": "allocated by a collective operation",
    "elsewhere": "allocated by other code whose calls are known",
    "unrecorded": "nobody recorded the calls that allocated it",
}
_PYTHON = re.compile(r"\.py$|^<(?:stdin|string|ipython-input.*|.*cell.*)>$")
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|lib(?:64)?/python3[.\d]*|torchinductor_[^/]*)/|^<(?:frozen|string)\b|"
    r"(?:^|/)torch/(?:_|nn/|autograd/|optim/|utils/|cuda/|distributed/|amp/|fx/|jit/|overrides|random|functional)",
    re.IGNORECASE,
)
_BACKWARD = re.compile(r"\b(AccumulateGrad|\w+Backward\d*)(?:_apply_functional|_apply_impl|::apply)\b")
_ENGINE = "torch::autograd::Engine::"
_NOISE = re.compile(
    r"^(?:torch::unwind|torch::CapturedTraceback|torch::cuda::\(anonymous|c10::|at::detail::|_?Py|\?\?$)"
)
_COLLECTIVE = re.compile(r"ProcessGroup(?:NCCL|UCC|XCCL)|ncclComm|torch/distributed/distributed_c10d")


def kind_of(file: str) -> str:
    """`own`: a Python file that lies in no library; `library`; `native`: compiled code."""
    path = file.replace("\\", "/")
    if not _PYTHON.search(path):
        return NATIVE
    return LIBRARY if _LIBRARY.search(path) else OWN


def own(frames: Sequence[Frame]) -> list[Frame]:
    """The frames of the user's own code, the innermost first."""
    return [f for f in frames if kind_of(f[1]) == OWN]


def named(frames: Sequence[Frame]) -> str:
    """Where a stack allocates: its first own frame; without one, what autograd computes there, else its first Python
    frame, else its first compiled one that is no allocator's."""
    if mine := own(frames):
        return line_of(mine[0])
    for name, _, _ in frames:
        if match := _BACKWARD.search(name):
            return f"{match[1]} (backward pass)"
    if any(name.startswith(_ENGINE) for name, _, _ in frames):
        return "autograd engine (backward pass)"
    for frame in frames:
        if kind_of(frame[1]) == LIBRARY:
            return line_of(frame)
    return next((name.split("(")[0][:100] for name, _, _ in frames if not _NOISE.match(name)), "compiled code")


def line_of(frame: Frame) -> str:
    """`model.py:123 forward`: the last part of the file's path, so that it can be read; stacks keep the whole path."""
    name, file, line = frame
    return f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line} {name}"


def phase_of(frames: Sequence[Frame]) -> str:
    """A key of PHASES, by names alone: autograd's engine, or a `backward` of one's own, wins over a `forward` that it
    computes again; an optimiser is known by its file (`optim`) and a function `step`."""
    if not frames:
        return "unrecorded"
    names = [name for name, _, _ in frames]
    if any(n == "backward" or n.startswith(_ENGINE) or _BACKWARD.search(n) for n in names):
        return "backward"
    # An optimiser may call a closure that runs the forward pass (Lightning does): the innermost of both counts.
    forward = next((n for n, name in enumerate(names) if name in ("forward", "_call_impl")), len(frames))
    if any("optim" in file.lower() and "step" in name for name, file, _ in frames[:forward]):
        return "optimizer"
    if any(_COLLECTIVE.search(name) or _COLLECTIVE.search(file) for name, file, _ in frames):
        return "communication"
    return "forward" if any(n in ("forward", "_call_impl") for n in names) else "elsewhere"
