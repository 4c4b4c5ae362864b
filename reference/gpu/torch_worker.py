"""One rank of the PyTorch job: `python -m reference.gpu.torch_worker PLAN RANK PORT`, in the job's folder.

Trains on a GPU where there is one, ranks sharing it where there are fewer GPUs than ranks, else on the CPU. What was
done to it is written, as measured, to `truth/rank-<r>.jsonl`, which no analyzer sees.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, IterableDataset

from reference.gpu.harm import Events, late
from reference.gpu.plan import Plan, within
from reference.gpu.torch_model import Decoder

HOST = "127.0.0.1"
PEAK_SIZES = (256, 512, 1024)
PEAK_GPU_SIZES = (2048, 4096, 8192)


class Bytes(IterableDataset):
    """Batches of bytes of the interpreter's own help texts; `next()` waits where the plan says so."""

    def __init__(self, plan: Plan, rank: int, events: Events):
        self._plan, self._rank, self._events = plan, rank, events
        self._text = torch.frombuffer(bytearray(_text()), dtype=torch.uint8).long() % plan.dims.vocab_size

    def __iter__(self) -> Iterator[torch.Tensor]:
        dims = self._plan.dims
        rows = torch.Generator().manual_seed(self._plan.seed * 1000 + self._rank)
        for step in range(self._plan.steps):
            if within(step, self._plan.stalled):
                start = time.time_ns()
                time.sleep(self._plan.stall_s)
                self._events.write("stall", step=step, start_ns=start, end_ns=time.time_ns())
            at = torch.randint(len(self._text) - dims.seq_len - 1, (dims.batch_size,), generator=rows)
            yield torch.stack([self._text[i : i + dims.seq_len + 1] for i in at.tolist()])


def _text() -> bytes:
    import pydoc_data.topics as topics

    return "".join(topics.topics.values()).encode()


def peak(device: torch.device, events: Events) -> None:
    """The best rate of float32 (on a GPU bfloat16) matrix products of several sizes, all ranks at once."""
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    for size in PEAK_GPU_SIZES if device.type == "cuda" else PEAK_SIZES:
        a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
        dist.barrier()
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.5:
            a @ b
            done += 1
            if device.type == "cuda":
                torch.cuda.synchronize()
        events.write("peak", size=size, flops_per_s=2.0 * size**3 * done / (time.perf_counter() - start))


def small_calls(plan: Plan, device: torch.device, events: Events, step: int) -> None:
    """Many operations on a few numbers: a device waits for each to be launched."""
    start, x = time.time_ns(), torch.ones(8, device=device)
    for _ in range(plan.small_calls // 2):
        x = x * 1.0001 + 1e-6
    if device.type == "cuda":
        torch.cuda.synchronize()
    events.write("small_calls", step=step, start_ns=start, end_ns=time.time_ns(), calls=plan.small_calls)


def main(argv: list[str]) -> None:
    plan, rank, port = Plan.load(Path(argv[0])), int(argv[1]), int(argv[2])
    os.environ |= {"MASTER_ADDR": HOST, "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    events = Events(Path(f"truth/rank-{rank}.jsonl"))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    device = torch.device("cuda", rank % gpus) if gpus else torch.device("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(plan.seed)
    dist.init_process_group("nccl" if gpus >= plan.ranks else "gloo", rank=rank, world_size=plan.ranks)
    peak(device, events)
    model = Decoder(plan.dims).to(device)
    own = DistributedDataParallel(model, device_ids=[device.index] if gpus else None)
    optimizer = torch.optim.AdamW(own.parameters(), lr=plan.learning_rate)
    loader = iter(DataLoader(Bytes(plan, rank, events), batch_size=None))
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if gpus else [])]
    first, last = plan.profiled
    windows = schedule(wait=first - 1, warmup=1, active=last - first + 1, repeat=1)
    events.write("ready", device=str(device), gpus=gpus, torch=torch.__version__, gpu=_gpu(gpus))

    def save(profiler: profile) -> None:
        Path("traces").mkdir(exist_ok=True)
        profiler.export_chrome_trace(f"traces/rank-{rank}.pt.trace.json")

    with profile(
        activities=kinds, schedule=windows, on_trace_ready=save, record_shapes=True, with_stack=True
    ) as traced:
        for step in range(plan.steps):
            start = time.time_ns()
            batch = next(loader).to(device)
            if within(step, plan.straggler) and rank == plan.late_rank:
                late(plan, events, step)
            with record_function("train_step"):
                logits = own(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            if within(step, plan.launch_bound):
                small_calls(plan, device, events, step)
            told = loss.item()
            events.write("step", step=step, start_ns=start, end_ns=time.time_ns(), loss=told)
            traced.step()
    dist.destroy_process_group()


def _gpu(gpus: int) -> str | None:
    return torch.cuda.get_device_name(0) if gpus else None


if __name__ == "__main__":
    main(sys.argv[1:])
