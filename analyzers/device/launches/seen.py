"""What one device executed in a capture, each with the call that launched it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import ELSEWHERE, WORK
from analyzers.shared import Shared
from runs.tables import Tables, frame, int_column

UNKNOWN = np.iinfo(np.int64).min
"""The time of a call that the profile does not hold."""


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
    ops = frame(tables, "ops", ["op_id", "line", "role", "category"], where).dropna(subset=["op_id"])
    ops = ops[ops["role"].isin(WORK) & ~ops["category"].isin(ELSEWHERE)]
    stream, streams = pd.factorize(ops["line"].astype(object).where(ops["line"].notna(), ""))
    stream_of = np.full(int(ops["op_id"].max()) + 2 if len(ops) else 1, -1, np.int64)
    stream_of[ops["op_id"].to_numpy(dtype=np.int64)] = stream
    events = tables.arrow("op_events", ["event", "op_id", "start_ps", "dur_ps"], where).drop_null()
    event, op, start, took = (int_column(events, name) for name in events.column_names)
    on = stream_of[np.minimum(op, len(stream_of) - 1)]
    order = np.flatnonzero(on >= 0)
    order = order[np.argsort(start[order], kind="stable")]
    calls = _calls(tables, where)
    row, found = _rows(calls["event"].to_numpy(), event[order])
    begin, lasts = (calls[c].to_numpy() for c in ("call_start_ps", "call_dur_ps"))
    names = {c: pd.factorize(calls[c].astype(object).where(calls[c].notna(), "")) for c in ("call", "line")}
    return Launched(
        capture=capture,
        start=start_ns + start[order] // 1000,
        end=start_ns + (start + took)[order] // 1000,
        op=op[order],
        stream=on[order],
        call=_taken(names["call"][0], row, found, -1),
        thread=_taken(names["line"][0], row, found, -1),
        call_start=_taken(start_ns + begin // 1000, row, found, UNKNOWN),
        call_end=_taken(start_ns + (begin + lasts) // 1000, row, found, UNKNOWN),
        graph=_taken(calls["graph"].to_numpy(dtype=bool), row, found, False),
        streams=tuple(streams.tolist()),
        calls=tuple(names["call"][1].tolist()),
        threads=tuple(names["line"][1].tolist()),
    )


def _calls(tables: Tables, where: list) -> pd.DataFrame:
    """Known calls by the execution that they launched, each once."""
    columns = ["event", "call", "line", "call_start_ps", "call_dur_ps", "graph"]
    rows = frame(tables, "launches", columns, where).dropna(subset=["event", "call_start_ps", "call_dur_ps"])
    rows = rows.drop_duplicates("event").sort_values("event")
    whole = {c: rows[c].to_numpy(dtype=np.int64) for c in ("event", "call_start_ps", "call_dur_ps")}
    return rows.assign(graph=rows["graph"].fillna(False).astype(bool), **whole)


def _rows(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `wanted` stands among sorted keys, and whether it does."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted


def _taken(values: np.ndarray, row: np.ndarray, found: np.ndarray, missing: int | bool) -> np.ndarray:
    return np.where(found, values[row], missing) if len(values) else np.full(len(row), missing, values.dtype)
