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

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.time.device_time import PRODUCTS
from analyzers.time.job_past import steps_taken
from analyzers.timeline.pyramid import Ints
from runs.accounts import ACCOUNTS
from runs.tables import Tables, frame, int_column

CODES = (*ACCOUNTS, "host")
CODE = {name: i for i, name in enumerate(CODES)}
JOB, SERVING, DEVICE, HOST = "job", "serving", "device", "host"
GROUPS = (JOB, SERVING, DEVICE, HOST)
ROLES = ("step", "module", "compute", "async", "other")
OF_CATEGORY = {
    "collective": "exposed_communication",
    "copy": "exposed_copies",
    "infeed": "input_wait",
    "outfeed": "input_wait",
    "control": "unattributed",
    "annotation": "unattributed",
    "host": "host",
}
NONE = -1
PS_PER_NS = 1_000
FARTHEST_PS = 1 << 60  # of a capture: 13 days
UNTOLD = np.iinfo(np.int64).max
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
    `text`: what they are called; `number`: of the step, request or pass, NONE where it has none; `code`: in CODES;
    `whole`: those of one number stand in one row, as the phases of a request do; None: each by itself; `capture`,
    `event`, `op`: in `op_events`, NONE where they are of another table; `dated`: whether `base_ns` is a time of day."""

    lane: Lane
    base_ns: int
    per_ns: int
    start: Ints
    dur: Ints
    text: NDArray[np.object_]
    code: NDArray[np.uint8]
    number: Ints | None = None
    whole: Ints | None = None
    capture: int = NONE
    event: Ints | None = None
    op: Ints | None = None
    dated: bool = True


def parts(tables: Tables, facts: Facts, unplaced: Counter[str]) -> Iterator[Part]:
    """All events of a run that have a place in time. `unplaced`: of each table, how many rows have none, is filled."""
    yield from _job(tables, unplaced)
    yield from _steps(tables, facts, unplaced)
    yield from _requests(tables, unplaced)
    yield from _passes(tables, unplaced)
    yield from _traced(tables)


def _ns(
    lane: Lane,
    rows: pd.DataFrame,
    text: NDArray[np.object_],
    code: NDArray[np.uint8],
    number: Ints | None = None,
    whole: Ints | None = None,
) -> Part:
    """From columns `start_ns` and `end_ns`."""
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    dur = rows["end_ns"].to_numpy(dtype=np.int64) - start
    base = int(start.min()) if len(start) else 0
    return Part(lane, base, 1, start - base, dur, text, code, number, whole)


def _texts(values: pd.Series) -> NDArray[np.object_]:
    return values.astype(object).where(values.notna(), "").to_numpy(dtype=object)


def _hosts(rows: pd.DataFrame, column: str = "host") -> Iterator[tuple[str, pd.DataFrame]]:
    for host, mine in rows.groupby(_texts(rows[column]), sort=True):
        yield str(host), mine


def _placed(rows: pd.DataFrame, times: list[str], table: str, unplaced: Counter[str]) -> pd.DataFrame:
    """Those with all of these times, the first of them a time of day."""
    kept = rows.dropna(subset=times)
    kept = kept[kept[times[0]] > 0]
    unplaced[table] += len(rows) - len(kept)
    return kept


def _job(tables: Tables, unplaced: Counter[str]) -> Iterator[Part]:
    rows = frame(tables, "lifecycle", ["kind", "start_ns", "end_ns", "host", "detail"])
    rows = rows[~rows["kind"].isin(INSTANT)]
    rows = _placed(rows, ["start_ns", "end_ns"], "entries of the job", unplaced)
    for host, mine in _hosts(rows):
        kind = _texts(mine["kind"])
        said = np.array([str(name).replace("_", " ") for name in kind], dtype=object)
        named = np.where(kind == "custom", _texts(mine["detail"]), said).astype(object)
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
        untold = mine["first_token_ns"].isna().to_numpy()  # when its prefill ended is not known
        text[1::3][untold], code[1::3][untold] = "served", CODE["served"]
        kept = (some["end_ns"] > some["start_ns"]).to_numpy()
        lane = Lane(SERVING, replica, None, "requests", "request")
        yield _ns(lane, some[kept], text[kept], code[kept], number=number[kept], whole=number[kept])


def _passes(tables: Tables, unplaced: Counter[str]) -> Iterator[Part]:
    rows = frame(tables, "iterations", ["order", "replica", "start_ns", "dur_ns", "prefill_tokens", "decode_tokens"])
    rows = _placed(rows, ["start_ns", "dur_ns"], "passes", unplaced)
    rows = rows.assign(end_ns=rows["start_ns"] + rows["dur_ns"])
    for replica, mine in _hosts(rows, "replica"):
        fills = (mine["prefill_tokens"].fillna(0) > 0).to_numpy()
        text = np.where(fills, "prefill pass", "decode pass").astype(object)
        code = np.where(fills, CODE["prefill"], CODE["decode"]).astype(np.uint8)
        number = mine["order"].to_numpy(dtype=np.int64, na_value=NONE)
        yield _ns(Lane(SERVING, replica, None, "engine", "pass"), mine, text, code, number=number)


def _traced(tables: Tables) -> Iterator[Part]:
    captures = frame(tables, "captures", ["capture", "start_ns"]).dropna(subset=["capture"]).drop_duplicates("capture")
    for capture, start_ns in zip(captures["capture"], captures["start_ns"], strict=True):
        dated = not pd.isna(start_ns) and int(start_ns) > 0
        yield from _captured(tables, int(capture), int(start_ns) if dated else 0, dated)


def _captured(tables: Tables, capture: int, base_ns: int, dated: bool) -> Iterator[Part]:
    mine = [("capture", "==", capture)]
    ops = frame(tables, "ops", ["op_id", "host", "device", "line", "role", "op", "category"], mine)
    ops = ops.dropna(subset=["op_id"]).drop_duplicates(["op_id", "device"])
    rows = tables.arrow("op_events", ["op_id", "device", "event", "start_ps", "dur_ps"], mine)
    if not len(ops) or not rows.num_rows:
        return
    start, dur = int_column(rows, "start_ps", UNTOLD), int_column(rows, "dur_ps", UNTOLD)
    op, event = int_column(rows, "op_id", NONE), int_column(rows, "event", NONE)
    place = _places(ops, op, int_column(rows, "device", NONE))
    far = (start > FARTHEST_PS) | (start < -FARTHEST_PS) | (dur > FARTHEST_PS)
    place[far] = NONE  # not told, or no time of a capture
    names, codes = _texts(ops["op"]), _op_codes(ops)
    lane_of, lanes = _lanes(ops)
    lane = np.where(place >= 0, lane_of[np.maximum(place, 0)], NONE)
    order = np.argsort(lane, kind="stable")
    first = np.searchsorted(lane[order], np.arange(len(lanes) + 1))
    for n, found in enumerate(lanes):
        some = order[first[n] : first[n + 1]]
        which = place[some]
        yield Part(
            found, base_ns, PS_PER_NS, start[some], dur[some], names[which], codes[which],
            capture=capture, event=event[some], op=op[some], dated=dated,
        )  # fmt: skip


def _places(ops: pd.DataFrame, op: Ints, device: Ints) -> Ints:
    """Which row of `ops` each event is of, NONE where of none. Devices may number their operations alike; an event that
    does not say its device is of the only operation with its number."""
    of_op, of_device = (ops[n].to_numpy(dtype=np.int64, na_value=NONE) for n in ("op_id", "device"))
    numbers, which = np.unique(np.concatenate([of_op, op]), return_inverse=True)
    most = int(max(of_device.max(), device.max())) + 2
    keys = which * most + np.concatenate([of_device, device]) + 1
    found = _found(keys[: len(ops)], keys[len(ops) :])
    alone = np.bincount(which[: len(ops)], minlength=len(numbers))[which[len(ops) :]] == 1
    by_number = _found(which[: len(ops)], which[len(ops) :])
    return np.where((found < 0) & alone & (op != NONE), by_number, found)


def _found(known: Ints, wanted: Ints) -> Ints:
    """Where each wanted number stands among the known ones, NONE where it does not."""
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return np.where(known[order][at] == wanted, order[at], NONE)


def _lanes(ops: pd.DataFrame) -> tuple[Ints, list[Lane]]:
    """(lane of each operation, the lanes)."""
    keys = pd.DataFrame({n: _texts(ops[n]) for n in ("host", "line", "role")})
    keys["device"] = ops["device"].to_numpy(dtype=np.int64, na_value=NONE)
    number = keys.groupby(list(keys), sort=True).ngroup().to_numpy()
    some = keys.assign(number=number).drop_duplicates("number").sort_values("number")
    lanes: list[Lane] = []
    for row in some.to_dict("records"):
        device = None if row["device"] == NONE else int(row["device"])
        lanes.append(Lane(HOST if device is None else DEVICE, row["host"], device, row["line"], row["role"]))
    return number.astype(np.int64), lanes


def _op_codes(ops: pd.DataFrame) -> NDArray[np.uint8]:
    category, role = _texts(ops["category"]), _texts(ops["role"])
    on_host = ops["device"].isna().to_numpy()
    found = np.full(len(ops), CODE["below_roofline"], np.uint8)
    for name in PRODUCTS:
        found[category == name] = CODE["useful_maths"]
    for name, account in OF_CATEGORY.items():
        found[category == name] = CODE[account]
    found[(role == "step") | (role == "module")] = CODE["productive"]
    found[(role == "other") | (role == "")] = CODE["other"]
    found[on_host & (role != "compute")] = CODE["host"]
    return found


def _codes(kinds: NDArray[np.object_]) -> NDArray[np.uint8]:
    return np.array([CODE.get(str(kind), CODE["other"]) for kind in kinds], dtype=np.uint8)
