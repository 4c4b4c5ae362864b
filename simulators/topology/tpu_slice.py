"""`v5p:4x4x8`, `v6e:16x16`, `v5e:16x16:slices=199`, `v5p-128`: slices of real TPUs, only in shapes that exist."""

from collections.abc import Mapping
from math import prod

from catalog.chips import chip as find_chip
from catalog.lookup import shown
from catalog.slices import SliceFamily, families, slice_
from errors import QuestionError
from simulators.topology.lattice import twist_of
from simulators.topology.lattice_network import lattice_network
from simulators.topology.network import Network
from simulators.topology.spec import MOST_CHIPS, MOST_SLICES, Spec, dims_of, refuse_options, whole

FORMS = (
    ("v5p:4x4x8", "a TPU slice of a shape that exists (v2 to 8t), or an accelerator type such as v5p-256"),
    ("v5p:4x4x8:twisted", "the same as a twisted torus, where the generation has one"),
    ("v5e:16x16:slices=199", "several equal slices over the data-centre network"),
)
SHORT = {name: name.removeprefix("TPU ") for name in families()}


def reads(name: str) -> bool:
    """Any chip's name: GPUs too, so that the error can say which systems they have."""
    return bool(name)


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    if not shape:
        named = slice_(name)
        if named.topology is None:
            raise QuestionError(f"{named.name} comes in several shapes", expected="such as v5p:4x4x8")
        name, shape = named.chip, named.topology
    chip = find_chip(name).name
    family = families().get(chip)
    if family is None or family.axes is None:
        raise QuestionError(f"{chip} has no slices of {shown(shape)}", expected="a TPU from v2 to 8t")
    refuse_options(text, options, ("twisted", "slices"))
    given = dims_of(shape, text)
    dims = legal(family, given)
    slices = whole(text, "slices", options.get("slices", "1"), 1, MOST_SLICES)
    chips = prod(dims) * slices
    if chips > MOST_CHIPS:
        raise QuestionError(f"topology {text!r} has {chips:,} chips", expected=f"at most {MOST_CHIPS:,}")
    twisted = "twisted" in options
    if twisted and (family.twistable is False or twist_of(dims) is None):
        raise QuestionError(f"{chip} {shape} cannot be twisted", expected="k x k x 2k or k x 2k x 2k of v4 or v5p")
    written = f"{SHORT[chip]}:{'x'.join(map(str, dims))}"
    wraps = wraps_of(family, dims)
    return Spec(
        text=written + ":twisted" * twisted + (f":slices={slices}" if slices > 1 else ""),
        kind="twisted torus" if twisted else "torus" if any(wraps) else "mesh",
        chip=chip, chips=chips, dims=dims, wraps=wraps, twisted=twisted, slices=slices,
    )  # fmt: skip


def build(spec: Spec) -> Network:
    family = families()[spec.chip]
    rate = find_chip(spec.chip).value("link_oneway_bytes_per_s")
    return lattice_network(spec, rate, cubes=family.wrap == "cube" and all(spec.wraps), hosts=prod(spec.dims) >= 4)


def legal(family: SliceFamily, given: tuple[int, ...]) -> tuple[int, ...]:
    """The shape as the maker writes it: all axes, ascending. Raises QuestionError for one that does not exist."""
    axes = family.axes or 0
    dims = tuple(sorted(given + (1,) * (axes - len(given)))) if len(given) <= axes else given
    listed = {t.shape for t in family.topologies} | set(family.small_topologies)
    by_text = {tuple(sorted(map(int, t.split("x")))): tuple(map(int, t.split("x"))) for t in listed}
    m = family.axis_multiple
    if dims in by_text:
        return by_text[dims]
    if len(dims) == axes and (prod(dims) == 1 or (m and all(n % m == 0 for n in dims)
                                                 and prod(dims) <= family.numbers["pod_chips"].value)):  # fmt: skip
        return dims
    near = sorted(listed, key=lambda s: abs(prod(map(int, s.split("x"))) - prod(dims)))[:3]
    raise QuestionError(f"{family.name} has no slice of {'x'.join(map(str, given))}",
                        expected=f"such as {', '.join(near)}")  # fmt: skip


def wraps_of(family: SliceFamily, dims: tuple[int, ...]) -> tuple[bool, ...]:
    """Which axes are rings."""
    if family.wrap == "axis_of_16":
        return tuple(n == 16 for n in dims)
    if family.wrap == "cube":
        return (min(dims) >= (family.axis_multiple or 0),) * len(dims)
    return (prod(dims) == family.numbers["pod_chips"].value,) * len(dims)
