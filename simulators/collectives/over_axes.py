"""Collectives over axes of a mesh or torus, whole or broken: rings where an axis wraps, lines where it does not.

After a failure the rings that lost a link are lines, and the slowest group counts: all of them start together. A chip
that lost links of its group receives over those that are left, (n - 1)/n of the array in a group of n that live; of an
all-to-all each of its pairs has 1/n^2 of the array, which along one axis crosses the narrowest place of the group. A
twisted axis comes back on another line: without the axes that it shifts along it is a line, with them the twist is
used, over all axes, named or not, or within groups, each of which is a network of its own.
"""

from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from errors import QuestionError
from simulators.collectives import general, rings
from simulators.collectives.cost import PASSES, Cost, Setting, one
from simulators.collectives.graph import link_rates
from simulators.collectives.rings import Time
from simulators.collectives.shape import Shape, shape_of
from simulators.topology.network import Network
from simulators.topology.search import hop_counts

FORMULAS = {
    "all_gather": rings.all_gather,
    "reduce_scatter": rings.reduce_scatter,
    "all_reduce": rings.all_reduce,
    "all_to_all": rings.all_to_all,
    "permute": rings.permute,
}


def cost(network: Network, shape: Shape, axes: tuple[int, ...], kind: str, setting: Setting, end: str) -> Cost:
    """Within every group of chips that differ along `axes` (positions) alone, all groups at once.

    Raises QuestionError where a broken axis falls into pieces.
    """
    if kind != "permute" and not shape.all_of(axes) and (group := _twisted_group(network, axes)) is not None:
        found = shape_of(group)
        assert found is not None, "a part of a lattice is one"
        return all_axes(group, found, kind, setting, end, "shortest")
    lengths = [shape.dims[i] for i in axes]
    wraps = [shape.rings[i] for i in axes] if shape.whole else _left(network, shape, axes)
    rate = float(link_rates(network, setting.link_bytes_per_s).min(initial=np.inf))
    time = FORMULAS[kind](1.0, lengths, wraps, rate, setting.hop_s)
    if not shape.whole:
        if kind != "permute":
            _need_groups(network, shape, axes)
        hops = PASSES.get(kind, 1) * _hops(network, shape, axes, kind)
        time = Time(hops * setting.hop_s, _broken_s(time, network, shape, axes, kind, rate, end), time.overlapped)
    elif end == "low" and kind in PASSES and all(w for k, w in zip(lengths, wraps, strict=True) if k > 1):
        chips = prod(lengths)
        time = Time(time.latency_s, time.bandwidth_s * (chips - 1) / chips)
    if kind == "all_to_all" and end != "value":  # the low end hides hops behind what is sent, the high end never does
        time = Time(time.latency_s, time.bandwidth_s, end == "low")
    return one(kind, time, _told(lengths, wraps, kind))


def _broken_s(
    time: Time, network: Network, shape: Shape, axes: tuple[int, ...], kind: str, rate: float, end: str
) -> float:
    """Seconds of an array of 1 byte in the slowest of groups that lack chips or links; `time`: as if each had all of
    its chips."""
    living = network.alive[: network.chips].reshape(shape.dims).sum(axis=axes)
    if living.max() < 2:
        return 0.0
    alone = sum(shape.dims[i] > 1 for i in axes) == 1
    bandwidth = time.bandwidth_s
    if kind in PASSES:
        least = _fewest_links_s(network, shape, axes, rate)
        line = PASSES[kind] * max(least, 1 / (2 * rate))  # beside it stand rings that are whole
        bandwidth = min(bandwidth, line) if alone else max(bandwidth, PASSES[kind] * least)
        bandwidth = PASSES[kind] * least if end == "low" else bandwidth
    elif kind == "all_to_all":
        least = _narrowest_s(network, shape, axes, rate)
        bandwidth = least if alone or end == "low" else max(bandwidth, least)
    elif kind == "permute":
        bandwidth *= prod(shape.dims[i] for i in axes) / living[living > 1].min()
    return bandwidth


def _hops(network: Network, shape: Shape, axes: tuple[int, ...], kind: str) -> int:
    """Links to the farthest chip that lives in the same group; of a permutation to the next along the first axis, the
    last of a line back to its first."""
    long = [i for i in axes if shape.dims[i] > 1]
    if len(long) > 1 and kind != "permute":
        return hop_counts(_inside(network, axes)).diameter or 0
    if not long:
        return 0
    links, chips = _lines(network, shape, long[0])
    ring = shape.rings[long[0]] & (links == shape.dims[long[0]])
    return int(np.where(ring, 1 if kind == "permute" else chips // 2, np.maximum(chips - 1, 0)).max())


@lru_cache(16)
def _twisted_group(network: Network, axes: tuple[int, ...]) -> Network | None:
    """One of the groups along `axes`, all of which are alike, where a twist shifts along no axis beside them; None
    where none does so, or the lattice is broken."""
    twist = () if network.lattice is None else network.lattice.twist
    if not any(any(twist[i]) and all(j in axes for j, shift in enumerate(twist[i]) if shift) for i in axes if twist):
        return None
    at, inside = network.coordinates, _inside(network, axes)
    chosen = (np.delete(at, list(axes), axis=1) == 0).all(axis=1)
    kept, number = chosen[inside.links].all(axis=1), np.cumsum(chosen) - 1
    return replace(
        inside,
        chips=int(chosen.sum()),
        links=number[inside.links[kept]].astype(np.int32),
        link_kind=inside.link_kind[kept],
        coordinates=at[chosen],
        alive=inside.alive[: network.chips][chosen],
        parts={},
        link_parts={},
    )


@lru_cache(16)
def _inside(network: Network, axes: tuple[int, ...]) -> Network:
    """The network without the links that leave a group of chips along `axes`."""
    leave = ~_stays(network, axes)
    return network.without(np.zeros(network.nodes, bool), leave) if leave.any() else network


def _need_groups(network: Network, shape: Shape, axes: tuple[int, ...]) -> None:
    """Raises QuestionError where living chips of one group cannot reach each other within it, though no line of it is
    in pieces: two chips that lack the corners between them."""
    alive, inside = network.alive[: network.chips], _inside(network, axes)
    joined = coo_array((np.ones(len(inside.links), bool), tuple(inside.links.T)), shape=(network.nodes,) * 2)
    _, part = connected_components(joined, directed=False)
    groups = int(alive.reshape(shape.dims).any(axis=axes).sum())
    if len(np.unique(part[: network.chips][alive])) > groups:
        named = ",".join(shape.axes[i] for i in axes)
        raise QuestionError(
            f"a group along {named} of {network.spec} is in pieces after the failure: no collective over it stays in "
            "it",
            advice="Leave the axes out: over all chips it goes another way.",
        )


def _stays(network: Network, axes: tuple[int, ...]) -> np.ndarray:
    """Which links join chips of one group along `axes`."""
    apart = np.diff(network.coordinates[network.links], axis=1)[:, 0] != 0
    return ~np.delete(apart, list(axes), axis=1).any(axis=1)


def all_axes(network: Network, shape: Shape, kind: str, setting: Setting, end: str, routing: str) -> Cost:
    """Over all chips: by the formulas where the lattice is whole and straight, else by what its links allow.

    Twisted or broken, a gathering over its axes as they are left, lines among them, is the high end, unless its links
    allow no more.
    """
    axes = tuple(i for i, k in enumerate(shape.dims) if k > 1)
    if shape.whole and not any(shape.shifted) and kind != "permute":
        return cost(network, shape, axes, kind, setting, end)
    found = general.cost(network, kind, setting, end, routing)
    if kind in PASSES and end == "high":
        try:
            plain = cost(network, shape, axes, kind, setting, end)
        except QuestionError:  # an axis in pieces: what runs over one tree remains
            return found
        best = general.cost(network, kind, setting, "value", routing)
        if best.seconds_per_byte > plain.seconds_per_byte:
            return best
        rest = Time(found.latency_s, plain.seconds_per_byte)
        return one(kind, rest, f"as {plain.algorithm}")
    return found


def _told(lengths: list[int], wraps: list[bool], kind: str) -> str:
    """Such as `rings of 4 and 8, a line of 2`."""
    ring = [str(k) for k, w in zip(lengths, wraps, strict=True) if w and k > 1]
    line = [str(k) for k, w in zip(lengths, wraps, strict=True) if not w and k > 1]
    words = [
        f"{name} of {found[0]}" if len(found) == 1 else f"{name}s of {', '.join(found[:-1])} and {found[-1]}"
        for name, found in (("ring", ring), ("line", line))
        if found
    ]
    if kind == "permute":
        return f"to the next along the first axis: {', '.join(words) or 'nothing to move'}"
    return ", ".join(words) + (" at once" if len(ring) + len(line) > 1 else "") or "nothing to move"


def _fewest_links_s(network: Network, shape: Shape, axes: tuple[int, ...], oneway_bytes_per_s: float) -> float:
    """Seconds in which the chip with the fewest links along these axes receives what it lacks of an array of 1 byte."""
    alive = network.alive[: network.chips]
    links = np.bincount(network.links[_stays(network, axes)].ravel(), minlength=network.nodes)[: network.chips]
    lives = alive.reshape(shape.dims)
    group = np.broadcast_to(lives.sum(axis=axes, keepdims=True), shape.dims).ravel()
    some = alive & (group > 1)
    if not some.any():
        return 0.0
    return float(((group[some] - 1) / group[some] / (np.maximum(links[some], 1) * oneway_bytes_per_s)).max())


def _narrowest_s(network: Network, shape: Shape, axes: tuple[int, ...], oneway_bytes_per_s: float) -> float:
    """Seconds below which no routing brings an all-to-all of an array of 1 byte in each group: by the links of each
    chip, and by those across each place of an axis."""
    alive, at = network.alive[: network.chips], network.coordinates
    others = [i for i in range(len(shape.dims)) if i not in axes]
    group = np.zeros(len(at), np.int64)
    for i in others:
        group = group * shape.dims[i] + at[:, i]
    a, b = network.links[group[network.links[:, 0]] == group[network.links[:, 1]]].T
    size = np.bincount(group, alive)
    links = np.bincount(np.concatenate([a, b]), minlength=network.chips)
    least = (alive * (size[group] - 1) / np.maximum(size[group] ** 2 * links, 1)).max()
    for axis in axes:
        least = max(least, _over_places(shape.dims[axis], at[:, axis], np.stack([a, b]), group, alive))
    return float(least) / oneway_bytes_per_s


def _over_places(k: int, at: np.ndarray, links: np.ndarray, group: np.ndarray, alive: np.ndarray) -> float:
    """The most pairs a link has to carry between a stretch of an axis of `k` places and the rest of its group, as a
    share of the group's pairs with themselves. `at`: places of the chips."""
    apart = np.abs(np.diff(at[links], axis=0)[0])
    if k == 1 or not np.isin(apart, (0, 1, k - 1)).all():  # a twist leads over several places at once
        return 0.0
    groups = int(group.max()) + 1
    after = np.where(apart == 1, at[links].min(axis=0), k - 1)
    across = np.bincount((group[links[0]] * k + after)[apart > 0], minlength=groups * k).reshape(groups, k)
    living = np.bincount(group * k + at, alive, minlength=groups * k).reshape(groups, k)
    size = living.sum(axis=1, keepdims=True)
    start = np.concatenate([np.zeros(k - 1, int), np.arange(k)])  # of all stretches from the first place, of all halves
    end = start + np.concatenate([np.arange(1, k), np.full(k, k // 2)])
    before = np.concatenate([np.zeros((groups, 1)), np.cumsum(np.tile(living, 2), axis=1)], axis=1)
    here = before[:, end] - before[:, start]
    over = across[:, start - 1] + across[:, (end - 1) % k]
    return float((here * (size - here) / np.maximum(size**2 * over, 1)).max())


def _left(network: Network, shape: Shape, axes: tuple[int, ...]) -> list[bool]:
    """Which of the axes are still rings everywhere. Raises QuestionError where one is in pieces somewhere."""
    left = []
    for axis in axes:
        k = shape.dims[axis]
        links, chips = _lines(network, shape, axis)
        if (links < chips - 1).any() or (chips == 0).all():
            raise QuestionError(
                f"axis {shape.axes[axis]} of {network.spec} is in pieces after the failure: no collective along it "
                "stays on it",
                advice="Leave the axes out: over all chips it goes another way.",
            )
        left.append(bool((links == k)[chips > 0].all()) and shape.rings[axis] and k > 1)
    return left


def _lines(network: Network, shape: Shape, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(links, living chips) of each line along an axis."""
    k, alive = shape.dims[axis], network.alive[: network.chips].reshape(shape.dims)
    at = network.coordinates[network.links]
    apart = np.abs(at[:, 0] - at[:, 1])
    others = tuple(n for i, n in enumerate(shape.dims) if i != axis)
    along = (apart[:, axis] > 0) & (np.delete(apart, axis, axis=1) == 0).all(axis=1)
    line = np.delete(at[along, 0], axis, axis=1)
    number = np.ravel_multi_index(tuple(line.T), others) if others else np.zeros(len(line), int)
    return np.bincount(number, minlength=prod(others)), np.moveaxis(alive, axis, -1).reshape(-1, k).sum(axis=1)
