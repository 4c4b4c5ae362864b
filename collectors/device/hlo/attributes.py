"""What HLO text says of an instruction beside its operands: literals, and the attributes behind the brackets.

XLA's own printer is C++ that trusts its input, and not every installation has it. This one writes what `HLO` reads, in
XLA's words; metadata and the compiler's own configuration are columns of their own.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from collectors.device.hlo.products import prod
from collectors.device.hlo.shapes import TUPLE, dtype

SHOWN_ELEMENTS = 10  # of a constant; XLA leaves out larger ones as well
Names = Mapping[int, str]
_CALLS = {"fusion": "calls", "call": "to_apply", "async-start": "calls"}
_SHARDINGS = {0: "replicated", 4: "manual", 5: "unknown"}
_ARRAYS = {
    "pred": "preds",
    "s32": "s32s",
    "s64": "s64s",
    "u32": "u32s",
    "u64": "u64s",
    "f32": "f32s",
    "f64": "f64s",
}
_PACKED = {
    "u8": ("u8s", np.uint8),
    "s8": ("s8s", np.int8),
    "f16": ("f16s", np.float16),
    "u16": ("u16s", np.uint16),
    "s16": ("s16s", np.int16),
}


def given_text(instruction: Any) -> str:
    """What stands in the brackets of an instruction that is no operand: a parameter's number, a literal."""
    if instruction.opcode == b"parameter":
        return str(instruction.parameter_number)
    if instruction.opcode == b"constant":
        return _literal(instruction)
    return ""


def _literal(instruction: Any) -> str:
    shape, found = instruction.shape, instruction.literal
    values = None if shape.element_type == TUPLE else _values(dtype(shape) or "", found)
    size = prod(shape.dimensions)
    if values is None or size > SHOWN_ELEMENTS or len(values) != size:
        return "{...}"
    if not size and prod(n for n in shape.dimensions if n) > SHOWN_ELEMENTS:  # of nothing, but brackets without end
        return "{...}"
    words = [_number(v, dtype(shape) or "") for v in values]
    return words[0] if not shape.dimensions else _nested(words, list(shape.dimensions))


def _values(kind: str, literal: Any) -> Sequence[Any] | None:
    if kind in _ARRAYS:
        return list(getattr(literal, _ARRAYS[kind]))
    if kind in _PACKED:
        name, of = _PACKED[kind]
        raw = getattr(literal, name)
        return np.frombuffer(raw[: len(raw) // np.dtype(of).itemsize * np.dtype(of).itemsize], of).tolist()
    if kind == "bf16":
        raw = literal.bf16s
        return (np.frombuffer(raw[: len(raw) // 2 * 2], "<u2").astype("<u4") << 16).view("<f4").tolist()
    return None


def _number(value: Any, kind: str) -> str:
    """As XLA prints it: with as few digits as its type always keeps, else with as many as it may need."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    few, many = _DIGITS.get(kind, (15, 17))
    short = f"{value:.{few}g}"
    return short if _same(float(short), value, kind) else f"{value:.{many}g}"


_DIGITS = {"f32": (6, 9), "bf16": (2, 4), "f16": (3, 5)}


def _same(a: float, b: float, kind: str) -> bool:
    if kind == "f16":
        return bool(np.float16(a) == np.float16(b))
    if kind == "bf16":
        bits = np.array([a, b], "<f4").view("<u4").astype(np.uint64)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return bool(rounded[0] == rounded[1])
    return bool(np.float32(a) == np.float32(b)) if kind == "f32" else a == b


def _nested(words: list[str], sizes: list[int]) -> str:
    if len(sizes) > 1:
        step = prod(sizes[1:])
        words = [_nested(words[i * step : (i + 1) * step], sizes[1:]) for i in range(sizes[0])]
    return "{" + ", ".join(words) + "}"


def attributes_text(instruction: Any, computations: Names, instructions: Names, truths: Container[int] = ()) -> str:
    """Attributes as HLO text lists them, each after `, `; `computations` and `instructions`: names by number; `truths`:
    instructions that give true or false."""
    talks = _communication(instruction)
    found = [*talks, *_own(instruction), *_called(instruction, computations, truths)]
    if instruction.control_predecessor_ids:
        names = (f"%{instructions.get(i, '?')}" for i in instruction.control_predecessor_ids)
        found.append(f"control-predecessors={{{', '.join(names)}}}")
    if instruction.HasField("sharding"):
        found.append(f"sharding={_sharding(instruction.sharding)}")
    if instruction.frontend_attributes.map:
        words = (f'{_said(a.key)}="{_said(a.value)}"' for a in instruction.frontend_attributes.map)
        found.append(f"frontend_attributes={{{','.join(words)}}}")
    return ", ".join(found)


def _said(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _list(values: Iterable[Any]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _own(i: Any) -> Iterator[str]:
    """What the operation itself is told."""
    opcode = i.opcode.decode("utf-8", "replace")
    if opcode == "get-tuple-element":
        yield f"index={i.tuple_index}"
    elif opcode == "iota":
        yield f"iota_dimension={i.dimensions[0] if i.dimensions else 0}"
    elif i.dimensions or opcode in ("broadcast", "reduce", "transpose", "concatenate", "reverse", "map"):
        yield f"dimensions={_list(i.dimensions)}"
    if i.use_global_device_ids:
        yield "use_global_device_ids=true"
    for told in _OWN:
        if (text := told(i)) is not None:
            yield text


def _called(i: Any, names: Names, truths: Container[int]) -> Iterator[str]:
    ids = [f"%{names.get(c, '?')}" for c in i.called_computation_ids]
    opcode = i.opcode.decode("utf-8", "replace")
    if opcode == "fusion":
        yield f"kind={_said(i.fusion_kind)}"
    if (aliases := _aliasing(i)) is not None:
        yield aliases
    if opcode == "while" and len(ids) == 2:
        yield f"condition={ids[1]}"
        yield f"body={ids[0]}"
    elif opcode == "conditional" and len(ids) == 2 and i.operand_ids and i.operand_ids[0] in truths:
        yield f"true_computation={ids[0]}"
        yield f"false_computation={ids[1]}"
    elif opcode == "conditional" and ids:
        yield f"branch_computations={{{', '.join(ids)}}}"
    elif opcode == "custom-call" and ids:
        yield f"called_computations={{{', '.join(ids)}}}"
    elif opcode == "select-and-scatter" and len(ids) == 2:
        yield f"select={ids[0]}"
        yield f"scatter={ids[1]}"
    elif ids:
        yield f"{_CALLS.get(opcode, 'to_apply')}={ids[0]}"


def _communication(i: Any) -> Iterator[str]:
    if i.channel_id > 0:
        yield f"channel_id={i.channel_id}"
    if groups := _groups(i):
        yield f"replica_groups={groups}"
    if i.source_target_pairs:
        yield f"source_target_pairs={{{','.join(f'{{{p.source},{p.target}}}' for p in i.source_target_pairs)}}}"


def _groups(i: Any) -> str:
    for iota in (i.iota_collective_device_list, i.collective_device_list.iota_replica_group_list):
        if iota.num_replica_groups:
            return _iota([iota.num_replica_groups, iota.num_devices_per_group], iota.reshape_dims, iota.transpose_perm)
    if mesh := i.mesh_axes_replica_group_list.mesh.axes:
        axes = ",".join(f"'{_said(a.name)}'={a.size}" for a in mesh)
        used = [a.mesh_axis_index for a in i.mesh_axes_replica_group_list.axes]
        words = ",".join(f"'{_said(mesh[n].name)}'" if 0 <= n < len(mesh) else "?" for n in used)
        return f"mesh[{axes}] {{{words}}}"
    listed = i.collective_device_list.replica_groups or i.replica_groups
    return f"{{{','.join(_list(g.replica_ids) for g in listed)}}}" if listed else ""


def _iota(dims: Iterable[int], reshape: Iterable[int], perm: Iterable[int]) -> str:
    turned = list(perm)
    end = f"T({','.join(map(str, turned))})" if turned and turned != sorted(turned) else ""
    return f"[{','.join(map(str, dims))}]<=[{','.join(map(str, reshape))}]{end}"


def _sharding(s: Any) -> str:
    if s.type == 2:
        return "{" + ", ".join(_sharding(t) for t in s.tuple_shardings) + "}"
    if s.type == 1:
        return f"{{maximal device={s.devices[0] if s.devices else '?'}}}"
    if s.type != 3:
        return f"{{{_SHARDINGS.get(s.type, 'unknown')}}}"
    cut = f"[{','.join(map(str, s.dimensions))}]"
    where = _iota(s.dimensions, s.iota_reshape_dims, s.iota_transpose_perm) if s.iota_reshape_dims else ""
    where = where or cut + ",".join(map(str, s.devices))
    last = " last_tile_dim_replicate" if s.replicate_on_last_tile_dim else ""
    if s.last_tile_dims:
        last = f" last_tile_dims={{{', '.join(_SHARDINGS.get(t, 'unknown') for t in s.last_tile_dims)}}}"
    return f"{{devices={where}{last}}}"


def _window(i: Any) -> str | None:
    dims = i.window.dimensions
    if not dims:
        return None
    parts = [f"size={'x'.join(str(d.size) for d in dims)}"]
    if any(d.stride != 1 for d in dims):
        parts.append(f"stride={'x'.join(str(d.stride) for d in dims)}")
    if any(d.padding_low or d.padding_high for d in dims):
        parts.append(f"pad={'x'.join(f'{d.padding_low}_{d.padding_high}' for d in dims)}")
    if any(d.base_dilation != 1 for d in dims):
        parts.append(f"lhs_dilate={'x'.join(str(d.base_dilation) for d in dims)}")
    if any(d.window_dilation != 1 for d in dims):
        parts.append(f"rhs_dilate={'x'.join(str(d.window_dilation) for d in dims)}")
    if any(d.window_reversal for d in dims):
        parts.append(f"rhs_reversal={'x'.join(str(int(d.window_reversal)) for d in dims)}")
    return f"window={{{' '.join(parts)}}}"


def _dim_labels(i: Any) -> str | None:
    if i.opcode != b"convolution" and not i.convolution_dimension_numbers.ByteSize():
        return None
    d = i.convolution_dimension_numbers
    sides = (
        ({d.input_batch: "b", d.input_feature: "f"}, d.input_spatial),
        ({d.kernel_input: "i", d.kernel_output: "o"}, d.kernel_spatial),
        ({d.output_batch: "b", d.output_feature: "f"}, d.output_spatial),
    )
    words = []
    for letters, spatial in sides:
        placed = {**letters, **{at: str(n) for n, at in enumerate(spatial)}}
        words.append("".join(placed[at] for at in sorted(placed)))
    return f"dim_labels={words[0]}_{words[1]}->{words[2]}"


def _dot(i: Any) -> str | None:
    if i.opcode not in (b"dot", b"ragged-dot", b"scaled-dot"):
        return None
    d = i.ragged_dot_dimension_numbers.dot_dimension_numbers if i.opcode == b"ragged-dot" else i.dot_dimension_numbers
    parts = [(f"{side}_{kind}_dims", getattr(d, f"{side}_{kind}")) for side in _LR for kind in ("batch", "contracting")]
    return ", ".join(f"{name}={_list(dims)}" for name, dims in parts if dims) or None


_LR = ("lhs", "rhs")


def _slice(i: Any) -> str | None:
    dims = i.slice_dimensions
    if not dims:
        return None
    steps = any(d.stride not in (0, 1) for d in dims)
    return "slice={" + ", ".join(f"[{d.start}:{d.limit}{f':{d.stride}' if steps else ''}]" for d in dims) + "}"


def _padding(i: Any) -> str | None:
    dims = i.padding_config.dimensions
    if not dims:
        return None
    inner = any(d.interior for d in dims)
    return "padding=" + "x".join(f"{d.low}_{d.high}{f'_{d.interior}' if inner else ''}" for d in dims)


def _numbered(field: str, names: tuple[str, ...]) -> Callable[[Any], str | None]:
    """The dimension numbers of a gather or scatter; batching dimensions only where there are some."""

    def told(i: Any) -> str | None:
        if not i.HasField(field):
            return None
        dims = getattr(i, field)
        parts = [f"{n}={_list(getattr(dims, n))}" for n in names if getattr(dims, n) or "batching" not in n]
        return ", ".join([*parts, f"index_vector_dim={dims.index_vector_dim}"])

    return told


def _texts(field: str, name: str) -> Callable[[Any], str | None]:
    return lambda i: f"{name}={_said(getattr(i, field))}" if getattr(i, field) else None


def _kind(opcode: str, name: str, field: str, words: tuple[str, ...]) -> Callable[[Any], str | None]:
    """Which of several things an operation does, without which XLA reads no text of it."""

    def text(i: Any) -> str | None:
        which = getattr(i, field)
        return f"{name}={words[which]}" if i.opcode == opcode.encode() and 0 <= which < len(words) else None

    return text


_TRANSPOSES = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _triangular(i: Any) -> str | None:
    """Which side is solved for and which triangle is read; what is false is left out, as XLA does."""
    if i.opcode != b"triangular-solve":
        return None
    told, kind = i.triangular_solve_options, i.triangular_solve_options.transpose_a
    parts = [f"{name}=true" for name in ("left_side", "lower", "unit_diagonal") if getattr(told, name)]
    if 0 < kind < len(_TRANSPOSES):
        parts.append(f"transpose_a={_TRANSPOSES[kind]}")
    return ", ".join(parts) or None


def _flag(field: str) -> Callable[[Any], str | None]:
    return lambda i: f"{field}=true" if getattr(i, field) else None


def _more_than_one(field: str) -> Callable[[Any], str | None]:
    return lambda i: f"{field}={getattr(i, field)}" if getattr(i, field) > 1 else None


def _many(field: str, name: str) -> Callable[[Any], str | None]:
    return lambda i: f"{name}={_list(getattr(i, field))}" if getattr(i, field) else None


def _target(i: Any) -> str | None:
    return f'custom_call_target="{_said(i.custom_call_target)}"' if i.custom_call_target else None


def _aliasing(i: Any) -> str | None:
    pairs = (
        f"{_list(a.output_shape_index)}: ({a.operand_index}, {_list(a.operand_shape_index)})"
        for a in i.output_operand_aliasing
    )
    return f"output_to_operand_aliasing={{{', '.join(pairs)}}}" if i.output_operand_aliasing else None


_OWN: tuple[Callable[[Any], str | None], ...] = (
    _window,
    _dim_labels,
    _more_than_one("feature_group_count"),
    _more_than_one("batch_group_count"),
    _dot,
    _slice,
    _many("dynamic_slice_sizes", "dynamic_slice_sizes"),
    _padding,
    _numbered(
        "gather_dimension_numbers",
        ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims")
        + ("start_indices_batching_dims",),
    ),
    _many("gather_slice_sizes", "slice_sizes"),
    _numbered(
        "scatter_dimension_numbers",
        ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims")
        + ("scatter_indices_batching_dims",),
    ),
    _texts("comparison_direction", "direction"),
    _kind("fft", "fft_type", "fft_type", ("FFT", "IFFT", "RFFT", "IRFFT")),
    _many("fft_length", "fft_length"),
    _kind("rng", "distribution", "distribution", ("rng_invalid", "rng_uniform", "rng_normal")),
    _kind("rng-bit-generator", "algorithm", "rng_algorithm", ("rng_default", "rng_three_fry", "rng_philox")),
    lambda i: f"delta={i.delta}" if i.opcode == b"rng-get-and-update-state" else None,
    _triangular,
    lambda i: "lower=true" if i.opcode == b"cholesky" and i.cholesky_options.lower else None,
    lambda i: f"k={i.k}, largest={'true' if i.largest else 'false'}" if i.opcode == b"topk" else None,
    _target,
    _flag("custom_call_has_side_effect"),
    _flag("is_stable"),
    _flag("indices_are_sorted"),
    _flag("unique_indices"),
    _flag("is_host_transfer"),
    lambda i: f"exponent_bits={i.exponent_bits}, mantissa_bits={i.mantissa_bits}" if i.exponent_bits else None,
)
