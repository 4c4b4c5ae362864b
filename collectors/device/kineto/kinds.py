"""What an event of a trace is, from its category and its name."""

import re

import numpy as np

from collectors.device.kineto import attention, convolutions
from collectors.device.kineto.texts import Texts

OTHER, CPU_OP, ANNOTATION, PYTHON, RUNTIME, KERNEL, COPY, SYNC, SPAN, COUNTERS_OF, FLOW, NVTX = range(12)
ON_DEVICE = (KERNEL, COPY, SYNC, SPAN, COUNTERS_OF)
_KINDS = {
    "cpu_op": CPU_OP,
    "operator": CPU_OP,
    "user_annotation": ANNOTATION,
    "python_function": PYTHON,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "hip_runtime": RUNTIME,
    "xpu_runtime": RUNTIME,
    "xpu_driver": RUNTIME,
    "mtia_runtime": RUNTIME,
    "glow_runtime": RUNTIME,
    "hpu_op": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "privateuse1_driver": RUNTIME,
    "runtime": RUNTIME,
    "driver": RUNTIME,
    "kernel": KERNEL,
    "concurrent_kernel": KERNEL,
    "mtia_ccp_events": KERNEL,
    "gpu_memcpy": COPY,
    "gpu_memset": COPY,
    "memcpy": COPY,
    "memset": COPY,
    "cuda_sync": SYNC,
    "gpu_user_annotation": SPAN,
    "cuda_profiler_range": COUNTERS_OF,
    "nvtx": NVTX,
}
BARE = -1  # in place of the number of a step that tells none: such steps are counted by their time
_STEP = re.compile(r"^ProfilerStep(?:\s*#\s*(\d{1,18}))?$")
_FRAME = re.compile(r"^(?P<file>[^<>\n]+\.py)\((?P<line>\d+)\): (?P<function>.*)$", re.DOTALL)
_FRAMEWORK = re.compile(
    r"(^|/)(torch|torch_xla|functorch|triton|importlib|threading\.py|runpy\.py|contextlib\.py)(/|$)"
)
_MODULE = "nn.Module: "
FETCH = re.compile(r"^enumerate\(DataLoader\)")
GRAPH_LAUNCH = re.compile(r"GraphLaunch")
_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamBeginCapture")
_CAPTURE_END = re.compile(r"^(cuda|cu|hip)StreamEndCapture")
_KERNEL_CALL = re.compile(r"^(cuda|cu|hip)(Ext|Module|ExtModule)?Launch(Cooperative)?Kernel")
_COPY_CALL = re.compile(r"^(cuda|cu|hip)Mem(cpy|set)")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function: |Backward\d*$")
_CHECKPOINT = re.compile(r"^(autograd::engine::evaluate_function: )?CheckpointFunctionBackward")
_UPDATE = re.compile(r"^Optimizer\.(step|zero_grad)#")
_PASSES = (("forward", re.compile(r"^(fwd|forward)([ _-]?pass)?$", re.I)),)
_PASSES += (("backward", re.compile(r"^(bwd|backward)([ _-]?pass)?$", re.I)),)
# What names tell, see `Meanings`.
NOT_TOLD, NO_NAME, A_MODULE, A_FRAME, A_STEP, A_FETCH, A_GRAPH, MEMORY = range(8)
A_BACKWARD, A_CHECKPOINT, AN_UPDATE, WITH_VALUES = range(8, 12)
A_CAPTURE, A_CAPTURE_END, A_KERNEL_CALL, A_COPY_CALL = range(12, 16)
_OF_GRAPHS = ((A_GRAPH, GRAPH_LAUNCH), (A_CAPTURE, _CAPTURE), (A_CAPTURE_END, _CAPTURE_END))
_OF_GRAPHS += ((A_KERNEL_CALL, _KERNEL_CALL), (A_COPY_CALL, _COPY_CALL))


def source_of(frame: str) -> str | None:
    """`train.py:12` of a Python frame as the profiler prints it, `train.py(12): step`; None for any other name."""
    match = _FRAME.match(frame)
    return f"{match['file']}:{match['line']}" if match else None


def is_own(frame: str) -> bool:
    """Whether a frame is of the job's own code rather than of the framework or the interpreter."""
    match = _FRAME.match(frame)
    return bool(match) and not _FRAMEWORK.search(match["file"])


def step_of(name: str) -> int | None:
    """The step that a `ProfilerStep#12` is; BARE of one without a number."""
    match = _STEP.match(name)
    return (int(match[1]) if match[1] else BARE) if match else None


def module_of(name: str) -> str:
    """`Linear_3` of `nn.Module: Linear_3`."""
    return name.removeprefix(_MODULE)


def is_module(name: str) -> bool:
    """Whether a name is one of a module of PyTorch."""
    return name.startswith(_MODULE)


def pass_of(name: str) -> str | None:
    """The pass that the name of a range tells: `forward`, `bwd`, `Backward pass`."""
    return next((told for told, pattern in _PASSES if pattern.match(name)), None)


class Meanings:
    """What texts tell, by their number, each looked at once."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._kinds = np.zeros(0, np.int8)
        self._names = np.zeros(0, np.int8)

    def kinds(self, cats: np.ndarray) -> np.ndarray:
        """Kind of each category."""
        self._kinds = self._filled(self._kinds, cats, _kind)
        return np.where(cats >= 0, self._kinds[np.maximum(cats, 0)], OTHER) if len(self._kinds) else np.zeros_like(cats)

    def names(self, names: np.ndarray) -> np.ndarray:
        """What each name tells."""
        self._names = self._filled(self._names, names, _told)
        return np.where(names >= 0, self._names[np.maximum(names, 0)], NO_NAME) if len(self._names) else names * 0

    def _filled(self, known: np.ndarray, codes: np.ndarray, what) -> np.ndarray:
        most = int(codes.max(initial=-1)) + 1
        if most > len(known):
            known = np.concatenate([known, np.full(max(most, 2 * len(known)) - len(known), -1, np.int8)])
        mine = codes[codes >= 0]
        for code in np.unique(mine[known[mine] < 0]).tolist():
            known[code] = what(self._texts[code])
        return known


def _kind(cat: str) -> int:
    cat = cat.lower()
    made = RUNTIME if cat.endswith(("_runtime", "_driver")) else OTHER  # of makers whose Kineto is their own
    return _KINDS.get(cat, made)


def _told(name: str) -> int:
    if name.startswith(_MODULE):
        return A_MODULE
    if name == "[memory]":
        return MEMORY
    if _STEP.match(name):
        return A_STEP
    if FETCH.match(name):
        return A_FETCH
    for told, pattern in _OF_GRAPHS:
        if pattern.search(name):
            return told
    if name in attention.CALLS or name in convolutions.CALLS:
        return WITH_VALUES
    if _CHECKPOINT.match(name):
        return A_CHECKPOINT
    if _BACKWARD.search(name):
        return A_BACKWARD
    if _UPDATE.match(name):
        return AN_UPDATE
    return A_FRAME if is_own(name) else NO_NAME
