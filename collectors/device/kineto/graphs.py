"""Kernels of graphs (of CUDA or HIP) and the calls that they were captured of.

While a stream is captured, what a thread launches is not executed: it becomes a node of a graph, and one later call
executes all of them. A trace that holds the capture too tells in which operator and module each node was launched. A
graph is told from others by what it consists of, node by node: copies stand where copies were captured, kernels have
the names that their launches told (of ROCm), and where those tell none, a product was launched where a kernel
multiplies. What several captures could have been is told as far as they agree. Nsight Systems numbers nodes: there the
number tells.
"""

from collections.abc import Callable

import numpy as np

from collectors.device.kineto.kernels import multiplies, of_matmul
from collectors.device.kineto.kinds import A_CAPTURE, A_COPY_CALL, COPY, Meanings
from collectors.device.kineto.nesting import NEITHER, Numbered
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE

FIRST_NODE = 1 << 61  # correlation numbers from it on are those of nodes, where an export numbers them
LEAST_NAMELESS = 4  # fewer nodes whose kernels are not named are found in many graphs
_ROCM_COPY = "__amd_rocclr_"  # copies and fills that ROCm executes as kernels
_AGREED = ("module", "frame", "note")


def windows(marks: list[tuple[int, int, int]]) -> np.ndarray:
    """(begin, end) of captures in order, from (time, thread, kind) of calls that begin and end them.

    Those that overlap are left out: whose a launch is could not be told.
    """
    begun: dict[int, int] = {}
    found = []
    for time, thread, kind in sorted(marks):
        if kind == A_CAPTURE:
            begun[thread] = time
        elif thread in begun:
            found.append((begun.pop(thread), time))
    rows = np.array(sorted(found), np.int64).reshape(-1, 2)
    apart = np.ones(len(rows), bool)
    over = rows[1:, 0] < np.maximum.accumulate(rows[:, 1])[:-1] if len(rows) else apart
    apart[1:] &= ~over
    apart[:-1] &= ~over
    return rows[apart]


def window_of(start: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Number of the capture that each time lies in, -1 for none."""
    if not len(spans):
        return np.full(len(start), -1)
    at = np.searchsorted(spans[:, 0], start, "right") - 1
    return np.where((at >= 0) & (start < spans[np.maximum(at, 0), 1]), at, -1)


def numbered(nodes: np.ndarray, external: np.ndarray) -> np.ndarray:
    """Row of `nodes`, in order of their correlation, that each execution is by its number, -1 for none."""
    known = nodes["correlation"]
    at = np.minimum(np.searchsorted(known, external), len(known) - 1)
    return np.where((external >= FIRST_NODE) & (known[at] == external), at, -1) if len(known) else external * 0 - 1


class Captured:
    """Graphs that a trace shows being captured: `nodes` by graph and in the order of their launches; `sites`: calls."""

    def __init__(self, nodes: np.ndarray, meanings: Meanings, texts: Texts, sites: Numbered) -> None:
        self._nodes, self._meanings, self._texts, self._sites = nodes, meanings, texts, sites
        edges = np.flatnonzero(np.diff(nodes["graph"])) + 1 if len(nodes) else np.zeros(0, np.int64)
        self._graphs: dict[int, list[np.ndarray]] = {}
        for rows in np.split(np.arange(len(nodes)), edges):
            if len(rows):
                self._graphs.setdefault(len(rows), []).append(rows)
        self._copies = meanings.names(nodes["name"]) == A_COPY_CALL if len(nodes) else np.zeros(0, bool)
        self._known: dict[bytes, tuple[np.ndarray, int] | None] = {}

    def of(self, names: np.ndarray, kinds: np.ndarray, rows: np.ndarray, start: int) -> np.ndarray | None:
        """The nodes that a graph's executions are, in their order, by what they are and the row of the trace each is
        in; None where no capture before `start` is that of this graph."""
        if len(names) not in self._graphs:
            return None
        key = np.stack([names, kinds, rows]).tobytes()
        if key not in self._known:
            self._known[key] = self._found(names, kinds, bool((rows == rows[0]).all()))
        found = self._known[key]
        return found[0] if found is not None and found[1] <= start else None

    def _found(self, names: np.ndarray, kinds: np.ndarray, one_row: bool) -> tuple[np.ndarray, int] | None:
        """(the nodes, when the first capture was) of executions with these names."""
        copies = (kinds == COPY) | _each(names, lambda n: self._texts[n].startswith(_ROCM_COPY))
        alike = [g for g in self._graphs[len(names)] if self._is(g, names, copies, one_row)]
        if not alike:
            return None
        first = min(int(self._nodes["start"][g[0]]) for g in alike)
        return self._agreed(alike), first

    def _is(self, graph: np.ndarray, names: np.ndarray, copies: np.ndarray, one_row: bool) -> bool:
        """Whether executions may be those of a graph."""
        nodes = self._nodes[graph]
        if not np.array_equal(copies, self._copies[graph] | (copies & (nodes["kernel"] == names))):
            return False
        told = (nodes["kernel"] >= 0) & ~self._copies[graph]
        if not np.array_equal(nodes["kernel"][told], names[told]):
            return False
        if told.sum() + self._copies[graph].sum() == len(names) and told.any():
            return True
        if not one_row or len(names) < LEAST_NAMELESS:
            return False
        return self._multiplies_alike(nodes, names, enough=bool(copies.any()))

    def _multiplies_alike(self, nodes: np.ndarray, names: np.ndarray, enough: bool) -> bool:
        """Whether of the kernels of each product one multiplies. What no operator launched may. `enough`: where there
        is no product, other nodes tell the graph from any of as many."""
        site = np.maximum(nodes["site"], 0)
        called = np.where(nodes["site"] >= 0, self._sites.rows[site, 0] if len(self._sites) else -1, -1)
        products = _each(called, lambda n: n >= 0 and of_matmul(self._texts[n]))
        if not products.any():
            return enough
        able = _each(names, lambda n: multiplies(self._texts[n]))
        _, call = np.unique(nodes["call"], return_inverse=True)
        makes = np.bincount(call.reshape(-1), able) > 0
        return bool(makes[call.reshape(-1)[products]].all())

    def _agreed(self, alike: list[np.ndarray]) -> np.ndarray:
        """What nodes of the same place have in common: of calls that differ in their shapes the name."""
        out = self._nodes[alike[0]].copy()
        for graph in alike[1:]:
            other = self._nodes[graph]
            for name in _AGREED:
                out[name][out[name] != other[name]] = -1
            out["direction"][out["direction"] != other["direction"]] = NEITHER
            differ = np.flatnonzero(out["site"] != other["site"])
            out["site"][differ] = self._shapeless(out["site"][differ], other["site"][differ])
        return out

    def _shapeless(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Calls of the same name without their shapes; -1 where names differ."""
        rows = self._sites.rows if len(self._sites) else np.full((1, 6), -1)
        name = np.where(one >= 0, rows[np.maximum(one, 0), 0], -1)
        same = (name >= 0) & (other >= 0) & (name == rows[np.maximum(other, 0), 0])
        nothing = np.full(int(same.sum()), NONE)
        out = np.full(len(one), -1, np.int64)
        out[same] = self._sites.of(name[same], *[nothing] * 4, np.full(len(nothing), -1))
        return out


def _each(codes: np.ndarray, what: Callable[[int], bool]) -> np.ndarray:
    """What is so of each text."""
    unique, inverse = np.unique(codes, return_inverse=True)
    return np.array([what(n) for n in unique.tolist()], bool)[inverse.reshape(-1)]
