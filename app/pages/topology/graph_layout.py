"""Places for a graph that has no shape of its own: eigenvectors of its links, then a little pushing and pulling."""

from math import ceil, sqrt

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from simulators.topology.network import Network

PUSHED = 400  # nodes up to which every pair pushes the other away; beyond, the eigenvectors alone
ROUNDS = 80


def graph_places(network: Network) -> np.ndarray:
    """float64 (nodes, 3); links are about 1 long. Parts that nothing joins stand side by side. Always the same."""
    links = network.links[network.links[:, 0] != network.links[:, 1]]
    both = np.concatenate([links, links[:, ::-1]])
    joined = coo_matrix((np.ones(len(both)), both.T), (network.nodes, network.nodes)).tocsr()
    joined.data[:] = 1  # parallel links pull no harder
    count, part = connected_components(joined, directed=False)
    places = np.zeros((network.nodes, 3))
    order = np.argsort(part, kind="stable")
    for nodes in np.split(order, np.cumsum(np.bincount(part))[:-1]):
        places[nodes] = _one(joined[nodes][:, nodes])
    if count > 1:
        size = max(float(np.ptp(places, axis=0).max()) + 1.5, 2.0)
        columns = ceil(sqrt(1.7 * count))
        places[:, 0] += part % columns * size
        places[:, 1] -= part // columns * size
    return places


def _one(joined: csr_matrix) -> np.ndarray:
    """Places of a graph in one piece, around the origin."""
    n = joined.shape[0]
    if n < 5:
        return np.array([[0, 0, 0], [1, 0, 0], [0.5, 0.87, 0], [0.5, 0.29, 0.82]], float)[:n]
    places = _eigenvectors(joined)
    ends = np.stack(joined.nonzero(), axis=1)
    if n <= PUSHED:
        places = _pushed(places, ends)
    length = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1).mean()
    return (places - places.mean(axis=0)) * (1.2 / max(float(length), 1e-9))


def _eigenvectors(joined: csr_matrix) -> np.ndarray:
    """The three slowest vibrations of the graph as coordinates: of D^-1/2 A D^-1/2 those after the first."""
    n = joined.shape[0]
    scale = 1 / np.sqrt(np.maximum(np.asarray(joined.sum(axis=1)).ravel(), 1))
    even = joined.multiply(scale[:, None]).multiply(scale[None]).tocsr()
    start = np.cos(np.arange(n) * 2.4) + 1.5  # any vector that has a part of each: always the same one
    try:
        vectors = eigsh(even, k=4, which="LA", v0=start, tol=1e-3, maxiter=200)[1]
    except ArpackNoConvergence as e:
        vectors = e.eigenvectors
    except ArpackError:
        vectors = np.zeros((n, 0))
    vectors = vectors[:, ::-1][:, 1:4] * scale[:, None]
    angle = np.arange(n)
    spare = np.stack([np.cos(angle * 2.4), np.sin(angle * 2.4), np.cos(angle * 1.1)], axis=1)
    vectors = np.concatenate([vectors, spare[:, vectors.shape[1] :]], axis=1)
    vectors *= np.where(vectors[np.abs(vectors).argmax(axis=0), range(3)] < 0, -1, 1)  # one of two signs, always that
    return vectors / np.maximum(np.abs(vectors).max(axis=0), 1e-12)


def _pushed(places: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Pairs push apart, links pull together, ever smaller steps (Fruchterman and Reingold, 1991)."""
    n = len(places)
    here = places + 0.05 * np.stack([np.cos(np.arange(n) * k) for k in (2.4, 1.7, 0.9)], axis=1)  # none on another
    spring = 2 / n ** (1 / 3)
    for step in np.linspace(0.3, 0.01, ROUNDS):
        apart = here[:, None] - here[None]
        near = np.maximum((apart**2).sum(axis=2), 1e-6)
        force = (apart * (spring**2 / near)[:, :, None]).sum(axis=1)
        pull = here[ends[:, 1]] - here[ends[:, 0]]
        pull *= np.linalg.norm(pull, axis=1)[:, None] / spring
        np.add.at(force, ends[:, 0], pull)
        here += force / np.maximum(np.linalg.norm(force, axis=1), 1e-9)[:, None] * step
    return here
