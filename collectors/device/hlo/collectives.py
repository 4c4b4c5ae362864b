"""Collectives of a program: those printed as such, and those that a compiler hides in fusions, calls and transfers.

A TPU compiler overlaps a collective with compute in ways that do not print as `all-gather-start`:

* `async-collective-start` and `-done` are fusions around the collective and a custom call, `AsyncCollectiveStart` or
  `AsyncCollectiveDone`; the fusions between them repeat the same collective, on the same channel, beside their own
  work. All of them together are one collective.
* an `async-start` wraps a collective, or a call of one for the SparseCore to carry out (`call-start`).
* a fusion that keeps only this device's part of an `all-reduce` is a reduce-scatter.
* between slices there are `send` and `recv`, told by attributes which collective they are (`_xla_megascale_...`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collectors.device.hlo.assignment import Assignment, devices_of
from collectors.device.hlo.names import collective_of
from collectors.device.hlo.shapes import Collective, Groups, dtype, linked, replica_groups, size_bytes

_DEPTH = 8  # calls within calls; a valid module has two
_PART = {b"AsyncCollectiveStart": "start", b"AsyncCollectiveDone": "done"}
_TRANSFER = {
    b"ALL_REDUCE": "all-reduce",
    b"ALL_GATHER": "all-gather",
    b"REDUCE_SCATTER": "reduce-scatter",
    b"ALL_TO_ALL": "all-to-all",
    b"ONE_TO_ONE": "permute",
}
_GROUP = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class ProgramCollective:
    """A collective of a module and how often one run of the module executes it (None: not known).

    `groups` are of partition numbers; of device identifiers where `across_slices`. `asynchronous`: it is split into
    a start and a done, so work may run meanwhile.
    """

    op: str
    kind: str
    groups: Groups | None
    across_slices: bool
    bytes: float
    dtype: str | None
    count: int | None
    asynchronous: bool
    source: str | None


class Collectives:
    """Finds what instructions of one module are as collectives. `by_id`: every instruction of the module;
    `assignment`: on which devices it runs."""

    def __init__(self, computations: Mapping[int, Any], by_id: Mapping[int, Any], assignment: Assignment | None = None):
        self._assignment = assignment
        self._computations = computations
        self._by_id = by_id
        self._inside: dict[int, Any] = {}

    def of(self, instruction: Any) -> Collective | None:
        """The collective that an instruction outside fusions is, or starts or ends; None for anything else."""
        opcode = instruction.opcode
        if found := collective_of(opcode.decode("utf-8", "replace")):
            return self._described(instruction, *found)
        if opcode == b"async-done":
            return self._ended(instruction)
        if opcode not in (b"async-start", b"fusion"):
            return None
        inner = self.within(instruction)
        if inner is None:
            return None
        found = collective_of(inner.opcode.decode("utf-8", "replace"))
        assert found is not None, "within() gives collectives only"
        kind = found[0]
        if opcode == b"async-start":
            return self._described(inner, kind, "start")
        body = self._computations[instruction.called_computation_ids[0]]
        targets = {_PART.get(i.custom_call_target, "") for i in body.instructions if i.opcode == b"custom-call"} - {""}
        if not targets and body.name.startswith(b"async_collective_fusion"):
            return None  # the work beside a collective that other fusions start and end
        opcodes = {i.opcode for i in body.instructions}
        if kind == "all-reduce" and b"dynamic-slice" in opcodes and b"convolution" not in opcodes:
            kind = "reduce-scatter"
        return self._described(inner, kind, min(targets, default=""))

    def _ended(self, instruction: Any) -> Collective | None:
        for _ in range(_DEPTH):
            if instruction is None or instruction.opcode == b"async-start" or not instruction.operand_ids:
                break
            instruction = self._by_id.get(instruction.operand_ids[0])
        started = self.of(instruction) if instruction is not None and instruction.opcode == b"async-start" else None
        return Collective(started.kind, "done", 0.0, None, None) if started else None

    def within(self, instruction: Any, depth: int = 0) -> Any:
        """The collective that a fusion, a call or an `async-start` holds, None where there is none."""
        for comp_id in instruction.called_computation_ids if depth < _DEPTH else ():
            if comp_id not in self._inside:
                self._inside[comp_id] = None  # holds for a cycle
                self._inside[comp_id] = self._first(comp_id, depth)
            if self._inside[comp_id] is not None:
                return self._inside[comp_id]
        return None

    def _first(self, comp_id: int, depth: int) -> Any:
        for inner in self._computations[comp_id].instructions if comp_id in self._computations else ():
            if collective_of(inner.opcode.decode("utf-8", "replace")):
                return inner
            if inner.opcode in (b"call", b"fusion") and (found := self.within(inner, depth + 1)) is not None:
                return found
        return None

    def _described(self, instruction: Any, kind: str, part: str) -> Collective:
        if part == "done":
            return Collective(kind, part, 0.0, None, None)
        shapes = [self._by_id[i].shape for i in instruction.operand_ids if i in self._by_id]
        if instruction.opcode == b"ragged-all-to-all":
            shapes = shapes[:1]  # the others are where the result is put, and which rows go where
        groups = replica_groups(instruction)
        if kind == "permute":
            groups = linked((p.source, p.target) for p in instruction.source_target_pairs)
        devices = devices_of(
            groups, kind, instruction.channel_id > 0, instruction.use_global_device_ids, self._assignment
        )
        return Collective(
            kind, part, float(sum(map(size_bytes, shapes))), dtype(shapes[0]) if shapes else None, groups, devices
        )

    def with_host(self, instruction: Any) -> bool:
        """Whether a `send` or `recv`, or the end of one, is between a device and its host, not between slices: that
        leaves by the host too, and is marked the same."""
        ends = [instruction]
        if instruction.opcode.endswith(b"-done"):
            ends += [self._by_id[i] for i in instruction.operand_ids[:1] if i in self._by_id]
        said = (text for end in ends for a in end.frontend_attributes.map for text in (a.key, a.value))
        return instruction.is_host_transfer and not any(b"megascale" in text for text in said)

    def transfer(self, instruction: Any) -> Collective | None:
        """The collective between slices that a `send` takes part in; None for one to the host or to nobody known."""
        said = {a.key: a.value for a in instruction.frontend_attributes.map}
        kind = _TRANSFER.get(said.get(b"_xla_megascale_transfer_type", b""))
        target = said.get(b"_xla_megascale_target") or said.get(b"_xla_send_recv_source_target_pairs", b"")
        if kind is None and b"_xla_send_recv_source_target_pairs" in said:
            kind = "permute"
        shapes = [self._by_id[i].shape for i in instruction.operand_ids[:1] if i in self._by_id]
        if kind is None or not shapes:
            return None
        listed = [tuple(map(int, _NUMBER.findall(g))) for g in _GROUP.findall(target.decode("utf-8", "replace"))]
        groups: Groups | None = tuple(g for g in listed if g) or None
        if kind == "permute" and groups:
            groups = linked((g[0], g[1]) for g in groups if len(g) == 2)
        devices = groups  # a target between slices names devices
        if b"_xla_megascale_target" not in said:
            devices = devices_of(groups, kind, instruction.channel_id > 0, False, self._assignment)
        return Collective(kind, "start", float(size_bytes(shapes[0])), dtype(shapes[0]), groups, devices)


def program_collective(
    finder: Collectives, instruction: Any, count: int | None, source_of: Callable[[Any], str | None]
) -> ProgramCollective | None:
    """The row that an instruction outside fusions makes; None for what is no collective, or only the end of one."""
    transfer = instruction.opcode == b"send"
    found = finder.transfer(instruction) if transfer else finder.of(instruction)
    if found is None or found.kind is None or found.part == "done":
        return None
    inner = None if transfer else finder.within(instruction)
    keys = {a.key for a in instruction.frontend_attributes.map} if transfer else set()
    return ProgramCollective(
        instruction.name.decode("utf-8", "replace"),
        found.kind,
        found.groups,
        b"_xla_megascale_target" in keys,
        found.bytes or 0.0,
        found.dtype,
        count,
        found.part == "start",
        source_of(instruction) or (source_of(inner) if inner is not None else None),
    )
