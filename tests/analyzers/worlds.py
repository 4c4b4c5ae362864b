"""A synchronous training job with a known history, as the tables that collectors would bring.

Each step on each host: fetch data, extra host work, compute, one all-reduce that ends for all at the same instant.
Clocks of hosts may be off by any amount; nothing here knows how an analyzer works.
"""

from dataclasses import dataclass, field

import numpy as np

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000
MS = 1_000_000


@dataclass
class World:
    """Times in ms. `extra[host, step]`: host work before compute. `fetch[step]`: data loading on every host."""

    hosts: int = 4
    steps: int = 30
    compute_ms: float = 60.0
    transfer_ms: float = 10.0
    idle_ms: float = 5.0
    fetch_ms: float = 2.0
    jitter_ms: float = 0.0
    clock_ns: tuple[int, ...] = (0, 0, 0, 0)
    extra_ms: dict[tuple[int, int], float] = field(default_factory=dict)
    stall_ms: dict[int, float] = field(default_factory=dict)
    profiled: tuple[int, ...] | None = None
    first_step: int = 0
    flops_per_step: float = 3e12
    executed_flops: float | None = None  # of the one operation in a step, as its program has it
    remat_share: float = 0.0
    matmuls: dict | None = None  # columns of `matmuls`: what that program multiplies
    seed: int = 0

    def tables(self, goodput: bool = True, lines: dict | None = None) -> MemoryTables:
        rng = np.random.default_rng(self.seed)
        events, colls, steps, marks, fetches = [], [], [], [], []
        now = EPOCH + 10_000 * MS
        begun = now
        profiled = range(self.hosts) if self.profiled is None else self.profiled
        for n in range(self.steps):
            marks.append((n, now))
            arrive = {}
            for h in range(self.hosts):
                fetch = int((self.fetch_ms + self.stall_ms.get(n, 0)) * MS)
                extra = int(self.extra_ms.get((h, n), 0) * MS)
                noise = int(abs(rng.normal(0, self.jitter_ms)) * MS)
                compute = int(self.compute_ms * MS) + noise
                start = now + fetch + extra
                arrive[h] = start + compute
                fetches.append((h, now, now + fetch))
                events.append((h, 0, start, compute))
            end = max(arrive.values()) + int(self.transfer_ms * MS)
            for h in range(self.hosts):
                colls.append((h, n, arrive[h], end))
                steps.append((h, n, now, end + int(self.idle_ms * MS) - now))
            now = end + int(self.idle_ms * MS)
        self.end = now
        clock = {h: self.clock_ns[h] if h < len(self.clock_ns) else 0 for h in range(self.hosts)}
        seen = [e for e in events if e[0] in profiled]
        start_of = {h: begun + clock[h] for h in range(self.hosts)}
        tables = {
            "captures": {
                "capture": list(profiled),
                "host": [f"host {h}" for h in profiled],
                "start_ns": [start_of[h] for h in profiled],
                "stop_ns": [now + clock[h] for h in profiled],
            },
            "ops": {
                "capture": list(profiled),
                "op_id": [0] * len(profiled),
                "host": [f"host {h}" for h in profiled],
                "device": [0] * len(profiled),
                "role": ["compute"] * len(profiled),
                "category": ["fusion"] * len(profiled),
                "program": [7] * len(profiled),
                "count": [self.steps] * len(profiled),
                "flops": [self.executed_flops] * len(profiled),
            },
            "op_events": {
                "capture": [e[0] for e in seen],
                "device": [0] * len(seen),
                "op_id": [e[1] for e in seen],
                "start_ps": [(e[2] + clock[e[0]] - start_of[e[0]]) * 1000 for e in seen],
                "dur_ps": [e[3] * 1000 for e in seen],
            },
            "collectives": {
                "capture": [c[0] for c in colls if c[0] in profiled],
                "host": [f"host {c[0]}" for c in colls if c[0] in profiled],
                "device": [0 for c in colls if c[0] in profiled],
                "kind": ["all-reduce" for c in colls if c[0] in profiled],
                "op": ["all-reduce.1" for c in colls if c[0] in profiled],
                "group": [",".join(map(str, range(self.hosts))) for c in colls if c[0] in profiled],
                "step": [c[1] for c in colls if c[0] in profiled],
                "start_ns": [c[2] + clock[c[0]] for c in colls if c[0] in profiled],
                "end_ns": [c[3] + clock[c[0]] for c in colls if c[0] in profiled],
            },
            "steps": {
                "step": [self.first_step + s[1] for s in steps if s[0] in profiled],
                "host": [f"host {s[0]}" for s in steps if s[0] in profiled],
                "start_ns": [s[2] + clock[s[0]] for s in steps if s[0] in profiled],
                "dur_ns": [s[3] for s in steps if s[0] in profiled],
                "capture": [s[0] for s in steps if s[0] in profiled],
            },
            "lifecycle": {
                "kind": ["data_loading" for f in fetches if f[0] in profiled],
                "host": [f"host {f[0]}" for f in fetches if f[0] in profiled],
                "start_ns": [f[1] + clock[f[0]] for f in fetches if f[0] in profiled],
                "end_ns": [f[2] + clock[f[0]] for f in fetches if f[0] in profiled],
            },
        }
        if self.executed_flops:
            flops = [self.executed_flops] * len(profiled)
            tables["modules"] = {
                "capture": list(profiled),
                "program": [7] * len(profiled),
                "flops": flops,
                "remat_flops": [f * self.remat_share for f in flops],
            }
        if self.matmuls:
            rows = len(self.matmuls["m"])
            tables["matmuls"] = {
                "capture": [h for h in profiled for _ in range(rows)],
                "program": [7] * rows * len(profiled),
                **{name: [*values] * len(profiled) for name, values in self.matmuls.items()},
            }
        if lines:
            _append(tables["steps"], lines)
        if goodput:
            _append(
                tables["steps"],
                {
                    "step": [m[0] for m in marks],
                    "start_ns": [m[1] for m in marks],
                },
            )
            lines = {
                "step": [m[0] for m in marks],
                "source": ["train.log"] * len(marks),
                "order": range(len(marks)),
                "dur_ns": [int(1e8)] * len(marks),
                "attempt": [0] * len(marks),
                "model_flops_per_chip": [self.flops_per_step] * len(marks),
            }
            _append(tables["steps"], lines)
            _append(
                tables["lifecycle"],
                {
                    "kind": ["job", "accelerator_initialization"],
                    "start_ns": [EPOCH, EPOCH + 1000 * MS],
                    "end_ns": [now, EPOCH + 9000 * MS],
                },
            )
        return MemoryTables(tables)


def _append(columns: dict, more: dict) -> None:
    """Rows added below; columns that one side lacks are null there."""
    rows, extra = len(next(iter(columns.values()))), len(next(iter(more.values())))
    for name in {*columns, *more}:
        columns[name] = [*columns.get(name, [None] * rows), *more.get(name, [None] * extra)]
