"""What NCCL's Inspector plugin writes: one operation a line, with its size, time and bandwidth (`<host>-pid<N>.log`).

    collective_times   every operation: how long it took on this device, and the bandwidths as told
    collectives        of these the ones with traced kernels, which alone have a start (NCCL_INSPECTOR_DUMP_VERBOSE=1)

A line carries its communicator (`header`) and where it was written (`metadata`); since format v4.3 only the
`dump_stats` line that begins a batch does, and the lines that it counts follow it. Ranks within a communicator are no
global ones, so the group of a collective is as many ranks of which none is known. When a line was written
(`dump_timestamp_us`) is no end of anything. The size that is told is what one rank contributes or, of a
reduce-scatter, keeps:

    algorithm bandwidth = size x (ranks, of all-gather and reduce-scatter) / time
    bus bandwidth = algorithm bandwidth x factor, as nccl-tests defines both

which is reckoned again and held against what is told. Numbers that are missing, and what the plugin says to have
dropped from its ring buffers, are named.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from collectors.base import Item, Source
from collectors.reading.json_stream import objects
from collectors.reading.textlog import Buffer, Tally, clean, fits, whole
from errors import InputError

NAME = "nccl_inspector"
TITLE = "NCCL Inspector log"
HELP = (
    "Lines of NCCL's Inspector plugin (`<host>-pid<N>.log`, JSON): size, time and bandwidth of each collective, send "
    "and receive."
)
KINDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "broadcast",  # from all to one or from one to all: not all wait for the last
    "gather": "permute",
    "scatter": "permute",
    "send": "permute",
    "recv": "permute",
}
GATHERED = ("all-gather", "reduce-scatter")  # their size is one rank's part of what is moved
_FACTORS = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0}
_APART = 0.01  # share by which a bandwidth may differ from ours: times are whole microseconds
_NEAR = 0.02  # share within which a size is told from their bandwidth
_MOST_RANKS = 1 << 20
_LISTED = 4096  # ranks of a group that is written as so many unknown ones
_MOST_COUNTED = 100_000  # communicators and calls whose numbers are followed
_MARK = re.compile(rb'"inspector_output_format_version"')
_BODY = re.compile(rb'"(?:coll_perf|p2p_perf|dump_stats|proxy_trace)"')
_RATES = 1e9  # bytes of a GB, as nccl-tests counts
_TIMES = (
    "host",
    "communicator",
    "communicator_name",
    "communicator_rank",
    "group_size",
    "nodes",
    "kind",
    "call",
    "peer",
    "seq",
    "bytes",
    "dur_ns",
    "timing",
    "algorithm",
    "protocol",
    "algbw_bytes_per_s",
    "busbw_bytes_per_s",
    "start_ns",
    "dumped_ns",
    "source",
)
_COLLECTIVES = ("host", "group", "kind", "bytes", "op", "seq", "start_ns", "end_ns")


def sniff(source: Source) -> float:
    """0.95 where a line names the format's version and holds what it writes."""
    head = source.head
    if b"\0" in head or head.lstrip()[:1] not in (b"{", b"["):
        return 0.0
    return 0.95 if _MARK.search(head) and _BODY.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Operations. Raises InputError where no line tells of one, nor of a batch."""
    log = _Log(source)
    for offset, found in objects(source, log.tally):
        log.line(found, offset)
        yield from log.times.full()
        yield from log.traced.full()
    if not log.told:
        raise InputError(
            "no operation in it",
            where=source.name,
            expected='lines of the Inspector such as {"header": ..., "metadata": ..., "coll_perf": ...}',
        )
    yield from log.times.rest()
    yield from log.traced.rest()
    log.end()
    yield from log.tally.lost()


@dataclass(frozen=True)
class _Context:
    """Whose lines these are: communicator, host, and when they were written."""

    id: str | None
    name: str | None
    rank: int | None
    ranks: int | None
    nodes: int | None
    host: str | None
    dumped_ns: int | None


@dataclass
class _Numbers:
    """The numbers of one call of one communicator: the least, the greatest, how many."""

    least: int
    greatest: int
    count: int = 0


@dataclass
class _Log:
    source: Source
    tally: Tally = field(default_factory=Tally)
    told: bool = False
    context: _Context | None = None
    follow: int = 0  # lines that belong to the batch's context
    numbers: dict[tuple[Any, ...], _Numbers] = field(default_factory=dict)
    dropped: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self.times = Buffer("collective_times", *_TIMES)
        self.traced = Buffer("collectives", *_COLLECTIVES)

    def line(self, found: dict[str, Any], offset: int) -> None:
        own = found.get("header") is not None or found.get("metadata") is not None
        stats = found.get("dump_stats")
        if isinstance(stats, dict):
            self._batch(found, stats)
            return
        context = _context(found) if own else self.context if self.follow else None
        self.follow = max(self.follow - (not own), 0)
        for what in ("coll", "p2p"):
            if isinstance(told := found.get(f"{what}_perf"), dict):
                self._operation(what, told, context, offset)
                return
        if not isinstance(found.get("proxy_trace"), dict):
            self.tally.add("lines", "they tell of no operation", offset)
        else:
            self.tally.add("proxy traces", "what the network's helper threads did is not read", offset)

    def _batch(self, found: dict[str, Any], stats: dict[str, Any]) -> None:
        self.told = True
        self.context = _context(found)
        counts = [_count(stats.get(f"{what}_records")) or 0 for what in ("coll", "p2p", "proxy")]
        self.follow = sum(counts)
        for what in ("coll", "p2p"):
            key = self.context.host, self.context.id, what
            if len(self.dropped) < _MOST_COUNTED or key in self.dropped:
                total = _count(stats.get(f"{what}_dropped_total")) or 0
                self.dropped[key] = max(self.dropped[key], total)

    def _operation(self, what: str, told: dict[str, Any], context: _Context | None, offset: int) -> None:
        self.told = True
        if context is None:
            self.tally.add("operations", "neither they nor a line before them tells the communicator", offset)
            return
        call, micros = _word(told.get(what)), _count(told.get(f"{what}_exec_time_us"))
        kind = KINDS.get((call or "").lower().removeprefix("nccl").removeprefix("func"))
        if call is None or micros is None or not fits(micros * 1000):
            self.tally.add("operations", "without a name or a time", offset)
            return
        if kind is None:
            self.tally.add("operations", "of a call that is not known", offset)
            return
        size, number = _count(told.get(f"{what}_msg_size_bytes")), _count(told.get(f"{what}_sn"))
        rates = tuple(_rate(told.get(f"{what}_{name}bw_gbs")) for name in ("algo", "bus"))
        bytes_ = self._operand(kind, size, micros, context.ranks, rates, offset)
        self._number(context, call, number)
        start = _start(told)
        self.times.add(
            context.host,
            context.id,
            context.name,
            context.rank,
            context.ranks,
            context.nodes,
            kind,
            call,
            _small(told.get("p2p_peer")),
            number,
            bytes_,
            micros * 1000,
            _word(told.get(f"{what}_timing_source")),
            _chosen(told.get(f"{what}_algo")),
            _chosen(told.get(f"{what}_proto")),
            *rates,
            start,
            context.dumped_ns,
            self.source.name,
        )
        if start is not None and fits(start + micros * 1000):
            group = ",".join("?" * context.ranks) if context.ranks and context.ranks <= _LISTED else None
            op = f"nccl:{call} {context.name or context.id or ''}".strip()
            self.traced.add(context.host, group, kind, bytes_, op, number, start, start + micros * 1000)

    def _operand(
        self, kind: str, size: int | None, micros: int, ranks: int | None, rates: tuple[float | None, ...], offset: int
    ) -> float | None:
        """Bytes of the operand on this device, and whether the bandwidths follow from it."""
        if size is None:
            return None
        algorithm, bus = rates
        moved = _moved(kind, size, ranks, micros, algorithm)
        if moved is None:
            return None
        factor = _factor(kind, ranks)
        if micros and algorithm is not None and bus is not None and factor is not None:
            ours = moved / micros * 1e6
            if abs(algorithm - ours) > _APART * ours or abs(bus - ours * factor) > _APART * max(ours * factor, 1.0):
                self.tally.add(
                    "bandwidths as told", "more than 1 % off what size, ranks and time give: ours count", offset
                )
        return moved / ranks if kind == "all-gather" and ranks else moved

    def _number(self, context: _Context, call: str, number: int | None) -> None:
        key = context.host, context.id, call
        if number is None or (key not in self.numbers and len(self.numbers) >= _MOST_COUNTED):
            return
        known = self.numbers.setdefault(key, _Numbers(number, number))
        known.least, known.greatest = min(known.least, number), max(known.greatest, number)
        known.count += 1

    def end(self) -> None:
        """What is missing, told once the file is read."""
        missing = sum(max(n.greatest - n.least + 1 - n.count, 0) for n in self.numbers.values())
        if missing:
            why = (
                "their numbers are missing: overwritten in the ring buffer, too small or timed otherwise to be recorded"
            )
            self.tally.add("operations between the first and the last", why, count=missing)
        for what, words in (("coll", "collectives"), ("p2p", "sends and receives")):
            if count := sum(n for (*_, w), n in self.dropped.items() if w == what):
                size = f"NCCL_INSPECTOR_DUMP_{what.upper()}_RING_SIZE"
                self.tally.add(
                    words, f"overwritten in the ring buffer before they were written; raise {size}", count=count
                )


def _context(found: dict[str, Any]) -> _Context:
    header, metadata = (v if isinstance(v := found.get(name), dict) else {} for name in ("header", "metadata"))
    host, process = _word(metadata.get("hostname")), _count(metadata.get("pid"))
    name = _word(header.get("comm_name"))
    ranks = _count(header.get("n_ranks"))
    return _Context(
        id=_word(header.get("id")),
        name=None if name == "unknown" else name,
        rank=_small(header.get("rank")),
        ranks=ranks if ranks and ranks <= _MOST_RANKS else None,
        nodes=_small(header.get("nnodes")),
        host=None if host is None else host if process is None else f"{host}-pid{process}",
        dumped_ns=_ns(metadata.get("dump_timestamp_us")),
    )


def _moved(kind: str, size: int, ranks: int | None, micros: int, algorithm: float | None) -> float | None:
    """Bytes by which nccl-tests reckons; None where they do not follow from the size that is told."""
    if kind in GATHERED:
        return float(size) * ranks if ranks else None
    if kind != "all-to-all":
        return float(size)
    if algorithm is None or not micros or not size or not ranks:
        return None
    told = algorithm * micros / 1e6
    return next((float(size * n) for n in (1, ranks) if abs(told - size * n) <= _NEAR * size * n), None)


def _factor(kind: str, ranks: int | None) -> float | None:
    """Bus over algorithm bandwidth."""
    if kind in ("broadcast", "permute"):
        return 1.0
    return None if not ranks or kind not in _FACTORS else _FACTORS[kind] * (ranks - 1) / ranks


def _start(told: dict[str, Any]) -> int | None:
    """When the first of its kernels began, by the host's clock; None where they were not traced."""
    trace = told.get("event_trace_ts")
    kernels = trace.get("kernel_events") if isinstance(trace, dict) else None
    starts = [
        ns
        for kernel in (kernels if isinstance(kernels, list) else [])
        if isinstance(kernel, dict) and (ns := _ns(kernel.get("kernel_start_ts")))
    ]
    return min(starts, default=None)


def _word(value: Any) -> str | None:
    return clean(value.strip()[:200]) or None if isinstance(value, str) else None


def _chosen(value: Any) -> str | None:
    """An algorithm or a protocol; `unknown` is none."""
    found = _word(value)
    return None if found is None or found.lower() == "unknown" else found


def _count(value: Any) -> int | None:
    found = whole(value)
    return found if found is not None and found >= 0 else None


def _small(value: Any) -> int | None:
    found = _count(value)
    return found if found is not None and found < 1 << 31 else None


def _ns(micros: Any) -> int | None:
    found = _count(micros)
    return found * 1000 if found and fits(found * 1000) else None


def _rate(value: Any) -> float | None:
    """GB/s as bytes per second."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value) * _RATES
