"""The order of devices is that of JAX: its own function with devices that only have coordinates, and the compiler's."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

from catalog import chip
from simulators import topology
from simulators.placement import jax_order
from simulators.placement.build import machine
from simulators.placement.mesh import LogicalAxis
from simulators.placement.search import jax_shares, jax_tray
from simulators.tpu_compile.launch import ENVIRONMENT
from tests.simulators.compiler import needs_compiler

mesh_utils = pytest.importorskip("jax.experimental.mesh_utils", reason="needs JAX: the reference extra")


@dataclass(frozen=True)
class Device:
    """What mesh_utils looks at; `id` with the last axis fastest, as here."""

    id: int
    coords: tuple[int, int, int]
    core_on_chip: int
    device_kind: str
    platform: str = "tpu"


def devices(kind, dims, cores=1):
    """In the order of jax.devices(): hosts of 2x2 chips, in both z, y, x, core."""
    three = (*dims, *(1,) * (3 - len(dims)))
    whole = np.arange(prod(three) * cores).reshape(*three, cores)
    made = [
        Device(int(whole[x, y, z, c]), (x, y, z), c, kind)
        for z in range(three[2])
        for y in range(three[1])
        for x in range(three[0])
        for c in range(cores)
    ]
    return sorted(made, key=lambda d: (d.coords[2], d.coords[1] // 2, d.coords[0] // 2))


def theirs(kind, dims, cores, mesh, split):
    laid = mesh_utils.create_device_mesh(mesh, devices(kind, dims, cores), allow_split_physical_axes=split)
    return np.vectorize(lambda d: d.id)(laid)


def ours(kind, dims, cores, mesh, split):
    lengths = (*dims, cores) if cores > 1 else (*dims, *(1,) * (3 - len(dims)))
    tray = jax_order.tray(kind, lengths, mesh)
    if tray is not None:
        return tray
    shares = jax_order.assign(lengths, mesh, split)
    return None if shares is None else jax_order.order(lengths, shares)


CASES = [
    ("TPU v4", (4, 4, 4), 1, (16, 4)),
    ("TPU v4", (4, 4, 8), 1, (8, 16)),
    ("TPU v4", (4, 8, 8), 1, (2, 4, 32)),
    ("TPU v4", (2, 2, 4), 1, (4, 4)),
    ("TPU v4", (8, 8, 12), 1, (6, 8, 16)),
    ("TPU v5", (2, 2, 2), 1, (2, 4)),
    ("TPU v5p", (2, 2, 2), 1, (8,)),
    ("TPU v5p", (2, 2, 2), 1, (2, 4)),
    ("TPU v5p", (4, 4, 8), 1, (1, 8, 16)),
    ("TPU v5p", (8, 8, 16), 1, (4, 2, 8, 16)),
    ("TPU v5p", (4, 12, 16), 1, (3, 16, 16)),
    ("TPU v5p", (4, 4, 28), 1, (8, 56)),
    ("TPU v5p", (4, 20, 28), 1, (8, 7, 40)),
    ("TPU v5 lite", (2, 2), 1, (2, 2)),
    ("TPU v5 lite", (2, 4), 1, (8, 1)),
    ("TPU v5 lite", (4, 4), 1, (16,)),
    ("TPU v5 lite", (4, 4), 1, (4, 4)),
    ("TPU v5 lite", (16, 16), 1, (16, 16)),
    ("TPU v5 lite", (16, 16), 1, (4, 8, 8)),
    ("TPU v6 lite", (8, 16), 1, (16, 8)),
    ("TPU v6 lite", (8, 8), 1, (64,)),
    ("TPU v3", (2, 2), 2, (4, 2)),
    ("TPU v3", (4, 4), 2, (4, 8)),
    ("TPU v3", (4, 4), 2, (16, 2)),
    ("TPU7x", (2, 2, 1), 2, (8,)),
    ("TPU7x", (2, 2, 4), 2, (4, 8)),
    ("TPU7x", (4, 4, 4), 2, (16, 8)),
    ("TPU7x", (4, 4, 8), 2, (2, 8, 16)),
]


@pytest.mark.parametrize(("kind", "dims", "cores", "mesh"), CASES)
@pytest.mark.parametrize("split", [False, True])
def test_the_order_is_that_of_mesh_utils(kind, dims, cores, mesh, split):
    mine = ours(kind, dims, cores, mesh, split)
    try:
        expected = theirs(kind, dims, cores, mesh, split)
    except NotImplementedError:
        assert mine is None
        return
    assert np.array_equal(mine, expected)


def test_many_meshes_of_a_slice_are_laid_as_mesh_utils_does():
    """Every way to write 128 with up to three axes."""
    meshes = {(a, b, 128 // a // b) for a in (1, 2, 4, 8, 16, 32) for b in (1, 2, 4, 8, 16, 64) if 128 % (a * b) == 0}
    for mesh in sorted(meshes):
        case = ("TPU v4", (4, 4, 8), 1, mesh, True)
        assert np.array_equal(ours(*case), theirs(*case)), mesh


def test_an_axis_that_jax_cannot_split_is_told():
    """It overlooks the 2 in 14."""
    with pytest.raises((TypeError, ValueError)):
        theirs("TPU v4", (4, 4, 28), 1, (32, 14), True)
    assert ours("TPU v4", (4, 4, 28), 1, (32, 14), True) is None


@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("v5e:16x16", "tensor=16,data=16"),
        ("v5p:4x4x8", "data=8,model=16"),
        ("tpu7x:4x4x4", "fsdp=16,model=8"),
        ("v3:4x4", "data=4,model=8"),
    ],
)
def test_the_placement_called_jax_is_what_mesh_utils_lays(name, mesh):
    axes = [LogicalAxis(n, int(k)) for n, k in (a.split("=") for a in mesh.split(","))]
    slice_ = machine(topology.parse(name), topology.build(name), axes)
    shares, split = jax_shares(slice_, axes)
    own = jax_tray(slice_, axes)
    cores = slice_.devices // slice_.chips
    dims = tuple(a.length for a in slice_.axes if a.kind == "link")
    expected = theirs(slice_.device_kind, dims, cores, [a.size for a in axes], split)
    assert (shares is None) == (own is not None)
    assert np.array_equal(jax_order.order(slice_.dims, shares) if own is None else own, expected)


COMPILED = (
    ("v5e:8x8", (4, 16)),
    ("v6e:8x16", (16, 8)),
    ("v5p:4x4x8", (8, 16)),
    ("v4:4x4x4", (16, 4)),
    ("v3:4x4", (4, 8)),
    ("tpu7x:4x4x4", (16, 8)),
)
ASK = """
import json, sys
from jax.experimental import mesh_utils, topologies
from simulators.tpu_compile.topology import parse_topology
told = []
for name, mesh in json.loads(sys.argv[1]):
    slice_ = parse_topology(name)
    got = topologies.get_topology_desc(topology_name=slice_.text, platform="tpu", **slice_.compiler_options())
    laid = mesh_utils.create_device_mesh(mesh, got.devices, allow_split_physical_axes=True)
    told.append([got.devices[0].device_kind, [[*d.coords, d.core_on_chip] for d in laid.ravel()]])
print("TOLD" + json.dumps(told))
"""


@needs_compiler
def test_the_compilers_own_coordinates_are_laid_alike():
    """One slice of each kind of lattice: what the TPU compiler calls its devices, laid by JAX, is laid so here."""
    env = {**os.environ, **ENVIRONMENT}  # other tests may have the compiler loaded at the same time
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(COMPILED)], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.partition("TOLD")[2])
    for (name, mesh), (kind, laid) in zip(COMPILED, told, strict=True):
        spec = topology.parse(name)
        cores = len(laid) // spec.chips
        lengths = (*spec.dims, cores) if cores > 1 else (*spec.dims, *(1,) * (3 - len(spec.dims)))
        at = np.array(laid)
        numbers = np.ravel_multi_index(
            (*at[:, : len(spec.dims)].T, *([at[:, 3]] if cores > 1 else [])),
            (*spec.dims, *([cores] if cores > 1 else [])),
        )
        tray = jax_order.tray(kind, lengths, mesh)
        mine = tray if tray is not None else jax_order.order(lengths, jax_order.assign(lengths, mesh, True))
        assert np.array_equal(mine.ravel(), numbers), name
        assert chip(spec.chip).jax.device_kind == kind
