"""A trace as torch.profiler writes it of a training job, as large as is asked for, the same bytes for the same numbers.

The job is made up; its shape is that of real traces: Python frames and operators within each other on the thread of
the forward pass, operators on the thread of the backward pass, a call for each kernel, kernels on one stream and
collectives on another, arrows between calls and kernels, and shapes and numbers on each event.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

HEAD = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85899345920, "numSms": 108}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
    "record_shapes": 1,
    "with_stack": 1,
    "baseTimeNanoseconds": 1_751_410_836_000_000_000,
}
LAYERS = 32
OPERATORS = (  # name, kernel, us on the host, us on the device
    ("aten::native_layer_norm", "void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>", 24, 11),
    ("aten::mm", "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", 31, 95),
    ("aten::mul", "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor>", 14, 8),
    ("aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>", 13, 9),
    ("aten::_softmax", "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16>", 19, 17),
    ("aten::bmm", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", 28, 41),
    ("aten::copy_", "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", 15, 6),
)
FORWARD, BACKWARD = 1001, 1002


class Writer:
    """Events of one step after another; times in us."""

    def __init__(self, seed: int = 0):
        self._draw = random.Random(seed)
        self._number = 0
        self._host = self._device = 0.0

    def step(self, number: int) -> Iterator[dict]:
        begin = self._host
        for layer in range(LAYERS):
            yield from self._layer(layer, FORWARD, "nn.Module: Block")
        for layer in reversed(range(LAYERS)):
            yield from self._layer(layer, BACKWARD, "")
            yield from self._collective()
        self._host = max(self._host, self._device)
        yield self._event("user_annotation", f"ProfilerStep#{number}", begin, self._host - begin, FORWARD, {})

    def _layer(self, layer: int, tid: int, module: str) -> Iterator[dict]:
        begin = self._host
        for k, (name, kernel, host_us, device_us) in enumerate(OPERATORS * 2):
            start = self._host
            yield from self._launch(name, kernel, host_us * self._draw.uniform(0.8, 1.4), device_us, tid)
            if module:
                told = {"Python id": self._number, "Python parent id": layer, "Python module id": k}
                where = f"model/block.py({40 + k}): forward"
                yield self._event("python_function", where, start, self._host - start, tid, told)
        if module:
            told = {"Python id": self._number, "Python parent id": layer, "Python module id": layer}
            yield self._event("python_function", f"{module}_{layer}", begin, self._host - begin, tid, told)

    def _launch(self, name: str, kernel: str, host_us: float, device_us: float, tid: int) -> Iterator[dict]:
        self._number += 1
        n, start = self._number, self._host
        shape = {
            "External id": n,
            "Sequence number": n // 4,
            "Fwd thread id": 0,
            "Record function id": n,
            "Input Dims": [[4, 2048, 4096], [4096, 4096], []],
            "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
            "Concrete Inputs": ["", "", "1"],
        }
        yield self._event("cpu_op", name, start, host_us, tid, shape)
        yield self._event("cpu_op", f"{name}_impl", start + 1, host_us - 2, tid, shape)
        call = start + host_us / 2
        told = {"External id": n, "cbid": 211, "correlation": n}
        yield self._event("cuda_runtime", "cudaLaunchKernel", call, 6.25, tid, told)
        yield {"ph": "s", "id": n, "pid": 0, "tid": tid, "ts": round(call, 3), "cat": "ac2g", "name": "ac2g"}
        begin = max(self._device + 1.5, call + 8)
        took = device_us * self._draw.uniform(0.9, 1.2)
        yield self._kernel(kernel, begin, took, n, 7, {})
        yield {"ph": "f", "id": n, "pid": 0, "tid": 7, "ts": round(begin, 3), "cat": "ac2g", "name": "ac2g", "bp": "e"}
        self._device, self._host = begin + took, start + host_us + self._draw.uniform(1, 6)

    def _collective(self) -> Iterator[dict]:
        self._number += 1
        n = self._number
        yield self._event("cuda_runtime", "cudaLaunchKernelExC", self._host, 9.5, BACKWARD, {"correlation": n})
        told = {
            "Collective name": "allreduce",
            "In msg nelems": 16777216,
            "Out msg nelems": 16777216,
            "Group size": 2,
            "dtype": "BFloat16",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": "[0, 1]",
        }
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        yield self._kernel(name, self._host + 12, 380.5, n, 20, told)
        self._host += 12

    def _kernel(self, name: str, ts: float, dur: float, number: int, stream: int, told: dict) -> dict:
        args = {
            "External id": number,
            "queued": 0,
            "device": 0,
            "context": 1,
            "stream": stream,
            "correlation": number,
            "registers per thread": 32,
            "shared memory": 0,
            "blocks per SM": 37.925926,
            "warps per SM": 151.7037,
            "grid": [4096, 1, 1],
            "block": [128, 1, 1],
            "est. achieved occupancy %": 100,
        }
        return self._event("kernel", name, ts, dur, stream, args | told, pid=0)

    @staticmethod
    def _event(cat: str, name: str, ts: float, dur: float, tid: int, args: dict, pid: int = 900) -> dict:
        told = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        return told | {"ts": round(ts, 3), "dur": round(dur, 3), "args": args}


def write(path: Path, at_least_bytes: int) -> int:
    """Whole steps until the file is large enough; returns how many events it holds."""
    writer, count, number = Writer(), 0, 0
    with path.open("w") as f:
        f.write(json.dumps(HEAD)[:-1] + ', "traceEvents": [\n')
        while f.tell() < at_least_bytes:
            lines = [json.dumps(event) for event in writer.step(number)]
            f.write(",\n".join(lines) if not count else ",\n" + ",\n".join(lines))
            count, number = count + len(lines), number + 1
        f.write("\n]}\n")
    return count


def of_rank(trace: Path, rank: int, ranks: int, path: Path) -> None:
    """The same trace as another rank of a job would have written it, where all take part in collectives."""
    group = "[" + ", ".join(map(str, range(ranks))) + "]"
    text = trace.read_bytes()
    for key, mine in (("rank", rank), ("world_size", ranks), ("Group size", ranks), ("Process Group Ranks", group)):
        told = {"rank": 0, "world_size": 2, "Group size": 2, "Process Group Ranks": "[0, 1]"}[key]
        text = text.replace(f'"{key}": {json.dumps(told)}'.encode(), f'"{key}": {json.dumps(mine)}'.encode())
    path.write_bytes(text)
