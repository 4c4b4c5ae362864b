"""Time series of accelerators and their hosts, as Cloud Monitoring hands them out (JSON).

What `projects.timeSeries.list` answers (`{"timeSeries": [...]}`, page after page), the bare list that `gcloud
monitoring time-series list --format=json` prints, and what its client for Python makes of them (names with `_`).

    scalars   a sample a point, at the end of its interval, oldest first. Of a chip: `TPU 0 duty cycle{host="h"}`, in %
              what is a share of the most that is possible (`series`); what was counted within an interval (DELTA) by
              its seconds; of a distribution its mean and its count; all else as it stands, in its own unit
    memory    bytes_in_use (memory_used) of each chip, and at the same times bytes_limit (the latest memory_total)
    facts     chip (label `model`), where all series tell the same. How many there are is none: a filter may show a part
              of a job, or several

A chip is told by `accelerator_id` (or `gpu`, `chip`): its number on its host where that ends in one (`0`, `nvidia0`,
`1234567890-3`), else its place among those of its host. Its host is the node, else the pod, else the TPU's worker, else
the machine. One that its node and its container tell of is one, as its id is: equal times count once.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from collectors.base import Fact, Item, Rows, Source
from collectors.device.cloud_monitoring.series import SHARES, TOTAL, USED, Series, labels_of, series_of
from collectors.reading.exposition import time_ns
from collectors.reading.json_stream import BOM, Ended
from collectors.reading.json_text import JsonText
from collectors.reading.textlog import NS_PER_S, Tally, clean, fits
from errors import InputError
from runs.schema import SCHEMAS

NAME = "cloud_monitoring"
TITLE = "Cloud Monitoring time series"
HELP = (
    "Time series of Cloud Monitoring as JSON (`timeSeries.list`, `gcloud monitoring time-series list --format=json`): "
    "duty cycle, TensorCore, matrix units and memory of TPUs and GPUs on GKE and Compute Engine, network, hosts."
)

MOST_POINTS, MOST_SERIES, MOST_BROKEN = 10_000_000, 50_000, 100
MOST_SHARE = 100.5  # %: what is measured over an interval may reach a little into the next
_KINDS = {1: "GAUGE", 2: "DELTA", 3: "CUMULATIVE"}
_KEYS = ("metric", "resource", "metadata", "metricKind", "metric_kind", "unit")
_LISTED = re.compile(rb'"(?:timeSeries|time_series|metricKind|metric_kind|points)"\s*:')
_TYPED = re.compile(rb'"type"\s*:\s*"[a-z.]{3,60}/\w')
_BETWEEN = re.compile(r"[\s,\[\]}]*")
_NEXT = re.compile(r'(?=\{\s*"(?:metric|timeSeries|time_series)"\s*:)')
_NUMBER = re.compile(r"(?:\D{0,20}|\d{4,24}-)(\d{1,4})", re.ASCII)
_ANYWHERE = re.compile(r"(?:\D{0,20}\d{1,4})?", re.ASCII)  # an id that other hosts have too, or none
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_PIECE_ROWS = 1 << 20


def sniff(source: Source) -> float:
    """0.95 for JSON of series whose metrics are of a service."""
    head = source.head.removeprefix(BOM).lstrip()
    if head[:1] not in (b"{", b"[") or b'"metric"' not in head:
        return 0.0
    return 0.95 if _LISTED.search(head) and _TYPED.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars, memory, facts. Raises InputError where no point of any series can be read."""
    tally, told = Tally(), _Told(source.name)
    with source.as_far() as f:
        _walk(JsonText(f.read), told, tally)
    if not told.points:
        lost = "; ".join(f"{one.what}: {one.reason}" for one in tally.lost())
        raise InputError(
            f"no point of a time series in it{f' ({lost})' if lost else ''}",
            where=source.name,
            expected="what `gcloud monitoring time-series list --format=json` prints, with points",
            advice="List with view FULL, of an interval in which the job ran",
        )
    yield from told.items(tally)
    yield from tally.lost()


@dataclass
class _Points:
    """Points in the order of the file. Of distributions `values` are their means, and `counts` their counts."""

    starts: array = field(default_factory=lambda: array("q"))
    ends: array = field(default_factory=lambda: array("q"))
    values: array = field(default_factory=lambda: array("d"))
    counts: array = field(default_factory=lambda: array("d"))


@dataclass
class _Read:
    """What was read of a series: its labels and the like, and its points."""

    said: dict[str, Any]
    points: _Points


class _Times(dict):
    """Times of day by their text: those of many series are the same."""

    def __missing__(self, said: Any) -> int | None:
        if not isinstance(said, str):
            return None
        found = time_ns(said[:60])
        if len(self) < MOST_SERIES:
            self[said] = found
        return found


def _walk(json: JsonText, told: "_Told", tally: Tally) -> None:
    """Every series of a file: in a list, in answers one after another, or a line each."""
    good = broken = 0
    while (here := json.peek(_BETWEEN)) and broken <= max(MOST_BROKEN, good):
        try:
            if here != "{":
                raise Ended
            _object(json, told, tally)
            good += 1
            continue
        except Ended:
            broken += 1
        tally.add("pieces of JSON", "they are no series, or end in the middle", json.offset)
        json.pass_by(_NEXT)
    if json.peek():
        tally.add("the rest of the file", "it is more broken than whole", json.offset)


def _object(json: JsonText, told: "_Told", tally: Tally) -> None:
    """A page of series, or one series by itself; where it ends in the middle what came before that."""
    page: list[_Read] = []
    whole = _Read({}, _Points())
    try:
        for key in json.members():
            if key in ("timeSeries", "time_series") and json.peek() == "[":
                for _ in json.places():
                    if json.peek() != "{":
                        raise Ended
                    page.append(_Read({}, _Points()))
                    for key_within in json.members():
                        _member(json, key_within, page[-1], told, tally)
                    if not page[-1].points.ends:
                        page.pop()
            else:
                _member(json, key, whole, told, tally)
    finally:  # the unit of a page stands behind its series
        for one in (*page, whole):
            if one.points.ends:
                told.series({"unit": whole.said.get("unit"), **one.said}, one.points, tally)


def _member(json: JsonText, key: str, into: _Read, told: "_Told", tally: Tally) -> None:
    """One member of a series."""
    if key == "points" and json.peek() == "[":
        for _ in json.places():
            told.point(json.value(), into.points, tally, json.told)
    else:
        found = json.value()
        if key in _KEYS:
            into.said[key] = found


class _Told:
    """What the series of a file tell together."""

    def __init__(self, name: str):
        self._source = clean(name)
        self._times = _Times()
        self._held: dict[Series, _Points] = {}
        self._models: set[str] = set()
        self.points = self._taken = 0

    def point(self, found: Any, points: _Points, tally: Tally, offset: int) -> None:
        """A point of the series that is being read."""
        if self._taken >= MOST_POINTS:
            tally.add("points", f"more than {MOST_POINTS:,}; list fewer hours, or fewer series", offset)
            return
        found = _dict(found)
        between = _dict(found.get("interval"))
        end_ns = self._times[_either(between, "endTime", "end_time")]
        begin_ns = self._times[_either(between, "startTime", "start_time")]
        value, count = _value(_dict(found.get("value")))
        if end_ns is None or value is None:
            why = "they tell no time of their end" if end_ns is None else "their value is no finite number"
            tally.add("points", why, offset)
            return
        self._taken += 1
        points.starts.append(end_ns if begin_ns is None else begin_ns)
        points.ends.append(end_ns)
        points.values.append(value)
        points.counts.append(-1.0 if count is None else count)

    def series(self, said: dict[str, Any], points: _Points, tally: Tally) -> None:
        """The points of a series whose labels are known now."""
        found = series_of(said)
        if found is None or (len(self._held) >= MOST_SERIES and found[0] not in self._held):
            why = "their series tells no metric, or is of memory that is not in use"
            why = why if found is None else f"of more than {MOST_SERIES:,} series"
            tally.add("points", why, count=len(points.ends))
            return
        of, scale = found
        starts, ends = np.array(points.starts, np.int64), np.array(points.ends, np.int64)
        values, counts = np.array(points.values) * scale, np.array(points.counts)
        if of.chip and (model := labels_of(said).get("model")) and len(self._models) < 10:
            self._models.add(model)
        if (counts >= 0).all():
            self._hold(of._replace(name=f"{of.name} count", unit=None), ends, counts)
            tally.add("buckets of distributions", "their mean and count are kept", count=len(ends))
            of = of._replace(name=f"{of.name} mean")
        elif _kind(said) == "DELTA":
            timed = ends > starts
            if not timed.all():
                tally.add("points", "they count within an interval of no length", count=int((~timed).sum()))
            ends, values = ends[timed], values[timed] / (ends - starts)[timed] * NS_PER_S
            of = of._replace(unit=f"{of.unit or '1'}/s")
        self._hold(of, ends, values)

    def _hold(self, of: Series, ends: np.ndarray, values: np.ndarray) -> None:
        into = self._held.setdefault(of, _Points())
        into.ends.frombytes(ends.tobytes())
        into.values.frombytes(values.tobytes())
        self.points += len(ends)

    def items(self, tally: Tally) -> Iterator[Item]:
        """Rows and facts."""
        self._at_home()
        numbers = self._numbers(tally)
        scalars: list[tuple[str, str | None, np.ndarray, np.ndarray]] = []
        memory: dict[tuple[str, int | None], dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        for of, points in self._held.items():
            at, values = _in_order(points, tally)
            number = numbers.get((of.host, of.chip))
            if of.name in (USED, TOTAL):
                memory.setdefault((of.host, number), {})[of.name] = at, values
                continue
            if of.name in SHARES and of.unit == "%":
                at, values = _kept(at, values, MOST_SHARE, "a share below 0 or above 100 %", tally)
            scalars.append((of.called(number), of.unit, at, values))
        yield from _scalar_rows(scalars, self._source)
        for (host, number), of_chip in memory.items():
            yield from _memory_rows(host, number, of_chip, tally)
        if len(self._models) == 1:
            yield Fact("chip", self._models.pop())

    def _at_home(self) -> None:
        """A chip of which a node and a pod tell lies on the node; its id is none that other hosts have too."""
        nodes = {of.chip: of.host for of in self._held if of.on_node and not _ANYWHERE.fullmatch(of.chip)}
        for of in [*self._held]:
            if not of.on_node and of.chip in nodes:
                points = self._held.pop(of)
                self._hold(of._replace(host=nodes[of.chip], on_node=True), *map(np.array, (points.ends, points.values)))

    def _numbers(self, tally: Tally) -> dict[tuple[str, str], int]:
        """(host, what it calls a chip) -> its number on the host."""
        chips: dict[str, set[str]] = {}
        for of in self._held:
            if of.chip:
                chips.setdefault(of.host, set()).add(of.chip)
        found: dict[tuple[str, str], int] = {}
        for host, names in chips.items():
            ends = {name: int(m[1]) for name in names if (m := _NUMBER.fullmatch(name))}
            if len({*ends.values()}) < len(names):
                ends = {name: n for n, name in enumerate(sorted(names))}
                tally.add("numbers of chips", "their ids tell none: they are numbered in the order of these")
            found |= {(host, name): number for name, number in ends.items()}
        return found


_NOTHING: dict[str, Any] = {}


def _dict(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else _NOTHING


def _either(found: dict[str, Any], name: str, other: str) -> Any:
    value = found.get(name)
    value = found.get(other) if value is None else value
    return None if isinstance(value, dict | list) else value


def _kind(said: dict[str, Any]) -> Any:
    kind = _either(said, "metricKind", "metric_kind")
    return _KINDS.get(kind) if isinstance(kind, int) else kind


def _value(found: dict[str, Any]) -> tuple[float | None, float | None]:
    """(a point's value or the mean of its distribution, the count of that); None for what is none."""
    plain = _either(found, "doubleValue", "double_value")
    plain = _either(found, "int64Value", "int64_value") if plain is None else plain
    if plain is not None:
        return _number(plain), None
    if spread := _dict(found.get("distributionValue", found.get("distribution_value"))):
        count = _number(spread.get("count"))
        return (_number(spread.get("mean")) or 0.0, count) if count and count > 0 else (None, None)
    flag = _either(found, "boolValue", "bool_value")
    return (float(flag), None) if isinstance(flag, bool) else (None, None)


def _number(value: Any) -> float | None:
    """A finite number, or a text that writes a whole one; None for any other."""
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, float):
        return value if isfinite(value) else None
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and fits(value) else None


def _in_order(points: _Points, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """(times, values), oldest first, each time once: pages may overlap, and a node and its container tell the same."""
    at, values = np.array(points.ends, np.int64), np.array(points.values)
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    first = np.ones(len(at), bool)
    first[1:] = at[1:] != at[:-1]
    kept = np.flatnonzero(first)[np.cumsum(first) - 1]
    if differ := int((values != values[kept]).sum()):
        tally.add("points", "of the same time as one before of the same chip, with another value", count=differ)
    return at[first], values[first]


def _kept(
    at: np.ndarray, values: np.ndarray, most: float, otherwise: str, tally: Tally
) -> tuple[np.ndarray, np.ndarray]:
    """What lies between 0 and the most that may be; the others are counted."""
    may = (values >= 0) & (values <= most)
    if not may.all():
        tally.add("points", otherwise, count=int((~may).sum()))
    return at[may], values[may]


def _scalar_rows(series: list[tuple[str, str | None, np.ndarray, np.ndarray]], source: str) -> Iterator[Rows]:
    from collectors.device.nsys.metrics import scalar_rows

    series.reverse()
    while series:
        some, rows = [], 0
        while series and (not some or rows + len(series[-1][2]) <= _PIECE_ROWS):
            some.append(series.pop())
            rows += len(some[-1][2])
        code = np.repeat(np.arange(len(some), dtype=np.int32), [len(one[2]) for one in some])
        at, value = (np.concatenate([one[n] for one in some]) for n in (2, 3))
        if rows:
            yield scalar_rows(at, code, [one[0] for one in some], value, [one[1] for one in some], source)


def _memory_rows(
    host: str, number: int | None, of_chip: dict[str, tuple[np.ndarray, np.ndarray]], tally: Tally
) -> Iterator[Rows]:
    """What a chip has in use, and at the same times the most that it can, which a series of its own tells."""
    why = "a size of memory below 0 or beyond all"
    of_chip = {kind: _kept(*told, float(1 << 53), why, tally) for kind, told in of_chip.items()}
    used, most = of_chip.get(USED), of_chip.get(TOTAL)
    if used and most and len(used[0]) and len(most[0]):
        latest = np.maximum(np.searchsorted(most[0], used[0], "right") - 1, 0)
        of_chip[TOTAL] = used[0], most[1][latest]
    for kind, (at, values) in of_chip.items():
        if len(at):
            columns = {
                "host": [host or None] * len(at),
                "device": [number] * len(at),
                "ts_ns": at,
                "kind": [kind] * len(at),
                "bytes": np.rint(values).astype(np.int64),
            }
            yield Rows("memory", SCHEMAS["memory"].batch(columns))
