"""Traces of the PyTorch profiler (`*.pt.trace.json`, Kineto's Chrome JSON) on CUDA, ROCm, MTIA and CPU.

Only what recognising a file needs is imported here; `read` imports the rest.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source

NAME = "kineto"
TITLE = "PyTorch trace"
HELP = (
    "Traces that torch.profiler writes (`*.pt.trace.json`, `.json.gz`): every kernel, copy and host event, what "
    "launched it, steps, collectives, memory."
)
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|Operator|user_annotation|python_function|kernel|Kernel|gpu_mem(?:cpy|set)|Mem(?:cpy|set)|'
    rb'cuda_(?:runtime|driver|sync)|Runtime|gpu_user_annotation|cpu_instant_event|ac2g|async_cpu_to_gpu)"'
)
_BESIDE = (b'"schemaVersion"', b'"deviceProperties"', b'"distributedInfo"', b'"baseTimeNanoseconds"')


def sniff(source: Source) -> float:
    """0.95 for JSON with trace events, or what Kineto writes before them; 1 for both; 0.9 for a bare list of them."""
    head = source.head.lstrip()
    if head[:1] == b"[":
        return 0.9 if b'"ph"' in head and _CATEGORY.search(head) else 0.0
    if head[:1] != b"{":
        return 0.0
    events, beside = b'"traceEvents"' in head, any(b in head for b in _BESIDE[1:])
    told = events and _CATEGORY.search(head) is not None
    if _BESIDE[0] in head and beside and told:
        return 1.0  # a reader of anything else need not be loaded to be asked
    return 0.95 if told or (_BESIDE[0] in head and (events or beside)) else 0.0


def read(source: Source) -> Iterator[Item]:
    """The trace as rows, facts and named losses; memory stays bounded whatever the number of host events.

    Raises InputError for a trace without events.
    """
    from collectors.device.kineto.reader import Reader

    yield from Reader(source).items()
