"""What one device executed in a capture, each with the call that launched it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analyzers.device.activity import ELSEWHERE, WORK
from analyzers.shared import Shared
from runs.coded import coded, flags, told
from runs.matching import Where
from runs.tables import Tables, frame, int_column

UNKNOWN = np.iinfo(np.int64).min
"""The time of a call that the profile does not hold."""
NUMBERS_PER_KEY = 16  # that a table of all numbers may have


@dataclass(frozen=True)
class Launched:
    """Executions in order of start; times in ns since the epoch, on the host's clock.

    `op`: op_id of each. `stream`, `call`, `thread`: numbers of `streams`, `calls` and `threads`, the last two -1 where
    the call is not known. `call_start`, `call_end`: of the call, or UNKNOWN. `graph`: launched with others by one call.
    """

    capture: int
    start: np.ndarray
    end: np.ndarray
    op: np.ndarray
    stream: np.ndarray
    call: np.ndarray
    thread: np.ndarray
    call_start: np.ndarray
    call_end: np.ndarray
    graph: np.ndarray
    streams: tuple[str, ...]
    calls: tuple[str, ...]
    threads: tuple[str, ...]

    @property
    def known(self) -> np.ndarray:
        """Of which executions the call is known."""
        return self.call_start != UNKNOWN


def captures_of(tables: Tables, host: str | None = None) -> Iterator[tuple[int, int]]:
    """(capture, its start in ns) of every capture that has a place in time, or of those of one host."""
    rows = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna(subset=["capture", "start_ns"])
    if host is not None:
        rows = rows[rows["host"].astype(str) == host]
    rows = rows.sort_values("start_ns")
    yield from ((int(c), int(s)) for c, s in zip(rows["capture"], rows["start_ns"], strict=True))


def launched(tables: Tables, capture: int, start_ns: int, device: int) -> Launched:
    """What a device executed in a capture; empty where it holds nothing."""
    what = ("launched", capture, start_ns, device)
    return Shared(tables).get(what, lambda: _launched(tables, capture, start_ns, device))


def _launched(tables: Tables, capture: int, start_ns: int, device: int) -> Launched:
    where = [("capture", "==", capture), ("device", "==", device)]
    on_stream, streams = _streams(told(tables.arrow("ops", ["op_id", "line", "role", "category"], where), ["op_id"]))
    columns = ["event", "op_id", "start_ps", "dur_ps"]
    events = told(tables.arrow("op_events", columns, where), columns)
    event, op, start, took = (int_column(events, name) for name in columns)
    on = on_stream[np.minimum(op, len(on_stream) - 1)]
    order = _in_order(on >= 0, start)
    calls = _calls(tables, where)
    row, found = rows_of(int_column(calls, "event"), event[order])
    begin, lasts = (int_column(calls, name) for name in ("call_start_ps", "call_dur_ps"))
    call, line = (coded(calls, name).as_they_come() for name in ("call", "line"))
    return Launched(
        capture=capture,
        start=start_ns + start[order] // 1000,
        end=start_ns + (start + took)[order] // 1000,
        op=op[order],
        stream=on[order],
        call=_taken(call.code, row, found, -1),
        thread=_taken(line.code, row, found, -1),
        call_start=_taken(start_ns + begin // 1000, row, found, UNKNOWN),
        call_end=_taken(start_ns + (begin + lasts) // 1000, row, found, UNKNOWN),
        graph=_taken(flags(calls, "graph"), row, found, False),
        streams=streams,
        calls=call.texts,
        threads=line.texts,
    )


def _streams(ops: pa.Table) -> tuple[np.ndarray, tuple[str, ...]]:
    """The stream of each operation by op_id, -1 of one that occupies no device and behind the last; and their names."""
    working = coded(ops, "role").among(WORK) & ~coded(ops, "category").among(ELSEWHERE)
    ids, streams = int_column(ops, "op_id")[working], coded(ops, "line").of(working).as_they_come()
    stream_of = np.full(int(ids.max()) + 2 if len(ids) else 1, -1, np.int64)
    stream_of[ids] = streams.code
    return stream_of, streams.texts


def _in_order(chosen: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Which rows are chosen, by their start."""
    rows = np.flatnonzero(chosen)
    begins = start[rows]
    return rows if (begins[1:] >= begins[:-1]).all() else rows[np.argsort(begins, kind="stable")]


def _calls(tables: Tables, where: Where) -> pa.Table:
    """Known calls by the execution that they launched, each once."""
    columns = ["event", "call", "line", "call_start_ps", "call_dur_ps", "graph"]
    rows = told(tables.arrow("launches", columns, where), ["event", "call_start_ps", "call_dur_ps"])
    event = int_column(rows, "event")
    return rows if (event[1:] > event[:-1]).all() else rows.take(np.unique(event, return_index=True)[1])


def rows_of(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `wanted` stands among sorted keys, and whether it does."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    most = int(keys[-1])
    # one row for each number that there may be is quicker than to search for each, where that does not take much
    if keys[0] >= 0 and most < NUMBERS_PER_KEY * len(keys):
        place = np.full(most + 2, -1, np.int32)
        place[keys] = np.arange(len(keys), dtype=np.int32)
        at = place[np.clip(wanted, -1, most + 1)]
        return np.maximum(at, 0), at >= 0
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted


def _taken(values: np.ndarray, row: np.ndarray, found: np.ndarray, missing: int | bool) -> np.ndarray:
    return np.where(found, values[row], missing) if len(values) else np.full(len(row), missing, values.dtype)
