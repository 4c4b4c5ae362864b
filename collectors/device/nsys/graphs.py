"""Nodes of CUDA graphs in an export (`nsys profile --cuda-graph-trace=node`): which call made each.

A graph that is instantiated is a copy of one that was captured, and its nodes copies of nodes: a row of
CUDA_GRAPH_NODE_EVENTS without `originalGraphNodeId` is a node being made, within the call that was captured; one with
it is a copy of that node. What executes tells the number of its own node.
"""

import numpy as np

from collectors.device.kineto.graphs import FIRST_NODE
from collectors.device.kineto.tokens import NONE
from collectors.reading.parquet_tables import ParquetTables
from collectors.reading.sqlite import NULL, Database

TABLE = "CUDA_GRAPH_NODE_EVENTS"
_MOST = 1 << 22  # nodes that are followed
_COPIES = 64  # of copies


class GraphNodes:
    """Of one export; `process`: of global ids of threads, as that of what executes is told."""

    def __init__(self, database: Database | ParquetTables, process) -> None:
        found, count = [], 0
        if database.has(TABLE, "graphNodeId"):
            for rows in database.numbers(TABLE, ("globalTid", "graphNodeId", "originalGraphNodeId")):
                of_process = process(rows["globalTid"])
                found.append(np.stack([of_process, rows["graphNodeId"], rows["originalGraphNodeId"]], axis=1))
                if (count := count + len(of_process)) > _MOST:
                    break
        rows = np.concatenate(found)[:_MOST] if found else np.zeros((0, 3), np.int64)
        copied = _told(rows[:, 2])
        both = np.concatenate([rows[:, :2], rows[copied][:, [0, 2]]])
        self._known, number = np.unique(both, axis=0, return_inverse=True)
        number = number.reshape(-1)
        self._original = np.arange(len(self._known))
        self._original[number[: len(rows)][copied]] = number[len(rows) :]
        for _ in range(_COPIES):  # of copies of copies the first
            if np.array_equal(self._original, further := self._original[self._original]):
                break
            self._original = further

    def of(self, process: np.ndarray, node: np.ndarray) -> np.ndarray:
        """A number for the node that each is, or is a copy of; NONE for those that are not known."""
        out = np.full(len(node), NONE)
        at = np.flatnonzero(_told(node)) if len(self._known) else np.zeros(0, np.int64)
        if len(at):
            asked = np.stack([process[at], node[at]], axis=1)
            _, inverse = np.unique(np.concatenate([self._known, asked]), axis=0, return_inverse=True)
            place = np.full(int(inverse.max()) + 1, -1)
            place[inverse.reshape(-1)[: len(self._known)]] = np.arange(len(self._known))
            row = place[inverse.reshape(-1)[len(self._known) :]]
            out[at] = np.where(row >= 0, FIRST_NODE + self._original[np.maximum(row, 0)], NONE)
        return out


def is_made(rows: dict[str, np.ndarray]) -> np.ndarray:
    """Which rows are nodes being made, not copies."""
    return ~_told(rows["originalGraphNodeId"])


def _told(number: np.ndarray) -> np.ndarray:
    return (number != NULL) & (number != 0)
