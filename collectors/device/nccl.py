"""Calls of NCCL and RCCL that a profile shows: which collective, of how many bytes, in which communicator.

PyTorch makes each call within a group: its kernel is launched by ncclGroupEnd, which then stands for the one call of
its group. What a group of several calls moved is not told apart.

NCCL attaches a payload to each of its NVTX ranges, of which `NVTX_PAYLOAD_SCHEMA_ENTRIES` in an export of Nsight tells
the fields. Where the export holds payloads (`--include-blobs=true`), `NVTX_EVENTS.binaryData` is a head of 32 bytes,
(domain, 0, schema, 0) of 32 bits and (bytes of the payload, bytes of all) of 64, and the payload itself; little-endian.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from collectors.device.kineto import columns
from collectors.device.kineto.columns import Batch
from collectors.device.kineto.messages import BYTES
from collectors.device.made import Maker

CALL = re.compile(r"^p?nccl[A-Z]\w{0,60}$")
_HEAD = struct.Struct("<IIIIQQ")
_TYPES = {5: "<i", 18: "<Q", 22: "<Q"}  # of NVTX's numbers for types those of NCCL's fields: int, uint64, size_t
_SIZE, _GROUP, _RANKS = "Message size [bytes]", "NCCL communicator ID", "No. of ranks"
_START, _END = "ncclGroupStart", "ncclGroupEnd"
_ASIDE = re.compile(r"^p?nccl(Comm|Group|Get|RedOp|Mem|Debug|Last)")  # calls that move nothing
_OF_EACH = re.compile(r"ReduceScatter|AllToAll", re.IGNORECASE)  # of which the size is one rank's part of the operand
_MOST = 1 << 19  # calls that are held, some 100 MB; further ones are events like any other


@dataclass(slots=True)
class Call:
    """A call. `size`: bytes of its operand; `ranks`: of its communicator. Each None where it is not told."""

    start: int
    end: int
    thread: int
    name: str
    group: int | None = None
    size: int | None = None
    ranks: int | None = None
    carries: str | None = None  # the call that this one launched the kernel of
    process: int = 0


@dataclass
class Calls:
    """All calls of an export, until it was read."""

    fields: Mapping[tuple[int, int], tuple[tuple[str, str, int], ...]] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    found: list[Call] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no more are held."""
        return len(self.found) >= _MOST

    def add(self, start: int, end: int, thread: int, name: str, payload: bytes | None = None, process: int = 0) -> None:
        """Notes a call."""
        told = self._told(payload)
        call = Call(start, end, thread, name, told.get(_GROUP), told.get(_SIZE), process=process)
        if call.group is not None and (ranks := told.get(_RANKS, 0)) > 0:
            self.ranks[call.group] = ranks
        self.found.append(call)

    def _told(self, payload: bytes | None) -> dict[str, int]:
        if not isinstance(payload, bytes) or len(payload) < _HEAD.size:
            return {}
        domain, _, schema, _, size, _ = _HEAD.unpack_from(payload)
        content = payload[_HEAD.size :]
        known = self.fields.get((domain, schema), ())
        if size > len(content):
            return {}
        return {
            name: struct.unpack_from(kind, content, at)[0]
            for name, kind, at in known
            if at + struct.calcsize(kind) <= size
        }

    def told(self) -> Iterator[Call]:
        """The calls, thread by thread in order of time, each with what is known of it."""
        found, self.found = self.found, []
        whose, depth, inside = (0, 0), 0, []
        for call in sorted(found, key=lambda c: (c.process, c.thread, c.start, -c.end)):
            if whose != (call.process, call.thread):
                whose, depth, inside = (call.process, call.thread), 0, []
            if call.name == _START:
                inside = inside if depth else []
                depth += 1
            elif call.name == _END:
                depth = max(depth - 1, 0)
                if not depth and len(inside) == 1:
                    one = inside[0]
                    call = replace(call, group=one.group, size=one.size, carries=one.name)
                inside = inside if depth else []
            elif depth and not _ASIDE.match(call.name):
                inside.append(call)
            yield self._sized(call)

    def _sized(self, call: Call) -> Call:
        """With the ranks of its communicator. NCCL tells of a reduce-scatter what a rank gets, of an all-to-all what it
        sends to each: its operand is as much for each rank."""
        ranks = None if call.group is None else self.ranks.get(call.group)
        size = call.size
        if size is not None and _OF_EACH.search(call.carries or call.name):
            size = None if ranks is None else size * ranks
        return replace(call, ranks=ranks, size=size)


def fields_of(rows: Iterable[tuple]) -> Mapping[tuple[int, int], tuple[tuple[str, str, int], ...]]:
    """The fields of each schema, by (domain, schema), from rows of (domain, schema, type, name, offset).

    Each process numbers domains and schemas for itself, and rows do not tell theirs: what two define differently is
    not read.
    """
    fields: dict[tuple[int, int], dict[str, tuple[str, str, int]]] = {}
    differ = set()
    for domain, schema, kind, name, at in rows:
        at = 0 if at is None else at
        whole = all(isinstance(v, int) for v in (domain, schema, kind, at))
        if whole and kind in _TYPES and name in (_SIZE, _GROUP, _RANKS) and 0 <= at < 1 << 16:
            told = name, _TYPES[kind], at
            if fields.setdefault((domain, schema), {}).setdefault(name, told) != told:
                differ.add((domain, schema))
    return {key: tuple(told.values()) for key, told in fields.items() if key not in differ}


def annotations(maker: Maker, calls: list[Call]) -> Batch:
    """The calls as annotations around what they launched. Whose they are is for the caller to fill in."""
    start, end = (np.array([getattr(c, n) for c in calls], np.int64) for n in ("start", "end"))
    made = maker.timed("user_annotation", start, end)
    made.name[:] = [maker.text(c.name) for c in calls]
    sized = maker.text(BYTES)
    for i, call in enumerate(calls):
        if call.size is not None:
            made.args[i, columns.IN_NELEMS], made.args[i, columns.DTYPE] = min(call.size, 1 << 62), sized
        if call.ranks is not None:
            made.args[i, columns.GROUP_SIZE] = call.ranks
        if call.group is not None:
            made.args[i, columns.PG_NAME] = maker.text(f"{call.group:#x}")
        if call.carries is not None:
            made.args[i, columns.COLLECTIVE] = maker.text(call.carries)
    return made
