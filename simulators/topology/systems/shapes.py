"""Which shapes a TPU slice may have, why the others do not exist, and what a shape means for its wiring.

Legal are the listed shapes of a generation; where optical switches join 4x4x4 cubes, also all shapes of whole cubes up
to the pod. One chip alone is legal everywhere, since programs are compiled for one; that no machine has just one is the
manifest's to say. The maker writes the axes in ascending order, except for 2x2x1.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import log, prod

from catalog.slices import SliceFamily, families, slice_
from errors import QuestionError
from simulators.topology.lattice import twist_of

Dims = tuple[int, ...]
SHORT = {name: name.removeprefix("TPU ") for name in families()}


def text_of(dims: Sequence[int]) -> str:
    """`4x4x8`."""
    return "x".join(map(str, dims))


def dims_in(shape: str) -> Dims:
    """The numbers of `4x4x8`, which must be well formed."""
    return tuple(map(int, shape.split("x")))


def shown(family: SliceFamily, dims: Sequence[int]) -> str:
    """`v5p:4x4x8 (128 chips)`."""
    chips = prod(dims)
    return f"{SHORT[family.name]}:{text_of(dims)} ({chips:,} chip{'s' * (chips != 1)})"


def legal(family: SliceFamily, given: Dims) -> Dims:
    """The shape as the maker writes it: all axes, ascending. Raises QuestionError: the rule broken, the nearest."""
    found = _found(family, given)
    if found:
        return found
    near = ", ".join(shown(family, s) for s in nearest(family, given))
    raise QuestionError(
        f"{family.name} has no slice of {text_of(given)} chips: {broken_rule(family, given)}",
        expected=f"one near it, such as {near}" if near else "another generation",
    )


def of_accelerator_type(name: str) -> tuple[SliceFamily, Dims]:
    """The family and the usual shape of v5p-256 or v5litepod-16.

    Raises QuestionError where that is no accelerator type, where no slice has so many chips, and where they come in
    several shapes of which none is the usual one.
    """
    named = slice_(name)
    family = families()[named.family]
    there = [dims_in(named.topology)] if named.topology else shapes_of(family, named.chips)
    if len(there) == 1:
        return family, there[0]
    raise QuestionError(
        f"{named.name}, {named.chips:,} chips, comes in {len(there)} shapes",
        expected=" or ".join(f"{SHORT[family.name]}:{text_of(s)}" for s in there[:3]),
    )


def broken_rule(family: SliceFamily, given: Dims) -> str:
    """The rule that an illegal shape breaks, as the end of a sentence."""
    short, axes, pod = SHORT[family.name], family.axes or 0, _pod(family)
    if not axes:
        return f"{short} is no torus"
    if len(given) == 1:
        return f"one number is no shape, a slice of {short} has {axes} axes"
    dims = _ascending(given, axes)
    if len(dims) != axes:
        return f"a slice of {short} has {axes} axes"
    if prod(dims) > pod:
        top = f", and the largest slice is {text_of(largest(family))}" if prod(largest(family)) < pod else ""
        return f"{prod(dims):,} chips are more than the pod's {pod:,}{top}"
    if family.axis_multiple:
        return (
            f"each axis of a slice of {short} is a multiple of {family.axis_multiple}; smaller ones are "
            f"{_either(family.small_topologies)}"
        )
    known = sorted({n for s in _listed(family) for n in dims_in(s)})
    if set(dims) - set(known):
        return f"axes of {short} are {_either([str(n) for n in known])} chips long"
    return f"slices of {short} are {_either(_listed(family))}"


def nearest(family: SliceFamily, given: Dims, count: int = 3) -> tuple[Dims, ...]:
    """The legal shapes most like it.

    Distance: the squared logarithms of the factors by which the ascending axes differ, added, so that chips and
    proportions both count. Where the number of axes is another, the same number of chips comes first.
    """
    there = all_shapes(family)
    if not there or not given:
        return ()
    axes, chips = family.axes or 0, prod(given)
    dims = _ascending(given, axes)
    other = len(given) == 1 or len(dims) != axes
    alike = [chips ** (1 / axes)] * axes if other else dims

    def distance(shape: Dims) -> tuple[float, float, Dims]:
        by_axis = round(sum(log(a / b) ** 2 for a, b in zip(sorted(shape), alike, strict=True)), 9)
        by_chips = abs(log(prod(shape) / chips))
        return (by_chips, by_axis, shape) if other else (by_axis, by_chips, shape)

    return tuple(sorted(there, key=distance)[:count])


def shapes_of(family: SliceFamily, chips: int) -> tuple[Dims, ...]:
    """All legal shapes of so many chips, the one most like a cube first."""
    return tuple(sorted((s for s in all_shapes(family) if prod(s) == chips), key=lambda s: (sum(s), s)))


def all_shapes(family: SliceFamily) -> tuple[Dims, ...]:
    """Every legal shape up to the pod, by chips; one chip alone only where it is listed."""
    return _all_shapes(family.name)


@cache
def _all_shapes(name: str) -> tuple[Dims, ...]:
    family = families()[name]
    shapes = {dims_in(s) for s in _listed(family)}
    if m := family.axis_multiple:
        cubes = _pod(family) // m**3
        lengths = range(1, cubes + 1)
        shapes |= {
            (m * a, m * b, m * c)
            for a, b in combinations_with_replacement(lengths, 2)
            if a * b * b <= cubes
            for c in range(b, cubes // (a * b) + 1)
        }
    return tuple(sorted(shapes, key=lambda s: (prod(s), s)))


def largest(family: SliceFamily) -> Dims:
    """The largest slice that can be scheduled; where it is not published, the largest legal shape."""
    number = family.numbers.get("largest_slice")
    if number and number.value:
        return dims_in(str(number.value))
    return max(all_shapes(family), key=lambda s: (prod(s), -max(s)))


def wraps(family: SliceFamily, dims: Dims) -> tuple[bool, ...]:
    """Which axes of a legal shape are rings."""
    if family.wrap == "axis_of_16":
        return tuple(n == 16 for n in dims)
    if family.wrap == "cube":
        return (min(dims) >= (family.axis_multiple or 0),) * len(dims)
    return (prod(dims) == _pod(family),) * len(dims)


def no_twist(family: SliceFamily, dims: Dims) -> str | None:
    """Why a legal shape cannot be twisted, as the end of a sentence; None where it can."""
    short, k = SHORT[family.name], family.axis_multiple
    if family.twistable is False:
        return f"{short} has no twisted torus"
    if not all(wraps(family, dims)):
        return f"a twist shifts optical wraps, and a slice under one {text_of((k or 0,) * 3)} cube has none"
    if twist_of(dims) is None:
        return "a twist is defined for k x k x 2k and k x 2k x 2k only"
    return None


def nearest_twists(family: SliceFamily, dims: Dims, count: int = 3) -> tuple[Dims, ...]:
    """The shapes nearest to `dims` that can be twisted; none where the generation has no twist."""
    if family.twistable is False:
        return ()
    able = [s for s in nearest(family, dims, len(all_shapes(family))) if no_twist(family, s) is None]
    return tuple(able[:count])


def reasons(family: SliceFamily, dims: Dims, given: Dims | None = None, twisted: bool = False) -> tuple[str, ...]:
    """What a legal shape means: how it is written, which axes are rings and why, what cannot be had; sentences."""
    told = [
        _normalised(dims, given),
        _wiring(family, dims),
        _twist(family, dims) if twisted else "",
        _default(family, dims),
        _size(family, dims),
    ]
    if not family.topologies:
        told.append(f"The shapes of {SHORT[family.name]} are not published: taken to be as in the generations before.")
    return tuple(t for t in told if t)


def _normalised(dims: Dims, given: Dims | None) -> str:
    if given is None or given == dims:
        return ""
    order = "with all its axes" if len(given) != len(dims) else "the axes in ascending order"
    return f"{text_of(given)} is written {text_of(dims)}: {order}."


def _wiring(family: SliceFamily, dims: Dims) -> str:
    text, ring = text_of(dims), wraps(family, dims)
    if prod(dims) == 1:
        return "One chip has no links."
    if family.wrap == "full_pod":
        return (
            f"{text} is the whole pod: both axes are rings."
            if all(ring)
            else (
                f"{text} is a mesh: axes of {SHORT[family.name]} are rings in the whole pod only, "
                f"{text_of(largest(family))}."
            )
        )
    if family.wrap == "axis_of_16":
        if all(ring):
            return f"{text} is a torus: both axes of 16 are rings."
        if any(ring):
            line = next(n for n, r in zip(dims, ring, strict=True) if not r)
            return f"{text} wraps on its axis of 16 only: the axis of {line} is a line."
        return f"{text} is a mesh: only an axis of 16 is a ring."
    cube = text_of((family.axis_multiple or 0,) * 3)
    if all(ring):
        cubes = prod(dims) // (family.axis_multiple or 1) ** 3
        which = f"one {cube} cube" if cubes == 1 else f"{cubes:,} cubes of {cube}"
        return f"{text} is {which}: every axis is a ring, closed by optical switches."
    return f"{text} is a mesh: an axis under 4 chips has no optical wrap, and no axis wraps in less than a {cube} cube."


def _twist(family: SliceFamily, dims: Dims) -> str:
    k, long = min(dims), [n for n in dims if n > min(dims)]
    shifts = f"the long axis by {k}" if len(long) == 1 else f"both long axes by {k}"
    told = f"Twisted: going around an axis of {k} shifts {shifts}."
    return told + f" Whether {SHORT[family.name]} can be twisted is not published." * (family.twistable is None)


def _default(family: SliceFamily, dims: Dims) -> str:
    others = [t.shape for t in family.topologies if t.chips == prod(dims)]
    if not others or text_of(dims) in others:
        return ""
    return (
        f"An accelerator type alone, {family.accelerator_type(prod(dims))}, gets {others[0]}: "
        f"{text_of(dims)} must be asked for by shape."
    )


def _size(family: SliceFamily, dims: Dims) -> str:
    top, chips, short = largest(family), prod(dims), SHORT[family.name]
    if chips <= prod(top):
        return ""
    what = "the whole pod" if chips == _pod(family) else "a shape that the wiring allows"
    return (
        f"{text_of(dims)} is {what}, but the largest slice of {short} that can be scheduled is {text_of(top)} "
        f"({prod(top):,} chips): a job of {chips:,} chips takes several slices."
    )


def _found(family: SliceFamily, given: Dims) -> Dims | None:
    axes = family.axes or 0
    dims = _ascending(given, axes)
    by_size = {tuple(sorted(dims_in(s))): dims_in(s) for s in _listed(family)}
    if dims in by_size:
        return by_size[dims]
    m = family.axis_multiple
    cubes = bool(m) and len(dims) == axes and all(n % m == 0 for n in dims) and prod(dims) <= _pod(family)
    return dims if cubes or dims == (1,) * axes and axes else None


def _ascending(given: Dims, axes: int) -> Dims:
    """All axes, ascending: missing ones have one chip, and of too many those of one chip are left out."""
    dims = sorted(given)
    while len(dims) > axes and dims[0] == 1:
        dims = dims[1:]
    return tuple([1] * (axes - len(dims)) + dims)


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(family: SliceFamily) -> tuple[str, ...]:
    there = dict.fromkeys((*family.small_topologies, *(t.shape for t in family.topologies)))
    return tuple(sorted(there, key=lambda s: (prod(dims_in(s)), dims_in(s))))


def _pod(family: SliceFamily) -> int:
    return family.count("pod_chips")
