"""A world with known truth: pipeline-parallel steps in 1F1B order, run rank by rank with given durations.

Written apart from the analyzer: ranks are lists of things to do, and whoever can go on does, until all are done.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from runs.tables import MemoryTables

MS = 1_000_000
Duration = Callable[[int, int, int, int], int]  # (step, dp, stage, micro-batch) -> ns


def always(ms: float) -> Duration:
    return lambda *_: round(ms * MS)


@dataclass
class Pipelines:
    """`steps` steps of `dp` replicas of a pipeline of `stages`, `microbatches` each.

    forward, backward: computing. pause: garbage collection after the last backward pass (dp, stage as for computing,
    micro-batch -1). transfer_ns: of each exchange and collective. gather, scatter, optimizer: once a step.
    """

    dp: int = 2
    stages: int = 2
    microbatches: int = 4
    steps: int = 3
    forward: Duration = field(default_factory=lambda: always(10))
    backward: Duration = field(default_factory=lambda: always(20))
    pause: Duration | None = None
    transfer_ns: int = MS
    collectives: bool = True

    def schedule(self, stage: int) -> list[list[tuple[str, int]]]:
        """What a rank does: slots of (operation, number among its kind), those of one slot at once."""
        m, last = self.microbatches, self.stages - 1
        warm = min(last - stage, m)
        slots: list[list[tuple[str, int]]] = []

        def exchange(*ops: tuple[str, int]) -> None:
            need = {
                "forward-recv": stage > 0,
                "backward-send": stage > 0,
                "forward-send": stage < last,
                "backward-recv": stage < last,
            }
            if wanted := [op for op in ops if need[op[0]]]:
                slots.append(wanted)

        for k in range(warm):
            exchange(("forward-recv", k))
            slots.append([("forward-compute", k)])
            exchange(("forward-send", k))
        if warm < m:
            exchange(("forward-recv", warm))
        for k in range(m - warm):
            slots.append([("forward-compute", warm + k)])
            exchange(("forward-send", warm + k), ("backward-recv", k))
            slots.append([("backward-compute", k)])
            if warm + k + 1 < m:
                exchange(("backward-send", k), ("forward-recv", warm + k + 1))
            else:
                exchange(("backward-send", k))
        for k in range(m - warm, m):
            exchange(("backward-recv", k))
            slots.append([("backward-compute", k)])
            exchange(("backward-send", k))
        if self.pause:
            slots.append([("gc", 0)])
        if self.collectives:
            slots = [
                [("params-all-gather", 0)],
                *slots,
                [("grads-reduce-scatter", 0)],
                [("optimizer-clip-main-grad", 0)],
                [("optimizer", 0)],
            ]
        return slots

    def peers(self, op: str, dp: int, stage: int) -> list[tuple[str, int, int]]:
        """Who must have started what before it can move, itself included: (operation, dp, stage)."""
        mine = [(op, dp, stage)]
        if op in ("params-all-gather", "grads-reduce-scatter"):
            return [(op, d, stage) for d in range(self.dp)]
        if op == "optimizer-clip-main-grad":
            return [(op, d, s) for d in range(self.dp) for s in range(self.stages)]
        other = {
            "forward-send": ("forward-recv", 1),
            "forward-recv": ("forward-send", -1),
            "backward-send": ("backward-recv", -1),
            "backward-recv": ("backward-send", 1),
        }.get(op)
        return mine if other is None else [*mine, (other[0], dp, stage + other[1])]

    def spent(self, step: int, dp: int, stage: int, op: str, number: int) -> int:
        if op == "forward-compute":
            return self.forward(step, dp, stage, number)
        if op == "backward-compute":
            return self.backward(step, dp, stage, number)
        if op == "gc":
            return self.pause(step, dp, stage, -1)
        return 5 * MS if op == "optimizer" else self.transfer_ns

    def rows(self) -> dict[str, list]:
        """Columns of the table `pipeline`."""
        columns: dict[str, list] = {
            c: [] for c in ("step", "dp_rank", "stage", "rank", "op_type", "microbatch", "seq", "start_ns", "dur_ns")
        }
        for step in range(self.steps):
            for (dp, stage), ops in self.run(step).items():
                for op, number, start, end in ops:
                    once = op in (
                        "params-all-gather",
                        "grads-reduce-scatter",
                        "optimizer-clip-main-grad",
                        "optimizer",
                        "gc",
                    )
                    row = (
                        step,
                        dp,
                        stage,
                        stage * self.dp + dp,
                        op,
                        None if once else number,
                        number,
                        start,
                        end - start,
                    )
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
        return columns

    def tables(self) -> MemoryTables:
        return MemoryTables({"pipeline": self.rows()})

    def run(self, step: int) -> dict[tuple[int, int], list[tuple[str, int, int, int]]]:
        """By rank: (operation, number, start, end) of one step."""
        ranks = [(d, s) for d in range(self.dp) for s in range(self.stages)]
        todo = {rank: self.schedule(rank[1]) for rank in ranks}
        clock = dict.fromkeys(ranks, 0)
        started: dict[tuple[str, int, int, int], int] = {}
        done: dict[tuple[int, int], list] = {rank: [] for rank in ranks}
        moved = True
        while moved:
            moved = False
            for dp, stage in ranks:
                if not todo[dp, stage]:
                    continue
                slot = todo[dp, stage][0]
                begin = clock[dp, stage]
                for op, number in slot:
                    started.setdefault((op, dp, stage, number), begin)
                met = [[started.get((*peer, number)) for peer in self.peers(op, dp, stage)] for op, number in slot]
                if any(start is None for starts in met for start in starts):
                    continue
                for (op, number), starts in zip(slot, met, strict=True):
                    end = max(starts) + self.spent(step, dp, stage, op, number)
                    done[dp, stage].append((op, number, begin, end))
                    clock[dp, stage] = max(clock[dp, stage], end)
                todo[dp, stage].pop(0)
                moved = True
        assert not any(todo.values()), "the schedule cannot be run"
        return done

    def step_ns(self, step: int = 0) -> int:
        return max(end for ops in self.run(step).values() for *_, end in ops)
