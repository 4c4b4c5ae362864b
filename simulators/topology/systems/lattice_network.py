"""A lattice as a network: kinds of its links, and the hosts, cubes and optical switches that its chips belong to."""

from collections.abc import Sequence

import numpy as np

from simulators.topology.lattice import AXES, Lattice, twist_of
from simulators.topology.network import KIND_OF, Network, make
from simulators.topology.spec import Spec

CUBE = 4  # chips along an edge of the block that optical switches join
HOST = (2, 2)  # chips of a host along the first two axes


def lattice_network(
    spec: Spec, oneway_bytes_per_s: float | None = None, cubes: bool = False, hosts: bool = False
) -> Network:
    """The network of a spec with `dims` and `wraps`. `cubes`: blocks of 4x4x4 chips are joined by optical switches, so
    that each of the 48 switches serves one of 16 places of a face along one axis. All slices are built, side by side.
    """
    lattice = Lattice(spec.dims, spec.wraps, twist_of(spec.dims) or () if spec.twisted else ())
    links, axis, closing = lattice.links()
    at = lattice.coordinates()
    kind = np.full(len(links), KIND_OF["copper"])
    link_parts = {}
    if cubes:
        crossing = at[links[:, 0], axis] // CUBE != at[links[:, 1], axis] // CUBE
        kind[crossing] = KIND_OF["optical"]
        link_parts["ocs"] = np.where(crossing | closing, _switch(at[links[:, 0]], axis), -1)
    shifts = np.array([any(s) for s in lattice.twist] or [False] * len(spec.dims))
    kind[closing] = np.where(shifts[axis[closing]], KIND_OF["twist"], KIND_OF["wrap"])
    parts = {}
    if hosts:
        parts["host"] = _block(at, spec.dims, HOST)
    if cubes:
        parts["cube"] = _block(at, spec.dims, (CUBE,) * 3)
    axes = AXES[: len(spec.dims)]
    if spec.slices > 1:
        one, number = lattice.chips, np.arange(spec.slices)
        links = (links[None] + one * number[:, None, None]).reshape(-1, 2)
        kind, at = np.tile(kind, spec.slices), np.tile(at, (spec.slices, 1))
        parts = {k: (v[None] + (v.max() + 1) * number[:, None]).ravel() for k, v in parts.items()}
        parts["slice"] = np.repeat(number, one)
        switches = 1 + max((int(v.max()) for v in link_parts.values()), default=-1)
        link_parts = {k: np.where(v < 0, -1, v + switches * number[:, None]).ravel() for k, v in link_parts.items()}
    rates = (
        {} if oneway_bytes_per_s is None else dict.fromkeys(("copper", "optical", "wrap", "twist"), oneway_bytes_per_s)
    )
    return make(
        spec=spec.text,
        kind=spec.kind,
        chip=spec.chip,
        chips=spec.chips,
        links=links,
        link_kind=kind,
        coordinates=at,
        axes=axes,
        parts={k: v.astype(np.int32) for k, v in parts.items()},
        slices=spec.slices,
        link_parts={k: v.astype(np.int32) for k, v in link_parts.items()},
        oneway_bytes_per_s=rates,
        lattice=lattice if spec.slices == 1 else None,
    )


def _switch(at: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Which of the 48 optical switches a link along `axis` runs through: its axis, and its place on the cube's face."""
    places = [at[:, [i for i in range(3) if i != a]] % CUBE for a in range(3)]
    place = np.stack([p[:, 0] * CUBE + p[:, 1] for p in places])[axis, np.arange(len(axis))]
    return axis * CUBE**2 + place


def _block(at: np.ndarray, dims: Sequence[int], size: Sequence[int]) -> np.ndarray:
    """Number of the block of `size` chips that each chip stands in; axes beyond `size` are cut into single chips."""
    whole = [*size, *[1] * len(dims)][: len(dims)]
    counts = [-(-n // s) for n, s in zip(dims, whole, strict=True)]
    blocks = tuple((at // np.array(whole)).T)
    return np.ravel_multi_index(blocks, counts)  # pyright: ignore[reportReturnType]  # of arrays, an array
