"""The machine as axes on which a mesh is laid: rings and lines of links, levels of switches, cores, slices.

A device is what the mesh counts: a chip, or on chips that show as two JAX devices half of one. Devices of a chip share
its links and its maths equally.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class PhysicalAxis:
    """Devices along one direction.

    kind                 "link": neighbours joined, a ring where `wrapped`; "switch": all joined alike; "direct": all
                         joined to each other, each pair with an equal part of the rate; "dcn": slices over the
                         data-centre network; "core": devices of one chip
    oneway_bytes_per_s   of one device: over one link one way; elsewhere all that it can send; None: taken as free
    hop_s                to the next device
    twisted_with         axes of a twisted torus on which its wrap shifts: it is a ring only together with them
    leaf, spine_bytes_per_s  of a level over switches with fewer links up than down: so many neighbours are joined below
                         those, and what goes on from there has this rate of one device; None: all are joined alike
    """

    name: str
    length: int
    kind: str
    oneway_bytes_per_s: float | None
    hop_s: float
    wrapped: bool = False
    twisted_with: tuple[int, ...] = ()
    leaf: int = 1
    spine_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """`axes`: outermost first; devices are numbered with the last axis fastest.

    `levels`: no mesh or torus, axes are parts within parts. `peak_flops_per_s`: of one device; None: not known.
    `device_kind`: as JAX names the device; `cores`: JAX devices of a chip. `notes`: what of it is assumed.
    """

    spec: str
    chip: str | None
    chips: int
    axes: tuple[PhysicalAxis, ...]
    peak_flops_per_s: float | None
    levels: bool = False
    device_kind: str | None = None
    cores: int = 1
    notes: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(a.length for a in self.axes)

    @property
    def devices(self) -> int:
        return prod(self.dims)

    @property
    def slices(self) -> int:
        return prod(a.length for a in self.axes if a.kind == "dcn")

    @property
    def slice_dims(self) -> tuple[int, ...]:
        """Lengths of the axes inside one slice."""
        return tuple(a.length for a in self.axes if a.kind != "dcn")


class Piece(NamedTuple):
    """What a logical axis holds of physical axis `axis`: `count` devices, `stride` apart; all of it, or a part.

    Where others lie between its devices they share the links: `stride` of them cross each, so each has that part of
    the rate, and a step crosses as many links.
    """

    axis: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]  # nobody counts values in it
    stride: int

    def whole(self, machine: Machine) -> bool:
        return self.count == machine.axes[self.axis].length

    def wrapped(self, machine: Machine, held: Sequence[int] = ()) -> bool:
        """Whether it closes to a ring: on a wrapped axis, outermost there. `held`: axes that the logical axis holds
        whole, so that a twist stays within it. Where all are joined alike nothing needs closing."""
        physical = machine.axes[self.axis]
        if physical.kind != "link":
            return True
        outermost = self.count * self.stride == physical.length
        return physical.wrapped and outermost and all(j in held for j in physical.twisted_with)

    def text(self, machine: Machine) -> str:
        """`x`; `x:4` for 4 neighbours along x; `x:2/4` for 2 along x that stand 4 apart."""
        name = machine.axes[self.axis].name
        if self.whole(machine):
            return name
        return f"{name}:{self.count}" + (f"/{self.stride}" if self.stride > 1 else "")


def closure(pieces: Sequence[Piece], machine: Machine) -> str | None:
    """How a logical axis closes to a ring; None for one of a single device.

    "wrap"  every piece does, over links that wrap; "level": all of its devices are joined alike, nothing to close
    "fold"  not so, but its block has a closed walk from neighbour to neighbour: two sides or more, an even number
    "open"  a line
    """
    if not pieces:
        return None
    links = [p for p in pieces if machine.axes[p.axis].kind == "link"]
    held = [p.axis for p in pieces if p.whole(machine)]
    if all(p.wrapped(machine, held) for p in links):
        return "wrap" if links else "level"
    return "fold" if len(links) > 1 and prod(p.count for p in links) % 2 == 0 else "open"


def closed_walk(counts: Sequence[int]) -> list[int]:
    """A walk from neighbour to neighbour through a block of so many devices along each side, back to its beginning.

    Numbers with the last side fastest. To and fro along all sides but an even one; back by the beginning of each.
    """
    even = next(i for i, n in enumerate(counts) if n % 2 == 0)
    path = _to_and_fro([n for i, n in enumerate(counts) if i != even])
    rows, first = range(counts[even]), path[0]
    walk = [(0, place) for place in path]
    for row in rows[1:]:
        walk += [(row, place) for place in (reversed(path[1:]) if row % 2 else path[1:])]
    walk += [(row, first) for row in reversed(rows[1:])]
    strides = [prod(counts[i + 1 :]) for i in range(len(counts))]
    return [
        sum(s * n for s, n in zip(strides, (*place[:even], row, *place[even:]), strict=True)) for row, place in walk
    ]


def _to_and_fro(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """A path from neighbour to neighbour through all places of a block."""
    path: list[tuple[int, ...]] = [()]
    for n in counts:
        path = [(*place, k) for i, place in enumerate(path) for k in (range(n) if i % 2 == 0 else range(n - 1, -1, -1))]
    return path
