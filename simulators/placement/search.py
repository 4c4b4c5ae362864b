"""Every way to lay a mesh over a machine, and what a step costs on each.

On a mesh or torus a logical axis takes whole physical axes, or parts of them: n of the k devices along one, inside or
around what others take of it. On levels (boards in groups, GPUs in nodes) the logical axes are nested in one another,
in every order. Slices are cut by one logical axis or by several together, in every way that their sizes allow. Ways
that differ only in which of two equal physical axes is taken count once, and say how many they stand for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, permutations, product, zip_longest
from math import gcd
from typing import NamedTuple

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


class _Way(NamedTuple):
    """A placement while searching: what it costs, then what is better among equals, and how many are alike."""

    step_s: float
    high_s: float
    split: bool
    shares: Shares
    nesting: Nesting
    low_s: float
    alike: int


def search(costing: Costing) -> Found:
    """Tries all ways, JAX's own first, up to MOST_WAYS."""
    machine, sizes = costing.machine, [a.size for a in costing.axes]
    chosen, splits = jax_shares(machine, costing.axes)
    tables = _nested_tables(machine, sizes) if machine.levels else _tables(machine, costing.axes)
    first = [] if chosen is None else [(chosen, _later_inside(machine, chosen))]
    kinds, outer = _kinds(machine), len(machine.axes) - len(machine.slice_dims)
    best: dict[tuple, _Way] = {}
    known: dict = {}
    seen: set[tuple[Shares, Nesting]] = set()
    for shares, nesting in chain(first, tables):
        if (shares, nesting) in seen:
            continue
        if len(seen) == MOST_WAYS:
            break
        seen.add((shares, nesting))
        key = _key(kinds, shares, nesting)
        had = best.get(key)
        if had:
            best[key] = had._replace(alike=had.alike + 1)
        else:
            step, low, high = costing.seconds(_pieces(shares, nesting), known)
            split = any(1 < n < k for s in shares for n, k in zip(s[outer:], machine.slice_dims, strict=True))
            best[key] = _Way(step, high, split, shares, nesting, low, 1)
    ranked = sorted(best.values(), key=_rank)
    jax = None if chosen is None else best[_key(kinds, *first[0])]
    kept = {id(w): _placement(w, known) for w in (*ranked[:MOST_KEPT], *([jax] if jax else []))}
    return Found(
        tuple(kept[id(w)] for w in ranked[:MOST_KEPT]),
        len(ranked),
        len(seen),
        len(seen) < MOST_WAYS,
        kept[id(jax)] if jax else None,
        splits,
    )


def _placement(way: _Way, known: dict) -> Placement:
    pieces = _pieces(way.shares, way.nesting)
    return Placement(
        shares=way.shares,
        nesting=way.nesting,
        pieces=pieces,
        alike=way.alike,
        step_s=way.step_s,
        by_axis_s=tuple(known[key][0] for key in enumerate(pieces)),
        low_s=way.low_s,
        high_s=way.high_s,
    )


def jax_shares(machine: Machine, axes: Sequence[LogicalAxis]) -> tuple[Shares | None, bool]:
    """(what JAX does with this mesh, whether only where it may split axes); None where it cannot, or has an order of
    its own for the slice: see `jax_tray`."""
    sizes = [a.size for a in axes]
    if machine.levels and (machine.chip or "").startswith("TPU"):
        return None, False  # how JAX numbers the devices of a Boardfly is not known
    if machine.levels:
        return next((shares for shares, _ in _nested_tables(machine, sizes)), None), False
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


def _tables(machine: Machine, axes: Sequence[LogicalAxis]) -> Iterator[tuple[Shares, Nesting]]:
    """Every table of shares on a mesh or torus. Where slices can be cut in several ways, those of the first and of all
    others by turns: the others are many, and not all may be tried."""
    across = _across(machine, axes)
    by_hand = _tables_of(machine, axes, [*islice(across, 1)])
    for tables in zip_longest(by_hand, _tables_of(machine, axes, [*across])):
        yield from (table for table in tables if table is not None)


def _tables_of(
    machine: Machine, axes: Sequence[LogicalAxis], cuts: Sequence[tuple[int, ...]]
) -> Iterator[tuple[Shares, Nesting]]:
    """Of these ways to cut the slices: first with later axes inside on each physical axis, then otherwise."""
    outer = len(machine.axes) - len(machine.slice_dims)

    def tables(across: tuple[int, ...], logical: int, room: tuple[int, ...]) -> Iterator[Shares]:
        if logical == len(axes):
            yield ()
            return
        for ways in jax_order.parts(axes[logical].size // across[logical], room):
            left = tuple(k // n for k, n in zip(room, ways, strict=True))
            for rest in tables(across, logical + 1, left):
                yield ((across[logical],) * outer + ways, *rest)

    def all_tables() -> Iterator[Shares]:
        return chain.from_iterable(tables(across, 0, machine.slice_dims) for across in cuts)

    for shares in all_tables():
        yield shares, _later_inside(machine, shares)
    for shares in all_tables():
        on_each = _later_inside(machine, shares)
        if any(len(on) > 1 for on in on_each[outer:]):  # which slices are next to one another makes no difference
            inside = product(*(permutations(on) for on in on_each[outer:]))
            yield from ((shares, (*on_each[:outer], *nesting)) for nesting in inside)


def _nested_tables(machine: Machine, sizes: Sequence[int]) -> Iterator[tuple[Shares, Nesting]]:
    """Logical axes nested in one another over the levels, in the order of the mesh first, then in every other."""
    for order in permutations(range(len(sizes))):
        shares = _nested(machine, sizes, order)
        if shares is not None:
            yield shares, tuple(tuple(q for q in order if shares[q][p] > 1) for p in range(len(machine.axes)))


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


def _later_inside(machine: Machine, shares: Shares) -> Nesting:
    return tuple(tuple(q for q in range(len(shares)) if shares[q][p] > 1) for p in range(len(machine.axes)))


def _pieces(shares: Shares, nesting: Nesting) -> tuple[tuple[Piece, ...], ...]:
    """What each logical axis holds, by physical axis."""
    found: list[list[Piece]] = [[] for _ in shares]
    for p, nest in enumerate(nesting):
        stride = 1
        for q in reversed(nest):
            found[q].append(Piece(p, shares[q][p], stride))
            stride *= shares[q][p]
    return tuple(map(tuple, found))


def _kinds(machine: Machine) -> list[int]:
    """A number for each physical axis, the same for those that are equal; each its own in a twisted torus."""
    if any(a.twisted_with for a in machine.axes):
        return list(range(len(machine.axes)))
    unnamed = [replace(a, name="") for a in machine.axes]
    return [unnamed.index(a) for a in unnamed]


def _key(kinds: Sequence[int], shares: Shares, nesting: Nesting) -> tuple:
    """The same for ways that differ only in which of two equal physical axes is taken."""
    return tuple(sorted((kinds[p], *((q, shares[q][p]) for q in nest)) for p, nest in enumerate(nesting)))


def _rank(way: _Way) -> tuple:
    """By the step to nine digits; among equals what exposes least, then whole axes, then as JAX, later ones first."""
    return (
        float(f"{way.step_s:.9g}"),
        float(f"{way.high_s:.9g}"),
        way.split,
        tuple(-n for s in reversed(way.shares) for n in s),
    )
