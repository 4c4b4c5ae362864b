"""Boardfly with at most one optical hop: inside the group, across one optical link, inside the other group.

Of the optical links between two groups that lie on a shortest such way, each carries the same share; inside a group
every shortest path does. Groups are small, so all pairs of all groups are worked on at once as arrays.
"""

from dataclasses import dataclass

import numpy as np

from simulators.topology.network import KIND_OF, Network
from simulators.topology.systems.boardfly import GROUP

_NEVER = 1 << 12  # hops where there is no way: more than any sum of three ways inside groups


@dataclass(frozen=True, eq=False)
class _Groups:
    """Inside each group: `hops` int16 (groups, from, to) and `paths` float64, the number of shortest ones."""

    hops: np.ndarray
    paths: np.ndarray


@dataclass(frozen=True, eq=False)
class _Entries:
    """Links in both directions: row of `network.links`, whether forward, and group and place of both ends."""

    row: np.ndarray
    forward: np.ndarray
    tail: np.ndarray
    head: np.ndarray

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(group, place) of the tail, then of the head."""
        return self.tail // GROUP, self.tail % GROUP, self.head // GROUP, self.head % GROUP


def counts(network: Network) -> np.ndarray:
    """Ordered pairs of living chips by hops, int64; pairs without such a way are left out."""
    inside = _groups(network)
    hops = inside.hops[inside.hops < _NEVER]
    across = _entries(network, optical=True)
    if len(across.row):
        least = _across(inside, across)[1]
        hops = np.concatenate([hops, least[least < _NEVER]])
    found = np.bincount(hops)
    found[0] = 0
    return found


def loads(network: Network, pairs: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
    """(forward, backward) messages over each link, float64. `pairs`: (sources, destinations), None for every ordered
    pair of living chips.
    """
    groups = network.chips // GROUP
    demand = np.zeros((network.chips, network.chips))
    if pairs is None:
        demand[np.ix_(network.alive, network.alive)] = 1.0
        np.fill_diagonal(demand, 0.0)
    else:
        np.add.at(demand, pairs, 1.0)
    demand = demand.reshape(groups, GROUP, groups, GROUP).swapaxes(1, 2)
    inside, loads = _groups(network), np.zeros((2, len(network.links)))
    local = demand[np.arange(groups), np.arange(groups)].copy()
    across = _entries(network, optical=True)
    if len(across.row):
        shares, _ = _across(inside, across)
        group, place, to_group, to_place = across.ends
        shares = shares * demand[group, to_group]
        loads[1 - across.forward, across.row] = shares.sum((1, 2))
        every = np.arange(GROUP)
        np.add.at(local, (group[:, None], every, place[:, None]), shares.sum(2))
        np.add.at(local, (to_group[:, None], to_place[:, None], every), shares.sum(1))
    links = _entries(network, optical=False)
    by_group = np.argsort(links.tail // GROUP, kind="stable")
    for mine in np.split(by_group, np.searchsorted(links.tail[by_group] // GROUP, np.arange(1, groups))):
        if len(mine):
            g, a, b = links.tail[mine[0]] // GROUP, links.tail[mine] % GROUP, links.head[mine] % GROUP
            loads[1 - links.forward[mine], links.row[mine]] = _over(inside.hops[g], inside.paths[g], local[g], a, b)
    return loads[0], loads[1]


def _groups(network: Network) -> _Groups:
    groups = network.chips // GROUP
    links = _entries(network, optical=False)
    group, a, _, b = links.ends
    beside = np.zeros((groups, GROUP, GROUP))
    np.add.at(beside, (group, a, b), 1.0)
    alive = network.alive[: network.chips].reshape(groups, GROUP)
    walks = np.eye(GROUP) * alive[:, None, :]
    hops, paths = np.full(walks.shape, _NEVER, np.int16), np.zeros(walks.shape)
    for step in range(GROUP):
        new = (hops == _NEVER) & (walks > 0)
        if not new.any():
            break
        hops[new], paths[new] = step, walks[new]
        walks = np.where(new, walks, 0.0) @ beside  # ways that are as short as can be go on from those only
    return _Groups(hops, paths)


def _entries(network: Network, optical: bool) -> _Entries:
    """Sorted by the pair of groups that they join."""
    chosen = (network.link_kind == KIND_OF["ocs"]) == optical
    if optical:  # messages inside a group stay on its copper, though a spare port may lead back to it
        chosen &= network.links[:, 0] // GROUP != network.links[:, 1] // GROUP
    rows = np.flatnonzero(chosen)
    ends = network.links[rows].astype(np.int64)
    tail, head = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
    order = np.lexsort((head // GROUP, tail // GROUP))
    forward = np.repeat([1, 0], len(rows))
    return _Entries(np.concatenate([rows, rows])[order], forward[order], tail[order], head[order])


def _across(inside: _Groups, across: _Entries) -> tuple[np.ndarray, np.ndarray]:
    """(share of each optical entry in the messages of its pair of groups (entries, chips, chips), hops of those
    messages (pairs of groups, chips, chips)).
    """
    group, place, to_group, to_place = across.ends
    before, after = inside.hops[group, :, place], inside.hops[to_group, to_place]
    hops = np.minimum(before[:, :, None] + np.int16(1) + after[:, None, :], np.int16(_NEVER))
    pair = group * len(inside.hops) + to_group
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    of = np.cumsum(np.diff(pair, prepend=-1) != 0) - 1
    least = np.minimum.reduceat(hops, first)
    best = (hops == least[of]) & (hops < _NEVER)
    return best / np.maximum(np.add.reduceat(best.astype(np.int16), first), 1)[of], least


def _over(hops: np.ndarray, paths: np.ndarray, demand: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What runs over the entries a -> b of one group, all shortest paths of a pair sharing its demand alike."""
    on = (hops.T[a][:, :, None] + 1 + hops[b][:, None, :] == hops) & (hops < _NEVER)
    part = np.divide(demand, paths, out=np.zeros_like(demand), where=paths > 0)
    return np.einsum("euv,uv,eu,ev->e", on, part, paths.T[a], paths[b], optimize=True)
