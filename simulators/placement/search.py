"""Every way to lay a mesh over a machine, and what a step costs on each.

On a mesh or torus a logical axis takes whole physical axes, or parts of them: n of the k devices along one, inside or
around what others take of it. On levels (boards in groups, GPUs in nodes) the logical axes are nested in one another,
in every order. Slices are cut by one logical axis or by several together, in every way that their sizes allow. Ways
that differ only in which of two equal physical axes is taken count once, and say how many they stand for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, permutations, product, zip_longest
from math import gcd

import numpy as np

from simulators.placement import jax_order
from simulators.placement.cost import seconds
from simulators.placement.jax_order import Shares
from simulators.placement.machine import Machine, Piece
from simulators.placement.mesh import LogicalAxis
from simulators.placement.traffic import Traffic

OVERLAPS: dict[str, str] = {
    "weights": "weights and gradients are sent beside the maths; the step waits for activations",
    "full": "everything overlaps: maths beside communication, and axes on links of their own beside one another",
    "none": "nothing overlaps: maths and all collectives one after another",
}
MOST_WAYS, MOST_KEPT = 60_000, 500
Nesting = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One way to lay the mesh, with its cost in seconds a step.

    `shares[logical][physical]`: devices; `nesting`: per physical axis the logical axes on it, outermost first;
    `pieces`: what each logical axis holds. `by_axis_s`: communication of each logical axis. `low_s` .. `high_s`: with
    full overlap .. with none. `alike`: ways that are the same but for equal physical axes.
    """

    shares: Shares
    nesting: Nesting
    pieces: tuple[tuple[Piece, ...], ...]
    by_axis_s: tuple[float, ...]
    step_s: float
    low_s: float
    high_s: float
    alike: int = 1

    def split(self, machine: Machine) -> bool:
        """Whether a logical axis holds only a part of a physical one; slices, which no links join, are none."""
        return any(
            not p.whole(machine) and machine.axes[p.axis].kind != "dcn" for pieces in self.pieces for p in pieces
        )


@dataclass(frozen=True)
class Found:
    """`placements`: the best, at most MOST_KEPT, of `different` ones; `ways`: those tried, alike counted apart;
    `complete`: whether that was all of them. `jax`: what mesh_utils does, `jax_splits`: only where it may split axes.
    """

    placements: tuple[Placement, ...]
    different: int
    ways: int
    complete: bool
    jax: Placement | None
    jax_splits: bool


@dataclass(frozen=True)
class Costing:
    """What a step costs beside where its axes lie: maths and bubble of a device, and what is sent."""

    machine: Machine
    axes: tuple[LogicalAxis, ...]
    demands: tuple[Traffic, ...]
    compute_s: float
    bubble_s: float
    overlap: str

    def axis_s(self, logical: int, pieces: Sequence[Piece]) -> tuple[float, float]:
        """Communication of one logical axis in a step: (all of it, what the step waits for)."""
        mine = [d for d in self.demands if d.axis == self.axes[logical].name]
        each = [d.times * seconds(d.kind, d.array_bytes, pieces, self.machine) for d in mine]
        return sum(each), sum(s for d, s in zip(mine, each, strict=True) if d.waited)

    def seconds(self, pieces: Sequence[tuple[Piece, ...]], known: dict) -> tuple[float, float, float]:
        """(step, with full overlap, with none) of a placement. `known`: communication of pieces reckoned before."""
        maths, waited, sent = self.compute_s + self.bubble_s, 0.0, 0.0
        busy = [0.0] * len(self.machine.axes)
        for key in enumerate(pieces):
            if key not in known:
                known[key] = self.axis_s(*key)
            mine, mine_waited = known[key]
            sent, waited = sent + mine, waited + mine_waited
            for piece in key[1]:
                busy[piece.axis] += mine
        low, high = max(maths, *busy), maths + sent
        if self.overlap == "weights":
            return max(waited + max(maths, sent - waited), low), low, high
        return (low if self.overlap == "full" else high), low, high


Nest = tuple[tuple[int, int], ...]
"""What one physical axis is shared by: (logical axis, devices), outermost first."""
Way = tuple[Nest, ...]
"""A placement while searching: the nest of each physical axis, which tells its shares and its nesting."""


@dataclass
class _Cost:
    """What the first of those ways costs that are alike, and how many these are."""

    way: Way
    step_s: float
    low_s: float
    high_s: float
    alike: int = 1


def search(costing: Costing) -> Found:
    """Tries all ways, JAX's own first, up to MOST_WAYS."""
    machine, sizes = costing.machine, [a.size for a in costing.axes]
    chosen, splits = jax_shares(machine, costing.axes)
    tables = _nested_tables(machine, sizes) if machine.levels else _tables(machine, costing.axes)
    first = [] if chosen is None else [_later_inside(chosen)]
    key, pieces = _keys(machine), _Pieces(len(sizes))
    best: dict[tuple, _Cost] = {}
    known: dict = {}
    seen: set[Way] = set()
    for way in chain(first, tables):
        if way in seen:
            continue
        if len(seen) == MOST_WAYS:
            break
        seen.add(way)
        same = key(way)
        if had := best.get(same):
            had.alike += 1
        else:
            best[same] = _Cost(way, *costing.seconds(pieces.of(way), known))
    ranked = _ranked([*best.values()], machine, sizes)
    jax = None if chosen is None else best[key(first[0])]
    kept = {id(c): _placement(c, pieces.of(c.way), known) for c in (*ranked, *([jax] if jax else []))}
    return Found(
        tuple(kept[id(c)] for c in ranked),
        len(best),
        len(seen),
        len(seen) < MOST_WAYS,
        kept[id(jax)] if jax else None,
        splits,
    )


def _placement(cost: _Cost, pieces: tuple[tuple[Piece, ...], ...], known: dict) -> Placement:
    return Placement(
        shares=_shares(cost.way, len(pieces)),
        nesting=tuple(tuple(q for q, _ in nest) for nest in cost.way),
        pieces=pieces,
        alike=cost.alike,
        step_s=cost.step_s,
        by_axis_s=tuple(known[key][0] for key in enumerate(pieces)),
        low_s=cost.low_s,
        high_s=cost.high_s,
    )


def jax_shares(machine: Machine, axes: Sequence[LogicalAxis]) -> tuple[Shares | None, bool]:
    """(what JAX does with this mesh, whether only where it may split axes); None where it cannot, or has an order of
    its own for the slice: see `jax_tray`."""
    sizes = [a.size for a in axes]
    if machine.levels and (machine.chip or "").startswith("TPU"):
        return None, False  # how JAX numbers the devices of a Boardfly is not known
    if machine.levels:
        return next((_shares(way, len(sizes)) for way in _nested_tables(machine, sizes)), None), False
    across = next(_across(machine, axes), None)
    if across is None or jax_tray(machine, axes) is not None or machine.device_kind in jax_order.BY_HOST:
        return None, False
    outer = len(machine.axes) - len(machine.slice_dims)
    flat = 3 - len(machine.slice_dims)  # JAX gives every slice three axes; v2 and v3 have their cores as the third
    dims = (*machine.slice_dims, *(1,) * max(flat, 0))
    within = [n // (across[q] if outer else 1) for q, n in enumerate(sizes)]
    for split in (False, True):
        found = jax_order.assign(dims, within, split)
        if found is not None:
            inside = [s[: len(machine.slice_dims)] for s in found]
            return tuple(((across[q],) if outer else ()) + s for q, s in enumerate(inside)), split
    return None, False


def jax_tray(machine: Machine, axes: Sequence[LogicalAxis]) -> np.ndarray | None:
    """The order of a small slice that JAX walks as a ring, or host by host; None where it goes by axes."""
    cores = any(a.kind == "core" for a in machine.axes)
    if machine.device_kind is None or machine.slices > 1 or (not cores and machine.cores > 1):
        return None
    dims = (*machine.dims, *(1,) * (3 - len(machine.dims)))
    return jax_order.tray(machine.device_kind, dims, [a.size for a in axes])


def _across(machine: Machine, axes: Sequence[LogicalAxis]) -> Iterator[tuple[int, ...]]:
    """Every way to cut the slices: parts of each logical axis in different ones. First what one writes by hand, as JAX
    asks for: axes that talk least are cut as far as they can be."""
    talk = {"data": 0, "pipeline": 1, "fsdp": 2}
    order = sorted(range(len(axes)), key=lambda i: talk.get(axes[i].role, 3))
    cuts = jax_order.parts(machine.slices, [a.size for a in axes])
    yield from sorted(cuts, key=lambda cut: [-cut[i] for i in order])


def _tables(machine: Machine, axes: Sequence[LogicalAxis]) -> Iterator[Way]:
    """Every way on a mesh or torus. Where slices can be cut in several ways, those of the first and of all others by
    turns: the others are many, and not all may be tried."""
    across = _across(machine, axes)
    by_hand = _tables_of(machine, axes, [*islice(across, 1)])
    for ways in zip_longest(by_hand, _tables_of(machine, axes, [*across])):
        yield from (way for way in ways if way is not None)


def _tables_of(machine: Machine, axes: Sequence[LogicalAxis], cuts: Sequence[tuple[int, ...]]) -> Iterator[Way]:
    """Of these ways to cut the slices: first with later axes inside on each physical axis, then otherwise."""
    outer = len(machine.axes) - len(machine.slice_dims)

    def tables(across: tuple[int, ...], logical: int, room: tuple[int, ...]) -> Iterator[Shares]:
        if logical == len(axes):
            yield ()
            return
        for ways in _parts(axes[logical].size // across[logical], room):
            left = tuple(k // n for k, n in zip(room, ways, strict=True))
            for rest in tables(across, logical + 1, left):
                yield ((across[logical],) * outer + ways, *rest)

    def all_tables() -> Iterator[Shares]:
        return chain.from_iterable(tables(across, 0, machine.slice_dims) for across in cuts)

    yield from map(_later_inside, all_tables())
    for shares in all_tables():
        way = _later_inside(shares)
        if any(len(nest) > 1 for nest in way[outer:]):  # which slices are next to one another makes no difference
            yield from product(*((nest,) for nest in way[:outer]), *map(_orders, way[outer:]))


@lru_cache(maxsize=1 << 12)  # axes before leave the same room in many ways
def _parts(size: int, room: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(jax_order.parts(size, room))


def _nested_tables(machine: Machine, sizes: Sequence[int]) -> Iterator[Way]:
    """Logical axes nested in one another over the levels, in the order of the mesh first, then in every other."""
    for order in permutations(range(len(sizes))):
        shares = _nested(machine, sizes, order)
        if shares is not None:
            yield tuple(tuple((q, shares[q][p]) for q in order if shares[q][p] > 1) for p in range(len(machine.axes)))


def _nested(machine: Machine, sizes: Sequence[int], order: Sequence[int]) -> Shares | None:
    """Shares where the logical axes of `order`, outermost first, fill the levels from the innermost outwards; None
    where an axis would end inside of a level that it does not divide."""
    shares = [[1] * len(machine.axes) for _ in sizes]
    room = list(machine.dims)
    level = len(room) - 1
    for logical in reversed(order):
        left = sizes[logical]
        while left > 1:
            while room[level] == 1:
                level -= 1
            taken = gcd(left, room[level])
            if taken == 1 or (taken < left and taken < room[level]):
                return None
            shares[logical][level] = taken
            room[level] //= taken
            left //= taken
    return tuple(map(tuple, shares))


def _later_inside(shares: Shares) -> Way:
    return tuple(map(_nest, zip(*shares, strict=True)))


@lru_cache(maxsize=1 << 12)  # few of them make many ways
def _nest(counts: tuple[int, ...]) -> Nest:
    """Of the devices of each logical axis along one physical axis: later ones inside."""
    return tuple((q, n) for q, n in enumerate(counts) if n > 1)


@lru_cache(maxsize=1 << 12)
def _orders(nest: Nest) -> tuple[Nest, ...]:
    return tuple(permutations(nest))


def _shares(way: Way, logical: int) -> Shares:
    by_axis = [dict(nest) for nest in way]
    return tuple(tuple(held.get(q, 1) for held in by_axis) for q in range(logical))


class _Pieces:
    """What each logical axis holds, by physical axis; the pieces of each nest are made once."""

    def __init__(self, logical: int):
        self.logical = logical
        self.made: dict[tuple[int, Nest], list[tuple[int, Piece]]] = {}

    def of(self, way: Way) -> tuple[tuple[Piece, ...], ...]:
        found: list[list[Piece]] = [[] for _ in range(self.logical)]
        for placed in enumerate(way):
            for q, piece in self.made.get(placed) or self._make(*placed):
                found[q].append(piece)
        return tuple(map(tuple, found))

    def _make(self, p: int, nest: Nest) -> list[tuple[int, Piece]]:
        made, stride = [], 1
        for q, n in reversed(nest):
            made.append((q, Piece(p, n, stride)))
            stride *= n
        self.made[p, nest] = made
        return made


def _keys(machine: Machine) -> Callable[[Way], tuple]:
    """What is the same for ways that differ only in which of two equal physical axes is taken; in a twisted torus each
    is its own."""
    unnamed = [replace(a, name="") for a in machine.axes]
    kinds = [unnamed.index(a) for a in unnamed]
    if len(set(kinds)) == len(kinds) or any(a.twisted_with for a in machine.axes):
        return lambda way: way
    return lambda way: tuple(sorted(zip(kinds, way, strict=True)))


def _ranked(costs: Sequence[_Cost], machine: Machine, sizes: Sequence[int]) -> list[_Cost]:
    """The best MOST_KEPT, the best first."""
    steps = np.array([c.step_s for c in costs])
    if len(costs) > MOST_KEPT:  # what is slower than so many by more than the digits that count is none of them
        most = np.partition(steps, MOST_KEPT - 1)[MOST_KEPT - 1]
        costs = [costs[k] for k in np.flatnonzero(steps <= most * (1 + 1e-7)).tolist()]
    return sorted(costs, key=lambda cost: _rank(cost, machine, sizes))[:MOST_KEPT]


def _rank(cost: _Cost, machine: Machine, sizes: Sequence[int]) -> tuple:
    """By the step to nine digits; among equals what exposes least, then whole axes, then as JAX, later ones first."""
    outer = len(machine.axes) - len(machine.slice_dims)
    split = any(1 < n < k for nest, k in zip(cost.way[outer:], machine.slice_dims, strict=True) for _, n in nest)
    return (
        float(f"{cost.step_s:.9g}"),
        float(f"{cost.high_s:.9g}"),
        split,
        tuple(-n for s in reversed(_shares(cost.way, len(sizes))) for n in s),
    )
