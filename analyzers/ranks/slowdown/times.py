"""Step times of a pipeline-parallel trace, as it was and with parts of it made ideal.

Ideal durations: of computing the mean over all operations of its type (all ranks, steps and micro-batches of the
trace), of communication the median transfer over all of its type, sends and receives of one direction taken together.
A send or receive without its peer keeps its recorded duration everywhere: how much of it was waiting is not known.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from analyzers.ranks.slowdown.graph import Graph, Waits, graph, regrouped, replay, waits
from analyzers.ranks.slowdown.ops import ACROSS, COMPUTE, KINDS, PipelineOps, codes, joined

TYPES: dict[str, tuple[str, ...]] = {  # what is made ideal together: the two ends of an exchange are one type
    "forward-compute": ("forward-compute",),
    "backward-compute": ("backward-compute",),
    "forward-pp-comm": ("forward-send", "forward-recv"),
    "backward-pp-comm": ("backward-send", "backward-recv"),
    "params-all-gather": ("params-all-gather",),
    "grads-reduce-scatter": ("grads-reduce-scatter",),
    "embedding-grads-all-reduce": ("embedding-grads-all-reduce",),
    "layernorm-grads-all-reduce": ("layernorm-grads-all-reduce",),
    "optimizer-clip-main-grad": ("optimizer-clip-main-grad",),
    "optimizer": ("optimizer",),
    "gc": ("gc",),
}
NAMES: tuple[str, ...] = tuple(TYPES)
PART_OPS = 1_000_000  # steps are replayed together up to this many operations: more would only cost memory
_COLUMNS = 4  # replayed at once, for the same reason
_TYPE_OF_KIND = np.array([next(i for i, kinds in enumerate(TYPES.values()) if k in kinds) for k in KINDS], np.int32)


def ideal_durations(ops: PipelineOps) -> pd.DataFrame:
    """Of each type of TYPES that the trace has: `op_type`, `count`, `ideal_ns`, `mean_ns`, `longest_ns`.

    Of communication these are transfers; operations without their peer do not count.
    """
    spent = pd.Series(ops.spent_ns[~ops.lone]).groupby(_TYPE_OF_KIND[ops.kind[~ops.lone]])
    table = spent.agg(["count", "mean", "median", "max"])
    names = [NAMES[i] for i in table.index]
    return pd.DataFrame(
        {
            "op_type": names,
            "count": table["count"].to_numpy(),
            "ideal_ns": np.where(np.isin(names, COMPUTE), table["mean"], table["median"]),
            "mean_ns": table["mean"].to_numpy(),
            "longest_ns": table["max"].to_numpy(),
        }
    )


@dataclass(frozen=True)
class Replays:
    """Replays of the steps of one trace. Step times are in seconds, NaN for a step whose waits form a circle."""

    ops: PipelineOps
    ideals: pd.DataFrame = field(repr=False)

    @cached_property
    def edges(self) -> Waits:
        return waits(self.ops)

    @cached_property
    def graph(self) -> Graph:
        return graph(self.ops, self.edges)

    @cached_property
    def type(self) -> np.ndarray:
        """Position of each operation's type in NAMES."""
        return _TYPE_OF_KIND[self.ops.kind]

    @cached_property
    def ideal_ns(self) -> np.ndarray:
        """Of each operation."""
        by_type = np.zeros(len(NAMES))
        by_type[[NAMES.index(n) for n in self.ideals["op_type"]]] = self.ideals["ideal_ns"]
        return np.where(self.ops.lone, self.ops.spent_ns, by_type[self.type])

    def by_step(self, end_ns: np.ndarray) -> np.ndarray:
        """(steps, columns): the last end."""
        first = np.flatnonzero(np.r_[True, np.diff(self.ops.step) != 0])
        last = np.maximum.reduceat(end_ns, first, axis=0) / 1e9
        last[self.graph.circular[first]] = np.nan
        return last

    def recorded(self) -> np.ndarray:
        """(steps, 2): first start to last end as measured; and as replayed with launch delays, none below zero."""
        delayed = replay(self.graph, self.ops.spent_ns[:, None].astype(float), self.edges)
        return self.by_step(np.stack((self.ops.end_ns.astype(float), delayed[:, 0]), axis=1))

    def keeping(self, choices: list[np.ndarray]) -> np.ndarray:
        """(steps, choices): step times without launch delays, where each choice says of which operations the trace's
        own durations are kept; all others are ideal."""
        columns = []
        for at in range(0, len(choices), _COLUMNS):
            spent = [np.where(kept, self.ops.spent_ns, self.ideal_ns) for kept in choices[at : at + _COLUMNS]]
            columns.append(self.by_step(replay(self.graph, np.stack(spent, axis=1))))
        return np.concatenate(columns, axis=1)

    def keeping_each_replica(self, replicas: int) -> np.ndarray:
        """(steps, data-parallel ranks): step times where only that rank keeps its own durations.

        Each rank is replayed beside a twin of itself that is ideal and stands for all others: they meet where
        data-parallel ranks meet. Exact where all ranks do the same operations; its cost does not grow with their
        number squared, as that of replaying all ranks for each would.
        """
        ops = self.ops
        across = np.isin(ops.kind, codes(*ACROSS))
        own = joined(ops.group.astype(np.int64), np.where(across, ops.dp + 1, 0))
        apart = regrouped(self.graph, self.edges, pd.factorize(own)[0])
        tied = np.zeros(apart.groups, bool)
        tied[apart.group[across]] = True
        ends = replay(apart, np.stack((ops.spent_ns, self.ideal_ns), axis=1), tied=tied).max(axis=1)
        latest = np.zeros((int(ops.step[-1]) + 1, replicas))
        np.maximum.at(latest, (ops.step, ops.dp), ends)
        latest[latest == 0] = np.nan  # it took no part in that step
        latest[np.unique(ops.step[apart.circular])] = np.nan
        return latest / 1e9
