"""Synchronous GPU jobs, timed event by event, traced as PyTorch's profiler writes them: whatever is asked of the traces
is known beforehand. Times are in microseconds."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collectors.ingest import ingest
from runs.run import Run
from runs.store import Store
from tests.collectors import kineto_traces as made


@dataclass(frozen=True)
class Call:
    """A collective of a step: what it takes once all ranks are there, and who takes part where not all do."""

    name: str = "allreduce"
    transfer_us: float = 500.0
    elements: int = 1 << 20


@dataclass
class Job:
    """Each rank computes for `work(rank, step, call)` and then enters the call; all leave it together.

    steps    of each rank those that it profiles, all of them where it is not told
    dropped  (rank, step, call) of executions that a profile lost
    marked   whether the profiler marks steps
    """

    ranks: int = 4
    steps: int = 24
    calls: Sequence[Call] = (Call(),)
    work: Callable[[int, int, int], float] = lambda rank, step, call: 2000.0
    profiled: Mapping[int, range] = field(default_factory=dict)
    dropped: Callable[[int, int, int], bool] = lambda rank, step, call: False
    marked: bool = True
    scatter_us: float = 20.0

    def traces(self) -> dict[str, bytes]:
        """A file of each rank."""
        rng, now = random.Random(1), 1000.0
        events: dict[int, list[dict[str, Any]]] = {rank: [] for rank in range(self.ranks)}
        number = 0
        for step in range(self.steps):
            begun = now
            seen = [rank for rank in events if step in self.profiled.get(rank, range(self.steps))]
            for n, call in enumerate(self.calls):
                came = {rank: now + self.work(rank, step, n) + rng.uniform(0, self.scatter_us) for rank in events}
                left = max(came.values()) + call.transfer_us
                number += 2
                for rank in seen:
                    events[rank] += [
                        made.launch(now, 3, number),
                        made.kernel("gemm", now + 5, came[rank] - now - 5, number),
                    ]
                    if not self.dropped(rank, step, n):
                        events[rank].append(made.launch(now + 4, 3, number + 1))
                        events[rank].append(self._entered(call, came[rank] + 1, left, number + 1))
                now = left
            for rank in seen if self.marked else ():
                events[rank].append(made.step(step + 3, begun, now - begun))
        return {f"rank-{rank}.pt.trace.json": traced(rank, self.ranks, of) for rank, of in events.items()}

    def _entered(self, call: Call, start: float, end: float, number: int) -> dict[str, Any]:
        return entered(call.name, start, end, number, self.ranks, call.elements)


def entered(name: str, start: float, end: float, number: int, ranks: int, elements: int = 1 << 20) -> dict[str, Any]:
    """A collective of all ranks on a stream of its own."""
    told = {"Group size": ranks, "In msg nelems": elements, "Out msg nelems": elements}
    return made.collective(name, start, end - start, number, json.dumps([*range(ranks)]), **told)


def traced(rank: int, ranks: int, events: Sequence[dict[str, Any]]) -> bytes:
    """The trace of one rank."""
    rounded = [e | {"ts": round(e["ts"], 3), "dur": round(e["dur"], 3)} for e in events]
    device = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000}]
    return made.trace(
        rounded, distributedInfo={"backend": "nccl", "rank": rank, "world_size": ranks}, deviceProperties=device
    )


def ingested(folder: Path, traces: Mapping[str, bytes]) -> Run:
    """The files as one run."""
    place = folder / "traces"
    place.mkdir()
    for name, data in traces.items():
        (place / name).write_bytes(data)
    store = Store(folder / "store")
    return store.find(ingest([place], store).run_id)
