"""Execution traces of Chakra (`.et`, MLCommons; protobuf messages, each behind its length), of one rank.

The first message tells of the whole, each other of a node: an operator, a kernel or a collective, with what it awaits.

    ops         nodes of the CPU (`is_cpu_op`) by thread as what a host did; all others by stream as what device 0
                executed, one row a name: how often, and durations summed up (whole us)
    op_events   each node, where nodes tell when they began; most converters leave that out: then nothing is known of
                order, gaps and overlap
    captures    the whole, without a time where none is told

What a node awaits, its tensors and other attributes are left out. A trace whose nodes do not tell CPU from device was
generated for a simulator: nothing of it was measured, and it is refused.
"""

from collections.abc import Iterator
from pathlib import PurePath
from statistics import median_low as median
from typing import Any, BinaryIO, NamedTuple

from collectors.base import Item, Lost, Rows, Source
from collectors.reading.textlog import BATCH_ROWS, Tally, clean
from errors import InputError
from runs.schema import SCHEMAS

NAME = "chakra"
TITLE = "Chakra trace"
HELP = (
    "Execution traces of Chakra (`.et`, protobuf): how often and for how long each operator and kernel of a rank ran. "
    "Those that were generated for a simulator are refused."
)

_SPEC = """
    Attr: bytes name=1, int64? i32=7, int64? i64=9, int64? u32=11, int64? u64=13, bool flag=27
    Node: bytes name=2, enum type=3, uint64 start_us=6, uint64 dur_us=7, Attr* attr=10
"""
_META, _COMM = 1, 7  # types of nodes: what describes, a collective
_LONGEST_MESSAGE = 1 << 26
_LONGEST_US, _LATEST_US = 8 * 10**12, 1 << 52  # 92 days, the year 2112: 64 bits hold some 106 days of ps
_MOST_OPS, _MOST_EVENTS = 1 << 20, 4_000_000
_LONGEST_NAME = 4_000
_EPOCH_US = 1_000_000_000_000_000  # a time before it counts from something else


def sniff(source: Source) -> float:
    """0.9 for two messages behind their lengths that may be the whole and a node: an id, then a name."""
    head = source.head
    length, at = _varint(head, 0)
    if length is None or not (length == 0 or head[at : at + 1] in (b"\n", b"\x12")) or length > len(head):
        return 0.0
    if length and not _whole(head[at : at + length]):
        return 0.0
    length, at = _varint(head, at + length)
    if not length or length < 4 or head[at : at + 1] not in (b"\x08", b"\x12"):
        return 0.0
    at = _varint(head, at + 1)[1] if head[at : at + 1] == b"\x08" else at
    named, begin = _varint(head, at + 1)
    name = head[begin : begin + (named or 0)]
    return 0.9 if head[at : at + 1] == b"\x12" and name and name.isascii() and name.decode().isprintable() else 0.0


def _whole(message: bytes) -> bool:
    """Whether a message has fields 1 and 2 alone, each with a length, to its end."""
    at = 0
    while at < len(message):
        if message[at] not in (0x0A, 0x12):
            return False
        length, at = _varint(message, at + 1)
        at += length if length is not None else len(message) + 1
    return at == len(message)


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    """(the number at a place, the place behind it); None where none ends there."""
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << (7 * shift)
        if byte < 128:
            return value, at + shift + 1
    return None, len(data)


def read(source: Source) -> Iterator[Item]:
    """Operations, and events where they tell their time. Raises InputError where nothing was measured."""
    tally, told = Tally(), _Told(source)
    with source.as_far() as f:
        for offset, message in _messages(f, tally):
            told.take(message, offset, tally)
    told.check()
    yield from told.items(tally)
    yield from tally.lost()


def _messages(f: BinaryIO, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """(place, message) of each but the first, which tells of the whole."""
    at, first = 0, True
    while length := _length(f):
        size, width = length
        message = f.read(size) if size <= _LONGEST_MESSAGE else b""
        if len(message) < size:
            tally.add("the rest of the trace", "it ends in the middle of a node, or is damaged", at)
            return
        if not first:
            yield at, message
        at, first = at + width + size, False


def _length(f: BinaryIO) -> tuple[int, int] | None:
    """(the length of the next message, bytes that tell it); None at the end."""
    value = 0
    for width in range(1, 11):
        byte = f.read(1)
        if not byte:
            return (value or _LONGEST_MESSAGE + 1, width) if width > 1 else None
        value |= (byte[0] & 127) << (7 * (width - 1))
        if byte[0] < 128:
            return value, width
    return _LONGEST_MESSAGE + 1, 10


class _Op(NamedTuple):
    on_cpu: bool
    thread: int | None
    name: str
    collective: bool

    @property
    def lane(self) -> str:
        """The thread, or the stream of the device."""
        number = "that is not told" if self.thread is None else self.thread
        return f"thread {number}" if self.on_cpu else f"stream {number}"


class _Told:
    """What the nodes tell."""

    def __init__(self, source: Source):
        from collectors.reading.protobuf import message_types

        self._source, self._capture = source, source.index
        file = PurePath(clean(source.name)).name.removesuffix(".gz").removesuffix(".et")
        self._host = file or clean(source.name)
        self._node = message_types("chakra", _SPEC)["Node"]
        self._ops: dict[_Op, list[int]] = {}  # number, executions, us
        self._events: list[tuple[int, int, int]] = []  # (operation, start, duration)
        self._told_apart = False
        self._nodes = 0

    def take(self, message: bytes, offset: int, tally: Tally) -> None:
        """A node."""
        from google.protobuf.message import DecodeError

        try:
            node: Any = self._node.FromString(message)
        except DecodeError:
            tally.add("nodes", "they are damaged", offset)
            return
        if node.type == _META:
            return
        self._nodes += 1
        said = {a.name: a for a in node.attr if a.name in (b"is_cpu_op", b"tid")}
        if b"is_cpu_op" not in said:
            tally.add("nodes", "they do not tell whether the CPU or a device ran them", offset)
            return
        self._told_apart = True
        name = clean(node.name[:_LONGEST_NAME].decode("utf-8", "replace")) or "unnamed"
        op = _Op(said[b"is_cpu_op"].flag, _number(said.get(b"tid")), name, node.type == _COMM)
        if node.dur_us > _LONGEST_US or node.start_us > _LATEST_US:
            tally.add("nodes", "their time is none", offset)
            return
        if op not in self._ops and len(self._ops) >= _MOST_OPS:
            tally.add("nodes", f"of more than {_MOST_OPS:,} names", offset)
            return
        known = self._ops.setdefault(op, [len(self._ops), 0, 0])
        known[1] += 1
        known[2] += node.dur_us
        if node.start_us and len(self._events) >= _MOST_EVENTS:
            tally.add("starts of nodes", f"more than {_MOST_EVENTS:,}", offset)
        elif node.start_us:
            self._events.append((known[0], node.start_us, node.dur_us))

    def check(self) -> None:
        """Raises InputError where nothing was measured."""
        if self._nodes and not self._told_apart:
            raise InputError(
                f"{self._nodes:,} nodes that do not tell whether the CPU or a device ran them: it was generated for a "
                "simulator, and nothing of it was measured",
                where=self._source.name,
                expected="a trace of a job, as `chakra_converter PyTorch` makes it",
                advice="Give the trace of the profiler that the nodes came from",
            )
        if not any(us for _, _, us in self._ops.values()):
            raise InputError(
                "no node that took any time in it",
                where=self._source.name,
                expected="a trace of Chakra with durations",
                advice="Give the trace of the profiler beside it: an execution trace alone tells no time",
            )

    def items(self, tally: Tally) -> Iterator[Item]:
        """Rows, and what is not told."""
        yield from self._op_rows()
        base = None
        if self._events:
            middle = median(start for _, start, _ in self._events)
            near = [event for event in self._events if abs(event[1] - middle) < _LONGEST_US / 2]
            if far := len(self._events) - len(near):
                tally.add("starts of nodes", "months before or after the others", count=far)
            base = min(start for _, start, _ in near)
            yield from self._event_rows(near, base)
        columns = {"capture": [self._capture], "host": [self._host], "source": [clean(self._source.name)]}
        columns |= {"start_ns": [None if base is None else base * 1000]}
        columns |= {"devices": [1 if any(not op.on_cpu for op in self._ops) else None]}
        yield Rows("captures", SCHEMAS["captures"].batch(columns))
        if base is None:
            why = "no node tells its start: nothing is known of their order, gaps and overlap"
            yield Lost("when operations ran", why)
        elif base < _EPOCH_US:
            yield Lost("the time of day", "times do not count from 1970")

    def _event_rows(self, events: list[tuple[int, int, int]], base: int) -> Iterator[Rows]:
        device = [None if op.on_cpu else 0 for op in self._ops]
        for at in range(0, len(events), BATCH_ROWS):
            of, start, dur = zip(*events[at : at + BATCH_ROWS], strict=True)
            columns: dict[str, Any] = {"capture": [self._capture] * len(of), "op_id": of}
            columns |= {"event": list(range(at, at + len(of))), "device": [device[n] for n in of]}
            columns |= {"start_ps": [(us - base) * 1_000_000 for us in start], "dur_ps": [us * 1_000_000 for us in dur]}
            yield Rows("op_events", SCHEMAS["op_events"].batch(columns))

    def _op_rows(self) -> Iterator[Rows]:
        ops = list(self._ops.items())
        for at in range(0, len(ops), BATCH_ROWS):
            part = ops[at : at + BATCH_ROWS]
            numbers, counts, took = zip(*(known for _, known in part), strict=True)
            on_cpu = [op.on_cpu for op, _ in part]
            columns: dict[str, Any] = {"capture": [self._capture] * len(part), "host": [self._host] * len(part)}
            columns |= {"op_id": numbers, "device": [None if cpu else 0 for cpu in on_cpu]}
            columns |= {"line": [op.lane for op, _ in part], "role": ["host" if cpu else "compute" for cpu in on_cpu]}
            columns |= {"op": [op.name for op, _ in part], "category": [_category(op) for op, _ in part]}
            columns |= {"count": counts, "total_ns": [us * 1000.0 for us in took]}
            # kernels of a stream run one after another; operators of a thread may lie within one another
            own = [None if cpu else us * 1000.0 for cpu, us in zip(on_cpu, took, strict=True)]
            yield Rows("ops", SCHEMAS["ops"].batch(columns | {"self_ns": own}))


def _category(op: _Op) -> str:
    from collectors.device.kineto.kernels import category, is_collective

    if op.on_cpu:
        return "host"
    return "collective" if op.collective or is_collective(op.name) else category(op.name, "", False)


def _number(said: Any) -> int | None:
    if said is None:
        return None
    for name in ("i32", "i64", "u32", "u64"):
        if said.HasField(name):
            return getattr(said, name)
    return None
