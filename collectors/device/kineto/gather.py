"""Events sorted by what they are, in compact rows, until all are known: what launched a kernel may come after it."""

from collections import Counter
from typing import Any

import numpy as np

from collectors.device.kineto import columns
from collectors.device.kineto.chunks import Chunks
from collectors.device.kineto.kinds import (
    A_BACKWARD,
    A_CAPTURE,
    A_CAPTURE_END,
    A_CHECKPOINT,
    A_FETCH,
    A_FRAME,
    A_MODULE,
    A_STEP,
    AN_UPDATE,
    ANNOTATION,
    CPU_OP,
    MEMORY,
    NVTX,
    ON_DEVICE,
    OTHER,
    RUNTIME,
    WITH_VALUES,
    Meanings,
)
from collectors.device.kineto.nesting import (
    BACKWARD,
    CALL,
    CHECKPOINT,
    FRAME,
    LAUNCH,
    MODULE,
    NOTE,
    PLAIN,
    UPDATE,
    Numbered,
)
from collectors.device.kineto.span import TEN_DAYS_NS
from collectors.device.kineto.spill import Spill
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import NONE

LONGEST_NS = np.int64(1 << 62)  # a time beyond it is none
_SITE = (columns.DIMS, columns.TYPES, columns.GIVEN, columns.STACK)
COLLECTIVE_COLUMNS = (
    columns.COLLECTIVE,
    columns.IN_NELEMS,
    columns.OUT_NELEMS,
    columns.DTYPE,
    columns.GROUP_SIZE,
    columns.PG_NAME,
    columns.PG_DESC,
    columns.PG_RANKS,
    columns.SEQ,
)
COLLECTIVE, IN_NELEMS, OUT_NELEMS, DTYPE, GROUP_SIZE, PG_NAME, PG_DESC, PG_RANKS, SEQ = range(len(COLLECTIVE_COLUMNS))
HOST = np.dtype(  # `site`: of a launch the name of its kernel, as far as the launch tells it
    [
        ("start", "i8"),
        ("dur", "i8"),
        ("event", "i8"),
        ("op", "i4"),
        ("thread", "i4"),
        ("name", "i4"),
        ("kind", "i1"),
        ("site", "i4"),
        ("sequence", "i8"),
        ("correlation", "i8"),
        ("external", "i8"),
    ]
)
DEVICE = np.dtype(
    [
        ("start", "i8"),
        ("dur", "i8"),
        ("event", "u4"),
        ("row", "i4"),
        ("name", "i4"),
        ("kind", "i1"),
        ("collective", "i4"),
        ("shape", "i4"),
        ("correlation", "i8"),
        ("external", "i8"),
    ]
)
MEMORY_ROW = np.dtype([("start", "i8"), ("device", "i8"), ("type", "i8"), ("allocated", "i8")])
_PHASES = {ord(c): what for c, what in (("s", "arrows"), ("t", "arrows"), ("f", "arrows"), ("M", "names"))}


class Gathered:
    """All that one trace tells, kept by what it is.

    `host`: HOST rows. `device`: DEVICE rows, `row` a number of `rows`. `ops`: (thread, name, kind of event) of each
    operation of a host thread, by number; `threads`: (pid, tid); `rows`: (device, stream, rank, pid, tid) as written;
    `sites`: (name, dims, types, values of arguments, stack, collective) of calls, values only of those whose work
    depends on them; `collectives`: COLLECTIVE_COLUMNS columns; `shapes`: (grid, block) of launches.
    `calls`: HOST rows of calls and annotations, where the machine has no device (see `standing_in`); `read`: events so
    far. `seen` counts events by what became of them; what is lost is in `lost`, by reason.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.meanings = Meanings(texts)
        self.host = Spill(HOST)
        self.calls: Spill | None = None
        self.read = 0
        self.device = Chunks(DEVICE)
        self.memory = Spill(MEMORY_ROW)
        self.steps: list[tuple[int, int, int, int]] = []  # start, duration, name, thread
        self.fetches: list[tuple[int, int, int]] = []  # start, duration, thread
        self.on_runtime = False  # whether a thread called the runtime of a device: then there is one
        self.captures: list[tuple[int, int, int]] = []  # time, thread, kind of calls that begin and end captures
        self.threads, self.rows, self.shapes = Numbered(2), Numbered(5), Numbered(2)
        self.ops, self.sites, self.collectives = Numbered(3), Numbered(6), Numbered(len(COLLECTIVE_COLUMNS))
        self.thread_names: dict[tuple[int, int], int] = {}
        self.last = -(1 << 63)  # where the last event ends, of those that are near the middle of their batch
        self.seen: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._thread_name = texts.of("thread_name")

    def take(self, batch: columns.Batch) -> None:
        """Enters a batch of events."""
        self.read = max(self.read, int(batch.ordinal.max(initial=-1)) + 1)
        whole = (batch.phase == ord("X")) & (batch.ts != NONE)
        whole &= (np.abs(batch.ts) < LONGEST_NS) & (batch.dur >= 0) & (batch.dur < LONGEST_NS)
        instant = np.isin(batch.phase, (ord("i"), ord("I"))) & (batch.ts != NONE) & (np.abs(batch.ts) < LONGEST_NS)
        kinds = self.meanings.kinds(batch.cat)
        told = self.meanings.names(batch.name)
        on_device = whole & np.isin(kinds, ON_DEVICE)
        memory = instant & (told == MEMORY)
        self._saw(batch, whole | instant)
        self._device(batch, np.flatnonzero(on_device), kinds)
        self._memory(batch, np.flatnonzero(memory))
        self._host(batch, np.flatnonzero((whole & ~on_device) | (instant & ~memory)), kinds, told)
        self._others(batch, ~whole & ~instant)

    def _saw(self, batch: columns.Batch, of: np.ndarray) -> None:
        start, dur = batch.ts[of], np.maximum(batch.dur[of], 0)
        if len(start):
            near = (np.abs(start - np.median(start)) < TEN_DAYS_NS) & (dur < TEN_DAYS_NS)
            self.last = max(self.last, int((start[near] + dur[near]).max(initial=self.last)))

    def _device(self, batch: columns.Batch, at: np.ndarray, kinds: np.ndarray) -> None:
        if not len(at):
            return
        args = batch.args[at]
        out = np.zeros(len(at), DEVICE)
        out["start"], out["dur"], out["event"] = batch.ts[at], batch.dur[at], batch.ordinal[at]
        out["name"], out["kind"] = batch.name[at], kinds[at]
        out["row"] = self.rows.of(
            args[:, columns.DEVICE], args[:, columns.STREAM], args[:, columns.RANK], batch.pid[at], batch.tid[at]
        )
        out["collective"] = self._collective(args)
        out["shape"] = self.shapes.of(args[:, columns.GRID], args[:, columns.BLOCK])
        out["correlation"], out["external"] = args[:, columns.CORRELATION], args[:, columns.EXTERNAL]
        self.device.append(out)
        self.seen["stored"] += len(at)

    def _collective(self, args: np.ndarray) -> np.ndarray:
        out = np.full(len(args), -1, np.int64)
        told = args[:, COLLECTIVE_COLUMNS]
        at = np.flatnonzero((told != NONE).any(axis=1))
        if len(at):
            out[at] = self.collectives.of(*told[at].T)
        return out

    def _memory(self, batch: columns.Batch, at: np.ndarray) -> None:
        args = batch.args[at]
        known = args[:, columns.ALLOCATED] != NONE
        self._lose("memory events", "they tell what was taken, not how much is in use", int((~known).sum()))
        at, args = at[known], args[known]
        if not len(at):
            return
        out = np.zeros(len(at), MEMORY_ROW)
        out["start"], out["device"] = batch.ts[at], args[:, columns.DEVICE_ID]
        out["type"], out["allocated"] = args[:, columns.DEVICE_TYPE], args[:, columns.ALLOCATED]
        self.memory.add(out)
        self.seen["memory"] += len(at)

    def _host(self, batch: columns.Batch, at: np.ndarray, kinds: np.ndarray, told: np.ndarray) -> None:
        if not len(at):
            return
        args, kinds, told = batch.args[at], kinds[at], told[at]
        out = np.zeros(len(at), HOST)
        dur = np.maximum(batch.dur[at], 0)  # an instant has none
        out["start"], out["dur"], out["event"] = batch.ts[at], dur, batch.ordinal[at]
        out["name"] = batch.name[at]
        out["thread"] = self.threads.of(batch.pid[at], batch.tid[at])
        kind = np.full(len(at), PLAIN, np.int8)
        call = (kinds == CPU_OP) & (told != A_STEP) & (told != A_FETCH)
        kind[call] = CALL
        kind[call & (told == A_BACKWARD)] = BACKWARD
        kind[call & (told == A_CHECKPOINT)] = CHECKPOINT
        note = (kinds == ANNOTATION) & (told != A_STEP)
        kind[note] = NOTE
        kind[note & (told == AN_UPDATE)] = UPDATE
        kind[(told == A_MODULE) | ((kinds == NVTX) & (dur > 0))] = MODULE
        kind[told == A_FRAME] = FRAME
        kind[(kinds == RUNTIME) & (args[:, columns.CORRELATION] > 0)] = LAUNCH  # 0 is none
        out["kind"] = kind
        self.on_runtime |= bool((kinds == RUNTIME).any())
        self._captures(out, np.where(kind == LAUNCH, told, 0))
        step, fetch = (told == A_STEP), (told == A_FETCH)
        # What an operation of a thread is to the reader of tables: a step, the host's own, or of no thread at all.
        shown = np.where(step, A_STEP, np.where(kinds == OTHER, OTHER, ANNOTATION))
        out["op"] = self.ops.of(out["thread"], out["name"], shown)
        out["site"] = np.where((kind == LAUNCH) & (args[:, columns.KERNEL_NAME] >= 0), args[:, columns.KERNEL_NAME], -1)
        sited = call | note
        if sited.any():
            args[told != WITH_VALUES, columns.GIVEN] = NONE
            some = args[sited]
            fields = [some[:, field] for field in _SITE]
            out["site"][sited] = self.sites.of(out["name"][sited], *fields, self._collective(some))
        for name, field in (
            ("sequence", columns.SEQUENCE),
            ("correlation", columns.CORRELATION),
            ("external", columns.EXTERNAL),
        ):
            out[name] = args[:, field]
        self.steps += list(zip(*(out[c][step].tolist() for c in ("start", "dur", "name", "thread")), strict=True))
        self.fetches += list(zip(*(out[c][fetch].tolist() for c in ("start", "dur", "thread")), strict=True))
        self.host.add(out)
        if self.calls is not None and (some := np.isin(kind, (CALL, NOTE))).any():
            self.calls.add(out[some])
        self.seen["stored"] += len(at)

    def _captures(self, rows: np.ndarray, told: np.ndarray) -> None:
        for at in np.flatnonzero(np.isin(told, (A_CAPTURE, A_CAPTURE_END))).tolist():
            row = rows[at]
            self.captures.append((int(row["start"]), int(row["thread"]), int(told[at])))

    def _others(self, batch: columns.Batch, chosen: np.ndarray) -> None:
        for phase, count in zip(*np.unique(batch.phase[chosen], return_counts=True), strict=True):
            of = chosen & (batch.phase == phase)
            if phase == ord("M"):
                self._names(batch, np.flatnonzero(of))
            if int(phase) in _PHASES:
                self.seen[_PHASES[int(phase)]] += int(count)
            elif phase in (ord("X"), ord("i"), ord("I")):
                self._timeless(batch, of)
            else:
                letter = chr(phase) if 32 < phase < 127 else "none"
                self._lose(f"events of phase {letter!r}", "only whole events (X) and instants (i) are read", int(count))

    def _timeless(self, batch: columns.Batch, of: np.ndarray) -> None:
        negative = of & (batch.ts != NONE) & (batch.dur != NONE) & (batch.dur < 0)
        self._lose("events", "their duration is negative", int(negative.sum()))
        self._lose(
            "events", "their time or duration is missing, or no number of a calendar", int((of & ~negative).sum())
        )

    def _names(self, batch: columns.Batch, at: np.ndarray) -> None:
        for i in at[batch.name[at] == self._thread_name].tolist():
            if (name := int(batch.args[i, columns.ROW_NAME])) >= 0:
                self.thread_names[int(batch.pid[i]), int(batch.tid[i])] = name

    def _lose(self, what: str, why: str, count: int) -> None:
        if count:
            self.lost[f"{what}: {why}"] += count


def reorder(rows: np.ndarray, order: np.ndarray) -> None:
    """Puts rows in another order where they are, column by column: a copy would need their memory again."""
    for name in rows.dtype.names or ():
        rows[name] = rows[name][order]


def joined(parts: list[np.ndarray], kind: Any) -> np.ndarray:
    """Parts as one array."""
    return np.concatenate(parts) if parts else np.zeros(0, kind)
