"""`torus:8x8x16`, `torus:4x4x8:twisted` and `mesh:2x2x4`: of any lengths, on no machine in particular."""

from collections.abc import Mapping
from math import prod

import numpy as np

from errors import QuestionError
from simulators.topology.lattice import twist_of
from simulators.topology.network import Network
from simulators.topology.spec import MOST_CHIPS, Spec, dims_of, refuse_options, yes_no
from simulators.topology.systems.lattice_network import lattice_network

FORMS = (
    ("torus:8x8x16", "a torus of any lengths: every axis is a ring"),
    ("torus:4x4x8:twisted", "a twisted torus, k x k x 2k or k x 2k x 2k"),
    ("mesh:2x2x4", "a mesh of any lengths: every axis is a line"),
)
_NAMES = ("torus", "mesh")


def reads(name: str) -> bool:
    return name.lower() in _NAMES


def parse(text: str, name: str, shape: str, options: Mapping[str, str]) -> Spec:
    name = name.lower()
    refuse_options(text, options, ("twisted",) if name == "torus" else ())
    dims = dims_of(shape, text)
    if prod(dims) > MOST_CHIPS:
        shrunk = [max(1, int(k * (MOST_CHIPS / prod(dims)) ** (1 / len(dims)))) for k in dims]
        near = f", such as {name}:{'x'.join(map(str, shrunk))}" if prod(shrunk) <= MOST_CHIPS else ""
        raise QuestionError(f"topology {text!r} has {prod(dims):,} chips", expected=f"at most {MOST_CHIPS:,}{near}")
    twisted = yes_no(text, options, "twisted")
    if twisted and twist_of(dims) is None:
        raise QuestionError(
            f"topology {text!r}: a twist is defined for k x k x 2k and k x 2k x 2k only",
            expected=f"such as {', '.join(near_twists(dims))}",
        )
    return Spec(
        text=f"{name}:{'x'.join(map(str, dims))}" + ":twisted" * twisted,
        kind="twisted torus" if twisted else name,
        chip=None,
        chips=prod(dims),
        dims=dims,
        wraps=(name == "torus",) * len(dims),
        twisted=twisted,
    )


def build(spec: Spec) -> Network:
    return lattice_network(spec)


def near_twists(dims: tuple[int, ...]) -> list[str]:
    """The three twisted shapes nearest in chips, such as 4x4x8."""
    k = np.arange(1, 33)
    shapes = [(a, a, 2 * a) for a in k] + [(a, 2 * a, 2 * a) for a in k]
    near = sorted(shapes, key=lambda s: abs(np.log(prod(map(int, s)) / prod(dims))))[:3]
    return ["x".join(map(str, s)) for s in near]
