"""What a dump lists: one operation each."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from collectors.base import Item, Rows
from collectors.device.kineto.shapes import element
from collectors.reading.textlog import Buffer, Tally, clean, fits, whole
from runs.schema import SCHEMAS

COLUMNS = (
    "rank",
    "group",
    "group_name",
    "description",
    "call",
    "kind",
    "peer",
    "seq",
    "p2p_seq",
    "op",
    "bytes",
    "output_bytes",
    "dtype",
    "shape",
    "state",
    "enqueued_ns",
    "started_ns",
    "completed_ns",
    "dur_ns",
    "timeout_ms",
    "retired",
    "frame",
    "order",
    "source",
)
STATES = ("scheduled", "started", "completed")
LONGEST = 200  # characters of a name that are kept
_Number = tuple[str | None, bool, int | None]  # group, whether sends and receives are counted, number
_LIBRARY = re.compile(r"^[a-z]{1,12}:")
_WITHOUT_EVENTS = re.compile(r"^(?:gloo|c10d):")  # whose operations stay `scheduled`, and are let go of at their end
_PEER = re.compile(r"\b(send|recv)\s+(\d{1,7})\s*(?:->|<-)\s*(\d{1,7})", re.ASCII)
_KINDS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^coalesced$", "coalesced"),  # a launch; `allreduce_coalesced` and its like are collectives
        (r"barrier", "barrier"),
        (r"all_?reduce", "all-reduce"),
        (r"reduce_?scatter", "reduce-scatter"),
        (r"all_?gather", "all-gather"),
        (r"all_?to_?all", "all-to-all"),
        (r"broadcast", "broadcast"),
        (r"reduce", "reduce"),
        (r"scatter", "scatter"),
        (r"gather", "gather"),
        (r"send", "send"),
        (r"recv", "recv"),
    )
)
_LIBRARIES = ("/torch/", "/dist-packages/", "/site-packages/", "<frozen", "torch/csrc", "c10")
_FRAMES_LOOKED_AT = 200
_MOST_DIMENSIONS, _LARGEST_DIMENSION, _MOST_TENSORS = 64, 1 << 40, 100_000
_TENSORS_IN_ALL = 4_000_000  # of a dump that are looked at: a list may stand in every operation
_LOOKED_AT = 4096  # characters of a text: one of megabytes may stand in every operation
_SHOWN_TENSORS = 3


def word(value: Any, most: int = LONGEST) -> str | None:
    """Text that is not blank, as UTF-8 can hold it; None for anything else."""
    return clean(value[:_LOOKED_AT].strip()[:most]) or None if isinstance(value, str) else None


def integer(value: Any) -> int | None:
    """A whole number, or one as text; None for anything else."""
    if isinstance(value, str):
        text = value[:_LOOKED_AT].strip()
        value = int(text) if re.fullmatch(r"-?\d{1,19}", text, re.ASCII) else None
    return whole(value)


def count(value: Any) -> int | None:
    """A whole number of zero or more; None for anything else: recorders write -1 where there is none."""
    found = integer(value)
    return found if found is not None and found >= 0 else None


def moment(value: Any) -> int | None:
    """A time in ns; None where there is none, which JSON writes as 0."""
    return count(value) or None


def kind_of(call: str) -> str | None:
    """Kind (`ENQUEUED_KINDS`) of an operation by its name."""
    name = call.lower()
    return next((kind for pattern, kind in _KINDS if pattern.search(name)), None)


class _Operations(Buffer):
    """Each list of ranks once: that of a large job takes megabytes, and most operations have the same."""

    def rest(self) -> Iterator[Rows]:
        if self.rows:
            columns: dict[str, Any] = dict(zip(self.columns, zip(*self.rows, strict=True), strict=True))
            self.rows = []
            numbers: dict[str, int] = {}
            places = [None if group is None else numbers.setdefault(group, len(numbers)) for group in columns["group"]]
            texts = pa.array([*numbers], pa.string())
            columns["group"] = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), texts)
            yield Rows(self.table, SCHEMAS[self.table].batch(columns))


class Entries:
    """Rows of `enqueued`. `known`: which of the rank's own numbers of groups is which, `counts`: entries by group,
    `named`: {group: its description}, as the entries tell."""

    def __init__(self, name: str, rank: int, groups: dict, tally: Tally):
        self.name, self.rank, self.groups, self.tally = name, rank, groups, tally
        self.known: dict[int, str] = {}
        self.counts: dict[str, int] = {}
        self.named: dict[str, str | None] = {}
        self.texts = {group: ",".join(map(str, ranks)) for group, (_, _, ranks) in groups.items() if ranks}
        self.oldest: tuple[int, str, int] | None = None  # unfinished, past its timeout: when that ended, words, place
        self.newest_ns = 0
        self.launches: dict[_Number, str | None] = {}  # what was launched as one: its state
        self.sizes: Counter[_Number] = Counter()  # operations of each number
        self._tensors_left = _TENSORS_IN_ALL

    def items(self, listed: Any) -> Iterator[Item]:
        rows, late = _Operations("enqueued", *COLUMNS), []
        for order, entry in enumerate(listed):
            if not isinstance(entry, dict):
                self.tally.add("operations", "no record of an operation")
                continue
            row = self._row(entry, order)
            rows.add(*row)
            late += self._unfinished(dict(zip(COLUMNS, row, strict=True)))
            yield from rows.full()
        yield from rows.rest()
        yield from self._evidence(late)

    def _row(self, entry: dict[str, Any], order: int) -> tuple[object, ...]:
        group, description = self._group(entry)
        call = _LIBRARY.sub("", word(entry.get("profiling_name")) or "") or None
        peer = _PEER.search(call or "")
        kind = peer[1] if peer else kind_of(call or "")
        p2p = entry.get("is_p2p") is True or kind in ("send", "recv")
        inputs, outputs = (self._tensors(entry, side) for side in ("input", "output"))
        took = entry.get("duration_ms")
        created = moment(entry.get("time_created_ns"))
        self.newest_ns = max(self.newest_ns, created or 0)
        return (
            self.rank,
            self.texts.get(group or ""),
            group,
            description,
            call,
            kind,
            self._global(group, int(peer[3])) if peer else None,
            count(entry.get("collective_seq_id", entry.get("seq_id"))),
            count(entry.get("p2p_seq_id")) if p2p else None,
            count(entry.get("op_id")),
            inputs.bytes,
            outputs.bytes,
            inputs.dtype or outputs.dtype,
            f"{inputs.text} -> {outputs.text}" if inputs.text or outputs.text else None,
            state_of(entry),
            created,
            moment(entry.get("time_discovered_started_ns")),
            moment(entry.get("time_discovered_completed_ns")),
            _ns(took),
            count(entry.get("timeout_ms")),
            entry.get("retired") if isinstance(entry.get("retired"), bool) else None,
            frame_of(entry.get("frames")),
            order,
            self.name,
        )

    def _tensors(self, entry: dict[str, Any], side: str) -> "_Tensors":
        told = (entry.get(f"{side}_{what}") for what in ("sizes", "dtypes"))
        sizes, kinds = (one if isinstance(one, list | tuple) else [] for one in told)
        self._tensors_left -= min(len(sizes), _MOST_TENSORS) + min(len(kinds), _MOST_TENSORS)
        if self._tensors_left < 0:
            self.tally.add("sizes of operations", f"they tell of more than {_TENSORS_IN_ALL:,} tensors in all")
            return _Tensors([], [])
        return _Tensors(sizes[:_MOST_TENSORS], kinds[:_MOST_TENSORS])

    def _group(self, entry: dict[str, Any]) -> tuple[str | None, str | None]:
        """(name, description) of its group, and what it tells of the rank's own numbers."""
        told = entry.get("process_group")
        name, description = told[:2] if isinstance(told, list | tuple) and len(told) >= 2 else (told, None)
        name, number = word(name), count(entry.get("pg_id"))
        if name is None:
            self.tally.add("operations", "which process group they are of is not told")
            return None, None
        if number is not None and self.known.setdefault(number, name) != name:
            self.tally.add("operations", "one number of a group for two groups")
        described = word(description) or self.groups.get(name, (None, None, None))[1]
        self.named.setdefault(name, described)
        self.counts[name] = self.counts.get(name, 0) + 1
        return name, described

    def _global(self, group: str | None, place: int) -> int | None:
        """The global rank at a place of a group."""
        ranks = self.groups.get(group, (None, None, None))[2]
        return ranks[place] if ranks and place < len(ranks) else None

    def _unfinished(self, row: dict[str, Any]) -> list[tuple]:
        """(when its timeout was over, words, place, whether it was let go of, its number)."""
        p2p = row["p2p_seq"] is not None
        number = row["p2p_seq"] if p2p else row["seq"]
        key = row["group_name"], p2p, number
        if row["kind"] == "coalesced":
            self.launches[key] = row["state"]
            return []
        self.sizes[key] += 1
        start, limit = row["enqueued_ns"], row["timeout_ms"]
        known = row["state"] is not None or not row["retired"]
        if row["state"] == "completed" or not known or start is None or limit is None:
            return []
        which = f"{row['call']} of {row['description'] or row['group_name'] or 'an unknown group'}"
        text = f"rank {self.rank}: {which}, number {number}, had not completed after {limit / 1000:g} s"
        end = start + limit * 1_000_000
        return [(end, text, row["order"], row["retired"], key)] if fits(end) else []

    def _evidence(self, late: list[tuple]) -> Iterator[Item]:
        """The first operation that is known to have timed out: its watchdog let go of it, or the dump tells of a time
        after its timeout."""
        over = sorted(one[:3] for one in late if (one[3] or one[0] <= self.newest_ns) and self._was_open(one[4]))
        rows = Buffer("evidence", "ts_ns", "cause", "severity", "text", "order", "source")
        for end, text, order in over[:1]:
            rows.add(end, "collective_timeout", "error", text[:500], order, self.name)
        yield from rows.rest()

    def _was_open(self, key: _Number) -> bool:
        """Whether it is known that an operation without an end had none: those launched as one stay `scheduled`, and
        end with their launch, which may be left out."""
        if key in self.launches:
            return self.launches[key] != "completed"
        return self.sizes[key] == 1


def state_of(entry: dict[str, Any]) -> str | None:
    """The state that is told, else what the times tell. None for an operation that is over, of a library of which the
    recorder cannot see whether it completed or failed."""
    name = entry.get("profiling_name")
    if entry.get("retired") is True and isinstance(name, str) and _WITHOUT_EVENTS.match(name):
        done = entry.get("state") == "completed" or moment(entry.get("time_discovered_completed_ns"))
        return "completed" if done else None
    if (told := entry.get("state")) in STATES:
        return told
    if moment(entry.get("time_discovered_completed_ns")):
        return "completed"
    return "started" if moment(entry.get("time_discovered_started_ns")) else None


def frame_of(frames: Any) -> str | None:
    """The innermost line of the program that lies in no library, else the innermost: file:line, and its function."""
    if not isinstance(frames, list | tuple):
        return None
    told = [frame for frame in frames[:_FRAMES_LOOKED_AT] if isinstance(frame, dict) and word(frame.get("filename"))]
    own = [f for f in told if not any(place in f["filename"][:_LOOKED_AT] for place in _LIBRARIES)]
    for frame in (own or told)[:1]:
        line, function = integer(frame.get("line")), word(frame.get("name"))
        place = f"{frame['filename'][-LONGEST:]}{'' if line is None else f':{line}'}"
        return word(f"{place} {function or ''}", 2 * LONGEST)
    return None


def _ns(milliseconds: Any) -> int | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return round(milliseconds * 1e6) if 0 <= milliseconds < 1e9 else None


class _Tensors:
    """The inputs or outputs of an operation: bytes in all, element type of the first, shapes as text."""

    def __init__(self, sizes: Sequence[Any], kinds: Sequence[Any]):
        shapes = [shape for shape in sizes if _is_shape(shape)]
        first = word(kinds[0], 40) if kinds else None
        known = element(first) if first else None
        self.dtype = known[0] if known else first
        self.bytes = _bytes(shapes, kinds) if len(shapes) == len(sizes) == len(kinds) and sizes else None
        text = ", ".join("x".join(map(str, shape)) or "1" for shape in shapes[:_SHOWN_TENSORS])
        self.text = text + (f", and {len(shapes) - _SHOWN_TENSORS} more" if len(shapes) > _SHOWN_TENSORS else "")


def _is_shape(value: Any) -> bool:
    """Whether it is a list of dimensions that a tensor can have."""
    return (
        isinstance(value, list | tuple)
        and len(value) <= _MOST_DIMENSIONS
        and all(type(d) is int and 0 <= d < _LARGEST_DIMENSION for d in value)
    )


def _bytes(shapes: Sequence[Any], kinds: Sequence[Any]) -> float | None:
    """Bytes of all; None where an element type is not known."""
    total = 0.0
    for shape, kind in zip(shapes, kinds, strict=True):
        known = element(kind) if isinstance(kind, str) else None
        if known is None:
            return None
        total += math.prod(map(float, shape)) * known[1]
    return total if math.isfinite(total) else None
