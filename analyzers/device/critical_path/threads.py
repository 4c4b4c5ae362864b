"""Host threads: when each went on after it had waited, for what, and what it did in between."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import MEMORY
from analyzers.device.critical_path.binding import COPY
from analyzers.device.critical_path.kinds import FOR_EXECUTION, FOR_NOTHING, FOR_THREAD, HOST, RULE
from analyzers.device.critical_path.lanes import KIND_OF, Executions, Lane
from analyzers.device.host_work import KINDS, STEPS, WAITING, ThreadWork
from analyzers.device.launches.launches import INPUT
from analyzers.intervals import Painting, Spans, joined, overlap_with, paint, spans, union
from runs.tables import Tables, frame, int_column

HANDOVER_NS = 50_000  # a shorter time without events tells nothing
HANDOVER_SHARE = 0.5  # of it, that another thread must have worked
PARTS = (*HOST, INPUT)
_WHOLE = re.compile(r"(Device|Ctx)Synchronize")
_FRAME = re.compile(r"\.py\(\d+\): |^nn\.Module: |^<built-in |^<string>")


@dataclass(frozen=True)
class Waited:
    """When a thread went on (`until`, rising), since when it had waited, and for what: an execution (`which`: its
    number) or another thread (`which`: its number) that had come to `until` as well. `rule` says by which rule."""

    until: np.ndarray
    since: np.ndarray
    kind: np.ndarray
    which: np.ndarray
    rule: np.ndarray


NOWHERE = Waited(*(np.zeros(0, np.int64) for _ in range(5)))


@dataclass(frozen=True)
class Thread:
    """A thread of a capture, or (name STEPS) the one that takes the steps. `passed`: calls that would have waited, had
    what they asked for not been done."""

    capture: int
    name: str
    waited: Waited
    passed: Waited
    work: "Worked"


class Worked:
    """Nanoseconds by kind of host work (PARTS) between any two instants of a thread."""

    def __init__(self, work: Mapping[str, Spans], fetched: Spans):
        layers = [(code, work[kind]) for code, kind in enumerate(PARTS) if kind in work and len(work[kind].start)]
        layers += [(len(PARTS) - 1, fetched)] if len(fetched.start) else []
        self._painting: Painting | None = None
        if layers:
            low, high = min(int(x.start.min()) for _, x in layers), max(int(x.end.max()) for _, x in layers)
            self._painting = paint(low, high, layers, ground=len(PARTS))
            amounts = np.zeros((len(PARTS) + 1, len(self._painting.edges)), np.int64)
            for part in range(len(PARTS)):
                np.cumsum(self._painting.width * (self._painting.label == part), out=amounts[part, 1:])
            self._until = amounts

    def between(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(len(begin), len(PARTS)) ns; what is missing to the time between is not told."""
        if self._painting is None:
            return np.zeros((len(begin), len(PARTS)), np.int64)
        return self._at(end) - self._at(begin)

    def cells(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """A stretch of the thread cut by kind: edges (n + 1) and n positions in PARTS, len(PARTS) where not told."""
        if self._painting is None:
            return np.array([begin, end]), np.array([len(PARTS)])
        edges, label = self._painting.edges, self._painting.label
        inner = edges[np.searchsorted(edges, begin, side="right") : np.searchsorted(edges, end, side="left")]
        cut = np.concatenate([[begin], inner, [end]])
        at = np.searchsorted(edges, cut[:-1], side="right") - 1
        told = (at >= 0) & (at < len(label))
        return cut, np.where(told, label[np.clip(at, 0, len(label) - 1)], len(PARTS))

    def _at(self, when: np.ndarray) -> np.ndarray:
        assert self._painting is not None
        edges, label = self._painting.edges, self._painting.label
        when = np.clip(when, edges[0], edges[-1])
        cell = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, max(len(label) - 1, 0))
        out = self._until[:, cell].T.copy()
        if len(label):
            out[np.arange(len(when)), label[cell]] += when - edges[cell]
        return out[:, : len(PARTS)]


@dataclass
class _Events:
    """Events of the threads of a capture: of each thread the calls that wait, those of them that wait for a whole
    device, and when any event marks it."""

    waits: dict[str, Spans]
    whole: dict[str, Spans]
    marked: dict[str, Spans]


def threads(
    tables: Tables, lanes: list[Lane], ran: Executions, fetches: Sequence[Spans], calls: pd.DataFrame
) -> tuple[list[Thread], dict[tuple[int, str], int], list[int]]:
    """The threads of all captures that launch or take steps, their numbers by capture and name, and of each lane the
    number of the one that takes its steps. `fetches`: of each lane, when data was fetched for its device; `calls`:
    those of which is told what they waited for (see `told.Told`)."""
    out: list[Thread] = []
    number: dict[tuple[int, str], int] = {}
    feeders: list[int] = []
    for capture in dict.fromkeys(lane.capture for lane in lanes):
        mine = [lane for lane in lanes if lane.capture == capture]
        names = sorted({name for lane in mine for name in lane.ran.threads})
        work = ThreadWork(tables, capture, mine[0].start_ns)
        ops = frame(tables, "ops", ["op_id", "line", "role", "category", "op"], [("capture", "==", capture)])
        ops = ops[(ops["role"] == "host") & ops["op_id"].notna() & ops["op"].notna()]
        stepping = sorted(set(ops.loc[_annotated(ops), "line"].dropna()))
        every = sorted({*names, *stepping})
        events = _events(tables, mine[0], ops[ops["line"].isin(every)], every)
        first = len(out)
        numbers = {name: first + n for n, name in enumerate(every)}
        known = calls[calls["capture"] == capture].sort_values("end_ns")
        passed = _handovers(events.marked, _together(mine), numbers)
        fed = {lane.device: some for lane, some in zip(lanes, fetches, strict=True) if lane.capture == capture}
        for name in every:
            own = [lane for lane in mine if name in lane.ran.threads] or mine
            waited, through = _synchronised(own, ran, events.waits[name], events.whole[name], known)
            waited = ordered_by_return([waited, *(_copied(name, lane, ran) for lane in own), passed[name]])
            done = Worked(work.of(name), union(joined([fed[lane.device] for lane in own])))
            out.append(Thread(capture, name, waited, through, done))
        number |= {(capture, name): n for name, n in numbers.items()}
        if len(stepping) == 1:
            number[capture, STEPS] = numbers[stepping[0]]
        else:
            number[capture, STEPS] = len(out)
            done = Worked(work.of(STEPS), union(joined(list(fed.values()))))
            out.append(Thread(capture, STEPS, NOWHERE, NOWHERE, done))
        feeders += [number[capture, work.steps_of(lane.ran.threads)] for lane in mine]
    return out, number, feeders


def _annotated(ops: pd.DataFrame) -> pd.Series:
    return (ops["category"] == "annotation") & ~ops["op"].isin(("data_loading",))


def _events(tables: Tables, lane: Lane, ops: pd.DataFrame, names: list[str]) -> _Events:
    where = [("capture", "==", lane.capture), ("op_id", "in", ops["op_id"].to_numpy(dtype=np.int64).tolist())]
    rows = tables.arrow("op_events", ["op_id", "start_ps", "dur_ps"], where).drop_null()
    op, start, took = (int_column(rows, name) for name in rows.column_names)
    start, end = lane.start_ns + start // 1000, lane.start_ns + (start + took) // 1000
    size = int(ops["op_id"].max()) + 1 if len(ops) else 1
    line_of, waits, whole, marks = np.full(size, -1), *(np.zeros(size, bool) for _ in range(3))
    ids, texts = ops["op_id"].to_numpy(dtype=np.int64), ops["op"].astype(str).to_list()
    line_of[ids] = pd.Index(names).get_indexer(pd.Index(ops["line"].astype(object)))
    waits[ids] = [KINDS[WAITING].search(text) is not None for text in texts]
    whole[ids] = [_WHOLE.search(text) is not None for text in texts]
    marks[ids] = [_FRAME.search(text) is None for text in texts]
    marks[ids] &= ~_annotated(ops).to_numpy(dtype=bool)
    line = line_of[op] if len(op) else op
    found = _Events({}, {}, {})
    for n, name in enumerate(names):
        here = line == n
        mine = [here & chosen[op] for chosen in (waits, whole, marks)]
        found.waits[name], found.whole[name] = (_outer(spans(start[m], end[m])) for m in mine[:2])
        found.marked[name] = union(spans(start[mine[2]], end[mine[2]]))
    return found


def _outer(calls: Spans) -> Spans:
    """Calls that lie in no other, in order; those that follow one another at once stay apart."""
    order = np.lexsort((-calls.end, calls.start))
    start, end = calls.start[order], calls.end[order]
    inner = end[1:] <= np.maximum.accumulate(end)[:-1]
    keep = np.concatenate([np.ones(min(len(end), 1), bool), ~inner])
    return Spans(start[keep], end[keep])


def _together(lanes: list[Lane]) -> dict[str, list[str]]:
    """Of each thread that launches the others that launch to one of its devices. A profile may hold several processes,
    each with devices of its own, and a thread of one hands nothing over to a thread of another."""
    found: dict[str, set[str]] = {}
    for lane in lanes:
        for name in lane.ran.threads:
            found.setdefault(name, set()).update(lane.ran.threads)
    return {name: sorted(found[name] - {name}) for name in sorted(found)}


def _handovers(
    marked: Mapping[str, Spans], together: Mapping[str, list[str]], numbers: Mapping[str, int]
) -> dict[str, Waited]:
    """Times without events of one thread while another that launches worked: it waited until that was done. `together`:
    of each thread those that may be."""
    out = dict.fromkeys(numbers, NOWHERE)
    earliest = min((int(x.start[0]) for x in marked.values() if len(x.start)), default=0)
    for name, others in together.items():
        mine = marked[name]
        hole = Spans(np.concatenate([mine.start[:1] * 0 + earliest, mine.end[:-1]]), mine.start)
        long = hole.end - hole.start >= HANDOVER_NS
        hole = Spans(hole.start[long], hole.end[long])
        n = len(hole.start)
        best, until, which = np.zeros(n), np.zeros(n, np.int64), np.full(n, -1)
        for other in others:
            if not len(marked[other].start) or not len(hole.start):
                continue
            share = overlap_with(marked[other], hole) / (hole.end - hole.start)
            last = np.searchsorted(marked[other].end, hole.end, side="right") - 1
            end = np.where(last >= 0, marked[other].end[np.maximum(last, 0)], 0)
            more = (share > best) & (share >= HANDOVER_SHARE) & (end > hole.start)
            best, until, which = (
                np.where(more, a, b) for a, b in ((share, best), (end, until), (numbers[other], which))
            )
        some = which >= 0
        count = int(some.sum())
        out[name] = Waited(
            until[some], hole.start[some], np.full(count, FOR_THREAD), which[some], np.full(count, RULE["handover"])
        )
    return out


def ordered_by_return(parts: list[Waited]) -> Waited:
    """All times at which a thread went on, in order."""
    columns = [np.concatenate([getattr(p, f) for p in parts]) for f in ("until", "since", "kind", "which", "rule")]
    order = np.argsort(columns[0], kind="stable")
    return Waited(*(c[order] for c in columns))


def _synchronised(
    lanes: list[Lane], ran: Executions, calls: Spans, whole: Spans, known: pd.DataFrame
) -> tuple[Waited, Waited]:
    """Calls that waited for what ended in them, and those that did not have to. Where it is not told what for: for what
    ended last on the devices that their thread launches to, which is sure of a call that waits for a whole device, or
    where there is one stream."""
    ids = np.concatenate([np.arange(lane.ids.start, lane.ids.stop) for lane in lanes])
    ids = ids[np.argsort(ran.end[ids], kind="stable")]
    at = np.searchsorted(ran.end[ids], calls.end, side="right") - 1
    which = np.where(at >= 0, ids[np.maximum(at, 0)], -1)
    sure = len(lanes) == 1 and len(lanes[0].ran.streams) == 1
    rule = np.full(len(which), RULE["synchronisation" if sure else "synchronisation_last"])
    rule[np.isin(calls.end, whole.end)] = RULE["synchronisation"]
    seen = (known["which"] >= 0).to_numpy(dtype=bool)
    for rows in (known[~seen], known[seen]):  # where a call holds several, one that waited for something
        told, what = _told_of(calls, rows)
        which = np.where(told, what, which)
        rule[told] = RULE["synchronisation"]
    some = (which >= 0) & (ran.end[which] > calls.start) & (ran.end[which] <= calls.end)
    return tuple(  # pyright: ignore[reportReturnType]
        Waited(calls.end[x], calls.start[x], np.full(int(x.sum()), kind), which[x], rule[x])
        for x, kind in ((some, FOR_EXECUTION), (~some, FOR_NOTHING))
    )


def _told_of(calls: Spans, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Of each call whether one of these rows (by end) lies in it, and what the last of them waited for."""
    if not len(rows):
        return np.zeros(len(calls.end), bool), np.full(len(calls.end), -1)
    row = np.searchsorted(rows["end_ns"].to_numpy(), calls.end, side="right") - 1
    within = (row >= 0) & (rows["start_ns"].to_numpy()[np.maximum(row, 0)] >= calls.start)
    return within, rows["which"].to_numpy()[np.maximum(row, 0)]


def _copied(name: str, lane: Lane, ran: Executions) -> Waited:
    """Calls that copied and returned once the copy was done."""
    if name not in lane.ran.threads:
        return NOWHERE
    number, copying = lane.ran.threads.index(name), [bool(COPY.search(c)) for c in lane.ran.calls]
    mine = lane.ran.known & (lane.ran.thread == number) & (ran.kind[lane.ids] == KIND_OF[MEMORY])
    mine &= np.array([*copying, False])[lane.ran.call]
    mine &= (lane.ran.end <= lane.ran.call_end) & (lane.ran.end > lane.ran.call_start)
    at = np.flatnonzero(mine)
    rule = np.full(len(at), RULE["synchronisation"])
    kind = np.full(len(at), FOR_EXECUTION)
    return Waited(lane.ran.call_end[at], lane.ran.call_start[at], kind, lane.first + at, rule)
