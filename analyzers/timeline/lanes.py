"""Which lanes a run's timeline has, and the events in them.

    job        what the job did (`lifecycle`), and its steps, of each host that tells them
    serving    requests from arrival to last token, and the passes of each engine
    device     every line of every profiled device: programs, steps, operations, what runs beside them
    host       every thread of a profiled host

Times of device and host lines are the capture's own, put at its start by its host's clock: no clock is compared with
another. Captures without a time of day begin at 0.

An event has the colour of the account that such work is entered in where nothing covers it: matrix products that of
useful maths, other computing that of below roofline. In which account each instant is entered is the ledger's matter.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.serving.recorded import NEEDED, once
from analyzers.time.job_past import steps_taken
from analyzers.timeline.pyramid import Ints
from runs.accounts import ACCOUNTS
from runs.tables import Tables, frame

CODES = (*ACCOUNTS, "host")
CODE = {name: i for i, name in enumerate(CODES)}
JOB, SERVING, DEVICE, HOST = "job", "serving", "device", "host"
GROUPS = (JOB, SERVING, DEVICE, HOST)
ROLES = ("step", "module", "compute", "async", "other")
NONE = -1
PS_PER_NS = 1_000
UNPARTED = "until the first token"  # of a request of which is not told when it was scheduled
INSTANT = {"slices"}  # kinds of `lifecycle` that last until the next of them


@dataclass(frozen=True)
class Lane:
    """Where events stand. `group`: one of GROUPS; `device`: None for what is no device's; `line`: as the trace names
    it; `role`: see LINE_ROLES, or what stands in it."""

    group: str
    host: str
    device: int | None
    line: str
    role: str


@dataclass(frozen=True)
class Part:
    """Events of one lane from one source. `start`, `dur`: since `base_ns` (ns since 1970), `per_ns` to a nanosecond;
    `words`: what they may be called, `said`: which of those each is; `number`: of the step, request or pass, NONE where
    it has none; `code`: in CODES; `together`: those of one number stand in one row, as the phases of a request do;
    `capture`, `event`, `op`: in `op_events`, NONE where they are of another table; `turn`: which of the run's captures
    that is; `dated`: whether `base_ns` is a time of day; `kind`: see `kinds.py`, None where events are no
    operations."""

    lane: Lane
    base_ns: int
    per_ns: int
    start: Ints
    dur: Ints
    words: NDArray[np.object_]
    said: NDArray[np.integer[Any]]
    code: NDArray[np.uint8]
    number: Ints | None = None
    together: bool = False
    capture: int = NONE
    turn: int = NONE
    event: Ints | None = None
    op: Ints | None = None
    dated: bool = True
    kind: NDArray[np.uint8] | None = None


def parts(tables: Tables, facts: Facts, unplaced: Counter[str]) -> Iterator[Part]:
    """All events of a run that have a place in time, but for those of profiles (`traced.py`). `unplaced`: of each
    table, how many rows have none, is filled."""
    yield from _job(tables, unplaced)
    yield from _steps(tables, facts, unplaced)
    yield from _requests(tables, unplaced)
    yield from _passes(tables, unplaced)


def _ns(
    lane: Lane,
    rows: pd.DataFrame,
    text: NDArray[np.object_],
    code: NDArray[np.uint8],
    number: Ints | None = None,
    together: bool = False,
) -> Part:
    """From columns `start_ns` and `end_ns`."""
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    dur = rows["end_ns"].to_numpy(dtype=np.int64) - start
    base = int(start.min()) if len(start) else 0
    said, words = pd.factorize(text)
    return Part(lane, base, 1, start - base, dur, words, said, code, number, together)


def texts(values: pd.Series) -> NDArray[np.object_]:
    return values.astype(object).where(values.notna(), "").to_numpy(dtype=object)


def _hosts(rows: pd.DataFrame, column: str = "host") -> Iterator[tuple[str, pd.DataFrame]]:
    for host, mine in rows.groupby(texts(rows[column]), sort=True):
        yield str(host), mine


def _placed(rows: pd.DataFrame, times: list[str], table: str, unplaced: Counter[str]) -> pd.DataFrame:
    """Those with all of these times, the first of them a time of day."""
    kept = rows.dropna(subset=times)
    kept = kept[kept[times[0]] > 0]
    unplaced[table] += len(rows) - len(kept)
    return kept


def _job(tables: Tables, unplaced: Counter[str]) -> Iterator[Part]:
    told = ["kind", "start_ns", "end_ns", "host", "detail"]
    rows = frame(tables, "lifecycle", [*told, "device"])
    end_alone = (rows["kind"] == "job") & rows["start_ns"].isna() & rows["end_ns"].notna()
    rows = rows[~rows["kind"].isin(INSTANT) & ~end_alone]
    rows = rows[rows["device"].isna() | ~rows.duplicated(told)]  # what held up several devices is one event
    rows = _placed(rows, ["start_ns", "end_ns"], "entries of the job", unplaced)
    for host, mine in _hosts(rows):
        kind = texts(mine["kind"])
        said = np.array([str(name).replace("_", " ") for name in kind], dtype=object)
        named = np.where(kind == "custom", texts(mine["detail"]), said).astype(object)
        yield _ns(Lane(JOB, host, None, "job", "job"), mine, named, _codes(kind))


def _steps(tables: Tables, facts: Facts, unplaced: Counter[str]) -> Iterator[Part]:
    """As the job took them, whoever told of it; those of a profile alone stand in its own lines."""
    past = steps_taken(tables, facts)
    if past.origin == "profile":
        return
    rows = _placed(past.rows, ["start_ns", "dur_ns"], "steps", unplaced)
    rows = rows.assign(end_ns=rows["start_ns"] + rows["dur_ns"])
    kept = rows["kept"].astype(bool).to_numpy()
    number = rows["step"].to_numpy(dtype=np.int64, na_value=NONE)
    text = np.where(kept, "step", "step, taken again later").astype(object)
    code = np.where(kept, CODE["productive"], CODE["wasted_progress"]).astype(np.uint8)
    if len(rows):
        yield _ns(Lane(JOB, "", None, "steps", "step"), rows, text, code, number=number)


def _requests(tables: Tables, unplaced: Counter[str]) -> Iterator[Part]:
    rows = frame(tables, "requests", ["replica", "arrival_ns", "scheduled_ns", "first_token_ns", "last_token_ns"])
    rows = rows.assign(number=np.arange(len(rows)))
    rows = _placed(rows, ["arrival_ns", "last_token_ns"], "requests", unplaced)
    ends = rows[["arrival_ns", "scheduled_ns", "first_token_ns", "last_token_ns"]].copy()
    ends["scheduled_ns"] = ends["scheduled_ns"].fillna(ends["arrival_ns"])
    ends["first_token_ns"] = ends["first_token_ns"].fillna(ends["last_token_ns"])
    at = np.maximum.accumulate(ends.to_numpy(dtype=np.int64), axis=1)
    phases = (("queue", "scheduling"), ("prefill", "prefill"), ("decode", "decode"))
    for replica, mine in _hosts(rows, "replica"):
        here, numbers = at[rows.index.get_indexer(mine.index)], mine["number"].to_numpy(dtype=np.int64)
        some = pd.DataFrame({"start_ns": here[:, :3].ravel(), "end_ns": here[:, 1:].ravel()})
        text = np.tile(np.array([name for name, _ in phases], dtype=object), len(mine))
        code = np.tile(np.array([CODE[account] for _, account in phases], np.uint8), len(mine))
        number = np.repeat(numbers, 3)
        unqueued = mine["scheduled_ns"].isna().to_numpy()  # how much of it was waiting is not known
        text[1::3][unqueued], code[1::3][unqueued] = UNPARTED, CODE["served"]
        untold = mine["first_token_ns"].isna().to_numpy()  # when its prefill ended is not known
        text[1::3][untold], code[1::3][untold] = "served", CODE["served"]
        kept = (some["end_ns"] > some["start_ns"]).to_numpy()
        lane = Lane(SERVING, replica, None, "requests", "request")
        yield _ns(lane, some[kept], text[kept], code[kept], number=number[kept], together=True)


def _passes(tables: Tables, unplaced: Counter[str]) -> Iterator[Part]:
    rows, _ = once(frame(tables, "iterations", [*NEEDED, "decode_tokens"]))
    rows = _placed(rows, ["start_ns", "dur_ns"], "passes", unplaced)
    rows = rows.assign(end_ns=rows["start_ns"] + rows["dur_ns"])
    for replica, mine in _hosts(rows, "replica"):
        fills = (mine["prefill_tokens"].fillna(0) > 0).to_numpy()
        text = np.where(fills, "prefill pass", "decode pass").astype(object)
        code = np.where(fills, CODE["prefill"], CODE["decode"]).astype(np.uint8)
        number = mine["order"].to_numpy(dtype=np.int64, na_value=NONE)
        yield _ns(Lane(SERVING, replica, None, "engine", "pass"), mine, text, code, number=number)


def _codes(kinds: NDArray[np.object_]) -> NDArray[np.uint8]:
    return np.array([CODE.get(str(kind), CODE["other"]) for kind in kinds], dtype=np.uint8)
