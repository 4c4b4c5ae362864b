"""Two ranks of a GPU job, traced by hand as PyTorch's profiler writes them and read by the collector of that."""

from pathlib import Path

from collectors.ingest import ingest
from runs.run import Run
from runs.store import Store
from tests.collectors import kineto_traces as made

MEETINGS = 6


def two_ranks(folder: Path) -> Run:
    """Each rank launches a kernel, a graph of three, and then collectives, rank 1 later by 3 µs each time, by a clock
    that is 40 µs ahead."""
    for rank in range(2):
        ahead = 40 * rank
        events = [
            made.step(3, ahead, 2_000),
            made.launch(10 + ahead, 4, 1),
            made.kernel("add", 16 + ahead, 3, 1),
            made.launch(20 + ahead, 4, 5, "cudaGraphLaunch"),
            *(made.kernel(f"k{n}", 30 + 2 * n + ahead, 1, 5) for n in range(3)),
        ]
        for n in range(MEETINGS):
            at = 100 * (n + 1) + ahead
            late = 3 * rank
            events.append(made.launch(at - 5 + late, 1, 10 + n))
            events.append(made.collective("allreduce", at + late, 20 - late, 10 + n))
        told = {"distributedInfo": {"rank": rank, "world_size": 2}}
        (folder / f"rank-{rank}.pt.trace.json").write_bytes(made.trace(events, **told))
    store = Store(folder / "store")
    return store.find(ingest([folder], store).run_id)
