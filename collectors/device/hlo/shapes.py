"""HLO messages and the arithmetic of their shapes: elements, bytes, text, convolution windows, replica groups."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from collectors.device.hlo.products import prod
from collectors.reading.protobuf import message_types

HLO = message_types(
    "chipledger.hlo",
    """
    HloProto: Module hlo_module=1, BufferAssignment buffer_assignment=3
    Module: bytes name=1, Computation* computations=3, int64 entry_computation_id=6, \
            StackFrameIndex stack_frame_index=17, DeviceAssignment device_assignment=15, Schedule? schedule=7
    Schedule: Sequence* sequences=1
    Sequence: int64 key=1
    Computation: bytes name=1, Instruction* instructions=2, int64 id=5, int64 root_id=6
    Instruction: bytes name=1, bytes opcode=2, Shape shape=3, OpMetadata metadata=7, Literal literal=8, \
            int64 parameter_number=9, bytes fusion_kind=11, int64 tuple_index=13, int64* dimensions=14, \
            Window window=15, ConvDims convolution_dimension_numbers=16, int64 feature_group_count=50, \
            int64 batch_group_count=58, int64 channel_id=26, bytes custom_call_target=28, \
            DotDims dot_dimension_numbers=30, RaggedDotDims ragged_dot_dimension_numbers=90, \
            enum fft_type=31, int64* fft_length=32, enum distribution=23, enum rng_algorithm=70, bool largest=85, \
            bytes comparison_direction=63, \
            bool use_global_device_ids=71, \
            int64 id=35, int64* operand_ids=36, int64* called_computation_ids=38, bytes backend_config=43, \
            ReplicaGroup* replica_groups=49, SourceTarget* source_target_pairs=52, \
            DeviceList collective_device_list=87, Iota iota_collective_device_list=92, \
            MeshAxes mesh_axes_replica_group_list=93, Attributes frontend_attributes=68, \
            Sharding? sharding=40, Slice* slice_dimensions=17, int64* dynamic_slice_sizes=20, \
            Padding padding_config=21, GatherDims? gather_dimension_numbers=33, int64* gather_slice_sizes=34, \
            ScatterDims? scatter_dimension_numbers=48, int64* control_predecessor_ids=37, bool is_stable=60, \
            bytes comparison_type=72, bool indices_are_sorted=67, bool unique_indices=69, bool is_host_transfer=47, \
            bool custom_call_has_side_effect=65, Aliasing* output_operand_aliasing=74, int32 exponent_bits=18, \
            int32 mantissa_bits=19, int64 delta=66, int64 k=81, \
            TriangularSolve triangular_solve_options=59, Cholesky cholesky_options=62
    TriangularSolve: bool left_side=1, bool lower=2, bool unit_diagonal=3, enum transpose_a=4
    Cholesky: bool lower=1
    Slice: int64 start=1, int64 limit=2, int64 stride=3
    Padding: PaddingDim* dimensions=1
    PaddingDim: int64 low=1, int64 high=2, int64 interior=3
    GatherDims: int64* offset_dims=1, int64* collapsed_slice_dims=2, int64* start_index_map=3, \
            int64 index_vector_dim=4, int64* operand_batching_dims=5, int64* start_indices_batching_dims=6
    ScatterDims: int64* update_window_dims=1, int64* inserted_window_dims=2, int64* scatter_dims_to_operand_dims=3, \
            int64 index_vector_dim=4, int64* input_batching_dims=5, int64* scatter_indices_batching_dims=6
    Aliasing: int64* output_shape_index=1, int64 operand_index=2, int64* operand_shape_index=3
    Sharding: enum type=1, int64* dimensions=3, bool replicate_on_last_tile_dim=6, enum* last_tile_dims=8, \
            int64* devices=4, Sharding* tuple_shardings=5, int64* iota_reshape_dims=9, int32* iota_transpose_perm=10
    Attributes: Attribute* map=1
    Attribute: bytes key=1, bytes value=2
    Shape: enum element_type=2, int64* dimensions=3, Shape* tuple_shapes=4, Layout layout=5
    Layout: int64* minor_to_major=1, Tile* tiles=6, int64 element_size_in_bits=7, int64 memory_space=8, \
            int64 tail_padding_alignment_in_elements=16
    Tile: int64* dimensions=1
    OpMetadata: bytes op_type=1, bytes op_name=2, bytes source_file=3, int32 source_line=4, int32 stack_frame_id=15
    Literal: Shape shape=1, bool* preds=2, int32* s32s=4, int64* s64s=5, uint64* u32s=6, uint64* u64s=7, \
            float* f32s=8, double* f64s=9, bytes u8s=3, bytes s8s=15, bytes f16s=11, bytes bf16s=13, bytes u16s=16, \
            bytes s16s=17
    Window: WindowDim* dimensions=1
    WindowDim: int64 size=1, int64 stride=2, int64 padding_low=3, int64 padding_high=4, int64 window_dilation=5, \
            int64 base_dilation=6, bool window_reversal=7
    ConvDims: int64 input_batch=7, int64 input_feature=8, int64* input_spatial=11, int64 kernel_input=3, \
            int64 kernel_output=4, int64* kernel_spatial=6, int64 output_batch=9, int64 output_feature=10, \
            int64* output_spatial=12
    DotDims: int64* lhs_contracting=1, int64* rhs_contracting=2, int64* lhs_batch=3, int64* rhs_batch=4
    RaggedDotDims: DotDims dot_dimension_numbers=1, int64* lhs_ragged=2
    ReplicaGroup: int64* replica_ids=1
    SourceTarget: int64 source=1, int64 target=2
    DeviceList: ReplicaGroup* replica_groups=1, Iota iota_replica_group_list=2
    Iota: int64 num_replica_groups=1, int64 num_devices_per_group=2, int64* reshape_dims=3, int32* transpose_perm=4
    MeshAxes: Mesh mesh=1, AxisRef* axes=2
    Mesh: MeshAxis* axes=1, int64* device_ids=2, MeshIota iota_transform=3
    MeshAxis: bytes name=1, int64 size=2
    MeshIota: int64* reshape_dims=1, int32* transpose_perm=2
    AxisRef: int64 mesh_axis_index=1, SubAxis? sub_axis_info=2
    SubAxis: int64 pre_size=1, int64 size=2
    StackFrameIndex: bytes* file_names=1, bytes* function_names=2, FileLocation* file_locations=3, \
            StackFrame* stack_frames=4
    FileLocation: int32 file_name_id=1, int32 function_name_id=2, int32 line=3
    StackFrame: int32 file_location_id=1, int32 parent_frame_id=2
    DeviceAssignment: int32 replica_count=1, int32 computation_count=2, ComputationDevice* computation_devices=3
    ComputationDevice: int64* replica_device_ids=1
    BufferAssignment: LogicalBuffer* logical_buffers=1, Allocation* buffer_allocations=3, \
            HeapTrace* heap_simulator_traces=4
    LogicalBuffer: int64 id=1, int64 size=2, Location defined_at=3, int64 color=4
    Location: bytes instruction_name=2, int64* shape_index=3, int64 instruction_id=4
    Allocation: int64 index=1, int64 size=2, bool is_thread_local=3, bool is_entry_computation_parameter=5, \
            bool maybe_live_out=7, int64 color=8, Assigned* assigned=9, bool is_constant=12
    Assigned: int64 logical_buffer_id=1, int64 offset=2, int64 size=3
    HeapTrace: HeapEvent* events=1, int64 buffer_allocation_index=3
    HeapEvent: enum kind=1, int64 buffer_id=2, bytes instruction_name=4, int64 share_with_canonical_id=5
    """.replace("\\\n", " "),
)

# PrimitiveType numbers of xla_data.proto: name as HLO text prints it, bytes of one element.
_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 1),
    2: ("s8", 1),
    3: ("s16", 2),
    4: ("s32", 4),
    5: ("s64", 8),
    6: ("u8", 1),
    7: ("u16", 2),
    8: ("u32", 4),
    9: ("u64", 8),
    10: ("f16", 2),
    11: ("f32", 4),
    12: ("f64", 8),
    14: ("opaque", 0),
    15: ("c64", 8),
    16: ("bf16", 2),
    17: ("token", 0),
    18: ("c128", 16),
    19: ("f8e5m2", 1),
    20: ("f8e4m3fn", 1),
    21: ("s4", 1),
    22: ("u4", 1),
    23: ("f8e4m3b11fnuz", 1),
    24: ("f8e5m2fnuz", 1),
    25: ("f8e4m3fnuz", 1),
    26: ("s2", 1),
    27: ("u2", 1),
    28: ("f8e4m3", 1),
    29: ("f8e3m4", 1),
    30: ("s1", 1),
    31: ("u1", 1),
    32: ("f4e2m1fn", 1),
    33: ("f8e8m0fnu", 1),
    35: ("f6e3m2fn", 1),
    36: ("f6e2m3fn", 1),
}
TUPLE = 13
MAX_GROUP_DEVICES = 1 << 20  # more devices than that in a replica group is damage, not a machine
_MOST_AXES = 32  # of a mesh, and of what numbers of devices are laid out in: numpy knows few more
_MAX_WINDOW = 1 << 16

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Collective:
    """A collective operation: its kind, "start" or "done" where it is split, operand bytes, element type, groups.

    `kind`: None where a trace without the program does not tell. `groups`: in the program's own numbers; `devices`: of
    device identifiers, None where the program does not tell.
    """

    kind: str | None
    part: str
    bytes: float | None
    dtype: str | None
    groups: Groups | None
    devices: Groups | None = None


def type_bytes(name: str) -> int:
    """Bytes of one element of the type that HLO text calls `name`; 0 for an unknown one."""
    return next((size for other, size in _TYPES.values() if other == name), 0)


def elements(shape: Any) -> int:
    """Elements of an array shape; of all leaves of a tuple shape."""
    if shape.element_type == TUPLE:
        return sum(elements(s) for s in shape.tuple_shapes)
    return prod(shape.dimensions)


def dtype(shape: Any) -> str | None:
    """Element type as HLO text prints it; of the first leaf of a tuple."""
    if shape.element_type == TUPLE:
        return dtype(shape.tuple_shapes[0]) if shape.tuple_shapes else None
    return _TYPES.get(shape.element_type, (None, 0))[0]


def size_bytes(shape: Any) -> int:
    """Logical bytes of a shape (no layout padding), all leaves of a tuple included."""
    if shape.element_type == TUPLE:
        return sum(size_bytes(s) for s in shape.tuple_shapes)
    return -(-prod(shape.dimensions) * element_bits(shape) // 8)


def element_bits(shape: Any) -> int:
    """Bits of one element of an array shape: as its layout says, else those of its type; 0 for an unknown type."""
    return max(shape.layout.element_size_in_bits, 0) or 8 * _TYPES.get(shape.element_type, ("", 0))[1]


def shape_text(shape: Any) -> str:
    """A shape with its layout as HLO text prints it, such as `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`."""
    if shape.element_type == TUPLE:
        return "(" + ", ".join(shape_text(s) for s in shape.tuple_shapes) + ")"
    text = f"{_TYPES.get(shape.element_type, ('?', 0))[0]}[{','.join(map(str, shape.dimensions))}]"
    layout = shape.layout
    extra = "".join("(" + ",".join(map(str, t.dimensions)) + ")" for t in layout.tiles)
    extra = "T" + extra if extra else ""
    if layout.element_size_in_bits:
        extra += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        extra += f"S({layout.memory_space})"
    if not layout.minor_to_major and not extra:
        return text
    return f"{text}{{{','.join(map(str, layout.minor_to_major))}{':' + extra if extra else ''}}}"


def valid_positions(window: Any, size: int, out: int) -> int | None:
    """Pairs (output position, window position) of one spatial dimension that meet an element of the input.

    Padding and the holes of dilation are not counted, as XLA's cost analysis does not. None: too large to count.
    """
    if window.size > _MAX_WINDOW:
        return None
    stride, dilation, base = max(window.stride, 1), max(window.window_dilation, 1), max(window.base_dilation, 1)
    total = 0
    step = gcd(stride, base)
    for k in range(max(window.size, 0)):
        shift = k * dilation - window.padding_low  # output o meets input (o * stride + shift) / base
        if shift % step:
            continue
        period = base // step
        first = (-shift // step) * pow(stride // step, -1, period) % period if period > 1 else 0
        low = max(0, -(shift // stride))  # the first o with o * stride + shift >= 0
        high = min(out - 1, ((size - 1) * base - shift) // stride)
        low += (first - low) % period
        if high >= low:
            total += (high - low) // period + 1
    return total


def iota_devices(shape: list[int], reshape: list[int], perm: list[int]) -> np.ndarray | None:
    """Device numbers 0.. reshaped, transposed and reshaped to `shape`: the printed form `[2,4]<=[4,2]T(1,0)`."""
    if max(len(shape), len(reshape)) > _MOST_AXES:
        return None
    count = prod(shape)
    if not (shape and reshape and min(*shape, *reshape) > 0 and prod(reshape) == count <= MAX_GROUP_DEVICES):
        return None
    table = np.arange(count).reshape(reshape)
    if perm:
        if sorted(perm) != list(range(len(reshape))):
            return None
        table = table.transpose(perm)
    return table.reshape(shape)


def mesh_groups(message: Any) -> Groups | None:
    """Groups along some axes of a mesh: devices that differ only in those axes form a group."""
    sizes = [a.size for a in message.mesh.axes]
    if max(len(sizes), len(message.axes)) > _MOST_AXES:
        return None
    count = prod(sizes)
    if not sizes or not 0 < count <= MAX_GROUP_DEVICES or min(sizes) < 1:
        return None
    devices = np.array(message.mesh.device_ids) if message.mesh.device_ids else None
    if devices is None:
        iota = message.mesh.iota_transform
        devices = iota_devices([count], list(iota.reshape_dims) or [count], list(iota.transpose_perm))
    if devices is None or len(devices) != count:
        return None
    # An axis may take part only in a piece of it: split that axis into (before, piece, after).
    pieces: list[tuple[int, int, int]] = []  # (axis, pre_size, size) of each axis of the split mesh
    for axis, size in enumerate(sizes):
        cuts = {1, size}
        for ref in message.axes:
            if ref.mesh_axis_index == axis and ref.HasField("sub_axis_info"):
                cuts |= {ref.sub_axis_info.pre_size, ref.sub_axis_info.pre_size * ref.sub_axis_info.size}
        marks = sorted(cuts)
        if marks[0] < 1 or any(b % a for a, b in zip(marks, marks[1:], strict=False)) or marks[-1] != size:
            return None
        pieces += [(axis, a, b // a) for a, b in zip(marks, marks[1:], strict=False)] or [(axis, 1, 1)]
    chosen = []
    for ref in message.axes:
        low, size = (ref.sub_axis_info.pre_size, ref.sub_axis_info.size) if ref.HasField("sub_axis_info") else (1, None)
        for i, (axis, pre, piece) in enumerate(pieces):
            whole = size is None or (low <= pre and pre * piece <= low * size)
            if axis == ref.mesh_axis_index and whole and i not in chosen:
                chosen.append(i)
    if len(pieces) > _MOST_AXES:
        return None
    rest = [i for i in range(len(pieces)) if i not in chosen]
    width = prod(pieces[i][2] for i in chosen)
    table = devices.reshape([p[2] for p in pieces]).transpose(rest + chosen).reshape(-1, width)
    return tuple(map(tuple, table.tolist()))


def replica_groups(instruction: Any) -> Groups | None:
    """Groups of a collective, whichever of the forms the proto uses; None where it names none (then: everyone)."""
    for iota in (instruction.iota_collective_device_list, instruction.collective_device_list.iota_replica_group_list):
        if iota.num_replica_groups:
            shape = [iota.num_replica_groups, iota.num_devices_per_group]
            table = iota_devices(shape, list(iota.reshape_dims), list(iota.transpose_perm))
            return None if table is None else tuple(map(tuple, table.tolist()))
    if instruction.mesh_axes_replica_group_list.mesh.axes:
        return mesh_groups(instruction.mesh_axes_replica_group_list)
    listed = instruction.collective_device_list.replica_groups or instruction.replica_groups
    return tuple(tuple(g.replica_ids) for g in listed if g.replica_ids) or None


def linked(pairs: Iterable[tuple[int, int]]) -> Groups | None:
    """Devices that a permutation connects, as groups: the links alone would not tell who waits for whom."""
    leader: dict[int, int] = {}

    def find(x: int) -> int:
        while leader.setdefault(x, x) != x:
            leader[x] = leader[leader[x]]
            x = leader[x]
        return x

    for source, target in pairs:
        leader[find(source)] = find(target)
    groups: dict[int, list[int]] = {}
    for device in sorted(leader):
        groups.setdefault(find(device), []).append(device)
    return tuple(tuple(g) for g in groups.values()) or None
