"""What no cut of the chips into halves can be below: proofs for the bisection."""

from math import ceil
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from simulators.topology.csr import csr
from simulators.topology.flow import living
from simulators.topology.lattice import Lattice
from simulators.topology.loads import by_routing
from simulators.topology.network import Network
from simulators.topology.search import hop_counts

MOST_DENSE = 512  # chips whose matrix is worked on in full, in a tenth of a second
MOST_SPARSE = 20_000  # chips up to which vectors are searched for
_ROUNDS = 200  # of a Lanczos search: beyond them its vectors are not worth the wait


def flow_bound(network: Network) -> int:
    """Under all-to-all, floor(N/2) ceil(N/2) ordered pairs cross any cut into halves in each direction, and no link
    carries more of them than the busiest one does: so many links at least. 0 where nothing is known.
    """
    chips = network.chips_alive
    if hop_counts(network).unreachable:
        return 0
    most = min((load.max for load in by_routing(network).values()), default=0.0)
    return ceil((chips // 2) * (chips - chips // 2) / most - 1e-6) if most else 0


def spectrum(network: Network, most_chips: int = MOST_DENSE) -> tuple[float | None, np.ndarray | None]:
    """(second smallest eigenvalue of the Laplacian of the living chips, the eigenvectors from the second on (living
    chips, few)). Switches are eliminated (Schur complement): they take whatever value costs least.

    The value is None on networks of more than `most_chips` that are no whole torus: a Lanczos search can pass over an
    eigenvalue where many are alike, and what is too large would prove too much. Its vectors still divide chips well.
    """
    lattice = network.lattice
    if lattice is not None and lattice.transitive and lattice.chips > 1:
        return _characters(lattice)
    chips = living(network)
    if len(chips) > (most_chips if network.switches else MOST_SPARSE):
        return None, None
    laplacian = _laplacian(network)
    if len(chips) <= most_chips:
        values, vectors = eigh(_eliminated(network, laplacian.toarray()), subset_by_index=(1, min(4, len(chips)) - 1))
        return float(values[0]), vectors
    start = np.random.default_rng(0).normal(size=len(chips))
    try:
        left = laplacian[chips][:, chips]
        tolerance: Any = 1e-6  # the stubs take its default, 0, for a whole number
        values, vectors = eigsh(left, k=4, which="SA", v0=start, maxiter=_ROUNDS, tol=tolerance)
    except ArpackNoConvergence:
        return None, None
    return None, vectors[:, np.argsort(values)[1:]]


def spectral_bound(value: float, chips: int) -> int:
    """Links that a cut into halves has at least, from the second smallest eigenvalue: lambda times the product of both
    halves by the number of chips, which is lambda N/4 for even N.
    """
    return max(0, ceil(value * (chips // 2) * (chips - chips // 2) / chips - 1e-6))


def _characters(lattice: Lattice) -> tuple[float, np.ndarray]:
    """Of a network that looks the same from every chip, with waves along its axes as eigenvectors: a wave turns by
    theta from chip to chip along an axis, has come round where the axis (and its twist) closes, and has the eigenvalue
    sum of 2 - 2 cos(theta).
    """
    closes = np.diag(lattice.dims) - (np.array(lattice.twist) if lattice.twist else 0)
    turns = 2 * np.pi * np.linalg.solve(closes, lattice.coordinates().T)
    moving = np.array(lattice.dims) > 1
    values = (2 - 2 * np.cos(turns[moving])).sum(0)
    few = np.argsort(values, kind="stable")[1:4]
    return float(values[few[0]]), np.cos(lattice.coordinates() @ turns[:, few] + 0.5)  # no chip stands on a zero


def _laplacian(network: Network) -> csr_array:
    graph = csr(network)
    shape = (network.nodes, network.nodes)
    beside = csr_array((np.ones(len(graph.neighbours)), graph.neighbours, graph.indptr), shape=shape)
    return csr_array(diags_array(beside.sum(axis=1)) - beside)


def _eliminated(network: Network, full: np.ndarray) -> np.ndarray:
    chips = living(network)
    switches = np.arange(network.chips, network.nodes)
    if not len(switches):
        return full[np.ix_(chips, chips)]
    across = full[np.ix_(chips, switches)]
    inverse = np.linalg.pinv(full[np.ix_(switches, switches)], hermitian=True)
    return full[np.ix_(chips, chips)] - across @ inverse @ across.T
