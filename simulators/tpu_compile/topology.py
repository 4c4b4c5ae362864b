"""Which TPU slices can be compiled for, and what the compiler must be told about each. No JAX here.

A mesh is laid over JAX devices. A chip is one device on v4 (as a megacore), v5e, v5p and v6e, and two on v2, v3 and 7x.
"""

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from catalog.chips import chip as find_chip
from catalog.lookup import shown
from catalog.slices import SliceFamily, families, slice_
from errors import QuestionError

COMPILER_NAMES: dict[str, str] = {
    "TPU v2": "v2", "TPU v3": "v3", "TPU v4": "v4", "TPU v5e": "v5e", "TPU v5p": "v5p", "TPU v6e": "v6e",
    "TPU 7x": "tpu7x",
}  # fmt: skip
MOST_SLICES = 64
_FORM = "such as v6e:4x4, v5p:4x4x8 or an accelerator type such as v5p-128"


@dataclass(frozen=True)
class Topology:
    """`slices` equal slices of `chip`, each `shape` chips along its axes."""

    chip: str
    shape: tuple[int, ...]
    slices: int = 1

    @property
    def text(self) -> str:
        """As the compiler is given it, such as v6e:4x4."""
        return f"{COMPILER_NAMES[self.chip]}:{'x'.join(map(str, self.shape))}"

    @property
    def chips(self) -> int:
        return prod(self.shape) * self.slices

    @property
    def devices_per_chip(self) -> int:
        return int(find_chip(self.chip).need("jax_devices_per_chip"))

    @property
    def devices(self) -> int:
        return self.chips * self.devices_per_chip

    def compiler_options(self) -> dict[str, Any]:
        """What the compiler cannot take from the name: lone chips, megacores, slices, and which axes are rings."""
        options: dict[str, Any] = {}
        if prod(self.shape) == 1:
            options["chips_per_host_bounds"] = [1, 1, 1]
        if self.chip == "TPU v4":
            options["chip_config_name"] = "megacore"
        if self.slices > 1:
            options["num_slices"] = self.slices
        if families()[self.chip].wrap == "cube" and min(self.shape) >= families()[self.chip].axis_multiple:
            options["wrap"] = [True] * 3
        return options


def parse_topology(text: str, slices: int = 1) -> Topology:
    """The topology of a text such as v6e:4x4 or v5p-128.

    Raises QuestionError for an unknown chip, one that the compiler does not know, and a shape that does not exist.
    """
    name, colon, shape = text.strip().partition(":")
    if not colon:
        named = slice_(name)
        if named.topology is None:
            raise QuestionError(f"{named.name} comes in several shapes", expected=_FORM)
        name, shape = named.chip, named.topology
    chip = find_chip(name).name
    if chip not in COMPILER_NAMES:
        known = ", ".join(COMPILER_NAMES.values())
        raise QuestionError(f"the TPU compiler here does not know {chip}", expected=f"one of {known}")
    if not re.fullmatch(r"[1-9][0-9]{0,2}(x[1-9][0-9]{0,2}){0,2}", shape):
        raise QuestionError(f"topology {shown(text)} is not understood", expected=_FORM)
    if not 1 <= slices <= MOST_SLICES:
        raise QuestionError(f"{slices} slices", expected=f"1 to {MOST_SLICES}")
    return Topology(chip, _shape(families()[chip], tuple(int(n) for n in shape.split("x"))), slices)


def _shape(family: SliceFamily, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with as many axes as the family has. Raises QuestionError where no such slice exists."""
    axes = family.axes or 0
    whole = shape + (1,) * (axes - len(shape))
    text = "x".join(map(str, whole))
    listed = {t.shape for t in family.topologies} | set(family.small_topologies)
    if len(whole) == axes and (prod(whole) == 1 or text in listed or _cubes(family, whole)):
        return whole
    near = sorted(listed, key=lambda s: abs(prod(map(int, s.split("x"))) - prod(whole)))[:3]
    rule = f", or axes in ascending order that are multiples of {family.axis_multiple}" if family.axis_multiple else ""
    raise QuestionError(
        f"{family.name} has no slice of {'x'.join(map(str, shape))} chips",
        expected=f"such as {', '.join(near)}{rule}, up to {family.numbers['pod_chips'].value:,} chips, or one chip",
    )


def _cubes(family: SliceFamily, shape: tuple[int, ...]) -> bool:
    m = family.axis_multiple
    whole = bool(m) and all(n % m == 0 for n in shape) and list(shape) == sorted(shape)
    return whole and prod(shape) <= family.numbers["pod_chips"].value
