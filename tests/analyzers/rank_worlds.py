"""Synchronous jobs of any size as `collectives` and traces, their lateness known: nothing here knows an analyzer.

Each step of each rank: `segments` times own work and then a collective. Own work is `work_s / segments` with noise;
`slow[rank]` adds a share of the step to it, as the cause says. Clocks are off and drift as told.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000
LEAVE_NS = 2000  # by how much ranks differ in leaving a collective


def texts(codes: np.ndarray, values: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(values, pa.string()))


@dataclass
class RankWorld:
    """Shares are of the step. `tail`: share of segments that take a Pareto-long detour. `extra(rng)` -> seconds
    [steps, segments, ranks] of own work besides. `cell`: size of inner groups (tensor-parallel); 0: one group of all,
    -1: one group of all that the table does not name. `per_host`: devices of a host."""

    ranks: int = 8
    steps: int = 40
    segments: int = 1
    step_s: float = 1.0
    transfer_share: float = 0.2
    jitter: float = 0.005
    tail: float = 0.01
    slow: dict[int, float] = field(default_factory=dict)
    cause: str = "compute"
    slow_steps: range | None = None
    extra: np.ndarray | None = None
    slow_network: range | None = None
    slow_times: float = 2.5
    cell: int = 0
    clock_s: np.ndarray | None = None
    drift: np.ndarray | None = None
    per_host: int = 8
    traced: bool = False
    numbered: bool = True
    seed: int = 0

    def own_s(self, rng: np.random.Generator) -> np.ndarray:
        """Own work [steps, segments, ranks], without what `slow` adds."""
        shape = (self.steps, self.segments, self.ranks)
        mean = self.step_s * (1 - self.transfer_share) / self.segments
        work = mean + np.abs(rng.normal(0, self.jitter * self.step_s / np.sqrt(self.segments), shape))
        detour = rng.random(shape) < self.tail
        work += np.where(detour, np.minimum(rng.pareto(3, shape), 5) * 0.02 * self.step_s, 0)
        return work if self.extra is None else work + self.extra

    def late_s(self) -> np.ndarray:
        """Seconds added to each rank's work in each step [steps, ranks]."""
        out = np.zeros((self.steps, self.ranks))
        steps = slice(None) if self.slow_steps is None else list(self.slow_steps)
        for rank, share in self.slow.items():
            out[steps, rank] = share * self.step_s
        return out

    def timeline(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """True begin of own work, arrival and end [steps, segments, ranks], in s."""
        rng = np.random.default_rng(self.seed)
        own = self.own_s(rng) + (self.late_s() / self.segments)[:, None, :]
        transfer = self.transfer_share * self.step_s / self.segments * (1 + np.abs(rng.normal(0, 0.03, own.shape[:2])))
        if self.slow_network is not None:
            transfer[list(self.slow_network)] *= self.slow_times
        begin, arrive, end = np.empty_like(own), np.empty_like(own), np.empty_like(own)
        now = np.zeros(self.ranks)
        for i in range(self.steps):
            for k in range(self.segments):
                begin[i, k] = now
                arrive[i, k] = now + own[i, k]
                members = self.members(k)
                now = np.empty(self.ranks)
                for group in members:
                    now[group] = arrive[i, k, group].max() + transfer[i, k]
                end[i, k] = now
        return begin, arrive, end

    def members(self, k: int) -> list[np.ndarray]:
        """Groups of the k-th collective: inner ones, and across them last, where there are cells."""
        every = np.arange(self.ranks)
        if self.cell < 1:
            return [every]
        grid = every.reshape(-1, self.cell)
        return list(grid.T) if k == self.segments - 1 else list(grid)

    def tables(self) -> MemoryTables:
        begin, arrive, end = self.timeline()
        rng = np.random.default_rng(self.seed + 1)
        clock = np.zeros(self.ranks) if self.clock_s is None else np.asarray(self.clock_s)
        drift = np.zeros(self.ranks) if self.drift is None else np.asarray(self.drift)

        def told(at: np.ndarray) -> np.ndarray:
            return np.round((at * (1 + drift) + clock) * 1e9).astype(np.int64) + EPOCH

        start_ns, end_ns = told(arrive), told(end) + rng.integers(0, LEAVE_NS, end.shape)
        step, segment, rank = (
            np.broadcast_to(x, end.shape).transpose(2, 0, 1).ravel()
            for x in np.ogrid[: self.steps, : self.segments, : self.ranks]
        )
        hosts = [f"host-{h}" for h in range(-(-self.ranks // self.per_host))]
        names, group = self.groups(segment, rank)
        rows = {
            "capture": rank // self.per_host,
            "host": texts(rank // self.per_host, hosts),
            "rank": rank,
            "device": rank % self.per_host,
            "kind": texts(rank * 0, ["all-reduce"]),
            "bytes": np.full(len(rank), 1e8),
            "dtype": texts(rank * 0, ["bf16"]),
            "module": texts(rank * 0, ["jit_step"]),
            "op": texts(segment, [f"all-reduce.{k}" for k in range(self.segments)]),
            "seq": step,
            "start_ns": start_ns.transpose(2, 0, 1).ravel(),
            "end_ns": end_ns.transpose(2, 0, 1).ravel(),
        }
        if self.cell >= 0:
            rows["group"] = texts(group, names)
        if self.numbered:
            rows["step"] = step
        tables = {"collectives": rows}
        if self.traced:
            tables |= self.trace(told, begin, arrive, hosts)
        return MemoryTables(tables)

    def groups(self, segment: np.ndarray, rank: np.ndarray) -> tuple[list[str], np.ndarray]:
        names, code = [], np.zeros((self.segments, self.ranks), dtype=np.int64)
        for k in range(self.segments):
            for group in self.members(k):
                text = ",".join(map(str, group))
                code[k, group] = names.index(text) if text in names else len(names)
                names += [text] if text not in names else []
        return names, code[segment, rank]

    def trace(self, told, begin: np.ndarray, arrive: np.ndarray, hosts: list[str]) -> dict:
        """Operations: what a rank's lateness is made of comes first in each segment, then computation until arrival."""
        added = np.broadcast_to((self.late_s() / self.segments)[:, None, :], begin.shape)
        devices, n = self.ranks, len(hosts)
        kinds = {"compute": "fusion", "copies": "copy", "other_communication": "collective"}
        start, gap = told(begin), told(begin + added)
        stop = told(arrive)
        base = EPOCH - 20_000_000_000
        rank = np.broadcast_to(np.arange(devices), begin.shape).ravel()
        late = (added > 0).ravel()
        work_from = (start if self.cause == "compute" else gap).ravel()
        pieces = [(rank, rank * 0, work_from, stop.ravel())]
        if self.cause in ("copies", "other_communication"):
            pieces.append((rank[late], rank[late] * 0 + 1, start.ravel()[late], gap.ravel()[late]))
        events = {
            "capture": np.concatenate([p[0] // self.per_host for p in pieces]),
            "device": np.concatenate([p[0] % self.per_host for p in pieces]),
            "op_id": np.concatenate([p[1] for p in pieces]),
            "start_ps": np.concatenate([(p[2] - base) * 1000 for p in pieces]),
            "dur_ps": np.concatenate([(p[3] - p[2]) * 1000 for p in pieces]),
        }
        every = np.arange(devices)
        ops = {
            "capture": np.repeat(every // self.per_host, 2),
            "op_id": np.tile([0, 1], devices),
            "host": [hosts[d // self.per_host] for d in np.repeat(every, 2)],
            "device": np.repeat(every % self.per_host, 2),
            "role": ["compute"] * (2 * devices),
            "category": ["fusion", kinds.get(self.cause, "copy")] * devices,
            "op": ["fusion.1", "other.1"] * devices,
        }
        first = every[:: self.per_host]
        tables = {
            "captures": {"capture": np.arange(n), "host": hosts, "start_ns": [base] * n},
            "steps": {
                "step": np.tile(np.arange(self.steps), n),
                "host": [h for h in hosts for _ in range(self.steps)],
                "start_ns": start[:, 0, first].T.ravel(),
                "capture": np.repeat(np.arange(n), self.steps),
                "dur_ns": (stop[:, -1, first] - start[:, 0, first]).T.ravel(),
            },
            "ops": ops,
            "op_events": events,
        }
        late_hosts = [hosts[r // self.per_host] for r in rank[late]]
        if self.cause == "input":
            tables["lifecycle"] = {
                "kind": ["data_loading"] * late.sum(),
                "host": late_hosts,
                "start_ns": start.ravel()[late],
                "end_ns": gap.ravel()[late],
            }
        if self.cause == "garbage_collection":
            ops["op"] += ["gc.collect"] * n
            ops["role"], ops["category"] = ops["role"] + ["host"] * n, ops["category"] + ["host"] * n
            ops["host"], ops["device"] = ops["host"] + hosts, [*ops["device"], *[None] * n]
            ops["capture"], ops["op_id"] = [*ops["capture"], *range(n)], [*ops["op_id"], *[2] * n]
            more = {
                "capture": rank[late] // self.per_host,
                "op_id": rank[late] * 0 + 2,
                "start_ps": (start.ravel()[late] - base) * 1000,
                "dur_ps": (gap.ravel()[late] - start.ravel()[late]) * 1000,
            }
            events = {k: [*v, *more.get(k, [None] * late.sum())] for k, v in events.items()}
            tables["op_events"] = events
        return tables
