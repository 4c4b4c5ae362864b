"""A network's links as rows of neighbours, which is what searches read."""

from dataclasses import dataclass

import numpy as np

from simulators.topology.network import KIND_OF, Network


@dataclass(frozen=True, eq=False)
class Csr:
    """Neighbours of node v: entries indptr[v] to indptr[v + 1]; parallel links are entries of their own.

    `link`: row of `network.links`; `forward`: the entry runs from that link's first node to its second.
    """

    indptr: np.ndarray  # int64 (nodes + 1,)
    neighbours: np.ndarray  # int32 (entries,)
    link: np.ndarray  # int32 (entries,)
    forward: np.ndarray  # bool (entries,)

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    def totals(self, flow: np.ndarray, links: int) -> tuple[np.ndarray, np.ndarray]:
        """What runs over each link forward and backward, float64 (links,), given what runs over each entry."""
        ways = (self.forward, ~self.forward)
        forward, backward = (np.bincount(self.link[w], flow[w], minlength=links) for w in ways)
        return forward, backward


def csr(network: Network) -> Csr:
    """Both directions of every link. Failed nodes have no entries, since their links are gone."""
    rows = np.arange(len(network.links))
    tails, heads = network.links[:, 0], network.links[:, 1]
    return _sorted(
        network.nodes,
        np.concatenate([tails, heads]),
        np.concatenate([heads, tails]),
        np.concatenate([rows, rows]),
        np.repeat([True, False], len(rows)),
    )


def one_ocs_csr(network: Network) -> Csr:
    """Two copies of the network: nodes 0.. where no optical link was crossed yet, nodes + 0.. where one was.

    Copper and board links run inside each copy, optical ones from the first copy to the second: no way crosses two.
    """
    n = network.nodes
    rows = np.arange(len(network.links))
    optical = network.link_kind == KIND_OF["ocs"]
    tails, heads, links, forward = [], [], [], []
    for way in (0, 1):
        a, b = network.links[:, way].astype(np.int64), network.links[:, 1 - way].astype(np.int64)
        for chosen, from_copy, to_copy in ((~optical, 0, 0), (~optical, 1, 1), (optical, 0, 1)):
            tails.append(a[chosen] + n * from_copy)
            heads.append(b[chosen] + n * to_copy)
            links.append(rows[chosen])
            forward.append(np.full(len(links[-1]), way == 0))
    return _sorted(2 * n, *(np.concatenate(part) for part in (tails, heads, links, forward)))


def _sorted(nodes: int, tails: np.ndarray, heads: np.ndarray, links: np.ndarray, forward: np.ndarray) -> Csr:
    order = np.argsort(tails, kind="stable")
    indptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=nodes), out=indptr[1:])
    return Csr(indptr, heads[order].astype(np.int32), links[order].astype(np.int32), forward[order])
