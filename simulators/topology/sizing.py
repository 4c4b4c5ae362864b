"""The same kind of network at another size: what as many chips, or as much money, would be."""

from collections.abc import Iterator
from math import prod

from errors import QuestionError
from simulators.topology import parse
from simulators.topology.lattice import twist_of
from simulators.topology.spec import Spec
from simulators.topology.systems.boardfly import GROUP

UNITS = {"boardfly": GROUP, "fattree": 8, "rail": 8}  # chips that such a network grows by
NEAR = 0.9  # of the chips that could be had: a rounder shape is worth the rest


def resized(spec: Spec, chips: int) -> Spec | None:
    """The largest network of this kind with at most so many chips; of lattices the one with the most even axes among
    those within a tenth of it. None where this kind has none so small, or no other size at all.

    Several slices become more or fewer of the same slice.
    """
    if chips == spec.chips:
        return spec
    found = [s for s in map(_parsed, _names(spec, chips)) if s is not None and s.chips <= chips]
    most = max((s.chips for s in found), default=0)
    near = [s for s in found if s.chips >= NEAR * most]
    return min(near, key=lambda s: (max(s.dims, default=1) / min(s.dims, default=1), -s.chips), default=None)


def _names(spec: Spec, chips: int) -> Iterator[str]:
    name, shape, *options = spec.text.split(":")
    tail = "".join(f":{o}" for o in options if not o.startswith("slices="))
    if spec.slices > 1:
        yield f"{name}:{shape}{tail}:slices={chips * spec.slices // spec.chips}"
    elif name in UNITS:
        yield f"{name}:{chips // UNITS[name] * UNITS[name]}{tail}"
    elif spec.dims:
        for dims in _shapes(spec, chips):
            yield f"{name}:{'x'.join(map(str, dims))}{tail}"
    elif spec.chips <= chips:
        yield spec.text


def _shapes(spec: Spec, chips: int) -> Iterator[tuple[int, ...]]:
    """Shapes of as many axes, each as long as fits beside the others; steps of 4, 2 or 1 as in the shape there is."""
    if spec.twisted:
        for k in range(1, int(chips ** (1 / 3)) + 1):
            yield from (d for d in ((k, k, 2 * k), (k, 2 * k, 2 * k)) if twist_of(d) and prod(d) <= chips)
        return
    step = next(s for s in (4, 2, 1) if all(k % s == 0 for k in spec.dims))

    def grow(before: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
        left = len(spec.dims) - len(before)
        least = before[-1] if before else step
        if left == 1:
            longest = room // step * step
            yield from ((*before, k) for k in {longest, *_powers(longest)} if k >= least)
            return
        for k in range(least, int(room ** (1 / left) + 1e-9) + 1, step):
            yield from grow((*before, k), room // k)

    yield from grow((), chips)


def _powers(longest: int) -> set[int]:
    """The power of two at or below: where other lengths are not to be had, this one is."""
    return {1 << (longest.bit_length() - 1)} if longest else set()


def _parsed(text: str) -> Spec | None:
    try:
        return parse(text)
    except QuestionError:
        return None
