"""What traces tell of waiting for events and streams (CUDA's synchronisation, as newer PyTorch profiles it).

A stream that waits for an event waits for what the event's stream had been given before the event was recorded; the
first execution that is launched on the waiting stream afterwards is held back, and all later ones with it. A call that
waits for an event, a stream or the whole device returns once that is done. Correlation numbers lead from each of these
rows to the calls that recorded and waited.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.critical_path.lanes import Executions, Lane
from runs.tables import Tables, frame, int_column

STREAM_WAIT, EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC = "Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync"
_RECORDED, _WAITED_STREAM, _STREAM, _CORRELATION = (
    "wait_on_cuda_event_record_corr_id",
    "wait_on_stream",
    "stream",
    "correlation",
)
_NUMBER = re.compile(r"(?<!\d)(\d+)$")


@dataclass(frozen=True)
class Told:
    """`before`: by execution the one that its stream was told to wait for (of several the last to end), -1 where none;
    `held` and `ahead`: all of these pairs; `calls`: capture, start_ns and end_ns of calls that waited, and the
    execution that each waited for (`which`; -1 where it is told for what, and nothing of that was seen to run)."""

    before: np.ndarray
    held: np.ndarray
    ahead: np.ndarray
    calls: pd.DataFrame


NEVER = np.iinfo(np.int64).min
MOST_STREAM = (1 << 32) - 2  # 2**32 - 1 stands for none
NO_CALLS = pd.DataFrame({name: np.zeros(0, np.int64) for name in ("capture", "start_ns", "end_ns", "which")})


def told(tables: Tables, lanes: list[Lane], ran: Executions) -> Told:
    """All that is told of the captures of these lanes."""
    none = np.zeros(0, np.int64)
    before, calls, pairs = np.full(len(ran.start), -1), [NO_CALLS], [(none, none)]
    names = frame(tables, "ops", ["capture", "op_id", "device", "role", "op"], [("role", "==", "other")])
    names = names[names["op"].isin((STREAM_WAIT, EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC))].dropna(subset=["op_id"])
    for capture in sorted({lane.capture for lane in lanes} & set(names["capture"].dropna())):
        mine = [lane for lane in lanes if lane.capture == capture]
        rows = _rows(tables, capture, mine[0].start_ns, names[names["capture"] == capture])
        ahead = _ahead(rows, mine, ran)
        waits = ((rows["op"] == STREAM_WAIT) & (ahead >= 0)).to_numpy()
        for lane in mine:
            pairs += _held(lane, ran, rows[waits], ahead[waits])
        some = (rows["op"] != STREAM_WAIT).to_numpy() & ((ahead >= 0) | _of_nothing(rows, mine))
        calls.append(rows.loc[some, ["start_ns", "end_ns"]].assign(capture=capture, which=ahead[some]))
    held, what = (np.concatenate(column) for column in zip(*pairs, strict=True))
    rising = np.argsort(ran.end[what], kind="stable")  # of several the one that ended last stays
    before[held[rising]] = what[rising]
    return Told(before, held, what, pd.concat(calls, ignore_index=True))


def _rows(tables: Tables, capture: int, start_ns: int, names: pd.DataFrame) -> pd.DataFrame:
    """What waited: name, its statistics, when the call waited (`start_ns`, `end_ns`) and when the event was recorded
    (`recorded_ns`), null where that is not held."""
    where = [("capture", "==", capture), ("op_id", "in", names["op_id"].to_numpy(dtype=np.int64).tolist())]
    events = frame(tables, "op_events", ["event", "op_id"], where).dropna().astype(np.int64)
    events = events.merge(names[["op_id", "op"]].astype({"op_id": np.int64, "op": object}), on="op_id")
    wanted = [_RECORDED, _WAITED_STREAM, _STREAM, _CORRELATION]
    chosen = [("capture", "==", capture), ("name", "in", wanted), ("event", "in", events["event"].tolist())]
    stats = frame(tables, "event_stats", ["event", "name", "int_value"], chosen).dropna()
    stats = stats.astype({"name": object}).drop_duplicates(["event", "name"])
    wide = stats.pivot(index="event", columns="name", values="int_value").reindex(columns=wanted)
    rows = events.merge(wide.fillna(-1).astype(np.int64), left_on="event", right_index=True)
    call = _calls(tables, capture, start_ns, np.unique(rows[[_CORRELATION, _RECORDED]]).tolist())
    rows = rows.merge(call, left_on=_CORRELATION, right_index=True)
    recorded = call["start_ns"].rename("recorded_ns")
    return rows.merge(recorded, left_on=_RECORDED, right_index=True, how="left")


def _calls(tables: Tables, capture: int, start_ns: int, correlations: list[int]) -> pd.DataFrame:
    """start_ns and end_ns of the calls on host threads with these correlation numbers, by number."""
    where = [("capture", "==", capture), ("name", "==", _CORRELATION), ("int_value", "in", correlations)]
    numbers = frame(tables, "event_stats", ["event", "int_value"], where).dropna().astype(np.int64)
    held = [("capture", "==", capture), ("event", "in", numbers["event"].tolist())]
    host = frame(tables, "ops", ["op_id"], [("capture", "==", capture), ("role", "==", "host")]).dropna()
    rows = tables.arrow("op_events", ["event", "op_id", "start_ps", "dur_ps"], held).drop_null()
    event, op, start, took = (int_column(rows, name) for name in rows.column_names)
    mine = np.isin(op, host["op_id"].to_numpy(dtype=np.int64))
    begin, end = start_ns + start // 1000, start_ns + (start + took) // 1000
    found = pd.DataFrame({"event": event[mine], "start_ns": begin[mine], "end_ns": end[mine]})
    found = numbers.merge(found, on="event").drop_duplicates("int_value").set_index("int_value")
    return found[["start_ns", "end_ns"]]


def _ahead(rows: pd.DataFrame, lanes: list[Lane], ran: Executions) -> np.ndarray:
    """The execution that each row waits for, -1 where it is not told: of an event's stream the last that was launched
    before it was recorded; of a stream, or of all, the last that had ended by the call's return."""
    kind, until = rows["op"].to_numpy(), rows["end_ns"].to_numpy(dtype=np.int64)
    recorded = rows["recorded_ns"].fillna(NEVER).to_numpy(dtype=np.int64)
    out = np.full(len(rows), -1)
    for lane in lanes:
        launched = np.where(lane.ran.known, lane.ran.call_start, np.iinfo(np.int64).max)
        event = np.isin(kind, (STREAM_WAIT, EVENT_SYNC))
        for number, mine in _streams(lane):
            on = event & (rows[_WAITED_STREAM] == number).to_numpy(dtype=bool)
            _later(out, on, _last(mine, launched, recorded, "left"), lane, ran)
            on = (kind == STREAM_SYNC) & (rows[_STREAM] == number).to_numpy(dtype=bool)
            _later(out, on, _last(mine, lane.ran.end, until, "right"), lane, ran)
        every = np.arange(len(lane.ran.start))
        _later(out, kind == CONTEXT_SYNC, _last(every, lane.ran.end, until, "right"), lane, ran)
    return out


def _of_nothing(rows: pd.DataFrame, lanes: list[Lane]) -> np.ndarray:
    """Which of the rows whose execution was not found tell for what they waited, so that it was nothing: of a stream,
    or of an event that was seen to be recorded on one; only where every stream that executed has a number."""
    if any(len(_streams(lane)) < len(lane.ran.streams) for lane in lanes):
        return np.zeros(len(rows), bool)
    of_stream = (rows["op"] == STREAM_SYNC) & rows[_STREAM].between(0, MOST_STREAM)
    of_event = (rows["op"] == EVENT_SYNC) & rows[_WAITED_STREAM].between(0, MOST_STREAM) & rows["recorded_ns"].notna()
    return (of_stream | of_event).to_numpy(dtype=bool)


def _streams(lane: Lane) -> list[tuple[int, np.ndarray]]:
    """The number of each stream that has one, and the positions of its executions."""
    numbers = [(n, _NUMBER.search(name)) for n, name in enumerate(lane.ran.streams)]
    return [(int(found[1]), np.flatnonzero(lane.ran.stream == n)) for n, found in numbers if found]


def _last(mine: np.ndarray, when: np.ndarray, until: np.ndarray, side: str) -> np.ndarray:
    """Of positions, the latest by `when` before (side left) or by (right) each instant; -1 where there is none."""
    order = mine[np.argsort(when[mine], kind="stable")]
    at = np.searchsorted(when[order], until, side="left" if side == "left" else "right") - 1
    return np.where(at >= 0, order[np.maximum(at, 0)], -1) if len(order) else np.full(len(until), -1)


def _later(out: np.ndarray, rows: np.ndarray, found: np.ndarray, lane: Lane, ran: Executions) -> None:
    """Take what was found for these rows, where it ended after what is there."""
    number = np.where(found >= 0, lane.first + found, -1)
    better = rows & (number >= 0) & ((out < 0) | (ran.end[number] > ran.end[out]))
    out[better] = number[better]


def _held(lane: Lane, ran: Executions, rows: pd.DataFrame, ahead: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The executions that were launched first after a stream was told to wait, with what they waited for."""
    out = []
    after = rows["end_ns"].to_numpy(dtype=np.int64)
    for number, mine in _streams(lane):
        mine = mine[lane.ran.known[mine]]
        order = mine[np.argsort(lane.ran.call_start[mine], kind="stable")]
        at = np.searchsorted(lane.ran.call_start[order], after, side="left")
        some = np.flatnonzero((rows[_STREAM] == number).to_numpy(dtype=bool) & (at < len(order)))
        held, what = lane.first + order[at[some]], ahead[some]
        fits = ran.end[what] <= ran.start[held]
        out.append((held[fits], what[fits]))
    return out
