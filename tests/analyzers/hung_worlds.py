"""Small jobs that hang: hosts enqueue, devices take operations in order, faults are planted, and recorders dump.

A program is one list of operations for all ranks; each rank enqueues those it is in, in that order, so that nothing can
hang without a fault. A host may wait for its device after an operation. Whether an operation can complete is found by
trying until nothing moves: who blocks whom is then known without any graph.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from collectors.base import Rows, Source
from collectors.device import flight_recorder
from runs.tables import MemoryTables
from tests.collectors.flight_dumps import dump, entry, pickled

CALLS = ("all_reduce", "_all_gather_base", "_reduce_scatter_base", "all_to_all")


@dataclass
class Op:
    """A collective of a group, or a send from the first to the second of `ends` (places in the group)."""

    group: str
    call: str
    ends: tuple[int, int] | None = None


@dataclass
class Job:
    """`stops`: {rank: how many of its operations its host enqueues before it stops}. `dies`: {rank: after how many of
    its operations its device stops telling of completions}. `stuck`: operations that never complete. `skips`: {rank:
    operations that it leaves out}. `streams`: whether operations of different groups overlap on a device."""

    groups: dict[str, list[int]]
    program: list[Op]
    waits: set[tuple[int, int]] = field(default_factory=set)
    stops: dict[int, int] = field(default_factory=dict)
    dies: dict[int, int] = field(default_factory=dict)
    stuck: set[int] = field(default_factory=set)
    skips: dict[int, set[int]] = field(default_factory=dict)
    streams: bool = False

    def ranks(self) -> list[int]:
        return sorted({r for ranks in self.groups.values() for r in ranks})

    def members(self, n: int) -> list[int]:
        op, ranks = self.program[n], self.groups[self.program[n].group]
        return ranks if op.ends is None else [ranks[op.ends[0]], ranks[op.ends[1]]]

    def mine(self, rank: int) -> list[int]:
        skipped = self.skips.get(rank, set())
        return [n for n in range(len(self.program)) if rank in self.members(n) and n not in skipped]

    def run(self) -> tuple[dict[int, list[int]], set[int]]:
        """({rank: what its host enqueued}, what completed), when nothing moves any more."""
        enqueued: dict[int, list[int]] = {rank: [] for rank in self.ranks()}
        done: set[int] = set()
        moved = True
        while moved:
            moved = any([self._host(rank, enqueued[rank], done) for rank in enqueued])
            for n in range(len(self.program)):
                if (
                    n not in done
                    and n not in self.stuck
                    and all(self._reached(n, enqueued[r], done) for r in self.members(n))
                ):
                    done.add(n)
                    moved = True
        return enqueued, done

    def _host(self, rank: int, enqueued: list[int], done: set[int]) -> bool:
        mine, before = self.mine(rank), len(enqueued)
        while len(enqueued) < min(len(mine), self.stops.get(rank, len(mine))):
            if enqueued and (rank, enqueued[-1]) in self.waits and not self._seen(rank, enqueued, done) >= {*enqueued}:
                break
            enqueued.append(mine[len(enqueued)])
        return len(enqueued) > before

    def _seen(self, rank: int, enqueued: list[int], done: set[int]) -> set[int]:
        """What the rank knows to have completed."""
        told = enqueued[: self.dies[rank]] if rank in self.dies else enqueued
        return {n for n in told if n in done}

    def _reached(self, n: int, enqueued: list[int], done: set[int]) -> bool:
        """Whether a device comes to the operation: it was enqueued, and what is before it has completed."""
        if n not in enqueued:
            return False
        before = enqueued[: enqueued.index(n)]
        group = self.program[n].group
        return all(b in done for b in before if not self.streams or self.program[b].group == group)

    def open(self) -> dict[int, list[int]]:
        """{rank: what it enqueued and does not know to have completed}."""
        enqueued, done = self.run()
        return {r: [n for n in mine if n not in self._seen(r, mine, done)] for r, mine in enqueued.items()}

    def dumps(self, *, active: bool = True, status: bool = True, keep: int = 10_000) -> dict[int, dict[str, Any]]:
        """A dump of each rank: what is open alone, or its last `keep` operations."""
        enqueued, done = self.run()
        return {r: self._dump(r, mine, self._seen(r, mine, done), active, status, keep) for r, mine in enqueued.items()}

    def _dump(
        self, rank: int, mine: list[int], seen: set[int], active: bool, status: bool, keep: int
    ) -> dict[str, Any]:
        own = {name: ranks for name, ranks in self.groups.items() if rank in ranks}
        number = {name: 3 * n for n, name in enumerate(own)}
        counts = {name: [0, 0] for name in own}
        last, entries = {}, []
        for n in mine:
            op = self.program[n]
            counts[op.group][op.ends is not None] += 1
            seq, p2p = counts[op.group]
            known = last.setdefault(op.group, [-1, -1, -1])
            known[0] = p2p if op.ends else seq
            known[2] = known[0] if n in seen else known[2]
            entries.append(
                entry(
                    self._call(op, rank),
                    op.group,
                    seq,
                    described=f"GROUP_{op.group}",
                    pg_id=number[op.group],
                    p2p=p2p if op.ends else 0,
                    op_id=seq + p2p,
                    state="completed" if n in seen else "scheduled",
                )
            )
        entries = [e for e in entries[-keep:] if not active or e["state"] != "completed"]
        told = {str(number[name]): tuple(values) for name, values in last.items()}
        return dump({name: own[name] for name in own if name in last}, entries, told if status else None)

    def _call(self, op: Op, rank: int) -> str:
        if op.ends is None:
            return op.call
        me = self.groups[op.group].index(rank)
        return f"send {me}->{op.ends[1]}" if me == op.ends[0] else f"recv {me}<-{op.ends[0]}"


def a_job(rng: random.Random, *, p2p: bool = True) -> Job:
    """Two to six ranks in groups that overlap, and a program of a few operations."""
    ranks = rng.randint(2, 6)
    groups = {"0": [*range(ranks)]}
    for n in range(rng.randint(0, 4)):
        groups[str(5 * n + 3)] = sorted(rng.sample(range(ranks), rng.randint(2, ranks)))
    program = []
    for _ in range(rng.randint(1, 14)):
        group = rng.choice([*groups])
        ends = (*rng.sample(range(len(groups[group])), 2),) if p2p and rng.random() < 0.3 else None
        program.append(Op(group, rng.choice(CALLS), ends))
    waits = {(r, n) for r in range(ranks) for n in range(len(program)) if rng.random() < 0.3}
    return Job(groups, program, waits)


def tables(dumps: dict[int, dict[str, Any] | bytes] | dict[str, dict[str, Any]], folder: Path) -> MemoryTables:
    """What the collector reads of dumps, by rank or by name, as a run holds it."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    for key, told in dumps.items():
        name = key if isinstance(key, str) else f"_dump_{key}"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(told if isinstance(told, bytes) else pickled(told))
        for item in flight_recorder.read(Source(path, name)):
            if isinstance(item, Rows):
                batches.setdefault(item.table, []).append(item.batch)
    joined = {name: pa.Table.from_batches(some).combine_chunks() for name, some in batches.items()}
    return MemoryTables({n: {c: t[c].to_pylist() for c in t.column_names} for n, t in joined.items()})
