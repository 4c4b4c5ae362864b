"""How long a collective along one logical axis takes on the pieces of physical axes that it holds.

Links of a mesh or torus: the formulas of `simulators.collectives.rings`, with the (N-1)/N that those leave out on
rings, since here ways with rings and without are set against each other. A piece whose devices stand `stride` apart
has 1/stride of each link, and crosses as many. Where a logical axis holds several pieces, the quickest of these
counts: all pieces at once, at the rate and hop of the slowest; or one piece after another, in any order.

Levels (a switch, the data-centre network, cores of a chip), each device with w one way into it and D devices on it:

    all-gather, reduce-scatter  (V / n) (D-1)/D / w, n devices of the levels inside it
    all-reduce                  twice that
    all-to-all                  (V / N) (D-1)/D / w, N devices of the axis
    permute                     (V / N) / w

plus the hop. Levels run one after another, outermost first, as the hierarchical all-reduce of How to Scale Your Model.
Of a level whose switches have fewer links up than down, what lies below one switch and what lies beyond are two.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from math import inf, prod

from simulators.collectives import rings
from simulators.placement.machine import Machine, PhysicalAxis, Piece

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")
_RING = {
    "all_gather": rings.all_gather,
    "reduce_scatter": rings.reduce_scatter,
    "all_reduce": rings.all_reduce,
    "all_to_all": rings.all_to_all,
    "permute": rings.permute,
}


def seconds(kind: str, array_bytes: float, pieces: Sequence[Piece], machine: Machine) -> float:
    """Of one collective along a logical axis that holds `pieces`, outermost level first."""
    chips = prod(p.count for p in pieces)
    if chips == 1:
        return 0.0
    levels = [p for p in pieces if machine.axes[p.axis].kind != "link"]
    links = tuple(p for p in pieces if machine.axes[p.axis].kind == "link")
    inner = prod(p.count for p in links)
    found, inside = [], inner
    for piece in reversed(levels):  # from the innermost outwards
        axis = machine.axes[piece.axis]
        before = 1 if axis.kind == "core" else inside
        for devices, rate in _parts(axis, piece):
            found.append(_level(kind, array_bytes, devices, before, chips, rate, axis.hop_s))
            before *= devices
        inside *= piece.count
    if links:
        cores = prod(p.count for p in levels if machine.axes[p.axis].kind == "core")
        part = inner / chips if kind in ("all_to_all", "permute") else 1 / cores
        found.append(_on_links(kind, array_bytes * part, links, machine))
    return max(found) if kind == "permute" else sum(found)


def _parts(axis: PhysicalAxis, piece: Piece) -> list[tuple[int, float | None]]:
    """(devices, bytes/s one way of one) of a piece, from the innermost outwards: below one switch, and beyond it where
    that is slower."""
    rate = _rate(axis, piece)
    if axis.spine_bytes_per_s is None:
        return [(piece.count, rate)]
    near = min(max(axis.leaf // piece.stride, 1), piece.count)
    far = -(-piece.count // near)
    return [(devices, each) for devices, each in ((near, rate), (far, axis.spine_bytes_per_s)) if devices > 1]


def _rate(axis: PhysicalAxis, piece: Piece) -> float | None:
    """Of one device on a level; where each pair has links of its own, only those to the devices of the piece."""
    if axis.kind == "direct" and axis.oneway_bytes_per_s is not None:
        return axis.oneway_bytes_per_s * (piece.count - 1) / (axis.length - 1)
    return axis.oneway_bytes_per_s


def _link_rate(axis: PhysicalAxis) -> float:
    """Of one link one way; one that is not known is taken as free."""
    return inf if axis.oneway_bytes_per_s is None else axis.oneway_bytes_per_s


def _level(
    kind: str, array_bytes: float, devices: int, inside: int, chips: int, rate: float | None, hop_s: float
) -> float:
    if rate is None:
        return 0.0
    crossing = (devices - 1) / devices
    if kind == "permute":
        return hop_s + array_bytes / chips / rate
    if kind == "all_to_all":
        return hop_s + array_bytes / chips * crossing / rate
    once = hop_s + array_bytes / inside * crossing / rate
    return 2 * once if kind == "all_reduce" else once


def _on_links(kind: str, array_bytes: float, pieces: tuple[Piece, ...], machine: Machine) -> float:
    held = tuple(p.axis for p in pieces if p.whole(machine))
    each = tuple(
        (
            p.count,
            p.wrapped(machine, held),
            _link_rate(machine.axes[p.axis]) / p.stride,
            machine.axes[p.axis].hop_s * p.stride,
        )
        for p in pieces
    )
    return _quickest(kind, array_bytes, each)


@lru_cache(maxsize=1 << 16)
def _quickest(kind: str, array_bytes: float, each: tuple[tuple[int, bool, float, float], ...]) -> float:
    """`each`: (devices, ring or not, bytes/s one way, hop) of a piece."""
    counts, wraps, rates, hops = zip(*each, strict=True)
    at_once = _ring(kind, array_bytes, counts, wraps, min(rates), max(hops))
    if len(each) == 1 or kind == "permute":
        return at_once
    return min(at_once, *(_in_turn(kind, array_bytes, order) for order in permutations(each)))


def _ring(
    kind: str, array_bytes: float, counts: tuple[int, ...], wraps: tuple[bool, ...], rate: float, hop_s: float
) -> float:
    time = _RING[kind](array_bytes, counts, wraps, rate, hop_s)
    if kind in ("all_to_all", "permute") or not all(wraps):
        return time.seconds
    chips = prod(counts)
    return max(time.latency_s, time.bandwidth_s * (chips - 1) / chips)


def _in_turn(kind: str, array_bytes: float, order: tuple[tuple[int, bool, float, float], ...]) -> float:
    """An all-gather along one piece after another: the array grows by each; an all-to-all moves all of it each time."""
    total, chips = 0.0, prod(e[0] for e in order)
    have = 1
    for count, wrapped, rate, hop_s in order:
        have *= count
        array = array_bytes * (count if kind == "all_to_all" else have) / chips
        total += _ring(kind, array, (count,), (wrapped,), rate, hop_s)
    return total
