"""Where the nodes of a network stand in the picture, and how its links leave them. Pure: a network in, arrays out.

Lattices stand on their grid, cubes of 4x4x4 a little apart, slices side by side; a Boardfly's groups stand on a sphere,
each a ring of boards; GPUs lie in a plane by node with the levels of switches above; any other graph is laid out by the
eigenvectors of its links (near in hops, near in the picture).
"""

from dataclasses import dataclass
from math import ceil, pi, sin, sqrt

import numpy as np

from app.pages.topology.graph_layout import graph_places
from simulators.topology.lattice import AXES
from simulators.topology.network import KIND_OF, Network
from simulators.topology.switches import SWITCHES, switch_kinds

CUBE, CUBE_GAP = 4, 1.2
ASPECT = 1.7  # width by depth of what stands side by side: the picture is wider than high
MOST_ARCS = 64  # of wraps drawn whole; more would hide the rest
MOST_BOXES = 2_000
WHOLE = 4  # added to `closes` where the arc is drawn whole
GROUP_SPACE = 9.4


@dataclass(frozen=True, eq=False)
class Layout:
    """places    float32 (nodes, 3), around the origin; neighbours on a lattice are 1 apart; the third axis points up
    closes    uint8 (links,): 0 a straight line; 1, 2, 3: a wrap that leaves its first end upwards along that axis of
              the picture and comes to its second end from below; plus WHOLE where its arc is drawn
    lane      int8 (links,): 0, 1, ... among parallel links, so that they lie side by side
    outlines  float32 (n, 2, 3): faint lines around cubes, slices, nodes or groups
    axes      (name with length, direction in the picture) of a lattice's axes
    """

    places: np.ndarray
    closes: np.ndarray
    lane: np.ndarray
    outlines: np.ndarray
    axes: tuple[tuple[str, tuple[float, float, float]], ...] = ()


def layout(network: Network) -> Layout:
    """The layout of a network without faults; a broken one stands where it stood."""
    closes = np.zeros(len(network.links), np.uint8)
    axes: tuple = ()
    if network.axes == AXES[: len(network.axes)]:
        places, closes, axes = _lattice(network)
        outlines = _boxes(places, network.parts.get("cube", network.parts.get("slice")))
    elif network.axes == ("group", "board", "chip"):
        places, outlines = _boardfly(network)
    elif network.switches and (switch_kinds(network) >= 0).all():
        places = _levels(network)
        outlines = _boxes(places[: network.chips], network.parts.get("host", network.parts.get("node")))
    else:
        places, outlines = graph_places(network), _none()
    middle = (places.min(axis=0) + places.max(axis=0)) / 2 if len(places) else np.zeros(3)
    return Layout(
        places=(places - middle).astype(np.float32),
        closes=closes,
        lane=_lanes(network.links, closes),
        outlines=(outlines - middle).astype(np.float32),
        axes=axes,
    )


def still_there(network: Network, broken: Network) -> np.ndarray:
    """Which links of the whole network the broken one still has, bool (links,). It keeps their order."""
    if len(network.links) == len(broken.links):
        return np.ones(len(network.links), bool)
    left = np.isin(_numbered(network), _numbered(broken))
    assert np.count_nonzero(left) == len(broken.links), "the broken network is not a part of the whole"
    return left


def _numbered(network: Network) -> np.ndarray:
    """One number for each link: its ends, its kind, and which it is among parallel ones."""
    ends = np.sort(network.links, axis=1).astype(np.int64)
    key = (ends[:, 0] * network.nodes + ends[:, 1]) * 256 + network.link_kind
    return key * 4096 + _occurrence(key)


def _occurrence(key: np.ndarray) -> np.ndarray:
    """0, 1, ... among equal values, in the order in which they stand."""
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(key) else np.zeros(0, int)
    sizes = np.diff(np.r_[starts, len(key)])
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - np.repeat(starts, sizes)
    return found


def _lanes(links: np.ndarray, closes: np.ndarray) -> np.ndarray:
    """Links between the same two nodes side by side; a wrap goes its own way already."""
    ends = np.sort(links, axis=1).astype(np.int64)
    lanes = _occurrence(ends[:, 0] << 32 | ends[:, 1])
    return np.where(closes > 0, 0, np.minimum(lanes, 100)).astype(np.int8)


def _lattice(network: Network) -> tuple[np.ndarray, np.ndarray, tuple]:
    at = network.coordinates
    dims = at.max(axis=0) + 1
    first = sorted(range(min(len(dims), 3)), key=lambda i: (-dims[i], i))  # the longest axis lies across the picture
    gap = CUBE_GAP if "cube" in network.parts else 0.0
    places = np.zeros((network.chips, 3))
    for world, axis in enumerate(first):
        places[:, world] = at[:, axis] + gap * (at[:, axis] // CUBE)
    for axis in range(3, len(dims)):  # a fourth axis repeats the block along the first, and so on
        places[:, axis % 3] += at[:, axis] * (np.ptp(places[:, axis % 3]) + 2)
    names = tuple(
        (f"{network.axes[axis]} {dims[axis]}", tuple(float(world == i) for i in range(3)))
        for world, axis in enumerate(first)
        if dims[axis] > 1
    )
    closes = _closes(network, dims, {axis: world for world, axis in enumerate(first)})
    if network.slices > 1:
        size = np.ptp(places, axis=0) + max(2.0, 0.15 * np.ptp(places, axis=0).max())
        places[:, :2] += _grid(network.slices, size[0], size[1])[network.parts["slice"]]
    return places, closes, names


def _closes(network: Network, dims: np.ndarray, world: dict[int, int]) -> np.ndarray:
    """How each wrap leaves; whole arcs where few, or along the edges of the body."""
    closes = np.zeros(len(network.links), np.uint8)
    wraps = np.flatnonzero(np.isin(network.link_kind, (KIND_OF["wrap"], KIND_OF["twist"])))
    if not len(wraps):
        return closes
    a, b = (network.coordinates[network.links[wraps, end]] for end in (0, 1))
    axis = np.argmax((a == dims - 1) & (b == 0) & (dims > 1), axis=1)
    closes[wraps] = np.array([world.get(i, i % 3) for i in range(len(dims))])[axis] + 1
    if network.slices == 1:
        others = np.arange(len(dims)) != axis[:, None]
        edge = (~others | (a == 0) | (a == dims - 1)).all(axis=1)
        flat = np.count_nonzero(dims > 1) < 3 and len(wraps) <= MOST_ARCS
        closes[wraps[edge | flat]] += WHOLE
    return closes


def _grid(count: int, width: float, depth: float) -> np.ndarray:
    """Corners (count, 2) of equal cells side by side, about ASPECT times as wide as deep, read like a page."""
    columns = min(count, max(1, ceil(sqrt(count * ASPECT * depth / width))))
    row, column = np.divmod(np.arange(count), columns)
    return np.stack([column * width, -row * depth], axis=1)


def _boxes(places: np.ndarray, part: np.ndarray | None) -> np.ndarray:
    """Edges around each part, (n, 2, 3); none where there is one part, or too many to be seen."""
    if part is None or not 1 < part.max() + 1 <= MOST_BOXES:
        return _none()
    low = np.full((part.max() + 1, 3), np.inf)
    high = -low
    np.minimum.at(low, part, places)
    np.maximum.at(high, part, places)
    pad = np.where(np.ptp(places, axis=0) > 0, 0.42, 0.0)
    ends = np.stack([low - pad, high + pad], axis=1)
    corner = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])
    corners = ends[:, corner, np.arange(3)]
    edges = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    edges = [e for e in edges if pad[[2, 1, 0][(e[0] ^ e[1]).bit_length() - 1]] > 0]
    return corners[:, edges].reshape(-1, 2, 3)


def _none() -> np.ndarray:
    return np.zeros((0, 2, 3))


def _boardfly(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Boards of four in a ring of eight, groups on a sphere, or on a circle where they are few."""
    group, board, chip = network.coordinates.T
    groups = int(group.max()) + 1
    centre, across, along = _stands(groups)
    turn = 2 * pi * board / 8
    corner = 2 * pi * chip / 4 + pi / 4 + turn
    x = 3.2 * np.cos(turn) + 0.62 * np.cos(corner)
    y = 3.2 * np.sin(turn) + 0.62 * np.sin(corner)
    places = centre[group] + x[:, None] * across[group] + y[:, None] * along[group]
    round_ = 2 * pi * np.arange(33) / 32
    ring = np.cos(round_)[:, None] * across[:, None] + np.sin(round_)[:, None] * along[:, None]
    ring = centre[:, None] + 4.4 * ring
    return places, np.stack([ring[:, :-1], ring[:, 1:]], axis=2).reshape(-1, 2, 3)


def _stands(groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre of each group, and the two directions that its disc lies along."""
    number = np.arange(groups)
    if groups <= 8:
        radius = 0 if groups == 1 else GROUP_SPACE / (2 * sin(pi / groups))
        turn = 2 * pi * number / groups
        centre = radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        return centre, np.tile([1.0, 0, 0], (groups, 1)), np.tile([0, 1.0, 0], (groups, 1))
    height = 1 - (2 * number + 1) / groups
    turn = pi * (3 - sqrt(5)) * number  # the golden angle spreads them evenly
    flat = np.sqrt(1 - height**2)
    out = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)
    across = np.stack([-np.sin(turn), np.cos(turn), 0 * turn], axis=1)
    return out * GROUP_SPACE / (0.9 * sqrt(4 * pi / groups)), across, np.cross(out, across)


def _levels(network: Network) -> np.ndarray:
    """GPUs by node in a plane; NVLink switches close to their GPUs; leaves, spines and cores on levels above."""
    host = network.parts.get("host", network.parts.get("node", np.zeros(network.chips, np.int32)))
    inside = np.arange(network.chips) - np.searchsorted(host, host)
    columns = max(1, ceil(np.bincount(host).max() / 2))
    places = np.zeros((network.nodes, 3))
    corner = _grid(int(host.max()) + 1, columns + 1.4, 3.4)[host]
    places[: network.chips, 0] = corner[:, 0] + inside % columns
    places[: network.chips, 1] = corner[:, 1] - inside // columns
    plane = places[: network.chips]
    low, size = plane.min(axis=0), np.maximum(np.ptp(plane, axis=0), 3.0)
    step = max(3.0, 0.2 * size.max())
    kinds = switch_kinds(network)
    several = len(np.unique(kinds)) > 1
    for kind, (name, _, _) in enumerate(SWITCHES):
        nodes = network.chips + np.flatnonzero(kinds == kind)
        if name == "nvswitch":
            places[nodes] = _near_their_gpus(network, nodes, plane, -1.6 if several else step)
        elif len(nodes):
            columns = min(len(nodes), max(1, ceil(sqrt(len(nodes) * size[0] / size[1]))))
            rows = ceil(len(nodes) / columns)
            row, column = np.divmod(np.arange(len(nodes)), columns)
            places[nodes, 0] = low[0] + (column + 0.5) * size[0] / columns
            places[nodes, 1] = low[1] + size[1] - (row + 0.5) * size[1] / rows
            places[nodes, 2] = step * kind
    return places


def _near_their_gpus(network: Network, nodes: np.ndarray, plane: np.ndarray, height: float) -> np.ndarray:
    """Over the middle of the GPUs that each is joined to; those over one spot in a row."""
    total, count = np.zeros((network.nodes, 3)), np.zeros(network.nodes)
    for a, b in ((0, 1), (1, 0)):
        gpu = network.links[:, a] < network.chips
        np.add.at(total, network.links[gpu, b], plane[network.links[gpu, a]])
        np.add.at(count, network.links[gpu, b], 1)
    spot = total[nodes] / np.maximum(count[nodes], 1)[:, None]
    key = np.unique(spot.round(3), axis=0, return_inverse=True)[1].ravel()
    row, beside = _occurrence(key), np.bincount(key)[key]
    span = min(1.0, max(0.45, np.ptp(plane[:, 0]) / max(beside.max(initial=1), 1)))
    spot[:, 0] += (row - (beside - 1) / 2) * span
    spot[:, 2] = height
    return spot
