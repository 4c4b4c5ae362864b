"""Shapes, windows and replica groups, against counting and against how HLO prints them."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from collectors.device.hlo.shapes import HLO, iota_devices, linked, replica_groups, shape_text, valid_positions


@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(-3, 5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_valid_positions_against_counting(size, stride, low, dilation, base, inputs, outputs):
    window = HLO["WindowDim"](size=size, stride=stride, padding_low=low, window_dilation=dilation, base_dilation=base)
    counted = 0
    for k in range(size):
        for o in range(outputs):
            at = o * stride - low + k * dilation
            counted += at % base == 0 and 0 <= at // base < inputs
    assert valid_positions(window, inputs, outputs) == counted


def test_groups_of_protos():
    instruction = HLO["Instruction"]()
    assert replica_groups(instruction) is None
    instruction.replica_groups.add(replica_ids=[0, 2])
    instruction.replica_groups.add(replica_ids=[1, 3])
    assert replica_groups(instruction) == ((0, 2), (1, 3))
    iota = HLO["Instruction"](
        iota_collective_device_list={
            "num_replica_groups": 4,
            "num_devices_per_group": 2,
            "reshape_dims": [2, 4],
            "transpose_perm": [1, 0],
        }
    )
    assert replica_groups(iota) == ((0, 4), (1, 5), (2, 6), (3, 7))
    mesh = HLO["Instruction"]()
    mesh.mesh_axes_replica_group_list.mesh.axes.add(size=2)
    mesh.mesh_axes_replica_group_list.mesh.axes.add(size=3)
    mesh.mesh_axes_replica_group_list.mesh.device_ids.extend([5, 4, 3, 2, 1, 0])
    mesh.mesh_axes_replica_group_list.axes.add(mesh_axis_index=0)
    assert replica_groups(mesh) == ((5, 2), (4, 1), (3, 0))


@given(
    st.lists(st.integers(-5, 9), max_size=4),
    st.lists(st.integers(-5, 9), max_size=4),
    st.lists(st.integers(-3, 5), max_size=4),
)
def test_false_iota_lists_are_refused_not_followed(shape, reshape, perm):
    table = iota_devices(shape, reshape, perm)
    if table is not None:
        assert sorted(table.ravel().tolist()) == list(range(prod(shape))) and list(table.shape) == shape


def test_permutations_connect_devices():
    assert linked([]) is None
    assert linked([(0, 1), (1, 2), (2, 0), (7, 7)]) == ((0, 1, 2), (7,))


def test_shape_text_is_that_of_hlo():
    shape = HLO["Shape"](
        element_type=16,
        dimensions=[8, 100],
        layout={
            "minor_to_major": [1, 0],
            "tiles": [{"dimensions": [8, 128]}, {"dimensions": [2, 1]}],
            "memory_space": 5,
        },
    )
    assert shape_text(shape) == "bf16[8,100]{1,0:T(8,128)(2,1)S(5)}"
    pair = HLO["Shape"](element_type=13, tuple_shapes=[{"element_type": 1}, {"element_type": 11, "dimensions": [2]}])
    assert shape_text(pair) == "(pred[], f32[2])"
