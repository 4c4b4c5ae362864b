"""Traces of the PyTorch profiler, written by hand as it writes them."""

import json
from collections.abc import Sequence
from typing import Any

BASE = 1_751_410_836_000_000_000


def trace(events: Sequence[Any], **beside: Any) -> bytes:
    """A whole trace; an event may be given as text."""
    whole = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, **beside}
    head = json.dumps(whole)[:-1]
    body = ",\n".join(e if isinstance(e, str) else json.dumps(e) for e in events)
    return f'{head}, "traceEvents": [\n{body}\n]}}'.encode()


def event(cat: str, name: str, ts: float, dur: float, pid: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    """A whole event; `ts` and `dur` in microseconds."""
    told = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return told | ({"args": {k.replace("_", " "): v for k, v in args.items()}} if args else {})


def kernel(name: str, ts: float, dur: float, correlation: int, stream: Any = 7, device: int = 0, **args: Any) -> dict:
    """A kernel on a stream of a device."""
    return event("kernel", name, ts, dur, device, stream, device=device, stream=stream, correlation=correlation, **args)


def launch(ts: float, dur: float, correlation: int, name: str = "cudaLaunchKernel", tid: Any = 1) -> dict:
    """The call of the host that launches what has its correlation number."""
    return event("cuda_runtime", name, ts, dur, tid=tid, correlation=correlation)


def op(name: str, ts: float, dur: float, dims: Any = None, types: Any = None, tid: Any = 1, **args: Any) -> dict:
    """An operator on the host."""
    told = event("cpu_op", name, ts, dur, tid=tid, **args)
    told.setdefault("args", {}).update({} if dims is None else {"Input Dims": dims, "Input type": types})
    return told


def step(number: int, ts: float, dur: float, tid: Any = 1) -> dict:
    """The mark of a step."""
    return event("user_annotation", f"ProfilerStep#{number}", ts, dur, tid=tid)


def frame(name: str, ts: float, dur: float, tid: Any = 1) -> dict:
    """A Python frame or module."""
    return event("python_function", name, ts, dur, tid=tid, Python_id=1)


def collective(name: str, ts: float, dur: float, correlation: int, ranks: str = "[0, 1]", **args: Any) -> dict:
    """A kernel of NCCL with what the profiler tells of it."""
    told = {
        "Collective name": name,
        "In msg nelems": 1024,
        "Out msg nelems": 1024,
        "Group size": 2,
        "dtype": "BFloat16",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": ranks,
    }
    made = kernel("ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)", ts, dur, correlation, stream=20)
    made["args"] |= told | args
    return made
