"""Axes of a mesh from replica groups, against groups made by slicing the mesh itself."""

from itertools import combinations

import numpy as np
import pytest

from collectors.device.hlo.axes import Mesh, axis_of
from collectors.device.hlo.collectives import ProgramCollective

MESHES = [{"data": 4, "model": 4}, {"data": 2, "fsdp": 3, "tensor": 4}, {"x": 8}, {"a": 2, "one": 1, "b": 2}]


def groups_along(mesh, axes):
    """Groups of row-major device numbers that differ along some axes only."""
    table = np.arange(np.prod(list(mesh.values()))).reshape(list(mesh.values()))
    along = [list(mesh).index(a) for a in axes]
    rest = [i for i in range(len(mesh)) if i not in along]
    width = int(np.prod([table.shape[i] for i in along]))
    return tuple(map(tuple, table.transpose(rest + along).reshape(-1, width).tolist()))


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_every_set_of_axes_is_found(mesh):
    wide = [a for a, n in mesh.items() if n > 1]
    for count in range(1, len(wide) + 1):
        for axes in combinations(wide, count):
            groups = groups_along(mesh, axes)
            assert axis_of(groups, mesh) == "+".join(axes)
            assert axis_of(tuple(g[::-1] for g in groups), mesh) == "+".join(axes)  # in whatever order
    assert axis_of(None, mesh) == "+".join(wide)  # no groups stands for one of everybody


def test_part_of_an_axis_counts_and_the_rest_fits_none():
    mesh = {"data": 4, "model": 2}
    assert axis_of(((0, 2), (4, 6), (1, 3), (5, 7)), mesh) == "data"  # halves of the data axis
    assert axis_of(((0, 3), (1, 2), (4, 7), (5, 6)), mesh) is None  # diagonals
    assert axis_of(((0, 1), (2, 4)), mesh) is None  # one group along each
    assert axis_of(((0, 8),), mesh) is None  # no such device
    assert axis_of(((0, 0),), mesh) is None
    assert axis_of(((0,), (1,)), mesh) is None  # nobody to talk to
    assert axis_of(((0, 1),), {}) is None and axis_of(((0, 1),), {"x": 1 << 40}) is None


def test_permutations_need_not_fill_a_box():
    mesh = {"data": 4, "model": 4}
    ring = groups_along(mesh, ["data"])
    assert axis_of(ring, mesh, paired=True) == "data"
    assert axis_of(((0, 5, 10),), mesh) is None
    assert axis_of(((0, 5, 10),), mesh, paired=True) == "data+model"
    assert axis_of(((0, 1), (4, 8)), mesh, paired=True) == "data+model"


def collective(groups, across=False, kind="all-gather"):
    return ProgramCollective("op", kind, groups, across, 1.0, "bf16", 1, False, None)


def test_slices_count_their_own_partitions_and_name_others_devices():
    """Two slices of four chips; mesh data=4 (two in each slice) x model=2."""
    identifiers = [100000, 100001, 100003, 100002, 200000, 200001, 200003, 200002]
    mesh = Mesh({"data": 4, "model": 2}, [(i, i // 100000 - 1) for i in identifiers])
    assert mesh.axis(collective(((0, 1), (2, 3)))) == "model"
    assert mesh.axis(collective(((0, 2), (1, 3)))) == "data"
    assert mesh.axis(collective(((100000, 200000), (100003, 200003)), across=True)) == "data"
    assert mesh.axis(collective(((100000, 200001),), across=True)) is None
    assert mesh.axis(collective(((100000, 999),), across=True)) is None
    assert mesh.axis(collective(None)) == "data+model"
    one = Mesh({"data": 2, "model": 2}, [(i, 0) for i in range(4)])
    assert one.axis(collective(((0, 1), (2, 3)))) == "model" and one.axis(collective(None)) == "data+model"
