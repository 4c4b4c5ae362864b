"""`v5p:4x4x8`, `v6e:16x16`, `v5e:16x16:slices=199`, `v5p-128`: slices of real TPUs, only in shapes that exist."""

import re
from collections.abc import Mapping
from math import prod

from catalog.chips import chip as find_chip
from catalog.chips import index as chip_index
from catalog.lookup import shown
from catalog.slices import SliceFamily, chip_of, families
from errors import QuestionError
from simulators.topology.network import Network
from simulators.topology.spec import MOST_CHIPS, MOST_SLICES, Spec, dims_of, refuse_options, whole, yes_no
from simulators.topology.systems import shapes
from simulators.topology.systems.lattice_network import lattice_network

FORMS = (
    ("v5p:4x4x8", "a TPU slice of a shape that exists (v2 to 8t), or an accelerator type such as v5p-256"),
    ("v5p:4x4x8:twisted", "the same as a twisted torus, where the generation has one"),
    ("v5e:16x16:slices=199", "several equal slices over the data-centre network"),
)
SHORT = shapes.SHORT
_SHAPE = r"[0-9]+(?:x[0-9]+)+"
_EXAMPLES = "v5p:4x4x8, v6e:16x16, boardfly:1024, nvl:72 or torus:8x8x16"
_OTHERS = "h100:8, nvl:72, fattree:1024 or rail:1024"


def reads(name: str) -> bool:
    """Any name: chips without slices and unknown ones too, so that the error can say what there is."""
    return True


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    family, given = _asked(text, name, shape)
    refuse_options(text, options, ("twisted", "slices"))
    dims = shapes.legal(family, given)
    slices = whole(text, "slices", options.get("slices", "1"), 1, MOST_SLICES)
    total = prod(dims) * slices
    if total > MOST_CHIPS:
        raise QuestionError(
            f"topology {text!r} has {total:,} chips",
            expected=f"at most {MOST_CHIPS:,}, which are {MOST_CHIPS // prod(dims):,} slices of {shapes.text_of(dims)}",
        )
    twisted = _twisted(text, family, dims, options)
    written = f"{SHORT[family.name]}:{shapes.text_of(dims)}"
    wraps = shapes.wraps(family, dims)
    notes = shapes.reasons(family, dims, given, twisted)
    if slices > 1:
        notes += (f"{slices:,} slices of {prod(dims):,} chips: no ICI joins them, only the data-centre network.",)
    return Spec(
        text=written + ":twisted" * twisted + (f":slices={slices}" if slices > 1 else ""),
        kind="twisted torus" if twisted else "torus" if any(wraps) else "mesh",
        chip=family.chip,
        chips=total,
        dims=dims,
        wraps=wraps,
        twisted=twisted,
        slices=slices,
        notes=notes,
        inferred=not family.topologies or (twisted and family.twistable is None),
    )


def build(spec: Spec) -> Network:
    assert spec.chip is not None, "parse() named it"
    family = families()[spec.chip]
    rate = find_chip(spec.chip).value("link_oneway_bytes_per_s")
    return lattice_network(spec, rate, cubes=family.wrap == "cube" and all(spec.wraps), hosts=prod(spec.dims) >= 4)


def _asked(text: str, name: str, shape: str) -> tuple[SliceFamily, tuple[int, ...]]:
    """The family and the shape as given. Raises QuestionError where the name or the shape is none."""
    if re.fullmatch(_SHAPE, name.lower()) and not shape:
        raise _nameless(name.lower())
    joined = re.fullmatch(f"(.+?)-({_SHAPE})", name.lower())
    if joined and not shape:  # as xpk writes it: tpu7x-4x4x8
        name, shape = joined[1], joined[2]
    if not shape and chip_index().get(name) is None and chip_of(name):
        return shapes.of_accelerator_type(name)
    family = _family(text, name, shape)
    if not shape:
        some = ", ".join(f"{SHORT[family.name]}:{s}" for s in _spread(family))
        raise QuestionError(f"topology {shown(text)} has no shape", expected=f"such as {some}")
    return family, dims_of(shape, text)


def _family(text: str, name: str, shape: str) -> SliceFamily:
    """The family called `name`. Raises QuestionError: no such chip, or one that has no slices."""
    index = chip_index()
    found = index.get(name) or chip_of(name)
    if not name:
        raise QuestionError("no topology is named", expected=f"such as {_EXAMPLES}")
    if found is None:
        near = " or ".join(index.nearest(name))
        like = ", ".join(_written_like(shape)) if re.fullmatch(_SHAPE, shape) else ""
        raise QuestionError(
            f"no chip is called {shown(name)}",
            expected=f"a topology such as {like or _EXAMPLES}",
            advice=f"Did you mean {near}? {index.how_to_list()}" if near else index.how_to_list(),
        )
    family = families().get(found)
    if family is None:
        raise QuestionError(
            f"{found} has no slices, so {shown(text)} is no topology",
            expected=f"a TPU from v2 to 8t; GPUs are written {_OTHERS}",
        )
    if not family.axes:
        raise QuestionError(f"{found} is joined as a Boardfly, not in slices", expected="such as boardfly:1024")
    return family


def _nameless(shape: str) -> QuestionError:
    """What is said of a shape alone: it names no generation, and whether any has it."""
    dims = tuple(int(n) for n in shape.split("x"))
    family = next((f for f in reversed(families().values()) if f.axes == len(dims) and f.machines), None)
    if family is None or not all(dims):
        return QuestionError(f"{shown(shape)} names no generation", expected="such as v5p:4x4x8 or torus:8x8x16")
    having = [f for f in families().values() if f.axes == len(dims) and _has(f, dims)]
    broken = "" if having else f", and none has this shape: {shapes.broken_rule(family, dims)}"
    free = f"{'torus' if min(dims) > 2 else 'mesh'}:{shape} of no chip in particular"
    near = ", ".join(_written_like(shape))
    return QuestionError(f"{shown(shape)} names no generation{broken}", expected=f"such as {near}, or {free}")


def _has(family: SliceFamily, dims: tuple[int, ...]) -> bool:
    try:
        return bool(shapes.legal(family, dims))
    except QuestionError:
        return False


def _written_like(shape: str) -> list[str]:
    """The nearest legal shape of each generation that machines exist of and that has as many axes."""
    dims = tuple(int(n) for n in shape.split("x"))
    if not all(dims):
        return []
    there = [f for f in families().values() if f.axes == len(dims) and f.machines]
    return [f"{SHORT[f.name]}:{shapes.text_of(shapes.nearest(f, dims, 1)[0])}" for f in there]


def _spread(family: SliceFamily) -> list[str]:
    """A small, a middling and the largest shape, as examples."""
    there = shapes.all_shapes(family)
    middle = shapes.nearest(family, (8,) * (family.axes or 0), 1)
    return list(dict.fromkeys(map(shapes.text_of, (there[min(1, len(there) - 1)], *middle, shapes.largest(family)))))


def _twisted(text: str, family: SliceFamily, dims: tuple[int, ...], options: Mapping[str, str]) -> bool:
    asked = yes_no(text, options, "twisted")
    why = shapes.no_twist(family, dims) if asked else None
    if why is None:
        return asked
    short = SHORT[family.name]
    near = [f"{short}:{shapes.text_of(s)}:twisted" for s in shapes.nearest_twists(family, dims)]
    raise QuestionError(
        f"{short}:{shapes.text_of(dims)} cannot be twisted: {why}",
        expected=f"such as {', '.join(near)}" if near else "v4, v5p or 7x",
    )
