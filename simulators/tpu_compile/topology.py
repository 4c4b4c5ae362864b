"""Which TPU slices can be compiled for, and what the compiler must be told about each. No JAX here.

A mesh is laid over JAX devices. A chip is one device on v4 (as a megacore), v5e, v5p and v6e, and two on v2, v3 and 7x.
"""

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from catalog.chips import chip as find_chip
from catalog.chips import chips
from catalog.lookup import shown
from catalog.slices import SliceFamily, families
from catalog.traits import Compiler
from errors import QuestionError
from simulators.topology.systems import shapes

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
        return f"{compiler_name(self.chip)}:{'x'.join(map(str, self.shape))}"

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
        if config := _compiler(self.chip).config:
            options["chip_config_name"] = config
        if self.slices > 1:
            options["num_slices"] = self.slices
        family = families()[self.chip]
        if family.wrap == "cube" and all(shapes.wraps(family, self.shape)):
            options["wrap"] = [True] * 3
        return options


def compilers() -> dict[str, Compiler]:
    """What the compiler is told of each chip that it knows, by the catalogue's name."""
    return {name: c.compiler for name, c in chips().items() if c.compiler}


def compiler_name(chip: str) -> str:
    """What the compiler calls a chip. Raises QuestionError for one that it does not know."""
    return _compiler(chip).name


def _compiler(chip: str) -> Compiler:
    found = compilers().get(chip)
    if found is None:
        raise _not_known(chip)
    return found


def _not_known(chip: str) -> QuestionError:
    known = ", ".join(c.name for c in compilers().values())
    return QuestionError(f"the TPU compiler here does not know {chip}", expected=f"one of {known}")


def parse_topology(text: str, slices: int = 1) -> Topology:
    """The topology of a text such as v6e:4x4 or v5p-128.

    Raises QuestionError for an unknown chip, one that the compiler does not know, and a shape that does not exist.
    """
    name, colon, shape = text.strip().partition(":")
    if colon:
        chip = find_chip(name).name
        family = families().get(chip)
        if family is None:
            raise _not_known(chip)
        given = _numbers(shape, text)
    else:
        family, given = shapes.of_accelerator_type(name)
    if family.chip not in compilers():
        raise _not_known(family.chip)
    if not 1 <= slices <= MOST_SLICES:
        raise QuestionError(f"{slices} slices", expected=f"1 to {MOST_SLICES}")
    return Topology(family.chip, _in_order(family, given), slices)


def _numbers(shape: str, text: str) -> shapes.Dims:
    if not re.fullmatch(r"[1-9][0-9]{0,2}(x[1-9][0-9]{0,2}){0,2}", shape):
        raise QuestionError(f"topology {shown(text)} is not understood", expected=_FORM)
    return shapes.dims_in(shape)


def _in_order(family: SliceFamily, given: shapes.Dims) -> shapes.Dims:
    """The legal shape. Raises QuestionError where none is, or where the axes stand in another order than the maker's:
    a mesh is laid over the axes, so that changing their order unasked would change the program.
    """
    dims = shapes.legal(family, given)
    if given + (1,) * (len(dims) - len(given)) != dims:
        written = f"{compiler_name(family.chip)}:{shapes.text_of(dims)}"
        raise QuestionError(
            f"{family.name} writes {shapes.text_of(given)} with all its axes in ascending order", expected=written
        )
    return dims
