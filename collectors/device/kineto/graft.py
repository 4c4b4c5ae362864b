"""What one trace shows of captured graphs, in the numbers of another: graphs are often captured long before a profiler
watches them run, and recorded in a file of their own."""

import numpy as np

from collectors.device.kineto.columns import TEXTUAL
from collectors.device.kineto.gather import COLLECTIVE_COLUMNS, Gathered
from collectors.device.kineto.host import Host
from collectors.device.kineto.nesting import chained, with_room

_BEFORE_ALL = -(1 << 62)
_SITE_TEXTS, _SITE_COLLECTIVE = 5, 5  # columns of `Gathered.sites`


def graft(ours: Gathered, host: Host, theirs: Gathered, other: Host) -> None:
    """Adds the captured launches of another trace to those of `host`, as captured before anything in it ran."""
    if not len(other.nodes):
        return
    moved = _Moved(ours, host, theirs, other)
    nodes = other.nodes.copy()
    nodes["start"], nodes["thread"] = _BEFORE_ALL, 0
    nodes["graph"] += int(host.nodes["graph"].max(initial=-1)) + 1
    for column in ("name", "kernel", "frame"):
        nodes[column] = moved.texts(nodes[column])
    for column in ("site", "note"):
        nodes[column] = moved.sites(nodes[column])
    nodes["module"] = moved.chains(nodes["module"])
    host.nodes = np.concatenate([host.nodes, nodes])


class _Moved:
    """Numbers of one trace in another."""

    def __init__(self, ours: Gathered, host: Host, theirs: Gathered, other: Host) -> None:
        self._ours, self._host, self._theirs, self._other = ours, host, theirs, other
        self._chains: dict[int, int] = {-1: -1}

    def texts(self, codes: np.ndarray) -> np.ndarray:
        """Numbers of the same texts; what is below 0 is no text, and stays."""
        unique, inverse = np.unique(codes, return_inverse=True)
        found = [n if n < 0 else self._ours.texts.of_raw(self._theirs.texts.raw(n)) for n in unique.tolist()]
        return np.array(found, np.int64)[inverse.reshape(-1)]

    def sites(self, codes: np.ndarray) -> np.ndarray:
        """Numbers of the same calls, -1 for none."""
        unique, inverse = np.unique(codes, return_inverse=True)
        known = unique[unique >= 0]
        rows = self._theirs.sites.rows[known].copy()
        for column in range(_SITE_TEXTS):
            rows[:, column] = self.texts(rows[:, column])
        rows[:, _SITE_COLLECTIVE] = self._collectives(rows[:, _SITE_COLLECTIVE])
        found = np.full(len(unique), -1, np.int64)
        found[unique >= 0] = self._ours.sites.of(*rows.T)
        return found[inverse.reshape(-1)]

    def _collectives(self, codes: np.ndarray) -> np.ndarray:
        out = np.full(len(codes), -1, np.int64)
        told = codes >= 0
        rows = self._theirs.collectives.rows[codes[told]].copy()
        for at, column in enumerate(COLLECTIVE_COLUMNS):
            if column in TEXTUAL:
                rows[:, at] = self.texts(rows[:, at])
        out[told] = self._ours.collectives.of(*rows.T)
        return out

    def chains(self, codes: np.ndarray) -> np.ndarray:
        """Numbers of the same chains of modules."""
        unique, inverse = np.unique(codes, return_inverse=True)
        self._host.chains = with_room(self._host.chains, int(self._other.chains.counters[0]))
        return np.array([self._chain(n) for n in unique.tolist()], np.int64)[inverse.reshape(-1)]

    def _chain(self, number: int) -> int:
        """Of one chain, the chains around it first."""
        known, inner = self._other.chains.known, []
        while number not in self._chains:
            inner.append(number)
            number = int(known[number, 0])
        for n in reversed(inner):
            (name,) = self.texts(known[n : n + 1, 1]).tolist()
            around = self._chains[int(known[n, 0])]
            self._chains[n] = int(chained(self._host.chains, np.int64(around), np.int64(name)))
        return self._chains[inner[0] if inner else number]
